import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { backoffMs } from '../contract/backoff.js'
import type {
  EffectBasis,
  EffectCalls,
  EffectClaimed,
  EffectRefused,
  EffectSettled,
  EffectUnknown,
} from '../contract/effects.js'
import { HoldfastError, isHoldfastError, isRepeatable } from '../contract/errors.js'
import { checkOptions, option } from '../contract/options.js'
import {
  isReturnedError,
  type NotSent,
  type Outcome,
  type ProbeAnswer,
  type Terminal,
} from '../contract/outcomes.js'
import { hashPayload } from '../contract/payload-hash.js'
import { hubForm, optionsForm, requestForm } from './effect-forms.js'
import { executed, probed, recorded, shortened, unknownBecause } from './effect-outcomes.js'

/** One non-idempotent action, under an id that its caller mints and uses again for every retry. */
export interface EffectRequest {
  /** What names the intent: the same for every retry, 1 to 255 bytes of printable ASCII. */
  readonly id: string
  /** What kind of action it is, such as `charge`. */
  readonly type: string
  /** What is meant: a retry with another payload is `PAYLOAD_MISMATCH`. */
  readonly payload: unknown
  /** JSON pointers of members that may differ between retries. */
  readonly leaveOut?: readonly string[] | undefined
  /** Asks the target what became of it, before anything is ever repeated. */
  readonly probe?: ((effect: EffectAttempt) => Promise<ProbeAnswer> | ProbeAnswer) | undefined
  /** Doing it twice is the same as doing it once. */
  readonly idempotent?: boolean | undefined
  /** Milliseconds for `execute`; 30,000 when absent. Nobody takes the effect over earlier. */
  readonly timeLimitMs?: number | undefined
}

/** What `execute` and `probe` are given. */
export interface EffectAttempt {
  /** A fit idempotency key for the target. */
  readonly id: string
  /** Grows with every take-over; pass it on to targets that can refuse an old one. */
  readonly epoch: number
  /** Aborted at the time limit. */
  readonly signal: AbortSignal
  /**
   * Whether the grant is still young enough to begin. Ask directly before the first byte leaves, and return
   * `notSent()` when it is not: after its time limit somebody else may have taken over.
   */
  isFresh(): boolean
}

/** How an effect went. What nobody can know is a case of its own. */
export type EffectOutcome<Value = unknown> =
  | { readonly kind: 'result'; readonly value: Value; readonly replayed: boolean }
  | { readonly kind: 'terminal'; readonly errorCode: string; readonly errorJson?: string | undefined }
  | { readonly kind: 'not_sent'; readonly errorCode: string; readonly errorJson?: string | undefined }
  | EffectUnknown

/** The failure that a handler returns instead of throwing it; of a value of type `any` nothing is known. */
type Ambiguous<Value> = 0 extends 1 & Value
  ? never
  : Value extends NotSent | Terminal
    ? never
    : Value extends Error | { readonly kind: 'outcome_unknown' | 'not_sent' | 'terminal' | 'unknown' }
      ? Value
      : never

/** Nothing, or the complaint that a handler returns a failure. */
export type ThrowInstead<Value> = [Ambiguous<Value>] extends [never]
  ? []
  : ['an ambiguous failure is thrown, never returned: use notSent() or terminal() for what is proven']

/** Runs effects, each at most once. */
export interface Effects {
  /**
   * Runs an action at most once, across retries, restarts, processes and hosts. What `execute` returns is the
   * result, unless it is `notSent()` or `terminal()`; whatever it throws is thrown on, and the outcome stays
   * unknown until a probe, a declared-idempotent replay or an operator settles it.
   * @throws PAYLOAD_MISMATCH, INVALID_ARGUMENT, STORE_UNAVAILABLE, DEADLINE_EXCEEDED, and what `execute` throws
   */
  run<Value>(
    request: EffectRequest,
    execute: (effect: EffectAttempt) => Promise<Value> | Value,
    ...ambiguous: ThrowInstead<Awaited<Value>>
  ): Promise<EffectOutcome<Exclude<Awaited<Value>, NotSent | Terminal>>>
}

/** Options of {@link createEffects}. */
export interface EffectsOptions {
  /** Who executes: a stable name, the same after a restart. */
  readonly executor: string
  /**
   * Milliseconds that this process watches an open effect before it may take it over, beside the age by the
   * clock of Redis; 60,000 when absent. A jump of that clock licenses nothing.
   */
  readonly recoveryAgeMs?: number | undefined
  /** Milliseconds in which each call must be answered; 30,000 when absent. */
  readonly deadlineMs?: number | undefined
  /** Seam for tests: the monotonic and the wall clock, milliseconds; those of this process when absent. */
  readonly clock?:
    | {
        /** Milliseconds that only grow. */
        monotonic(): number
        /** Unix milliseconds. */
        wall(): number
      }
    | undefined
}

