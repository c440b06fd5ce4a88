import { silentLog } from './log.js'
import { createMember } from './member.js'
import { checkedOptions, hubsOf, type NodeOptions } from './node-options.js'
import { createNodeSet } from './node-set.js'

export type {
  ByExecutor,
  ByFunction,
  HubAddress,
  NodeBasics,
  NodeOptions,
  OnRedis,
  OverHttp,
} from './node-options.js'

/**
 * How a node ended. `left`: cleanly, what it had not begun is free for others at once. `stopped`: without
 * leaving (a handler would not end, or the record was out of reach), so the hub finds out by its silence.
 * `failed`: superseded, or its mirror or the record refused to go on; of several hubs, on one of them: the node leaves
 * the others then.
 */
export type NodeEnd =
  | { readonly kind: 'left' }
  | { readonly kind: 'stopped'; readonly why: string }
  | { readonly kind: 'failed'; readonly error: Error }

/** A node, from its start to its end. */
export interface HoldfastNode {
  readonly host: string
  readonly node: string
  /**
   * Opens the mirror, joins, reports what an earlier process left, and begins to work. Waits for a server
   * that is not there yet. Of several hubs each is worked on as soon as it is joined; this resolves when all are, and
   * rejects, with the node ended on all of them, when one refuses.
   * @throws MIRROR_LOCKED, MIRROR_UNUSABLE, MIRROR_CLONED, SUPERSEDED, STORE_UNKNOWN, INVALID_ARGUMENT, CLOSED after `stop`
   */
  start(): Promise<void>
  /** Claims nothing more, lets handlers finish (aborts them after `drainMs`), leaves, and closes. */
  stop(): Promise<void>
  /** Resolves when the node has ended, by `stop` or by an error. */
  readonly closed: Promise<NodeEnd>
}

/**
 * A node (contract sections 3 and 8), of one hub or of several. Does nothing until it is started.
 * @throws INVALID_ARGUMENT
 */
export function createNode(options: NodeOptions): HoldfastNode {
  const settings = checkedOptions(options)
  const hubs = hubsOf(options)
  const log = options.log ?? silentLog
  return hubs.length === 1
    ? createMember(options, settings, log)
    : createNodeSet(options, settings, hubs, log)
}
