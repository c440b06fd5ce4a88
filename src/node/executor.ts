import type { NotSent, Outcome, ProbeAnswer, Terminal } from '../contract/outcomes.js'
import type { ClaimedMessage } from '../contract/steps.js'

/** What an executor is given for one attempt. */
export interface Attempt {
  /**
   * `<delivery>/<n>`: a fit idempotency key for a target, the same for every repeat of this attempt. In a node of several
   * hubs the ids of attempt, delivery and message begin with the hub's name, as a hub set says them: `hf-3:<id>`. The
   * session is named as its hub knows it.
   */
  readonly id: string
  readonly deliveryId: string
  readonly number: number
  /** An earlier process began it already, and the handler is declared idempotent: begun again under the same id. */
  readonly replay: boolean
  /** Grows with every change of owner; pass it on to targets that can refuse an old one. */
  readonly epoch: number
  /** Name of the hub whose record holds the delivery. */
  readonly hub: string
  readonly host: string
  readonly node: string
  readonly target: { readonly host: string; readonly session?: string }
  readonly message: ClaimedMessage
  /** The payload, byte for byte as it was accepted. */
  readonly payload: Buffer
  /** Aborted at the time limit, or when the node must stop. */
  readonly signal: AbortSignal
}

/**
 * A user's handler. What it returns is the `result` (as JSON), unless it is {@link notSent} or
 * {@link terminal}. Whatever it throws is `outcome_unknown`: an exception proves nothing.
 */
export type ExecuteFunction = (attempt: Attempt) => unknown | NotSent | Terminal | Promise<unknown>

/**
 * A user's probe: asks the target what became of an attempt that an earlier process began (contract section 4, rule
 * 6). Whatever it throws is `unknown`. `not_executed` asserts that it has not happened and will not: only then is the
 * delivery tried again.
 */
export type ProbeFunction = (attempt: Attempt) => ProbeAnswer | Promise<ProbeAnswer>

/**
 * What asks a target. Its answer is an outcome of the attempt: `not_sent` asserts that the attempt has not
 * executed and will not, `outcome_unknown` that the target could not tell. `ask` never throws. What it answers that is no
 * outcome proves nothing: `outcome_unknown` with the code `probe_answer`.
 */
export interface Prober {
  /** Asks; a failure is the answer that nobody can tell. */
  ask(attempt: Attempt): Promise<Outcome>
}

/** One child process of an executor, identified so that a successor can tell whether it still lives. */
export interface ChildIdentity {
  readonly pid: number
  readonly group: number
  /** Clock ticks since boot, as text, as the kernel states it. */
  readonly startTime: string
  readonly bootId: string
  /** Of process ids: in another one the number names another process. Empty where the system has none. */
  readonly namespace: string
}

/**
 * What runs attempts. `run` should not throw: a failure is an outcome. What it throws all the same is `outcome_unknown`
 * with the code `executor_failed`; what it answers that is no outcome, with the code `executor_answer`. The code of an
 * outcome is made printable, 255 characters at most; a body that is no JSON text is left out, and says so.
 */
export interface Executor {
  /** Runs one attempt to its end. */
  run(attempt: Attempt, hooks: ExecutorHooks): Promise<Outcome>
}

/** What an executor tells its node while it runs, and is told by it. */
export interface ExecutorHooks {
  /** Called with the child before it may run its first instruction of the command; must be durable when it resolves. */
  childStarted(child: ChildIdentity): Promise<void>
  /** Largest result or particulars that the hub takes, in bytes of JSON: its `max_result_bytes` as of the last join. */
  readonly maxResultBytes?: number | undefined
}
