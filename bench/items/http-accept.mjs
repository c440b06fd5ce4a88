// @ts-check
// The work item `http-accept`: messages accepted over HTTP, against a bare route of the same framework.
import Table from 'cli-table3'
import { initRecord, openHub } from 'holdfast'
import { inFlight, quantilesOf, spreadOf } from '../figures.mjs'
import { startServer } from '../server.mjs'
import { openConnection } from './shared/http.mjs'
import { payloadBytes, payloadOf } from './shared/message.mjs'
import { startHub, startScript } from './shared/processes.mjs'
import { openRedis } from './shared/redis.mjs'
import { atLeast, ratioOf, showTargets, takeTurns } from './shared/rounds.mjs'

/** @typedef {import('../server.mjs').Server} Server */
/** @typedef {Awaited<ReturnType<typeof run>>} HttpAccept */

const sizes = { full: { rounds: 5, messages: 20_000 }, quick: { rounds: 3, messages: 3000 } }
const warmUp = 1000
const flights = 64
/** No client of this item reaches it; the limit itself stays in the path. */
const ratePerSecond = 1_000_000
const conversations = 1000
const created = 201

const systems = {
  holdfast: { label: 'holdfast serve: POST /v1/messages', open: openHoldfast },
  fastify: { label: 'a bare fastify route: one XADD', open: openFastify },
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
    say(`round ${round + 1} of ${rounds}: ${name} ${figures.perSecond.toFixed(0)}/s, p99 ${figures.p99} ms`)
    return figures
  })
  const of = (/** @type {Name} */ name, /** @type {'perSecond' | 'p50' | 'p99'} */ which) =>
    measured[name].map((each) => each[which])
  const ratios = { fastify: ratioOf(of('holdfast', 'perSecond'), of('fastify', 'perSecond')) }
  return {
    title: item.title,
    unit: 'requests/s; ms from request to answer beside it',
    rounds,
    messages,
    inFlight: flights,
    payloadBytes,
    fsync: 'always',
    systems: Object.fromEntries(
      names.map((name) => [
        name,
        {
          label: systems[name].label,
          ...spreadOf(of(name, 'perSecond')),
          p50: spreadOf(of(name, 'p50'), 2),
          p99: spreadOf(of(name, 'p99'), 2),
        },
      ]),
    ),
    ratios,
    targets: [atLeast('fastify', ratios.fastify, 0.7)],
    notes: [
      'ratios are holdfast over the other: larger is better',
      `${flights} keep-alive connections, one request under way on each; server and load are processes of their own`,
      `a rate limit of ${ratePerSecond} requests a second, so that nothing is refused; on loopback, with no principals`,
      `after ${warmUp} untimed requests; every answer is checked to be ${created}, its id to be new, and the record to hold as many`,
    ],
  }
}

/** @param {Name} name @param {string} dir @param {number} messages */
async function runRound(name, dir, messages) {
  const server = await startServer(dir)
  try {
    const system = await systems[name].open(server)
    const connections = await Promise.all(Array.from({ length: flights }, () => openConnection(system.port)))
    /** @type {Set<string>} */
    const ids = new Set()
    /** @type {number[]} */
    const waits = []
    const post = async (/** @type {number} */ n) => {
      const connection = connections.pop()
      if (connection === undefined) throw new Error('more in flight than connections')
      const calledAt = performance.now()
      const { status, body } = await connection.send('POST', '/v1/messages', bodyOf(n), {
        'idempotency-key': `m-${n}`,
      })
      waits.push(performance.now() - calledAt)
      connections.push(connection)
      if (status !== created) throw new Error(`${name} answered ${status}: ${body}`)
      ids.add(JSON.parse(body).id)
    }
    try {
      await inFlight(warmUp, flights, post)
      waits.length = 0
      const startedAt = performance.now()
      await inFlight(messages, flights, (n) => post(warmUp + n))
      const tookMs = performance.now() - startedAt
      await system.check(warmUp + messages)
      if (ids.size !== warmUp + messages) throw new Error(`${ids.size} ids for ${warmUp + messages} messages`)
      return { perSecond: (messages * 1000) / tookMs, ...quantilesOf(waits) }
    } finally {
      for (const connection of connections) connection.close()
      await system.stop()
    }
  } finally {
    await server.stop()
  }
}

/** @param {number} n */
function bodyOf(n) {
  return {
    conversation: `c-${n % conversations}`,
    sender: 'bench',
    to: [{ host: 'bench' }],
    payload: payloadOf(`m-${n}`).toString(),
  }
}

/** @param {Server} server */
async function openHoldfast({ url }) {
  await initRecord({ redis: url })
  const served = await startHub(url, ['--rate', String(ratePerSecond)])
  return {
    ...served,
    check: async (/** @type {number} */ messages) => {
      const hub = await openHub({ redis: url })
      const { queued } = await hub.counts()
      await hub.close()
      if (queued !== messages) throw new Error(`${queued} queued after ${messages} messages`)
    },
  }
}

/** @param {Server} server */
async function openFastify({ port }) {
  const served = await startScript('bare-fastify.mjs', { port })
  return {
    port: Number(served.ready.port),
    stop: served.stop,
    check: async (/** @type {number} */ messages) => {
      const redis = openRedis(port)
      const length = await redis.xlen('work')
      redis.disconnect()
      if (length !== messages) throw new Error(`${length} entries after ${messages} messages`)
    },
  }
}

/** @param {HttpAccept} figures */
function show({ systems, targets }) {
  const table = new Table({ head: ['http-accept, requests/s', 'median', 'min', 'max', 'p50, ms', 'p99, ms'] })
  for (const { label, median, min, max, p50, p99 } of Object.values(systems)) {
    table.push([label, median, min, max, p50.median, p99.median])
  }
  return [table.toString(), showTargets(targets)].join('\n')
}

export const item = {
  name: 'http-accept',
  title: 'Messages accepted over HTTP',
  run,
  show,
}
