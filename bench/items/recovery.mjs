// @ts-check
// The work item `recovery`: a node dies with a backlog claimed, and another node of its host takes all of it over.
import { setTimeout as sleep } from 'node:timers/promises'
import Table from 'cli-table3'
import { initRecord, openHub } from 'holdfast'
import { functionsOf, keysOf, openStore, prepareMessage } from '../built.mjs'
import { inFlight, spreadOf } from '../figures.mjs'
import { startServer } from '../server.mjs'
import { messageTo, payloadBytes } from './shared/message.mjs'
import {
  functionCalls,
  openRedis,
  slowCalls,
  slowMs,
  startAof,
  stopAof,
  watchSlowCalls,
} from './shared/redis.mjs'
import { atMost, ratioOf, showTargets } from './shared/rounds.mjs'

/** @typedef {import('../../src/record/functions.ts').Functions} Functions */
/** @typedef {import('../../src/contract/steps.ts').NodeIdentity} Who */
/** @typedef {import('../../src/contract/steps.ts').ClaimedDelivery} Claimed */
/** @typedef {Awaited<ReturnType<typeof run>>} Recovery */
/** @typedef {Awaited<ReturnType<typeof runRound>>} Round */
/** @typedef {{ fewHosts: number, taken: number }} Size */
/** @typedef {{ usPerDelivery: number, redisUsPerDelivery: number, claimsPerDelivery: number }} Cost */

const atOnce = 100
const flights = 256
/** Short, so that the dead are known to be dead soon. */
const [staleAfterMs, heartbeatMs] = [1000, 200]
const takenWithinMs = 120_000

const [fewEach, manyEach] = [1000, 10_000]
/** What the one host's node had claimed is taken over in so many slices, and hosts with few between them. */
const slices = 10
const labels = {
  few: `${fewEach.toLocaleString('en')} claimed by the dead node`,
  many: `${manyEach.toLocaleString('en')} claimed by the dead node`,
}
/** @typedef {keyof typeof labels} Name */
const names = /** @type {Name[]} */ (Object.keys(labels))
/** `taken`: of the many; in quick not all of them, where each costs most. */
const sizes = {
  full: { rounds: 5, fewHosts: 10, taken: manyEach },
  quick: { rounds: 1, fewHosts: 2, taken: 2000 },
}

/** @param {import('../run.mjs').Options} options */
async function run({ quick, dir, say, ...given }) {
  const size = quick ? sizes.quick : sizes.full
  const rounds = given.rounds ?? size.rounds
  /** @type {Round[]} */
  const measured = []
  for (let round = 0; round < rounds; round += 1) {
    const figures = await runRound(dir, size)
    measured.push(figures)
    const [few, many] = [figures.few.usPerDelivery.toFixed(0), figures.many.usPerDelivery.toFixed(0)]
    const words = `${few} µs a delivery of ${fewEach}, ${many} of ${manyEach}`
    say(`round ${round + 1} of ${rounds}: ${words}, the longest call ${figures.calls.longestMs} ms`)
  }
  const of = (/** @type {Name} */ name, /** @type {keyof Cost} */ which) =>
    measured.map((each) => each[name][which])
  const slow = measured.reduce((sum, { calls }) => sum + calls.slow, 0)
  const ratios = {
    linear: ratioOf(of('many', 'usPerDelivery'), of('few', 'usPerDelivery')),
    linear_redis: ratioOf(of('many', 'redisUsPerDelivery'), of('few', 'redisUsPerDelivery')),
  }
  return {
    title: item.title,
    unit: 'µs per delivery taken over, by the claiming node; the time inside Redis beside it',
    rounds,
    payloadBytes,
    fsync: 'always',
    systems: Object.fromEntries(
      names.map((name) => [
        name,
        {
          label: labels[name],
          ...spreadOf(of(name, 'usPerDelivery')),
          redis: spreadOf(of(name, 'redisUsPerDelivery')),
          claimsPerDelivery: spreadOf(of(name, 'claimsPerDelivery'), 2).median,
        },
      ]),
    ),
    longestCallMs: spreadOf(
      measured.map(({ calls }) => calls.longestMs),
      2,
    ),
    slowCalls: { count: slow, over: slowMs, slowest: measured.flatMap(({ calls }) => calls.slowest) },
    ratios,
    targets: [atMost('linear', ratios.linear, 1.2), atMost(`calls over ${slowMs} ms`, slow, 0)],
    notes: [
      `a node claims all deliveries of its host, in hundreds, and is never heard again; once it is stale (${staleAfterMs} ms), another node of the host claims, asking for ${atOnce} at once, until it has all of them`,
      `one record: a host with ${manyEach} claimed, of which ${size.taken} are taken over in ${slices} slices, and between them ${size.fewHosts} hosts with ${fewEach} each, so that whatever else the machine does meets both alike`,
      'the clock runs from the first claim that finds one to the last: one claim after another, each with its fsync',
      'linear: per delivery where many were claimed over where few were; linear_redis: the same of the time inside Redis alone',
      'every round: each delivery is taken over once, under a higher epoch',
      'calls over 10 ms: SLOWLOG while it is taken over, by the wall clock: on a shared machine also a call that was made to wait for a core',
    ],
  }
}

