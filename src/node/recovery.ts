import { setTimeout as sleep } from 'node:timers/promises'
import { backoffMs } from '../contract/backoff.js'
import type { Outcome } from '../contract/outcomes.js'
import { type AttemptNode, attemptOf } from './attempt.js'
import type { Prober } from './executor.js'
import { describe } from './executors/function.js'
import type { Work } from './lanes.js'
import type { NodeLog } from './log.js'
import type { Mirror, StoredCopy, StoredGrant } from './mirror.js'
import { inForm } from './outcome-form.js'
import { type OutgoingReport, type Reports, stillUnknown } from './reports.js'

/** What becomes of the attempts that an earlier process of this node left open. */
export interface Recovery {
  /**
   * Reports what is known: outcomes without an answer, and grants that were never started. What may have run is
   * reported unknown, unless somebody can be asked.
   */
  conclude(): Promise<void>
  /** Asks probes, and begins again what is declared idempotent, until all is settled or `stop`. */
  settle(): void
  /** Asks nothing more; resolves when no question is open. */
  stop(): Promise<void>
}

export interface RecoveryOptions extends AttemptNode {
  readonly mirror: Mirror
  readonly reports: Reports
  readonly prober: Prober | undefined
  /** Doing an attempt twice is the same as doing it once. */
  readonly idempotent: boolean
  readonly probeTimeLimitMs: number
  /** Questions that are open at a time. */
  readonly concurrency: number
  /** What the hub takes, as of the last join. */
  maxResultBytes(): number | undefined
  /** Whether anything of the executor that ran under a grant may still act. */
  mayAct(grant: StoredGrant): boolean
  /** Takes up work that an earlier process began. */
  beginAgain(work: Work): void
  readonly log: NodeLog
}

const stillActs = { leastMs: 200, mostMs: 10_000 }
const askAgain = { leastMs: 2000, mostMs: 300_000 }

/**
 * Recovers open attempts as contract section 4, rule 6 demands: nothing is asked, let alone repeated, while the old
 * executor could still act. Its process is gone, for this one holds the mirror's lock; its children are looked for.
 */
