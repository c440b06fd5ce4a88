// What the checker speaks of. Types only.

/** One line of a history, and where it stands. */
export interface Line {
  readonly file: string
  /** In its file, from 1. */
  readonly number: number
  /** When it was written: CLOCK_MONOTONIC in ns, which all processes of a machine share. */
  readonly t: number
  readonly role: string
  /** Of the process; a line about a fault bears the name of the fault in its data. */
  readonly name: string
  readonly pid: number
  readonly kind: string
  readonly data: LineData
}

/**
 * A line as it was parsed: what is read of it here, and whatever else its process wrote. Of which type each member is
 * was not looked at.
 */
export interface LineData {
  readonly [member: string]: unknown
  /** `invoke`, then `ok`, `fail` or `info`, of a request; `begin` and `end`, of what lasts. */
  readonly type?: string
  /** Of a request and its answer: the two lines that belong together. */
  readonly op?: string
  /** Of a message, of a delivery or of a fault. */
  readonly id?: string | number
  readonly code?: string
  readonly key?: string
  readonly changed?: boolean
  readonly conversation?: string
  readonly to?: readonly RecipientName[]
  readonly digest?: string
  readonly deliveries?: readonly AcceptedAt[]
  readonly act?: string
  /** The kind of a fence. */
  readonly fence?: string
  readonly scope?: string
  readonly until?: number
  readonly reason?: string
  readonly logId?: string
  readonly delivery?: string
  readonly attempt?: string
  readonly number?: number
  readonly epoch?: number
  readonly replay?: boolean
  readonly node?: string
  readonly outcome?: string
  /** Of the end of a run: whether its effect had happened, where it can tell. */
  readonly effect?: boolean
  /** Of the end of a run: it was over its time limit. */
  readonly late?: boolean
  /** What a probe said. */
  readonly answer?: string
  readonly phase?: string
  readonly settled?: boolean
  readonly isMoving?: boolean
  /** Of a fault. */
  readonly name?: string
  readonly target?: { readonly role?: string; readonly name?: string }
  /** Which restart of its target. */
  readonly nth?: number
  /** Where a process killed itself. */
  readonly point?: string
}

/** One of the two. */
export interface RecipientName {
  readonly host?: string
  readonly session?: string
}

/** A delivery, as the answer to an accept names it. */
export interface AcceptedAt {
  readonly id: string
  readonly host: string
}

/** How a request was answered. `info`: nobody knows; so is what never got an answer. */
export type AnswerType = 'ok' | 'fail' | 'info'

/** One request to accept a message. */
export interface Accept {
  readonly key: string
  /** The key of another message, with other content. */
  readonly changed: boolean
  readonly conversation: string | undefined
  readonly to: readonly RecipientName[]
  readonly digest: string
  readonly type: AnswerType
  readonly code?: string
  readonly id?: string
  readonly deliveries: readonly AcceptedAt[]
  readonly invoke: Line
  readonly answer?: Line
}

/** What an operator did: a fence set or lifted, a delivery released or resolved. */
export interface Act {
  readonly act: string
  /** Kind and scope, as the record names it. */
  readonly fence?: string
  readonly id?: string
  readonly until?: number
  readonly reason?: string
  readonly type: AnswerType
  readonly logId?: string
  readonly invoke: Line
  readonly answer?: Line
}

/** One execution, by its marks. Without an end it may have done all of it or nothing. */
export interface Run {
  readonly delivery: string
  readonly attempt: string
  readonly number: number
  readonly epoch: number
  readonly replay: boolean
  readonly digest: string | undefined
  readonly node: string
  readonly begin: Line
  end?: Line
  outcome?: string
}

/** What was done to the fleet, to one node of it or to all. */
export interface Fault {
  readonly id: string
  readonly name: string
  readonly from: number
  /** The last time of the history, for one that did not end. */
  to: number
  readonly node: string | undefined
  readonly line: Line
}

/** An attempt, as the record has it at the end. */
export interface FinalAttempt {
  readonly number: number
  readonly status: string
  readonly outcome?: string
  readonly errorCode?: string
  /** When it was begun again, declared idempotent. */
  readonly replayedAt?: number
  readonly node: string
  readonly lateReports?: number
}

/** A delivery, as the record has it at the end. */
export interface FinalDelivery {
  readonly id: string
  readonly message: string
  readonly host: string
  readonly session?: string
  readonly conversation?: string
  readonly state: string
  readonly epoch: number
  readonly attempts: readonly FinalAttempt[]
  readonly heldReason?: string
  readonly reason?: string
}

/** A message, as the record has it at the end. */
export interface FinalMessage {
  readonly id: string
  readonly key: string
  readonly conversation: string
  readonly sha256: string
  /** How many, or each of them. */
  readonly recipients: number | unknown[]
}

/** An entry of the log, as it was read. */
export interface LogEntry {
  readonly id: string
  readonly fields: readonly (readonly [name: string, value: string])[]
}

/** Something that the audit found. */
export interface Disagreement {
  readonly about: string
  readonly what: string
}