const defaults = { recoveryAgeMs: 60_000, deadlineMs: 30_000, timeLimitMs: 30_000 }
const retry = { leastMs: 50, mostMs: 2000 }
const watchedAtMost = 10_000
/** A timer set for longer fires at once. */
const longestTimer = 2 ** 31 - 1

/** What heeds its signal has ended by then; what does not is waited for no longer. */
const heedWithinMs = 1000

/** Its signal was aborted, and it went on. */
class Overrun extends Error {
  readonly course: Promise<unknown>

  constructor(timeLimitMs: number, course: Promise<unknown>) {
    super(`it went on after its time limit of ${timeLimitMs} ms`)
    this.course = course
  }
}

interface Flight {
  readonly type: string
  readonly hash: string
  readonly outcome: Promise<EffectOutcome>
}

/** The call's parts, settled once. */
interface Running {
  readonly request: EffectRequest
  readonly hash: string
  readonly grant: string
  readonly timeLimitMs: number
  /** Both clocks, from before the claim was sent. */
  readonly since: { readonly monotonic: number; readonly wall: number }
  execute(effect: EffectAttempt): unknown
}

/** Effects over a hub (contract section 4), over the record or over HTTP alike. @throws INVALID_ARGUMENT */
export function createEffects(calls: EffectCalls, options: EffectsOptions): Effects {
  checkOptions('createEffects', optionsForm, options, { hub: [hubForm, calls] })
  const { executor, recoveryAgeMs = defaults.recoveryAgeMs, deadlineMs = defaults.deadlineMs } = options
  const clock = options.clock ?? { monotonic: () => performance.now(), wall: () => Date.now() }
  /** Concurrent duplicates share one flight; losing the map is harmless, the record is the truth. */
  const flights = new Map<string, Flight>()
  /** When this process first saw an effect open at an epoch. */
  const firstSeen = new Map<string, number>()

  async function untilAnswered<Reply>(call: () => Promise<Reply>): Promise<Reply> {
    const deadlineAt = clock.monotonic() + deadlineMs
    for (let failures = 1; ; failures += 1) {
      try {
        return await call()
      } catch (error) {
        const waitMs = backoffMs(retry, failures)
        if (!isRepeatable(error) || clock.monotonic() + waitMs > deadlineAt) throw error
        await sleep(waitMs)
      }
    }
  }

  async function start(running: Running): Promise<EffectOutcome> {
    const { request, hash, grant, timeLimitMs } = running
    const claim = { type: request.type, payloadHash: hash, executor, grant, timeLimitMs }
    const answer = await untilAnswered(() => calls.claimEffect(request.id, claim))
    if (answer.kind === 'claimed') return carryOut(running, answer)
    if (answer.kind !== 'outcome_unknown') return recorded(answer)
    return recover(running, answer)
  }

  /** Takes an open effect over on a basis, once it is old enough by both clocks; else it stays unknown. */
  async function recover(running: Running, open: EffectUnknown): Promise<EffectOutcome> {
    const { request, hash, grant, timeLimitMs } = running
    const basis = basisOf(request)
    if (basis === undefined || !isOldEnough(request.id, open)) return open
    const { epoch, startedAt } = open
    const call = { payloadHash: hash, executor, grant, basis, epoch, startedAt, timeLimitMs }
    const answer = await untilAnswered(() => calls.takeOverEffect(request.id, call))
    if (answer.kind === 'refused') return lost(answer)
    firstSeen.delete(seenKey(request.id, open))
    if (basis === 'idempotent' || request.probe === undefined) return carryOut(running, answer)
    return probe(running, answer, request.probe)
  }

  function isOldEnough(id: string, open: EffectUnknown): boolean {
    const key = seenKey(id, open)
    const seenAt = firstSeen.get(key) ?? clock.monotonic()
    if (firstSeen.size >= watchedAtMost && !firstSeen.has(key)) {
      for (const oldest of firstSeen.keys()) {
        firstSeen.delete(oldest)
        break
      }
    }
    firstSeen.set(key, seenAt)
    return clock.monotonic() - seenAt >= recoveryAgeMs
  }

  /** Whoever lost is told the new row: another has it, or it is settled by now. */
  function lost({ epoch, startedAt, executor: owner, ageMs }: EffectRefused): EffectOutcome {
    return { kind: 'outcome_unknown', epoch, startedAt, executor: owner, ageMs }
  }

  async function probe(
    running: Running,
    claimed: EffectClaimed,
    ask: NonNullable<EffectRequest['probe']>,
  ): Promise<EffectOutcome> {
    const known = await withLimit(running, claimed, async (effect) => probed(await ask(effect))).catch(
      (error: unknown) => unknownBecause('probe_failed', error),
    )
    return known === 'not_executed' ? carryOut(running, claimed) : settle(running, claimed, known)
  }

  async function carryOut(running: Running, claimed: EffectClaimed): Promise<EffectOutcome> {
    if (!isFresh(running)) {
      return settle(running, claimed, { kind: 'not_sent', errorCode: 'grant_too_old' })
    }
    let value: unknown
    try {
      value = await withLimit(running, claimed, async (effect) => await running.execute(effect))
      if (isReturnedError(value)) throw value
    } catch (error) {
      if (error instanceof Overrun) return overran(running, claimed, error)
      // Nobody can know: the row stays executing, and is listed.
      await settle(running, claimed, unknownBecause('execute_threw', error)).catch(() => undefined)
      throw error
    }
    return settle(running, claimed, executed(value))
  }

  /** Nobody waits for it any more; what it comes to all the same is recorded then, under its grant. */
  async function overran(running: Running, claimed: EffectClaimed, overrun: Overrun): Promise<EffectOutcome> {
    try {
      return await settle(running, claimed, unknownBecause('timeout', overrun))
    } finally {
      void overrun.course
        .then((value) => (isReturnedError(value) ? undefined : settle(running, claimed, executed(value))))
        .catch(() => undefined)
    }
  }

  async function withLimit<Value>(
    running: Running,
    { epoch }: EffectClaimed,
    run: (effect: EffectAttempt) => Promise<Value>,
  ): Promise<Value> {
    const controller = new AbortController()
    const isYoung = () => isFresh(running)
    const course = run({ id: running.request.id, epoch, signal: controller.signal, isFresh: isYoung })
    let timer: NodeJS.Timeout | undefined
    const overrun = new Promise<never>((_, reject) => {
      const stop = () => {
        controller.abort(new DOMException('the time limit was reached', 'TimeoutError'))
        timer = setTimeout(() => reject(new Overrun(running.timeLimitMs, course)), heedWithinMs)
      }
      timer = setTimeout(stop, Math.min(Math.max(0, running.timeLimitMs - ageOf(running)), longestTimer))
    })
    try {
      return await Promise.race([course, overrun])
    } finally {
      clearTimeout(timer)
    }
  }

  function isFresh(running: Running): boolean {
    return ageOf(running) < running.timeLimitMs
  }

  /** By the clock that says more: a suspended process wakes with one of them behind. */
  function ageOf({ since }: Running): number {
    return Math.max(clock.monotonic() - since.monotonic, clock.wall() - since.wall)
  }

  async function settle(running: Running, claimed: EffectClaimed, outcome: Outcome): Promise<EffectOutcome> {
    const settlement = { executor, grant: running.grant, epoch: claimed.epoch }
    const send = (body: Outcome) =>
      untilAnswered(() => calls.settleEffect(running.request.id, { ...settlement, outcome: body }))
    const answer = await send(outcome).catch((error: unknown) => {
      if (!isHoldfastError(error, 'RESULT_TOO_LARGE')) throw error
      return send(shortened(outcome, error.message))
    })
    if (answer.kind === 'refused') return lost(answer)
    return asRecorded(answer, outcome, claimed)
  }

  function asRecorded(settled: EffectSettled, outcome: Outcome, claimed: EffectClaimed): EffectOutcome {
    if (settled.outcome === 'outcome_unknown' || outcome.kind === 'outcome_unknown') {
      const ageMs = Math.max(0, clock.wall() - claimed.startedAt)
      return { kind: 'outcome_unknown', epoch: claimed.epoch, startedAt: claimed.startedAt, executor, ageMs }
    }
    if (outcome.kind === 'result') {
      return { kind: 'result', value: JSON.parse(outcome.result) as unknown, replayed: false }
    }
    return { kind: outcome.kind, errorCode: outcome.errorCode, errorJson: outcome.errorJson }
  }

  function fly(request: EffectRequest, execute: (effect: EffectAttempt) => unknown): Promise<EffectOutcome> {
    const hash = hashPayload(request.payload, { leaveOut: request.leaveOut })
    const flying = flights.get(request.id)
    if (flying !== undefined) {
      if (flying.hash === hash && flying.type === request.type) return flying.outcome
      const text = `effect ${request.id} is under way here as ${flying.type} with payload hash ${flying.hash}, not as ${request.type} with ${hash}`
      return Promise.reject(new HoldfastError('PAYLOAD_MISMATCH', text))
    }
    const timeLimitMs = request.timeLimitMs ?? defaults.timeLimitMs
    const since = { monotonic: clock.monotonic(), wall: clock.wall() }
    const running: Running = { request, hash, grant: randomUUID(), timeLimitMs, since, execute }
    const outcome = start(running).finally(() => flights.delete(request.id))
    flights.set(request.id, { type: request.type, hash, outcome })
    return outcome
  }

  return {
    run: async (request, execute, ..._ambiguous) => {
      checkOptions('effects.run', requestForm, request, { execute: [option.function, execute] })
      return (await fly(request, execute)) as never
    },
  }
}

function basisOf({ probe, idempotent }: EffectRequest): EffectBasis | undefined {
  if (probe !== undefined) return 'probe'
  return idempotent === true ? 'idempotent' : undefined
}

function seenKey(id: string, { epoch }: EffectUnknown): string {
  return `${epoch} ${id}`
}
