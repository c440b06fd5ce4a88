import { createHash } from 'node:crypto'
import { backoffMs } from '../contract/backoff.js'
import type { OnPoint } from '../contract/points.js'
import type { ClaimedDelivery, RefuseItem, StepItem, StepResult } from '../contract/steps.js'
import { redrive } from './attempts.js'
import type { Lanes, Work } from './lanes.js'
import type { NodeLog } from './log.js'
import type { Mirror } from './mirror.js'

export interface HandoffOptions {
  readonly mirror: Mirror
  readonly lanes: Lanes
  /** The steps, each repeated until it is answered. */
  readonly steps: {
    mirror(items: readonly StepItem[]): Promise<readonly StepResult[]>
    ack(items: readonly StepItem[]): Promise<readonly StepResult[]>
    refuse(items: readonly RefuseItem[]): Promise<readonly StepResult[]>
  }
  readonly log: NodeLog
  readonly onPoint: OnPoint | undefined
}

/** Takes claimed deliveries on: digest checked, copy durable, mirrored, acknowledged, then queued to run. */
export type Handoff = (claimed: readonly ClaimedDelivery[]) => Promise<void>

export function createHandoff(options: HandoffOptions): Handoff {
  const { mirror, lanes, steps, log, onPoint } = options

  return async (claimed) => {
    const fresh = claimed.filter((each) => isOpen(each) && (lanes.epochOf(each.id) ?? -1) < each.epoch)
    const good = await refuseCorrupt(fresh)
    if (good.length === 0) return
    await mirror.storeCopies(good.map(copyOf))
    onPoint?.('copy.stored')
    const mirrored = await keepAccepted('mirror', good, 'claimed', steps.mirror)
    const acknowledged = await keepAccepted('ack', mirrored, 'mirrored', steps.ack)
    for (const each of acknowledged) takeOn(each)
  }

  /** A redrive goes on where an earlier process of this node left it: its backoff is kept in the mirror. */
  function takeOn(claimed: ClaimedDelivery): void {
    const known = claimed.how === 'resume' ? mirror.copy(claimed.id) : undefined
    const work = { ...workOf(claimed), tries: known?.tries ?? 0 }
    // Written by a clock that may have been put right since: never longer than a backoff can be.
    const leftMs = (known?.notBeforeMs ?? 0) - Date.now()
    lanes.add(
      work,
      Math.max(
        0,
        Math.min(
          leftMs,
          backoffMs(redrive, Math.max(1, work.tries), () => 1),
        ),
      ),
    )
  }

  async function refuseCorrupt(deliveries: readonly ClaimedDelivery[]): Promise<ClaimedDelivery[]> {
    const corrupt = deliveries.filter((each) => sha256(each.payload) !== each.message.sha256)
    if (corrupt.length === 0) return [...deliveries]
    log.error({ deliveries: corrupt.map((each) => each.id) }, 'payload does not match its digest; refused')
    await steps.refuse(
      corrupt.map(({ id, epoch }) => ({ id, epoch, verdict: 'failed', reason: 'payload_corrupt' })),
    )
    return deliveries.filter((each) => !corrupt.includes(each))
  }

  /** Takes the step for those that need it; drops the copies of those that were refused. */
  async function keepAccepted(
    step: 'mirror' | 'ack',
    deliveries: readonly ClaimedDelivery[],
    upTo: 'claimed' | 'mirrored',
    send: (items: readonly StepItem[]) => Promise<readonly StepResult[]>,
  ): Promise<ClaimedDelivery[]> {
    const due = deliveries.filter(
      (each) => each.state === 'claimed' || (upTo === 'mirrored' && each.state === 'mirrored'),
    )
    if (due.length === 0) return [...deliveries]
    const answers = await send(due.map(({ id, epoch }) => ({ id, epoch })))
    const refused = new Set<string>()
    for (const answer of answers) {
      if (answer.ok) continue
      refused.add(answer.id)
      log.info(
        { delivery: answer.id, step, code: answer.code, owner: answer.owner },
        'refused; the copy is dropped',
      )
    }
    if (refused.size > 0) await mirror.dropCopies([...refused])
    return deliveries.filter((each) => !refused.has(each.id))
  }
}

/** Steps exist for these states alone; a repeated answer may name deliveries that went on since. */
function isOpen(delivery: ClaimedDelivery): boolean {
  return delivery.state === 'claimed' || delivery.state === 'mirrored' || delivery.state === 'delivered'
}

function sha256(payload: Buffer): string {
  return createHash('sha256').update(payload).digest('hex')
}

function copyOf(claimed: ClaimedDelivery) {
  const { id, epoch, session, message, payload } = claimed
  return session === undefined
    ? { delivery: id, epoch, message, payload }
    : { delivery: id, epoch, session, message, payload }
}

function workOf(claimed: ClaimedDelivery): Work {
  const { id, epoch, session, message, payload } = claimed
  return { id, epoch, session, message, payload, tries: 0, grant: undefined, replay: false }
}
