/**
 * Every named point at which a process may die in the middle of its work: around each call (before it, sent
 * but not answered, answered but not acted on) and around each durable step of a node. Tests kill real
 * processes at each of them; `onPoint` is their seam, and does nothing in production.
 */
export const points = [
  'accept.before',
  'accept.sent',
  'accept.answered',
  'fan_out.before',
  'fan_out.sent',
  'fan_out.answered',
  'claim.before',
  'claim.sent',
  'claim.answered',
  'copy.stored',
  'grant.stored',
  'take.before',
  'take.sent',
  'take.answered',
  'begin.before',
  'begin.sent',
  'begin.answered',
  'start.marked',
  'execute.entered',
  'execute.left',
  'outcome.stored',
  'report.before',
  'report.sent',
  'report.answered',
  'report.settled',
] as const

/** One of {@link points}. */
export type Point = (typeof points)[number]

/** Told when a point is reached, synchronously. */
export type OnPoint = (point: Point) => void

type CalledVerb = 'accept' | 'fan_out' | 'claim' | 'take' | 'begin' | 'report'

/** What the caller is told while a call is under way. */
export interface Sending {
  /** Called once, synchronously, right after the call has been handed to the socket. */
  readonly onSent?: (() => void) | undefined
}

/** Makes one call with its three points around it. */
export async function aroundCall<Reply>(
  verb: CalledVerb,
  onPoint: OnPoint | undefined,
  call: (sending: Sending) => Promise<Reply>,
): Promise<Reply> {
  if (onPoint === undefined) return call({})
  onPoint(`${verb}.before`)
  const reply = await call({ onSent: () => onPoint(`${verb}.sent`) })
  onPoint(`${verb}.answered`)
  return reply
}
