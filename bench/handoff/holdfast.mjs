// @ts-check
// The contract as its users run it: a hub, and a node with its mirror, whose handler returns at once.
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createNode, initRecord, openHub } from 'holdfast'
import { messageFor } from './message.mjs'

const host = 'bench'
const concurrency = 100
/** Settled is what the record counts as done; asked for so often. */
const askEveryMs = 20

/** @param {import('./round.mjs').Place} place @returns {Promise<import('./round.mjs').System>} */
export async function openHoldfast({ url, dir, payload, onExecute }) {
  await initRecord({ redis: url })
  const hub = await openHub({ redis: url })
  const node = createNode({
    host,
    redis: url,
    mirror: join(dir, 'mirror.db'),
    concurrency,
    execute: (attempt) => onExecute(attempt.payload.toString()),
  })
  await node.start()
  const ended = node.closed.then((end) => {
    throw new Error(`the node ended: ${JSON.stringify(end)}`)
  })
  ended.catch(() => undefined)

  /** @param {number} count */
  async function settled(count) {
    while (((await hub.counts())['done'] ?? 0) < count) await sleep(askEveryMs)
  }

  return {
    accept: (id) => hub.accept(messageFor(id, host, payload(id))),
    finished: (count) => Promise.race([settled(count), ended]),
    close: async () => {
      await node.stop()
      await hub.close()
    },
  }
}