/** @param {string} dir @param {Size} size */
async function runRound(dir, { fewHosts, taken }) {
  const server = await startServer(dir)
  const redis = openRedis(server.port)
  try {
    await initRecord({ redis: server.url })
    const hub = await openHub({ redis: server.url })
    await hub.configure({ stale_after_ms: staleAfterMs, heartbeat_ms: heartbeatMs }, 'bench')
    await hub.close()
    const store = await openStore({ url: server.url, name: 'bench' })
    const functions = functionsOf(store, keysOf('hf').tag)
    try {
      await stopAof(redis)
      const hosts = { few: Array.from({ length: fewHosts }, (_, n) => `few-${n}`), many: ['many'] }
      const counts = { few: fewEach, many: manyEach }
      /** @type {Map<string, number>} */
      const epochs = new Map()
      for (const name of names) {
        await inFlight(counts[name], flights, (n) =>
          functions.accept(prepareMessage(messageTo(`${name}-${n}`, n, hosts[name]))),
        )
        for (const host of hosts[name]) await claimAndDie(functions, host, counts[name], epochs)
      }
      await startAof(redis)
      const took = await takeOver(functions, redis, { fewHosts: hosts.few, taken }, epochs)
      if (epochs.size !== manyEach - taken) throw new Error(`${epochs.size} were not taken over`)
      return took
    } finally {
      await store.close()
    }
  } finally {
    redis.disconnect()
    await server.stop()
  }
}

/** @param {Functions} functions @param {string} host @param {number} count @param {Map<string, number>} epochs */
async function claimAndDie(functions, host, count, epochs) {
  const who = { host, node: 'dead', incarnation: 1 }
  await functions.join(who, `dead-${host}`, [], '0-0')
  let claimed = 0
  for (let request = 1; claimed < count; request += 1) {
    const { deliveries } = await functions.claim(who, request, atOnce)
    if (deliveries.length === 0) throw new Error(`claimed ${claimed} of ${count} on ${host}`)
    for (const { id, epoch } of deliveries) epochs.set(id, epoch)
    claimed += deliveries.length
  }
}

/**
 * @param {Functions} functions @param {import('ioredis').Redis} redis
 * @param {{ fewHosts: readonly string[], taken: number }} what @param {Map<string, number>} epochs of what the dead
 *   nodes claimed
 */
