import type { Sending } from '../contract/points.js'
import type {
  BeginItem,
  ClaimReply,
  Heartbeat,
  HeartbeatReply,
  JoinReply,
  NodeIdentity,
  RefuseItem,
  ReportItem,
  StepItem,
  StepOptions,
  StepResult,
  TakeItem,
  TakeReply,
} from '../contract/steps.js'

/** Options of a claim. */
export interface ClaimSendOptions extends Sending {
  /** Where there is nothing to take on, wait for it this long. Milliseconds; 0: do not wait. */
  readonly waitMs: number
  /** Ends the wait: the claim answers that there is nothing. */
  readonly signal: AbortSignal
}

/**
 * How a node reaches the record. Every call either answers, or throws a HoldfastError within a deadline of
 * its own; all of them may be repeated as they are.
 */
export interface NodeTransport {
  join(who: NodeIdentity, instance: string, scopes: readonly string[], lastLogId: string): Promise<JoinReply>
  /** Travels on a connection of its own: it says that the process lives, whatever the work does. */
  heartbeat(who: NodeIdentity, beat: Heartbeat): Promise<HeartbeatReply>
  leave(who: NodeIdentity): Promise<void>
  claim(who: NodeIdentity, request: number, count: number, options: ClaimSendOptions): Promise<ClaimReply>
  mirror(who: NodeIdentity, items: readonly StepItem[], options: StepOptions): Promise<readonly StepResult[]>
  ack(who: NodeIdentity, items: readonly StepItem[], options: StepOptions): Promise<readonly StepResult[]>
  refuse(who: NodeIdentity, items: readonly RefuseItem[]): Promise<readonly StepResult[]>
  begin(who: NodeIdentity, items: readonly BeginItem[], options: StepOptions): Promise<readonly StepResult[]>
  /** Mirror and ack, and begin where there is a grant. */
  take(who: NodeIdentity, items: readonly TakeItem[], options: StepOptions): Promise<TakeReply>
  report(
    who: NodeIdentity,
    items: readonly ReportItem[],
    options: StepOptions,
  ): Promise<readonly StepResult[]>
  /** Takes part in proving that a server which started anew holds the whole record. Missing where the hub alone does. */
  attest?(who: NodeIdentity, lastLogId: string): Promise<void>
  close(): Promise<void>
}
