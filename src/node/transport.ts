import type {
  BeginItem,
  ClaimReply,
  HeartbeatReply,
  JoinReply,
  NodeIdentity,
  RefuseItem,
  ReportItem,
  StepItem,
  StepResult,
} from '../contract/steps.js'

/** Options of one call: `onSent` is told when the request has been handed to the socket. */
export interface SendOptions {
  readonly onSent?: (() => void) | undefined
}

/** What a heartbeat carries. */
export interface Beat {
  readonly lastLogId: string
  /** Milliseconds since the work loop last made progress. */
  readonly progressAgeMs: number
  /** What held the event loop since the last beat. Milliseconds. */
  readonly blocking: { readonly sumMs: number; readonly longestMs: number }
}

/** Where a claim left off: wait for what comes after. */
export interface Position {
  readonly streamId: string
  readonly bellId: string
}

/**
 * How a node reaches the record. Every call either answers, or throws a HoldfastError within a deadline of
 * its own; all of them may be repeated as they are.
 */
export interface NodeTransport {
  join(who: NodeIdentity, instance: string, scopes: readonly string[], lastLogId: string): Promise<JoinReply>
  /** Travels on a connection of its own: it says that the process lives, whatever the work does. */
  heartbeat(who: NodeIdentity, beat: Beat): Promise<HeartbeatReply>
  leave(who: NodeIdentity): Promise<void>
  claim(who: NodeIdentity, request: number, count: number, options: SendOptions): Promise<ClaimReply>
  mirror(who: NodeIdentity, items: readonly StepItem[], options: SendOptions): Promise<readonly StepResult[]>
  ack(who: NodeIdentity, items: readonly StepItem[], options: SendOptions): Promise<readonly StepResult[]>
  refuse(who: NodeIdentity, items: readonly RefuseItem[]): Promise<readonly StepResult[]>
  begin(who: NodeIdentity, items: readonly BeginItem[], options: SendOptions): Promise<readonly StepResult[]>
  report(
    who: NodeIdentity,
    items: readonly ReportItem[],
    options: SendOptions,
  ): Promise<readonly StepResult[]>
  /** Waits until something comes after the position, at most `waitMs`, or until aborted. */
  waitForWork(host: string, position: Position, waitMs: number, signal: AbortSignal): Promise<void>
  close(): Promise<void>
}