export function createRecovery(options: RecoveryOptions): Recovery {
  const { mirror, reports, log } = options
  const halt = new AbortController()
  const canSettle = options.prober !== undefined || options.idempotent
  const waiting: StoredGrant[] = []
  const working = new Set<Promise<void>>()
  const inTurn = turns(options.concurrency)

  async function conclude(): Promise<void> {
    await reports.sendUnanswered()
    await Promise.all(mirror.recovery().grants.map(concludeGrant))
  }

  async function concludeGrant(grant: StoredGrant): Promise<void> {
    if (grant.startedAtMs === undefined) {
      await reports.send({ ...about(grant), outcome: neverStarted, final: true })
      return
    }
    if (canSettle) waiting.push(grant)
    const acts = options.mayAct(grant)
    if (canSettle && !acts) return
    if (grant.endedAtMs !== undefined) await reports.send({ ...stillUnknown(grant), final: !acts })
    else await reports.send({ ...about(grant), outcome: executorDied(grant, acts), final: !acts })
  }

  /** Each for itself: one that nobody can tell of keeps no other waiting. */
  function settle(): void {
    for (const grant of waiting.splice(0)) {
      const work = settleGrant(grant).catch((error: unknown) => {
        const { delivery } = grant
        if (!halt.signal.aborted)
          log.error({ delivery, error: String(error) }, 'an attempt is recovered no further')
      })
      working.add(work)
      void work.finally(() => working.delete(work))
    }
  }

  async function settleGrant(grant: StoredGrant): Promise<void> {
    await untilNothingActs(grant)
    for (let pass = 1; !halt.signal.aborted; pass += 1) {
      // It may have been settled meanwhile, because its delivery came back.
      if (!mirror.holdsGrant(grant.grant)) return
      const copy = mirror.copy(grant.delivery)
      if (copy === undefined) return await giveUp(grant, 'no_copy')
      if (await askedAndKnown(grant, copy, pass)) return
      if (options.idempotent) return options.beginAgain(workOf(grant, copy))
      await sleep(backoffMs(askAgain, pass), undefined, { signal: halt.signal, ref: false })
    }
  }

  async function untilNothingActs(grant: StoredGrant): Promise<void> {
    for (let looks = 1; options.mayAct(grant); looks += 1) {
      await sleep(backoffMs(stillActs, looks), undefined, { signal: halt.signal, ref: false })
    }
  }

  /** True when the probe knew. Each question that was not answered is told to the record: it counts them. */
  async function askedAndKnown(grant: StoredGrant, copy: StoredCopy, pass: number): Promise<boolean> {
    if (options.prober === undefined) return false
    const { prober } = options
    const outcome = await inTurn(() => ask(prober, grant, copy))
    if (halt.signal.aborted) return true
    log.info({ delivery: grant.delivery, outcome: outcome.kind, pass }, 'probed')
    const answer = await reports.send({ ...about(grant), outcome, final: true, pass })
    const isKnown = outcome.kind !== 'outcome_unknown' || (!answer.ok && answer.code === 'ALREADY_SETTLED')
    if (isKnown) await mirror.dropCopy(grant.delivery, grant.epoch)
    return isKnown
  }

  async function ask(prober: Prober, grant: StoredGrant, copy: StoredCopy): Promise<Outcome> {
    halt.signal.throwIfAborted()
    const question = new AbortController()
    const end = () => question.abort(halt.signal.reason)
    const limit = setTimeout(() => question.abort(timeLimitReached()), options.probeTimeLimitMs)
    halt.signal.addEventListener('abort', end)
    try {
      const attempt = attemptOf(options, workOf(grant, copy), grant.attempt ?? 1, question.signal)
      const answer: unknown = await Promise.race([prober.ask(attempt), cut(question.signal)])
      return inForm(answer, 'probe_answer', options.maxResultBytes())
    } catch (error) {
      const errorJson = JSON.stringify(describe(error))
      return { kind: 'outcome_unknown', errorCode: 'probe_failed', errorJson }
    } finally {
      clearTimeout(limit)
      halt.signal.removeEventListener('abort', end)
    }
  }

  async function giveUp(grant: StoredGrant, errorCode: string): Promise<void> {
    await reports.send({ ...about(grant), outcome: { kind: 'outcome_unknown', errorCode }, final: true })
  }

  return {
    conclude,
    settle,
    stop: async () => {
      halt.abort(new Error('the node stops'))
      waiting.length = 0
      await Promise.all(working)
    },
  }
}

const neverStarted: Outcome = { kind: 'not_sent', errorCode: 'never_started' }

function timeLimitReached(): DOMException {
  return new DOMException('the time limit of the probe was reached', 'TimeoutError')
}

/** Runs so many at a time; the others wait in line. */
function turns(places: number): <Value>(run: () => Promise<Value>) => Promise<Value> {
  const line: (() => void)[] = []
  let free = places
  return async (run) => {
    if (free === 0) await new Promise<void>((resolve) => line.push(resolve))
    else free -= 1
    try {
      return await run()
    } finally {
      const next = line.shift()
      if (next === undefined) free += 1
      else next()
    }
  }
}

/** A probe that does not heed its signal is not waited for. */
function cut(signal: AbortSignal): Promise<Outcome> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => {
      resolve({ kind: 'outcome_unknown', errorCode: 'probe_failed', errorJson: '{"why":"timed_out"}' })
    })
  })
}

/** A start mark without an end: nobody can tell how it went. */
function executorDied(grant: StoredGrant, stillRunning: boolean): Outcome {
  const children = grant.children.map((child) => ({ pid: child.pid, group: child.group }))
  const errorJson = JSON.stringify({ startedAtMs: grant.startedAtMs, stillRunning, children })
  return { kind: 'outcome_unknown', errorCode: 'executor_died', errorJson }
}

function about(grant: StoredGrant): Pick<OutgoingReport, 'grant' | 'delivery' | 'attempt'> {
  const { grant: id, delivery, attempt } = grant
  return attempt === undefined ? { grant: id, delivery } : { grant: id, delivery, attempt }
}

function workOf(grant: StoredGrant, { session, message, payload, tries }: StoredCopy): Work {
  return {
    id: grant.delivery,
    epoch: grant.epoch,
    session,
    message,
    payload,
    tries,
    grant: grant.grant,
    replay: true,
  }
}