async function takeOver(functions, redis, { fewHosts, taken }, epochs) {
  const [many, ...few] = await Promise.all(
    ['many', ...fewHosts].map((host) => joinHeir(functions, redis, host, epochs)),
  )
  if (many === undefined) throw new Error('nobody takes over')
  // Where nobody is heard, nobody is taken for gone.
  const beating = startBeating(functions, many.who)
  try {
    await sleep(2 * staleAfterMs)
    await watchSlowCalls(redis)
    const every = slices / few.length
    for (let slice = 0; slice < slices; slice += 1) {
      await many.take(taken / slices)
      if (slice % every === 0) await few[slice / every]?.take(fewEach)
    }
    return { many: costOf([many]), few: costOf(few), calls: await slowCalls(redis) }
  } finally {
    await beating.stop()
  }
}

/** @typedef {{ tookMs: number, usec: number, claims: number, taken: number }} Spent */

/** @param {readonly { spent: Spent }[]} heirs @returns {Cost} */
function costOf(heirs) {
  const sum = (/** @type {keyof Spent} */ which) => heirs.reduce((all, { spent }) => all + spent[which], 0)
  const taken = sum('taken')
  return {
    usPerDelivery: (sum('tookMs') * 1000) / taken,
    redisUsPerDelivery: sum('usec') / taken,
    claimsPerDelivery: sum('claims') / taken,
  }
}

/** @param {Functions} functions @param {Who} who */
function startBeating(functions, who) {
  const beat = { lastLogId: '0-0', progressAgeMs: 0, blocking: { sumMs: 0, longestMs: 0 } }
  const stopping = new AbortController()
  const run = async () => {
    while (!stopping.signal.aborted) {
      await functions.heartbeat(who, beat)
      await sleep(heartbeatMs)
    }
  }
  const running = run()
  running.catch(() => undefined)
  return {
    stop: () => {
      stopping.abort()
      return running
    },
  }
}

/**
 * A node that takes over what the dead one of its host had claimed.
 * @param {Functions} functions @param {import('ioredis').Redis} redis @param {string} host
 * @param {Map<string, number>} epochs
 */
async function joinHeir(functions, redis, host, epochs) {
  const who = { host, node: 'heir', incarnation: 1 }
  const spent = { tookMs: 0, usec: 0, claims: 0, taken: 0 }
  let request = 0
  await functions.join(who, `heir-${host}`, [], '0-0')

  function receive(/** @type {readonly Claimed[]} */ deliveries) {
    for (const { id, epoch, how } of deliveries) {
      const before = epochs.get(id)
      if (how !== 'takeover' || before === undefined || epoch <= before) {
        throw new Error(`${id} came as ${how} under epoch ${epoch}, after ${before}`)
      }
      epochs.delete(id)
    }
  }

  return {
    who,
    spent,
    /** Takes so many more over. @param {number} count */
    take: async (count) => {
      const { usec } = await functionCalls(redis)
      const askedAt = performance.now()
      let [startedAt, taken] = [askedAt, 0]
      while (taken < count) {
        const calledAt = performance.now()
        if (calledAt > askedAt + takenWithinMs) throw new Error(`taken over ${taken} of ${count} on ${host}`)
        request += 1
        const { deliveries } = await functions.claim(who, request, Math.min(atOnce, count - taken))
        receive(deliveries)
        if (taken === 0) startedAt = calledAt
        taken += deliveries.length
        if (taken > 0) spent.claims += 1
      }
      spent.tookMs += performance.now() - startedAt
      spent.usec += (await functionCalls(redis)).usec - usec
      spent.taken += taken
    },
  }
}

/** @param {Recovery} recovery */
function show({ systems, longestCallMs, targets }) {
  const head = ['recovery, µs per delivery', 'median', 'min', 'max', 'in Redis', 'claims per delivery']
  const table = new Table({ head })
  for (const { label, median, min, max, redis, claimsPerDelivery } of Object.values(systems)) {
    table.push([label, median, min, max, redis.median, claimsPerDelivery])
  }
  const words = `longest function call: ${longestCallMs.max} ms`
  return [table.toString(), words, showTargets(targets)].join('\n')
}

export const item = {
  name: 'recovery',
  title: 'Taking over what a dead node had claimed',
  run,
  show,
}
