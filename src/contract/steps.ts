import type { ErrorCode } from './errors.js'
import type { Outcome, OutcomeKind } from './outcomes.js'
import type { Sending } from './points.js'
import type { DeliveryState } from './states.js'

/** Who speaks: one process of one node. */
export interface NodeIdentity {
  readonly host: string
  readonly node: string
  readonly incarnation: number
}

/** What a join answers: the server's time and the settings a node works by. */
export interface JoinReply {
  readonly nowMs: number
  readonly logId: string
  readonly storeId: string
  readonly generation: number
  readonly heartbeatMs: number
  readonly staleAfterMs: number
  readonly maxResultBytes: number
  readonly maxRedrive: number
  /** Fields of the config hash whose values are bad: the defaults are used. */
  readonly badSettings: readonly string[]
}

/** What a heartbeat carries. */
export interface Heartbeat {
  readonly lastLogId: string
  /** Milliseconds since the work loop last made progress. */
  readonly progressAgeMs: number
  /** What held the event loop since the last beat. Milliseconds. */
  readonly blocking: { readonly sumMs: number; readonly longestMs: number }
  /** What the commits of its mirror took since the last beat. Milliseconds. */
  readonly mirror?: { readonly commits: number; readonly sumMs: number; readonly longestMs: number }
}

export interface HeartbeatReply {
  readonly nowMs: number
  readonly logId: string
  readonly heartbeatMs: number
  readonly staleAfterMs: number
}

/** How a claimed delivery came to this node. */
export type ClaimedHow = 'new' | 'parked' | 'resume' | 'takeover'

/** What a delivery carries, beside its payload. */
export interface ClaimedMessage {
  readonly id: string
  readonly conversation: string
  readonly sender: string
  /** The id of the message that its sender named as its parent. */
  readonly parent?: string
  readonly contentType?: string
  /** Of the payload, in lower-case hex. */
  readonly sha256: string
}

/** One delivery in the answer to a claim, with its message. */
export interface ClaimedDelivery {
  readonly id: string
  readonly epoch: number
  readonly state: DeliveryState
  readonly how: ClaimedHow
  /** Attempts begun so far; 0 is proof that nothing ran. */
  readonly attempts: number
  readonly session?: string
  /** The session's epoch, when it was claimed. */
  readonly sessionEpoch?: number | undefined
  readonly message: ClaimedMessage
  readonly payload: Buffer
}

export interface ClaimReply {
  readonly logId: string
  readonly nowMs: number
  /** There is more to look at: claim again without waiting. */
  readonly more: boolean
  /** True for the answer to a request that was answered before. */
  readonly again?: boolean | undefined
  /** When, by the server's clock, something may become runnable without a bell. */
  readonly nextAtMs?: number | undefined
  /** The ends of stream and bell as this claim saw them: wait for what comes after. */
  readonly streamId: string
  readonly bellId: string
  /** Pending entries that the stream no longer held; cleared and reported here, once. */
  readonly ghosts: readonly string[]
  /** Deliveries or messages whose rows were missing. */
  readonly missing: readonly string[]
  readonly deliveries: readonly ClaimedDelivery[]
}

/** What a node is told of a call of steps, beside its answer. */
export interface StepOptions extends Sending {
  /** Told of the last entry of the log as the answer has it. */
  readonly onLogId?: ((logId: string) => void) | undefined
}

/** A step on one delivery, under the epoch it was claimed with. */
export interface StepItem {
  readonly id: string
  readonly epoch: number
}

export interface RefuseItem extends StepItem {
  readonly verdict: 'failed' | 'unknown'
  readonly reason: string
}

export interface BeginItem extends StepItem {
  readonly grant: string
  /** Begin again, under the same grant, what an earlier process of this node began and did not settle. */
  readonly idempotent?: boolean | undefined
}

/** Mirror and ack in one, and with a grant begin as well: the node's copy and its grant are durable already. */
export interface TakeItem extends StepItem {
  readonly grant?: string | undefined
}

/** How the handoff of each item went, and the begins of those that were handed off and carry a grant. */
export interface TakeReply {
  readonly results: readonly StepResult[]
  readonly begun: readonly StepResult[]
}

/** A report names its attempt, or the delivery where the node never learned the number. */
export interface ReportItem {
  readonly id: string
  readonly grant: string
  readonly key: string
  readonly outcome: Outcome
  /** Beside `outcome_unknown`: the executor has ended, nothing of the attempt runs any more. */
  readonly ended?: boolean | undefined
}

/** The answer to one item: done, or refused with the delivery as it stands. */
export type StepResult = StepDone | StepRefused

export interface StepDone {
  readonly id: string
  readonly ok: true
  readonly epoch: number
  readonly state: DeliveryState
  /** begin: the number of the attempt. */
  readonly attempt?: number
  /** report: the recorded outcome. */
  readonly outcome?: OutcomeKind
  /** Answered as the first time; begin with `idempotent`: it was begun before, by an earlier process. */
  readonly replayed?: boolean
}

export interface StepRefused {
  readonly id: string
  readonly ok: false
  readonly code: ErrorCode
  readonly epoch?: number
  readonly state?: DeliveryState
  readonly owner?: string
  readonly detail?: string
}