/** What the audit said at the end. */
export interface FinalAudit {
  readonly conservation: {
    readonly recipients: number
    readonly byState: Readonly<Record<string, number>>
    readonly owed: number
    readonly pruned: number
  }
  readonly deliveries: number
  readonly messages: number
  readonly disagreements: readonly Disagreement[]
  readonly more: boolean
}

/** An attempt or a delivery in one of the lists of what somebody has to look at. */
export interface Listed {
  readonly id: string
  readonly reason?: string
}

/** What the record held at the end: all of it, and its whole log. */
export interface Final {
  readonly [member: string]: unknown
  readonly audit: FinalAudit
  readonly deliveries: readonly FinalDelivery[]
  readonly messages: readonly FinalMessage[]
  readonly log: readonly LogEntry[]
  readonly unknown: readonly Listed[]
  readonly held: readonly Listed[]
}

/** One transition of a delivery or of an attempt. */
export interface Move {
  readonly id: string
  readonly from: string
  readonly to: string
}

/** One entry of the log: one call that changed something. */
export interface Entry {
  /** Its place in the log, from 0. */
  readonly index: number
  readonly id: string
  /** When it was written, by the clock of Redis in Unix ms. */
  readonly ms: number
  verb: string
  actor: string
  /** Of the actor, where it is a node that joined; 0 otherwise. */
  incarnation: number
  readonly moves: Move[]
  /** Its other fields. */
  readonly more: Map<string, string>
}

/** What one entry did to one delivery and to its attempts. */
export interface Step {
  readonly entry: Entry
  readonly moves: Move[]
  readonly attempts: Move[]
}

/** An attempt, as the log tells it. */
export interface AttemptStory {
  readonly id: string
  readonly number: number
  readonly node: string
  readonly begun: Entry
  /** Of the delivery when it was begun. */
  readonly epoch: number
  readonly replays: { readonly entry: Entry; readonly epoch: number }[]
  readonly unknown: Entry[]
  settled?: { readonly entry: Entry; readonly status: string }
}

/** A delivery, as the log tells it. */
export interface DeliveryStory {
  readonly id: string
  readonly steps: readonly Step[]
  state: string
  /** How often its epoch was raised. */
  epoch: number
  readonly attempts: AttemptStory[]
  readonly violations: Violation[]
}

/** A promise that was not kept, and what shows it. */
export interface Violation {
  /** `I1` to `I8`, `unknown` for what nothing explains, `rate` for a run that did too little. */
  readonly invariant: string
  /** What it is about: a delivery, a message, a key or an act. */
  readonly id: string
  readonly text: string
  /** Lines of histories, entries of the log, rows of the record, as they were read. */
  readonly evidence: readonly string[]
  /** `lost`: something acknowledged is not there; `twice`: something ran again that may have run. */
  readonly means?: 'lost' | 'twice'
}

/** What a run is held to. */
export interface Rules {
  /** Every node had an honest probe, so nothing may stay unknown. */
  readonly probe: boolean
  /** Acknowledged accepts while there was load. */
  readonly leastPerSecond: number
}

/** What a history comes to. */
export interface Verdict {
  /** Nothing is wrong. */
  readonly ok: boolean
  /** Of the histories and of the log. */
  readonly lines: number
  /** Keys. */
  readonly acknowledged: number
  /** How many deliveries those are to make. */
  readonly deliveries: number
  /** Deliveries and messages. */
  readonly lost: number
  /** Deliveries and messages. */
  readonly twice: number
  /** Attempts. */
  readonly unknown: number
  /** Of the attempts that are unknown, those with a cause. */
  readonly explained: number
  readonly violations: readonly Violation[]
}

/** Everything there is to judge, put in order. */
export interface Case {
  readonly lines: number
  readonly accepts: readonly Accept[]
  /** By key. */
  readonly acceptsOf: ReadonlyMap<string, readonly Accept[]>
  readonly acts: readonly Act[]
  /** By delivery, in the order in which they began. */
  readonly runsOf: ReadonlyMap<string, readonly Run[]>
  /** By attempt. */
  readonly probesOf: ReadonlyMap<string, readonly Line[]>
  /** By attempt. */
  readonly reportsOf: ReadonlyMap<string, readonly Line[]>
  readonly faults: readonly Fault[]
  readonly load: Line
  readonly heal: Line
  readonly final: Line
  readonly record: Final
  readonly messages: ReadonlyMap<string, FinalMessage>
  readonly deliveries: ReadonlyMap<string, FinalDelivery>
  /** By message. */
  readonly deliveriesOf: ReadonlyMap<string, readonly FinalDelivery[]>
  readonly entries: readonly Entry[]
  /** By delivery. */
  readonly stories: ReadonlyMap<string, DeliveryStory>
  /** When the record began to be read: what was written down later says nothing of it. */
  readonly readAt: number
  /** Things still moved then, so what was read of it is not of one moment. */
  readonly moving: boolean
  readonly rules: Rules
}
