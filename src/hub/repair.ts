import { isHoldfastError, isStoreAway } from '../contract/errors.js'
import { fanOut } from './accept.js'
import type { HubParts } from './parts.js'

/** What a repair of obligations did. */
export interface Repaired {
  /** Messages made whole. */
  readonly messages: number
  readonly deliveries: number
  /** Messages whose rows contradict themselves; they stay owed. */
  readonly stuck: number
}

const repairAtOnce = 100

/** Completes the fan-outs that were cut, oldest first, until none is owed or `stopped` says so. */
export async function repairObligations(parts: HubParts, stopped: () => boolean): Promise<Repaired> {
  const { reader, keys } = parts
  let messages = 0
  let deliveries = 0
  let stuck = 0
  while (!stopped()) {
    const owing = await reader.strings(['ZRANGE', keys.obligations, stuck, stuck + repairAtOnce - 1])
    if (owing.length === 0) break
    for (const id of owing) {
      const made = await repairOne(parts, id, stopped)
      if (made === undefined) stuck += 1
      deliveries += made ?? 0
      messages += made ? 1 : 0
    }
  }
  return { messages, deliveries, stuck }
}

/** Deliveries made for one message; undefined where the record is in its way, which a later repair meets again. */
async function repairOne(parts: HubParts, id: string, stopped: () => boolean): Promise<number | undefined> {
  let deliveries = 0
  const session = /^session:(.+)$/s.exec(id)?.[1]
  try {
    if (session !== undefined) return await moveOne(parts, session, stopped)
    for (let complete = false; !complete && !stopped(); ) {
      const reply = await fanOut(parts.functions, id, parts.onPoint)
      deliveries += reply.deliveries.length
      complete = reply.made >= reply.recipients
    }
    return deliveries
  } catch (error) {
    if (isStoreAway(error) || isHoldfastError(error, 'STORE_UNKNOWN')) throw error
    return undefined
  }
}

/** The rest of a rehome: how many slices were moved. */
async function moveOne(parts: HubParts, session: string, stopped: () => boolean): Promise<number> {
  let slices = 0
  for (let more = true; more && !stopped(); slices += 1) {
    more = (await parts.functions.move(session, 'repair')).more
  }
  return slices
}
