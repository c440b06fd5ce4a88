import { createHash } from 'node:crypto'
import { backoffMs } from '../contract/backoff.js'
import type { OnPoint } from '../contract/points.js'
import type { ClaimedDelivery, RefuseItem, StepResult, TakeItem, TakeReply } from '../contract/steps.js'
import { redrive } from './attempts.js'
import type { Arrival, Lanes, Work } from './lanes.js'
import type { NodeLog } from './log.js'
import type { Mirror } from './mirror.js'

export interface HandoffOptions {
  readonly mirror: Mirror
  readonly lanes: Lanes
  /** The steps, each repeated until it is answered. */
  readonly steps: {
    take(items: readonly TakeItem[]): Promise<TakeReply>
    refuse(items: readonly RefuseItem[]): Promise<readonly StepResult[]>
  }
  readonly log: NodeLog
  readonly onPoint: OnPoint | undefined
}

/**
 * Takes claimed deliveries on: digest checked, copy durable, then mirrored and acknowledged in one call, in which those
 * that can run at once are begun as well.
 */
export type Handoff = (claimed: readonly ClaimedDelivery[]) => Promise<void>

export function createHandoff(options: HandoffOptions): Handoff {
  const { mirror, lanes, steps, log, onPoint } = options

  return async (claimed) => {
    const fresh = claimed.filter((each) => isOpen(each) && (lanes.epochOf(each.id) ?? -1) < each.epoch)
    const good = await refuseCorrupt(fresh)
    if (good.length === 0) return
    const stored = mirror.storeCopies(good.map(copyOf)).then(() => onPoint?.('copy.stored'))
    // A grant of the same commit may fail before it is waited for.
    stored.catch(() => undefined)
    // What a lane starts at once mints its grant now: copy and grant are durable by one commit.
    const arrivals = good.map(takeOn)
    try {
      const items = await Promise.all(arrivals.map((arrival) => arrival.item()))
      await stored
      await settle(arrivals, await steps.take(items))
    } catch (error) {
      for (const arrival of arrivals) arrival.fail(error)
      throw error
    }
  }

  async function settle(arrivals: readonly OpenArrival[], { results, begun }: TakeReply): Promise<void> {
    const begins = new Map(begun.map((answer) => [answer.id, answer]))
    const refused = results.filter((answer) => !answer.ok)
    for (const answer of refused) {
      const { id: delivery, code, owner } = answer
      log.info({ delivery, code, owner }, 'refused; the copy is dropped')
    }
    if (refused.length > 0) await mirror.dropCopies(refused.map(({ id }) => id))
    for (const [at, arrival] of arrivals.entries()) {
      const answer = results[at]
      if (answer === undefined)
        throw new Error(`${arrivals.length} were handed off, ${results.length} answered`)
      arrival.end({ accepted: answer.ok, begun: begins.get(answer.id) })
    }
  }

  /** A redrive goes on where an earlier process of this node left it: its backoff is kept in the mirror. */
  function takeOn(claimed: ClaimedDelivery): OpenArrival {
    const known = claimed.how === 'resume' ? mirror.copy(claimed.id) : undefined
    const arrival = openArrival(claimed)
    const work = { ...workOf(claimed), tries: known?.tries ?? 0, arrival }
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
    return arrival
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
}

interface OpenArrival extends Arrival {
  /** What is sent for it; nothing can join from then on. */
  item(): Promise<TakeItem>
  end(answer: Awaited<Arrival['answer']>): void
  fail(error: unknown): void
}

function openArrival({ id, epoch }: ClaimedDelivery): OpenArrival {
  let open = true
  let joined: { grant: string; minted: Promise<boolean> } | undefined
  let end: OpenArrival['end'] = () => undefined
  let fail: OpenArrival['fail'] = () => undefined
  const answer: Arrival['answer'] = new Promise((resolve, reject) => {
    end = resolve
    fail = reject
  })
  // Its lane may not have come to it when the handoff fails.
  answer.catch(() => undefined)
  return {
    get open() {
      return open
    },
    answer,
    join: (grant, minted) => {
      // The handoff may have failed by the time this does.
      minted.catch(() => undefined)
      joined = { grant, minted }
    },
    item: async () => {
      open = false
      return joined !== undefined && (await joined.minted)
        ? { id, epoch, grant: joined.grant }
        : { id, epoch }
    },
    end,
    fail,
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
