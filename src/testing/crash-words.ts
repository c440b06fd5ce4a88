import type { ProbeAnswer } from '../contract/outcomes.js'
import type { NodeBasics } from '../node/create-node.js'
import type { Attempt } from '../node/executor.js'
import type { Verdict } from './checker/index.js'

/** What the module of a handler exports. Each process of a crash test imports it. */
export interface CrashHandler {
  /** As in `createNode`: what it returns is the result, what it throws is `outcome_unknown`. */
  execute(attempt: Attempt): unknown
  /** As in `createNode`: what became of an attempt that an earlier process began? */
  probe?(attempt: Attempt): ProbeAnswer | Promise<ProbeAnswer>
  /** As in `createNode`: it does the same when it runs twice for one attempt. */
  readonly idempotent?: boolean
  /** Time limits, `concurrency` and the like, as in `createNode`. */
  readonly options?: Partial<NodeBasics>
}

/** A delivery at the end of a run, for whoever counts effects. */
export interface CrashedDelivery {
  /** Key and payload of its message. */
  readonly key: string
  readonly payload: string
  /** Of the delivery, and of its attempts, as the handler was given them. */
  readonly id: string
  readonly attempts: readonly string[]
  /** Status of its last attempt: `executing` where its outcome is unknown, `none` where nothing was begun. */
  readonly status: string
  /** The folder of the run: `HOLDFAST_CRASH_DIR` in the handler's process. */
  readonly dir: string
}

/** One run: the handler's process killed at one point, and started again. */
export interface CrashRun {
  /** Where it was killed; `none` for the run before all others, in which nobody is killed. */
  readonly point: string
  /** False where the point was never reached: then nothing was killed. */
  readonly reached: boolean
  /** How often the handler was entered, over both processes. */
  readonly executions: number
  /** Attempts that nobody knows the outcome of, which an operator would have to decide. */
  readonly unknown: readonly string[]
  /** The checker's verdict, with what the effects say against it. */
  readonly verdict: Verdict
}

/** What a crash test found. */
export interface CrashVerdict {
  /** No promise was broken, and every point was reached. */
  readonly ok: boolean
  readonly runs: readonly CrashRun[]
  /** Every point that the run without a crash came to, in order: those of Holdfast, and the handler's own. */
  readonly points: readonly string[]
  /** A line for each run, and below it what was broken, with the evidence; last, where effects were not counted, that. */
  readonly text: string
}

/** What a process of a crash test is told. */
export interface CrashProcess {
  readonly handler: string
  readonly history: string
  readonly redis: string
  readonly hub: string
  readonly host: string
  readonly mirror: string
  readonly killAt?: string | undefined
}

/** What it says over its channel, once it has joined. */
export interface Said {
  readonly up: true
  readonly probe: boolean
  readonly idempotent: boolean
}
