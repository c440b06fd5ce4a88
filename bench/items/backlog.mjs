// @ts-check
// The work item `backlog`: what an accept and a claim cost where a million deliveries are queued, against where
// a thousand are; and the memory of one that is queued.
import { Queue } from 'bullmq'
import Table from 'cli-table3'
import { initRecord } from 'holdfast'
import { functionsOf, keysOf, openStore, prepareMessage } from '../built.mjs'
import { inFlight, spreadOf } from '../figures.mjs'
import { startServer } from '../server.mjs'
import { messageTo, payloadBytes, payloadOf } from './shared/message.mjs'
import { functionCalls, infoNumber, openRedis, startAof, stopAof } from './shared/redis.mjs'
import { atMost, ratioOf, showTargets } from './shared/rounds.mjs'

/** @typedef {Awaited<ReturnType<typeof openBacklog>>} Backlog */
/** @typedef {Awaited<ReturnType<typeof run>>} Figures */
/** @typedef {{ accept: number, claim: number }} Round microseconds a delivery */

const sizes = {
  full: { rounds: 5, cycles: 80, queued: 1_000_000, remembered: 100_000 },
  quick: { rounds: 2, cycles: 40, queued: 100_000, remembered: 20_000 },
}
const fewQueued = 1000
const who = { host: 'bench', node: 'bench', incarnation: 1 }
const atOnce = 100
/** Of accepts: filling, and measured. */
const flights = { filling: 256, measured: 16 }
const names = /** @type {const} */ (['few', 'many'])
/** @typedef {typeof names[number]} Name */

/** @param {import('../run.mjs').Options} options */
async function run({ quick, dir, say, ...given }) {
  const size = quick ? sizes.quick : sizes.full
  const rounds = given.rounds ?? size.rounds
  const queued = { few: fewQueued, many: given.messages ?? size.queued }
  const remembered = Math.min(size.remembered, queued.many)
  const bullmqBytes = await memoryOfBullmq(dir, remembered)
  say(`BullMQ: ${bullmqBytes.toFixed(0)} bytes a job`)
  const few = await openBacklog(dir)
  const many = await openBacklog(dir).catch(async (error) => {
    await few.close()
    throw error
  })
  try {
    const bytes = await many.fill(remembered)
    const bytesAtMost = await many.fill(queued.many)
    await few.fill(queued.few)
    say(`filled: ${queued.few} and ${queued.many} queued, ${bytes.perDelivery.toFixed(0)} bytes a delivery`)
    /** @type {Record<Name, Round[]>} */
    const measured = { few: [], many: [] }
    for (let round = 0; round < rounds; round += 1) {
      const figures = await runRound({ few, many }, size.cycles)
      for (const name of names) measured[name].push(figures[name])
      const words = names.map((name) => {
        const { accept, claim } = figures[name]
        return `${queued[name]} queued: accept ${accept} µs, claim ${claim} µs`
      })
      say(`round ${round + 1} of ${rounds}: ${words.join('; ')}`)
    }
    return figuresOf({ rounds, queued, remembered, cycles: size.cycles }, measured, {
      bullmq: bullmqBytes,
      holdfast: bytes.perDelivery,
      holdfastLog: bytes.logPerDelivery,
      holdfastAllQueued: bytesAtMost.perDelivery,
    })
  } finally {
    await many.close()
    await few.close()
  }
}

/**
 * @param {{ rounds: number, cycles: number, queued: Record<Name, number>, remembered: number }} of
 * @param {Record<Name, Round[]>} measured
 * @param {{ bullmq: number, holdfast: number, holdfastLog: number, holdfastAllQueued: number }} memory
 */
function figuresOf({ rounds, cycles, queued, remembered }, measured, memory) {
  const each = (/** @type {Name} */ name, /** @type {'accept' | 'claim'} */ step) =>
    measured[name].map((round) => round[step])
  const ratios = {
    accept: ratioOf(each('many', 'accept'), each('few', 'accept')),
    claim: ratioOf(each('many', 'claim'), each('few', 'claim')),
    memory: ratioOf([memory.holdfast], [memory.bullmq]),
  }
  return {
    title: item.title,
    unit: 'µs of Redis per claimed delivery, and per accept beside it',
    rounds,
    queued,
    payloadBytes,
    systems: Object.fromEntries(
      names.map((name) => [
        name,
        {
          label: `${queued[name].toLocaleString('en')} queued`,
          ...spreadOf(each(name, 'claim'), 1),
          accept: spreadOf(each(name, 'accept'), 1),
        },
      ]),
    ),
    memory: {
      unit: 'bytes per queued delivery',
      queued: remembered,
      holdfast: Math.round(memory.holdfast),
      bullmq: Math.round(memory.bullmq),
      holdfastLog: Math.round(memory.holdfastLog),
      holdfastAllQueued: Math.round(memory.holdfastAllQueued),
    },
    ratios,
    targets: [
      atMost('accept', ratios.accept, 1.2),
      atMost('claim', ratios.claim, 1.2),
      atMost('memory', ratios.memory, 1),
    ],
    notes: [
      'time inside the function (INFO commandstats): neither the round trip nor the fsync, which no backlog changes',
      `a cycle is ${atOnce} accepts and one claim of ${atOnce}, so that the backlog keeps its size; a round is the median of ${cycles} cycles; nothing is carried further than claimed`,
      'one host; both servers stand side by side for the whole run, filled without AOF, measured with appendfsync always; their cycles take turns',
      `memory: used_memory after ${remembered.toLocaleString('en')} less before, over their number, the log of the hub and the events of BullMQ included; BullMQ: add with jobId, on a server of its own`,
      `bytes per queued delivery: ${Math.round(memory.holdfast)}, of which ${Math.round(memory.holdfastLog)} are its entry in the log; BullMQ ${Math.round(memory.bullmq)}`,
    ],
  }
}

