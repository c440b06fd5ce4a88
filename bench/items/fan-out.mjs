// @ts-check
// The work item `fan-out`: one message to ten thousand hosts, against as many XADD in pipelines.
import Table from 'cli-table3'
import { initRecord, openHub } from 'holdfast'
import { spreadOf } from '../figures.mjs'
import { startServer } from '../server.mjs'
import { messageTo, payloadBytes, payloadOf } from './shared/message.mjs'
import { openRedis, slowCalls, slowMs, watchSlowCalls } from './shared/redis.mjs'
import { atLeast, atMost, ratioOf, showTargets, takeTurns } from './shared/rounds.mjs'

/** @typedef {import('../server.mjs').Server} Server */
/** @typedef {Awaited<ReturnType<typeof run>>} FanOut */
/** @typedef {{ first: number, perSecond: number, slow: number, slowest: { function: string, ms: number }[], longestMs: number }} Round */

const sizes = { full: { rounds: 5, messages: 5 }, quick: { rounds: 3, messages: 3 } }
const hosts = Array.from({ length: 10_000 }, (_, n) => `h-${n}`)
const pipelined = 1000

const systems = {
  holdfast: { label: 'hub.accept, until the fan-out is complete', open: openHoldfast },
  raw: { label: `raw streams: XADD in pipelines of ${pipelined}`, open: openRaw },
}
/** @typedef {keyof typeof systems} Name */
const names = /** @type {Name[]} */ (Object.keys(systems))

/** @param {import('../run.mjs').Options} options */
async function run({ quick, dir, say, ...given }) {
  const size = quick ? sizes.quick : sizes.full
  const rounds = given.rounds ?? size.rounds
  const messages = given.messages ?? size.messages
  const measured = await takeTurns(names, rounds, async (name, round) => {
    const figures = await runRound(name, dir, messages)
    const { perSecond, longestMs } = figures
    say(`round ${round + 1} of ${rounds}: ${name} ${perSecond.toFixed(0)}/s, longest call ${longestMs} ms`)
    return figures
  })
  const perSecond = (/** @type {Name} */ name) => measured[name].map((each) => each.perSecond)
  const first = (/** @type {Name} */ name) => measured[name].map((each) => each.first)
  const slow = measured.holdfast.reduce((sum, each) => sum + each.slow, 0)
  const ratios = {
    raw: ratioOf(perSecond('holdfast'), perSecond('raw')),
    raw_first: ratioOf(first('holdfast'), first('raw')),
  }
  return {
    title: item.title,
    unit: 'deliveries/s, to hosts that are known; the first message beside it, which makes them',
    rounds,
    messages,
    hosts: hosts.length,
    payloadBytes,
    fsync: 'always',
    systems: Object.fromEntries(
      names.map((name) => [
        name,
        { label: systems[name].label, ...spreadOf(perSecond(name)), first: spreadOf(first(name)) },
      ]),
    ),
    longestCallMs: spreadOf(
      measured.holdfast.map((each) => each.longestMs),
      2,
    ),
    slowCalls: { count: slow, over: slowMs, slowest: measured.holdfast.flatMap((each) => each.slowest) },
    ratios,
    targets: [atLeast('raw', ratios.raw, 0.4), atMost(`calls over ${slowMs} ms`, slow, 0)],
    notes: [
      `a round: one message to ${hosts.length} hosts that makes their streams, then ${messages} more, one after another; deliveries/s are of these`,
      'ratios are holdfast over raw: larger is better',
      'raw has no rows, no states, no dedup: entries of a stream alone, each with the payload',
      'every round: each answer names a delivery for each host, and the record counts as many as queued',
      'calls over 10 ms: SLOWLOG over all rounds, by the wall clock: on a shared machine also a call that was made to wait for a core',
    ],
  }
}

/** @param {Name} name @param {string} dir @param {number} messages @returns {Promise<Round>} */
async function runRound(name, dir, messages) {
  const server = await startServer(dir)
  const redis = openRedis(server.port)
  try {
    const system = await systems[name].open(server)
    try {
      await watchSlowCalls(redis)
      const first = await timed(() => system.send(0))
      const rest = await timed(async () => {
        for (let n = 1; n <= messages; n += 1) await system.send(n)
      })
      const calls = await slowCalls(redis)
      await system.check(1 + messages)
      return {
        first: (hosts.length * 1000) / first,
        perSecond: (messages * hosts.length * 1000) / rest,
        ...calls,
      }
    } finally {
      await system.close()
    }
  } finally {
    redis.disconnect()
    await server.stop()
  }
}

/** @param {() => Promise<void>} job */
async function timed(job) {
  const startedAt = performance.now()
  await job()
  return performance.now() - startedAt
}

/** @param {Server} server */
async function openHoldfast({ url }) {
  await initRecord({ redis: url })
  const hub = await openHub({ redis: url })
  return {
    send: async (/** @type {number} */ n) => {
      const { deliveries, fanOut } = await hub.accept(messageTo(`m-${n}`, n, hosts))
      const reached = new Set(deliveries.map(({ host }) => host)).size
      if (fanOut !== 'complete' || reached !== hosts.length) {
        throw new Error(`the fan-out is ${fanOut}: ${reached} of ${hosts.length} hosts`)
      }
    },
    check: async (/** @type {number} */ messages) => {
      const { queued } = await hub.counts()
      if (queued !== messages * hosts.length) throw new Error(`${queued} queued after ${messages} messages`)
    },
    close: hub.close,
  }
}

/** @param {Server} server */
async function openRaw({ port }) {
  const redis = openRedis(port)
  return {
    send: async (/** @type {number} */ n) => {
      const payload = payloadOf(`m-${n}`)
      for (let from = 0; from < hosts.length; from += pipelined) {
        const pipeline = redis.pipeline()
        for (const host of hosts.slice(from, from + pipelined)) pipeline.xadd(host, '*', 'payload', payload)
        for (const [error] of (await pipeline.exec()) ?? []) if (error !== null) throw error
      }
    },
    check: async (/** @type {number} */ messages) => {
      const length = await redis.xlen(hosts.at(-1) ?? '')
      if (length !== messages) throw new Error(`${length} entries after ${messages} messages`)
    },
    close: async () => void (await redis.quit()),
  }
}

/** @param {FanOut} fanOut */
function show({ systems, longestCallMs, targets }) {
  const table = new Table({ head: ['fan-out, deliveries/s', 'median', 'min', 'max', 'first message'] })
  for (const { label, median, min, max, first } of Object.values(systems)) {
    table.push([label, median, min, max, first.median])
  }
  const words = `longest function call: ${longestCallMs.max} ms`
  return [table.toString(), words, showTargets(targets)].join('\n')
}

export const item = {
  name: 'fan-out',
  title: 'One message to ten thousand hosts',
  run,
  show,
}
