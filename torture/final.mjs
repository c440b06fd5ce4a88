// @ts-check
// The end of a run: waits until nothing moves any more, and writes down what the record then holds.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { functionsOf, keysOf, openStore, readerOf, readFinal } from './built-record.mjs'
import { untilDone } from './waiting.mjs'

/** @typedef {import('./world.mjs').World} World */

const lookEveryMs = 250
const sweepEveryMs = 4000
/** Nothing moved for so long: nothing will. */
const stillForMs = 15_000
/** What moved within so long when the time was up might have come to its end in more of it. */
const movingForMs = 5000
const answerWithinMs = 15_000

/**
 * Sweeps run through a hub, until everything is settled or nothing moves any more.
 * @param {World} world @param {{ none: boolean, withinMs: number }} limits `none`: no attempt may stay unknown
 * @returns {Promise<{ settled: boolean, isMoving: boolean, [figure: string]: unknown }>} where it stood when the waiting ended
 */
export async function settle(world, { none, withinMs }) {
  const store = await openStore({ url: world.redis.url, tag: keysOf(world.hub).tag, name: 'torture-final' })
  const functions = functionsOf(store, keysOf(world.hub).tag)
  const deadlineAt = performance.now() + withinMs
  let [seen, movedAt, sweptAt] = ['', performance.now(), Number.NEGATIVE_INFINITY]

  async function look() {
    const { queued, claimed, mirrored, held, awaiting, owed } = await functions.tally()
    const ids = (await world.client.unknown()).map(({ id }) => id)
    const figures = { queued, claimed, mirrored, held, awaiting, owed, unknown: ids.length }
    // Whole deliveries are listed too, where the failover rule set them aside: they await nothing.
    const open = none ? 0 : ids.filter((id) => id.includes('/')).length
    const settled = queued + claimed + mirrored + held + owed === 0 && awaiting === open
    return { settled, ...figures }
  }

  try {
    for (;;) {
      if (performance.now() - sweptAt > sweepEveryMs) {
        await untilDone(() => world.client.runSweep('all'), answerWithinMs)
        sweptAt = performance.now()
      }
      const figures = await untilDone(look, answerWithinMs)
      const now = performance.now()
      if (JSON.stringify(figures) !== seen) [seen, movedAt] = [JSON.stringify(figures), now]
      const isMoving = !figures.settled && now - movedAt < movingForMs
      if (figures.settled || now > deadlineAt || now - movedAt > stillForMs) return { ...figures, isMoving }
      await sleep(lookEveryMs)
    }
  } finally {
    await store.close()
  }
}

/** What the record holds: everything, for the checker. @param {World} world @param {string} historyDir @param {object} about */
export async function writeFinal(world, historyDir, about) {
  const keys = keysOf(world.hub)
  const store = await openStore({ url: world.redis.url, tag: keys.tag, name: 'torture-final' })
  const { client } = world
  const hub = {
    audit: () => untilDone(() => client.audit(), answerWithinMs),
    unknown: () => client.unknown(),
    held: () => client.held(),
  }
  try {
    const record = await readFinal(hub, readerOf(store, keys), keys)
    const final = { ...about, ...record, sweeps: await client.sweeps() }
    writeFileSync(join(historyDir, 'final.json'), JSON.stringify(final))
  } finally {
    await store.close()
  }
}
