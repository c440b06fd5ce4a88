// @ts-check
// The work item `latency`: how long a message is on its way at a moderate rate, from the accept call to `execute`
// entered. Producer and consumer are processes of their own, with one clock.
import { Queue } from 'bullmq'
import Table from 'cli-table3'
import { initRecord, openHub } from 'holdfast'
import { checkExactlyOnce, paced, quantilesOf, spreadOf } from '../figures.mjs'
import { startServer } from '../server.mjs'
import { clockMs } from './shared/clock.mjs'
import { messageTo, payloadBytes, payloadOf } from './shared/message.mjs'
import { startScript } from './shared/processes.mjs'
import { openRedis } from './shared/redis.mjs'
import { atMost, ratioOf, showTargets, takeTurns } from './shared/rounds.mjs'

/** @typedef {import('../server.mjs').Server} Server */
/** @typedef {{ accept: (id: string, n: number) => Promise<unknown>, close: () => Promise<unknown> }} Producer */
/** @typedef {Awaited<ReturnType<typeof run>>} Latency */

const names = { host: 'bench', queue: 'work', stream: 'work', group: 'workers' }
/**
 * The writes of a delivery between what wakes its node and `execute` entered: the claim; and mirror, ack and begin,
 * which are one call. Each is a round trip with an fsync before its answer.
 */
const stepsBeforeExecute = 2
const perSecond = 500
const sizes = { full: { rounds: 5, messages: 5000 }, quick: { rounds: 2, messages: 600 } }
const warmUp = 250
const executedWithinMs = 20_000

const systems = {
  holdfast: { label: 'hub and node over Redis, with its mirror', open: openHoldfast },
  bullmq: { label: 'BullMQ: add with jobId, one worker at concurrency 100', open: openBullmq },
  raw: { label: 'raw stream: XADD, blocking XREADGROUP', open: openRaw },
  floor: { label: `floor: raw stream, then ${stepsBeforeExecute} HSET in turn`, open: openRaw },
  floor_synced: { label: 'the same floor, with two synced appends on its disk', open: openRaw },
}
/** @typedef {keyof typeof systems} Name */
const all = /** @type {Name[]} */ (Object.keys(systems))

/** @param {import('../run.mjs').Options} options */
async function run({ quick, dir, say, ...given }) {
  const size = quick ? sizes.quick : sizes.full
  const rounds = given.rounds ?? size.rounds
  const messages = given.messages ?? size.messages
  const measured = await takeTurns(all, rounds, async (name, round) => {
    const figures = await runRound(name, dir, messages)
    say(`round ${round + 1} of ${rounds}: ${name} p50 ${figures.p50} ms, p99 ${figures.p99} ms`)
    return figures
  })
  const of = (/** @type {Name} */ name, /** @type {'p50' | 'p99'} */ which) =>
    measured[name].map((each) => each[which])
  const ratios = {
    floor_p50: ratioOf(of('holdfast', 'p50'), of('floor', 'p50')),
    floor_p99: ratioOf(of('holdfast', 'p99'), of('floor', 'p99')),
    floor_synced_p50: ratioOf(of('holdfast', 'p50'), of('floor_synced', 'p50')),
    floor_synced_p99: ratioOf(of('holdfast', 'p99'), of('floor_synced', 'p99')),
    bullmq_p50: ratioOf(of('holdfast', 'p50'), of('bullmq', 'p50')),
    bullmq_p99: ratioOf(of('holdfast', 'p99'), of('bullmq', 'p99')),
    raw_p50: ratioOf(of('holdfast', 'p50'), of('raw', 'p50')),
    raw_p99: ratioOf(of('holdfast', 'p99'), of('raw', 'p99')),
  }
  return {
    title: item.title,
    unit: 'ms, from the accept call to `execute` entered: the median message of a round, and p99 beside it',
    rounds,
    messages,
    perSecond,
    payloadBytes,
    fsync: 'always',
    systems: Object.fromEntries(
      all.map((name) => [
        name,
        {
          label: systems[name].label,
          ...spreadOf(of(name, 'p50'), 2),
          p99: spreadOf(of(name, 'p99'), 2),
        },
      ]),
    ),
    ratios,
    targets: [
      atMost('floor_p50', ratios.floor_p50, 1.5),
      atMost('floor_p99', ratios.floor_p99, 1.5),
      atMost('bullmq_p50', ratios.bullmq_p50, 1),
      atMost('bullmq_p99', ratios.bullmq_p99, 1),
    ],
    notes: [
      'ratios are holdfast over the other: smaller is better',
      `open loop: ${perSecond} messages/s begin whether earlier ones have ended or not`,
      'the producer and the consumer are two processes; both times are of the monotonic clock they share',
      `floor: XADD, a blocking XREADGROUP, and ${stepsBeforeExecute} HSET in turn on one connection, each with its fsync: the claim, and the call before execute. The mirror's own fsyncs are not in it`,
      'floor with synced appends: the same, with 400 bytes durable in a file on the same disk before the last HSET and 40 after it, one sync for all that came meanwhile: what a mirror has to have written before `execute`, without SQLite',
      'every round: the ids executed are the ids accepted, each once',
    ],
  }
}

