// @ts-check
// What the checker speaks of. Types only.

/**
 * One line of a history, and where it stands. `data` is the line as it was parsed.
 * @typedef {{ file: string, number: number, t: number, role: string, name: string, pid: number, kind: string, data: any }} Line
 */

/** One request to accept a message. `info`: nobody knows; so is what never got an answer.
 * @typedef {object} Accept
 * @property {string} key
 * @property {boolean} changed the key of another message, with other content
 * @property {string} conversation
 * @property {({ host?: string, session?: string })[]} to
 * @property {string} digest
 * @property {'ok' | 'fail' | 'info'} type
 * @property {string} [code]
 * @property {string} [id]
 * @property {{ id: string, host: string }[]} deliveries
 * @property {Line} invoke
 * @property {Line} [answer]
 */

/** What an operator did: a fence set or lifted, a delivery released or resolved.
 * @typedef {object} Act
 * @property {string} act
 * @property {string} [fence] kind and scope, as the record names it
 * @property {string} [id]
 * @property {number} [until]
 * @property {string} [reason]
 * @property {'ok' | 'fail' | 'info'} type
 * @property {string} [logId]
 * @property {Line} invoke
 * @property {Line} [answer]
 */

/** One execution, by its marks. Without an end it may have done all of it or nothing.
 * @typedef {object} Run
 * @property {string} delivery
 * @property {string} attempt
 * @property {number} number
 * @property {number} epoch
 * @property {boolean} replay
 * @property {string} digest
 * @property {string} node
 * @property {Line} begin
 * @property {Line} [end]
 * @property {string} [outcome]
 */

/** @typedef {{ id: string, name: string, from: number, to: number, node: string | undefined, line: Line }} Fault */

/**
 * @typedef {{ number: number, status: string, outcome?: string, node: string, lateReports?: number }} FinalAttempt
 * @typedef {{ id: string, message: string, host: string, session?: string, conversation?: string, state: string,
 *   epoch: number, attempts: FinalAttempt[], heldReason?: string, reason?: string }} FinalDelivery
 * @typedef {{ id: string, key: string, conversation: string, sha256: string, recipients: number | unknown[] }} FinalMessage
 * @typedef {{ id: string, fields: [string, string][] }} LogEntry
 * @typedef {{ about: string, what: string }} Disagreement
 * @typedef {{ conservation: { recipients: number, byState: Record<string, number>, owed: number, pruned: number },
 *   deliveries: number, messages: number, disagreements: Disagreement[], more: boolean }} FinalAudit
 * @typedef {{ audit: FinalAudit, deliveries: FinalDelivery[], messages: FinalMessage[], log: LogEntry[],
 *   unknown: { id: string, reason?: string }[], held: { id: string, reason?: string }[], [member: string]: unknown }} Final
 */

/** @typedef {{ id: string, from: string, to: string }} Move */

/** One entry of the log: one call that changed something. `incarnation`: of the actor, where it is a node that joined.
 * @typedef {{ index: number, id: string, ms: number, verb: string, actor: string, incarnation: number, moves: Move[], more: Map<string, string> }} Entry
 */

/** What one entry did to one delivery and to its attempts.
 * @typedef {{ entry: Entry, moves: Move[], attempts: Move[] }} Step
 */

/** An attempt, as the log tells it.
 * @typedef {object} AttemptStory
 * @property {string} id
 * @property {number} number
 * @property {string} node
 * @property {Entry} begun
 * @property {number} epoch of the delivery when it was begun
 * @property {{ entry: Entry, epoch: number }[]} replays
 * @property {Entry[]} unknown
 * @property {{ entry: Entry, status: string }} [settled]
 */

/** A delivery, as the log tells it.
 * @typedef {object} DeliveryStory
 * @property {string} id
 * @property {Step[]} steps
 * @property {string} state
 * @property {number} epoch how often its epoch was raised
 * @property {AttemptStory[]} attempts
 * @property {Violation[]} violations
 */

/**
 * `lost`: something acknowledged is not there; `twice`: something ran again that may have run.
 * @typedef {{ invariant: string, id: string, text: string, evidence: string[], means?: 'lost' | 'twice' }} Violation
 */

/** Everything there is to judge, put in order.
 * @typedef {object} Case
 * @property {number} lines
 * @property {Accept[]} accepts
 * @property {Map<string, Accept[]>} acceptsOf by key
 * @property {Act[]} acts
 * @property {Map<string, Run[]>} runsOf by delivery, in the order in which they began
 * @property {Map<string, Line[]>} probesOf by attempt
 * @property {Map<string, Line[]>} reportsOf by attempt
 * @property {Fault[]} faults
 * @property {Line} load
 * @property {Line} heal
 * @property {Line} final
 * @property {Final} record
 * @property {Map<string, FinalMessage>} messages
 * @property {Map<string, FinalDelivery>} deliveries
 * @property {Map<string, FinalDelivery[]>} deliveriesOf by message
 * @property {Entry[]} entries
 * @property {Map<string, DeliveryStory>} stories
 * @property {number} readAt when the record began to be read: what was written down later says nothing of it
 * @property {boolean} moving things still moved then, so what was read of it is not of one moment
 * @property {Rules} rules
 */

/**
 * `probe`: every node had an honest probe, so nothing may stay unknown. `leastPerSecond`: acknowledged accepts.
 * @typedef {{ probe: boolean, leastPerSecond: number }} Rules
 */

export {}
