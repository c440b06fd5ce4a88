import { qualifiedId } from '../contract/hub-set.js'
import type { Attempt } from './executor.js'

/** Whose attempts they are. */
export interface AttemptNode {
  readonly host: string
  readonly node: string
  readonly hub: string
  /** The node serves other hubs as well: an id of one says which. */
  readonly inSet: boolean
}

/** What an attempt is made for. */
export interface AttemptedDelivery extends Pick<Attempt, 'epoch' | 'replay' | 'message' | 'payload'> {
  readonly id: string
  readonly session: string | undefined
}

/**
 * An attempt as executors and probes are given it. Two hubs may give out the same id: in a node of several, every id
 * carries the name of its hub, so that a target that goes by attempt ids never takes one for another.
 */
export function attemptOf(
  { host, node, hub, inSet }: AttemptNode,
  { id, epoch, replay, session, message, payload }: AttemptedDelivery,
  number: number,
  signal: AbortSignal,
): Attempt {
  const deliveryId = inSet ? qualifiedId(hub, id) : id
  return {
    id: `${deliveryId}/${number}`,
    deliveryId,
    number,
    replay,
    epoch,
    hub,
    host,
    node,
    target: session === undefined ? { host } : { host, session },
    message: inSet ? { ...message, id: qualifiedId(hub, message.id) } : message,
    payload,
    signal,
  }
}