/** @param {Name} name @param {string} dir @param {number} messages */
async function runRound(name, dir, messages) {
  const server = await startServer(dir)
  try {
    if (name === 'holdfast') await initRecord({ redis: server.url })
    const { url, port, folder } = server
    const place = { url, port, folder, names, stepsBeforeExecute }
    const consumer = await startScript('latency-consumer.mjs', { system: name, ...place })
    const producer = await systems[name].open(server)
    try {
      const calledAt = await send(producer, messages)
      const question = { count: calledAt.size, withinMs: executedWithinMs }
      const { executed } = /** @type {{ executed: { id: string, at: number }[] }} */ (
        await consumer.ask(question)
      )
      /** @type {Map<string, number>} */
      const times = new Map()
      for (const { id } of executed) times.set(id, (times.get(id) ?? 0) + 1)
      checkExactlyOnce([...calledAt.keys()], times)
      const timed = executed.filter(({ id }) => Number(id.slice(2)) >= warmUp)
      return quantilesOf(timed.map(({ id, at }) => at - (calledAt.get(id) ?? Number.NaN)))
    } finally {
      await producer.close()
      await consumer.stop()
    }
  } finally {
    await server.stop()
  }
}

/** Answers when each was accepted: the call, not its answer. @param {Producer} producer @param {number} messages */
async function send(producer, messages) {
  /** @type {Map<string, number>} */
  const calledAt = new Map()
  await paced(warmUp + messages, perSecond, (n) => {
    const id = `m-${n}`
    calledAt.set(id, clockMs())
    return producer.accept(id, n)
  })
  return calledAt
}

/** @param {Server} server @returns {Promise<Producer>} */
async function openHoldfast({ url }) {
  const hub = await openHub({ redis: url })
  return { accept: (id, n) => hub.accept(messageTo(id, n, [names.host])), close: hub.close }
}

/** @param {Server} server @returns {Promise<Producer>} */
async function openBullmq({ port }) {
  const queue = new Queue(names.queue, { connection: { host: '127.0.0.1', port } })
  await queue.waitUntilReady()
  return {
    accept: (id) => queue.add('message', { payload: payloadOf(id).toString() }, { jobId: id }),
    close: () => queue.close(),
  }
}

/** @param {Server} server @returns {Promise<Producer>} */
async function openRaw({ port }) {
  const redis = openRedis(port)
  return {
    accept: (id) => redis.xadd(names.stream, '*', 'payload', payloadOf(id)),
    close: () => redis.quit(),
  }
}

/** @param {Latency} latency */
function show({ systems, targets }) {
  const table = new Table({ head: ['latency, ms', 'p50', 'min', 'max', 'p99', 'min', 'max'] })
  for (const { label, median, min, max, p99 } of Object.values(systems)) {
    table.push([label, median, min, max, p99.median, p99.min, p99.max])
  }
  return [table.toString(), showTargets(targets)].join('\n')
}

export const item = {
  name: 'latency',
  title: 'How long a message is on its way, at 500 messages/s',
  run,
  show,
}
