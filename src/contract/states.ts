/** The states of a delivery (contract section 3). */
export const deliveryStates = [
  'queued',
  'claimed',
  'mirrored',
  'delivered',
  'held',
  'failed',
  'unknown',
] as const
/** Where a delivery is: one of {@link deliveryStates}. */
export type DeliveryState = (typeof deliveryStates)[number]

export function isDeliveryState(word: string): word is DeliveryState {
  return (deliveryStates as readonly string[]).includes(word)
}

/** One row of the transition table: what may move a delivery from one state to another. */
export interface Transition {
  readonly from: DeliveryState | 'none'
  readonly to: DeliveryState
  readonly by: string
}

/**
 * Every transition the functions make. The drawing in the README shows these rows and a test compares
 * the log of a long run with them: no other transition exists.
 */
export const transitions: readonly Transition[] = [
  { from: 'none', to: 'queued', by: 'accept, fan_out' },
  { from: 'queued', to: 'claimed', by: 'claim' },
  {
    from: 'queued',
    to: 'queued',
    by: 'claim under a pause (parked); claim of a parked one whose entry was gone; rehome',
  },
  {
    from: 'queued',
    to: 'held',
    by: 'claim under a hold; hold_delivery; retire, sweep_stale; fan_out to a retired host',
  },
  {
    from: 'queued',
    to: 'failed',
    by: 'claim: blocked, expired, its session missing; sweep_deadlines; cancel',
  },
  { from: 'queued', to: 'unknown', by: 'attest' },
  { from: 'claimed', to: 'claimed', by: 'claim: resume, takeover' },
  { from: 'claimed', to: 'mirrored', by: 'mirror' },
  { from: 'claimed', to: 'queued', by: 'rehome' },
  { from: 'claimed', to: 'failed', by: 'refuse; cancel' },
  { from: 'claimed', to: 'unknown', by: 'refuse; attest' },
  {
    from: 'claimed',
    to: 'held',
    by: 'refuse (payload_corrupt); claim (poison); hold_delivery; retire, sweep_stale',
  },
  { from: 'mirrored', to: 'mirrored', by: 'claim: resume, takeover' },
  { from: 'mirrored', to: 'delivered', by: 'ack' },
  { from: 'mirrored', to: 'queued', by: 'rehome' },
  { from: 'mirrored', to: 'failed', by: 'refuse; cancel' },
  { from: 'mirrored', to: 'unknown', by: 'refuse; attest' },
  {
    from: 'mirrored',
    to: 'held',
    by: 'refuse (payload_corrupt); claim (poison); hold_delivery; retire, sweep_stale',
  },
  { from: 'delivered', to: 'delivered', by: 'claim: resume, takeover; begin' },
  {
    from: 'delivered',
    to: 'queued',
    by: 'report: not_sent by anyone but the live owner; resolve_attempt: not_sent; rehome',
  },
  {
    from: 'delivered',
    to: 'failed',
    by: 'begin, take: blocked, expired, its session missing; sweep_deadlines, sweep_reports; cancel',
  },
  {
    from: 'delivered',
    to: 'held',
    by: 'begin under a hold; report (redrive_exhausted); refuse (payload_corrupt); claim (poison); hold_delivery; retire, sweep_stale',
  },
  { from: 'delivered', to: 'unknown', by: 'attest' },
  {
    from: 'held',
    to: 'queued',
    by: 'release; lift or lapse of the hold that keeps it; open_session; rehome from the host that kept it',
  },
  { from: 'held', to: 'failed', by: 'reject; cancel' },
  { from: 'held', to: 'held', by: 'hold_delivery; lift of a hold on a retired host; rehome' },
  { from: 'unknown', to: 'queued', by: 'resolve_delivery' },
  { from: 'unknown', to: 'held', by: 'resolve_delivery on a retired host' },
  { from: 'unknown', to: 'failed', by: 'resolve_delivery' },
]
