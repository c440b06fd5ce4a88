/** What a server takes on. Beyond it requests are refused, and connections closed, before anything is done. */
export interface Limits {
  /** The largest body of a message or a batch of reports, bytes; 33,554,432 when absent. */
  readonly bodyBytes: number
  /** The largest body of everything else, bytes; 1,048,576 when absent. */
  readonly smallBodyBytes: number
  /** Bytes of bodies that have not come completely, all together; 268,435,456 when absent. */
  readonly arrivingBytes: number
  /** Milliseconds in which a request's head must have come; 8,000 when absent. */
  readonly headersMs: number
  /** Milliseconds in which a whole request must have come; 20,000 when absent. */
  readonly requestMs: number
  /** Milliseconds that an idle connection is kept; 75,000 when absent. */
  readonly idleMs: number
  /** Milliseconds after which a connection on which nothing moves is closed: longer than any wait; 120,000 when absent. */
  readonly stalledMs: number
  /** Requests a second of one principal, a burst of ten seconds' worth let through; 2,000 when absent. 0: no limit. */
  readonly ratePerSecond: number
  /** Tries to log in from one address in ten seconds; 30 when absent. 0: no limit. */
  readonly loginTries: number
  /** Requests under way at the same time, those that wait left out; 1,000 when absent. */
  readonly underWay: number
  /** Requests that wait at the same time: claims, waits for messages, event streams; 20,000 when absent. */
  readonly waiting: number
  /** Milliseconds that the event loop may lag before requests are shed; 1,000 when absent. */
  readonly lagMs: number
  /** Milliseconds that a shutdown waits for requests under way; 10,000 when absent. */
  readonly drainMs: number
}

export const defaultLimits: Limits = {
  bodyBytes: 32 * 1024 * 1024,
  smallBodyBytes: 1024 * 1024,
  arrivingBytes: 256 * 1024 * 1024,
  headersMs: 8000,
  requestMs: 20_000,
  idleMs: 75_000,
  stalledMs: 120_000,
  ratePerSecond: 2000,
  loginTries: 30,
  underWay: 1000,
  waiting: 20_000,
  lagMs: 1000,
  drainMs: 10_000,
}