/**
 * Cycles of both in turn, so that whatever else the machine does meets both alike.
 * @param {Record<Name, Backlog>} backlogs @param {number} cycles
 */
async function runRound(backlogs, cycles) {
  /** @type {Record<Name, { accept: number[], claim: number[] }>} */
  const each = { few: { accept: [], claim: [] }, many: { accept: [], claim: [] } }
  for (let cycle = 0; cycle < cycles; cycle += 1) {
    for (const name of cycle % 2 === 0 ? names : names.toReversed()) {
      each[name].accept.push(await backlogs[name].accept(atOnce))
      each[name].claim.push(await backlogs[name].claim(atOnce))
    }
  }
  return { few: mediansOf(each.few), many: mediansOf(each.many) }
}

/** @param {{ accept: number[], claim: number[] }} each @returns {Round} */
function mediansOf({ accept, claim }) {
  return { accept: spreadOf(accept, 2).median, claim: spreadOf(claim, 2).median }
}

/** A record of its own with a host that a node serves, and nothing queued yet. @param {string} dir */
async function openBacklog(dir) {
  const server = await startServer(dir)
  const redis = openRedis(server.port)
  const store = await openStore({ url: server.url, name: 'bench' })
  const keys = keysOf('hf')
  const functions = functionsOf(store, keys.tag)
  let [accepted, request] = [0, 0]
  await initRecord({ redis: server.url })
  await functions.join(who, 'bench', [], '0-0')
  const usedBefore = await infoNumber(redis, 'memory', 'used_memory')

  async function acceptMore(/** @type {number} */ count, /** @type {number} */ width) {
    const from = accepted
    accepted += count
    await inFlight(count, width, (n) =>
      functions.accept(prepareMessage(messageTo(`m-${from + n}`, from + n, [who.host]))),
    )
  }

  return {
    /** Until so many are queued; answers what each takes in memory. @param {number} count */
    fill: async (count) => {
      await stopAof(redis)
      await acceptMore(count - accepted, flights.filling)
      const used = await infoNumber(redis, 'memory', 'used_memory')
      const log = Number(await redis.call('MEMORY', 'USAGE', keys.log, 'SAMPLES', 0))
      await startAof(redis)
      return { perDelivery: (used - usedBefore) / count, logPerDelivery: log / count }
    },
    /** Microseconds that Redis takes for each. @param {number} count */
    accept: async (count) => {
      await redis.config('RESETSTAT')
      await acceptMore(count, flights.measured)
      const { calls, usec } = await functionCalls(redis)
      if (calls !== count) throw new Error(`${calls} calls for ${count} accepts`)
      return usec / count
    },
    /** Microseconds that Redis takes for each delivery. @param {number} count */
    claim: async (count) => {
      await redis.config('RESETSTAT')
      request += 1
      const { deliveries } = await functions.claim(who, request, count)
      if (deliveries.length !== count) throw new Error(`claimed ${deliveries.length} of ${count}`)
      return (await functionCalls(redis)).usec / count
    },
    close: async () => {
      await store.close()
      redis.disconnect()
      await server.stop()
    },
  }
}

/** Bytes of a waiting job. @param {string} dir @param {number} count */
async function memoryOfBullmq(dir, count) {
  const server = await startServer(dir)
  try {
    const redis = openRedis(server.port)
    await stopAof(redis)
    const queue = new Queue('work', { connection: { host: '127.0.0.1', port: server.port } })
    await queue.waitUntilReady()
    const before = await infoNumber(redis, 'memory', 'used_memory')
    await inFlight(count, flights.filling, (n) => {
      const id = `m-${n}`
      return queue.add('message', { payload: payloadOf(id).toString() }, { jobId: id })
    })
    const after = await infoNumber(redis, 'memory', 'used_memory')
    await queue.close()
    redis.disconnect()
    return (after - before) / count
  } finally {
    await server.stop()
  }
}

/** @param {Figures} figures */
function show({ systems, memory, targets }) {
  const table = new Table({ head: ['backlog, µs of Redis', 'accept', 'min', 'max', 'claim', 'min', 'max'] })
  for (const { label, median, min, max, accept } of Object.values(systems)) {
    table.push([label, accept.median, accept.min, accept.max, median, min, max])
  }
  const { holdfast, bullmq, queued } = memory
  const words = `bytes per queued delivery, of ${queued.toLocaleString('en')}: ${holdfast}; BullMQ ${bullmq}`
  return [table.toString(), words, showTargets(targets)].join('\n')
}

export const item = {
  name: 'backlog',
  title: 'What a large backlog costs, in time and in memory',
  run,
  show,
}
