// @ts-check
// The end of a run: waits until nothing moves any more, and writes down what the record then holds.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  functionsOf,
  keysOf,
  openStore,
  piecesOf,
  readDeliveries,
  readerOf,
  scanKeys,
  streamEntriesOf,
} from './built-record.mjs'
import { untilDone } from './waiting.mjs'

/** @typedef {import('./world.mjs').World} World */

const lookEveryMs = 250
const sweepEveryMs = 4000
/** Nothing moved for so long: nothing will. */
const stillForMs = 15_000
/** What moved within so long when the time was up might have come to its end in more of it. */
const movingForMs = 5000
const answerWithinMs = 15_000
const logPage = 2000
const rowsAtOnce = 200

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
  const store = await openStore({ url: world.redis.url, tag: keysOf(world.hub).tag, name: 'torture-final' })
  const keys = keysOf(world.hub)
  const reader = readerOf(store, keys)
  try {
    const messages = await readMessages(reader, keys)
    const ids = messages.flatMap(({ id, made }) => Array.from({ length: made }, (_, at) => `${id}.${at + 1}`))
    const rows = await readDeliveries(reader, keys, ids)
    const final = {
      ...about,
      audit: await untilDone(() => world.client.audit(), answerWithinMs),
      deliveries: rows.map(deliveryOf),
      unknown: await world.client.unknown(),
      held: await world.client.held(),
      sweeps: await world.client.sweeps(),
      messages,
      log: await readLog(reader, keys.log),
    }
    writeFileSync(join(historyDir, 'final.json'), JSON.stringify(final))
  } finally {
    await store.close()
  }
}

/** @typedef {ReturnType<typeof readerOf>} Reader */

/** @param {Reader} reader @param {ReturnType<typeof keysOf>} keys */
async function readMessages(reader, keys) {
  const prefix = keys.message('')
  /** @type {Set<string>} */
  const ids = new Set()
  for await (const found of scanKeys(reader, prefix))
    for (const key of found) ids.add(key.slice(prefix.length))
  const messages = []
  for (const piece of piecesOf([...ids].sort(), rowsAtOnce)) {
    const rows = await reader.hashes(piece.map((id) => keys.message(id)))
    for (const [at, id] of piece.entries()) {
      const row = rows[at]
      messages.push({
        id,
        key: row?.get('key') ?? '',
        conversation: row?.get('conversation') ?? '',
        sha256: row?.get('sha256') ?? '',
        recipients: Number(row?.get('recipients') ?? 0),
        made: Number(row?.get('made') ?? 0),
      })
    }
  }
  return messages
}

/** @param {Awaited<ReturnType<typeof readDeliveries>>[number]} view */
function deliveryOf({
  id,
  message,
  host,
  session,
  conversation,
  state,
  epoch,
  owner,
  takeovers,
  reason,
  attempts,
}) {
  return {
    id,
    message,
    host,
    ...(session === undefined ? {} : { session }),
    conversation,
    state,
    epoch,
    ...(owner === undefined ? {} : { owner }),
    takeovers,
    ...(reason === undefined ? {} : { reason }),
    ...(state === 'held' ? { heldReason: reason } : {}),
    attempts: attempts.map((attempt) => ({
      number: Number(attempt.id.split('/')[1]),
      status: attempt.status,
      outcome: attempt.outcome,
      node: attempt.node,
      incarnation: attempt.incarnation,
      begunAt: attempt.begunAt,
      settledAt: attempt.settledAt,
      errorCode: attempt.errorCode,
      unknownAt: attempt.unknownAt,
      unknownReason: attempt.unknownReason,
      lateReports: attempt.lateReports,
    })),
  }
}

/** The whole log. @param {Reader} reader @param {string} key */
async function readLog(reader, key) {
  const entries = []
  for (let after = '-'; ; ) {
    const page = streamEntriesOf(await reader.one(['XRANGE', key, after, '+', 'COUNT', logPage]))
    entries.push(...page)
    const last = page.at(-1)
    if (last === undefined || page.length < logPage) return entries
    after = `(${last.id}`
  }
}
