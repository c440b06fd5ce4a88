// @ts-check
// The processes of a run: one server, two hubs, four nodes on three hosts, two producers and an operator. Everything
// is started again when it dies; nothing is ever ended that was not started here.
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openClient, openHistory, sweepNames, sweepSetting } from './built.mjs'
import { functionsOf, initRecord, keysOf, openStore } from './built-record.mjs'
import { createCluster } from './cluster.mjs'
import { keep } from './keeper.mjs'
import { freePorts } from './ports.mjs'
import { createServer } from './redis.mjs'
import { untilDone, within } from './waiting.mjs'

/** @typedef {import('./keeper.mjs').Keeper} Keeper */
/** @typedef {import('./keeper.mjs').Target} Target */
/** @typedef {'hub' | 'node' | 'producer' | 'operator'} Role */
/** @typedef {import('./processes/message.mjs').Cast} Cast */

/**
 * What faults work with. `redisVia`, `hubsVia`, `wrap`, `env`, `redis.dir` and `redis.args` may be changed before the start, in
 * a fault's `prepare`; they are read at every start of a process.
 * @typedef {object} World
 * @property {string} dir of this run
 * @property {import('./redis.mjs').RedisServer} redis
 * @property {Keeper[]} hubs
 * @property {Keeper[]} nodes
 * @property {Keeper[]} producers
 * @property {Keeper} operator
 * @property {import('../src/testing/history.ts').History} history of the conductor
 * @property {import('./random.mjs').Random} random
 * @property {Record<'redis' | Role, Record<string, string>>} env added to the environment of the processes of a role
 * @property {(role: Role, name: string) => string} redisVia the server's URL for a process
 * @property {(role: Role, name: string) => string[]} hubsVia the hubs' URLs for a process
 * @property {(role: Role, name: string) => string[]} wrap the words that a process is started with: a namespace of its own
 * @property {readonly string[]} hubUrls of the hubs themselves
 * @property {number} deadPort where nothing listens
 * @property {string} hub the hub's name
 * @property {Record<string, string>} nodeIds by the names of nodes, which they begin as; a node whose mirror was lost goes on under another. Read at every start
 * @property {() => Promise<void>} makeAnew the record, after it was lost: with the same settings, principals and sessions
 * @property {Cast} cast
 * @property {(target: string) => Keeper} find by role and name: `node a1`
 * @property {import('../src/client/open-client.ts').Client} client of the conductor, by way of the first hub
 * @property {{ target: Target, code: number | null, signal: string | null }[]} unexpectedEnds of processes that nobody killed
 * @property {string[]} misbehaviours what faults saw that must never be
 */

/** @typedef {{ dir: string, seed: string, random: import('./random.mjs').Random, probe: boolean, rate: number, fanOut: number, onCluster: boolean }} WorldOptions */

export const hubName = 'torture'
/** What targets of faults are drawn from. */
export const names = {
  hubs: ['h1', 'h2'],
  nodes: ['a1', 'a2', 'b1', 'c1'],
  producers: ['p1', 'p2'],
}
const hostOf = (/** @type {string} */ node) => node.slice(0, 1)
/** Reached over HTTP, by way of the second hub; the others are inside the trust boundary. */
const nodeOverHttp = 'c1'
/** @type {Cast} */
const usualCast = {
  hosts: ['a', 'b', 'c'],
  sessions: Array.from({ length: 9 }, (_, at) => `s${at + 1}`),
  conversations: Array.from({ length: 24 }, (_, at) => `c${at + 1}`),
}
const scope = '/srv/torture'

/** Sweeps that have little to do here, or much. @type {string[]} */
const seldom = ['effects', 'rehome', 'nodes', 'retention', 'audit']

/** Everything quick, and nothing forgotten. */
const settings = {
  log_length: 10_000_000,
  retention_ms: 3_600_000,
  stale_after_ms: 1500,
  heartbeat_ms: 300,
  recovery_age_ms: 1000,
  report_deadline_ms: 5000,
  // A message to two hosts owes one of them to its fan-out.
  inline_fan_out: 1,
  ...Object.fromEntries(sweepNames.map((name) => [sweepSetting(name), seldom.includes(name) ? 5000 : 1000])),
}

/** A primary takes a while to be replaced, and what it answered for is to be there then. */
const onClusters = { stale_after_ms: 6000, wait_replicas: 1, wait_replicas_ms: 500 }

const initWithinMs = 60_000
const upWithinMs = 60_000
const stopWithinMs = 6000
const calmWithinMs = 30_000
const backlogAtMost = 1500
const backlogEveryMs = 300

/**
 * A run's processes and what is done with all of them.
 * @typedef {object} Stage
 * @property {World} world
 * @property {() => Promise<void>} start the record is made, and everything works
 * @property {() => Promise<void>} heal everything works again, fences are lifted, no key is without an answer; every node was started once more
 * @property {() => Promise<void>} end
 * @property {() => void} kill at once, for a process that ends itself
 */

/** Nothing is started yet. @param {WorldOptions} given @returns {Promise<Stage>} */
export async function setStage({ dir, seed, random, probe, rate, fanOut, onCluster }) {
  const cast = { ...usualCast, fanOut }
  const folder = (/** @type {string} */ name) => {
    const path = join(dir, name)
    mkdirSync(path, { recursive: true })
    return path
  }
  const [historyDir, logDir] = [folder('history'), folder('log')]
  const history = openHistory(historyDir, 'conductor', 'run')
  const [redisPort = 0, deadPort = 0, ...hubPorts] = await freePorts(2 + names.hubs.length)
  const hubUrls = hubPorts.map((port) => `http://127.0.0.1:${port}`)
  /** @type {World['unexpectedEnds']} */
  const unexpectedEnds = []
  /** @param {World['unexpectedEnds'][number]} end */
  const onUnexpectedEnd = (end) => void unexpectedEnds.push(end)
  /** By the name of the process. @type {Record<string, string>} */
  const tokens = {}
  const nodeIds = Object.fromEntries(names.nodes.map((name) => [name, name]))
  /** What a process that starts now is told, and what was heard from those that run. */
  const phase = { calm: false, draining: false, drained: new Set(), lifted: false }

  /**
   * @param {Role} role @param {string} name
   * @param {() => object} options
   * @param {(message: any) => void} [onMessage]
   */
  function kept(role, name, options, onMessage) {
    return keep({
      role,
      name,
      script: `${role}.mjs`,
      options: (start) => ({ history: historyDir, name, seed, start, hub: hubName, ...options() }),
      env: () => world.env[role],
      wrap: () => world.wrap(role, name),
      logFile: join(logDir, `${role}-${name}.log`),
      random: random.fork(`restarts of ${role} ${name}`),
      history,
      onUnexpectedEnd,
      ...(onMessage === undefined ? {} : { onMessage }),
    })
  }

  const server = {
    dir: join(dir, 'redis'),
    logDir,
    history,
    onUnexpectedEnd,
    env: () => world.env.redis,
  }
  const redis = onCluster
    ? await createCluster({ ...server, tag: keysOf(hubName).tag })
    : createServer({ ...server, port: redisPort })
  const hubs = names.hubs.map((name, at) =>
    kept('hub', name, () => ({ redis: world.redisVia('hub', name), port: hubPorts[at] })),
  )
  const nodes = names.nodes.map((name) =>
    kept('node', name, () => ({
      ...(name === nodeOverHttp
        ? { http: world.hubsVia('node', name).at(-1), token: tokens[name] }
        : { redis: world.redisVia('node', name) }),
      host: hostOf(name),
      node: nodeIds[name],
      mirror: join(folder(`mirrors/${name}`), 'mirror.db'),
      scopes: [scope],
      probe,
      calm: phase.calm,
    })),
  )
  const producers = names.producers.map((name) =>
    kept(
      'producer',
      name,
      () => ({
        hubs: world.hubsVia('producer', name),
        token: tokens[name],
        rate,
        cast,
        draining: phase.draining,
      }),
      (message) => {
        if (message.drained === true) phase.drained.add(name)
      },
    ),
  )
  const operator = kept(
    'operator',
    'o1',
    () => ({ hubs: world.hubsVia('operator', 'o1'), token: tokens['o1'], cast, calm: phase.calm }),
    (message) => {
      if (message.calm === true) phase.lifted = true
    },
  )
  const everyone = [...hubs, ...nodes, ...producers, operator]

  /** @type {World} */
  const world = {
    dir,
    redis,
    hubs,
    nodes,
    producers,
    operator,
    history,
    random,
    env: { redis: {}, hub: {}, node: {}, producer: {}, operator: {} },
    redisVia: () => redis.url,
    hubsVia: () => [...hubUrls],
    wrap: () => [],
    hubUrls,
    deadPort,
    hub: hubName,
    nodeIds,
    makeAnew: async () => {
      await makeRecord(redis.url, { afterLoss: true, tokens })
      await openSessions()
    },
    cast,
    find: (target) => {
      const found = everyone.find(({ role, name }) => `${role} ${name}` === target)
      if (found === undefined) throw new Error(`there is no ${target}`)
      return found
    },
    client: clientOf(undefined),
    unexpectedEnds,
    misbehaviours: [],
  }

  /** @param {string | undefined} token */
  function clientOf(token) {
    return openClient({ url: hubUrls[0] ?? '', deadlineMs: 5000, token })
  }

  async function start() {
    await redis.start()
    for (const { name } of principals) tokens[name] = `hft_${randomBytes(32).toString('base64url')}`
    await within(makeRecord(redis.url, { afterLoss: false, tokens }), initWithinMs, 'the record is made')
    world.client = clientOf(tokens['conductor'])
    await Promise.all(hubs.map((hub) => hub.start()))
    await openSessions()
    await Promise.all([...nodes, ...producers, operator].map((each) => each.start()))
    void holdBack()
  }

  async function openSessions() {
    for (const [at, session] of cast.sessions.entries()) {
      const host = cast.hosts[at % cast.hosts.length] ?? ''
      const opening = { host, scope, restartBudget: 3 }
      await untilDone(() => world.client.openSession(session, opening, 'conductor'), initWithinMs)
    }
  }

  /** Producers wait while the nodes have too much before them: what is left when the load ends is bounded. */
  async function holdBack() {
    const { stream } = keysOf(hubName)
    for (; !phase.draining; await sleep(backlogEveryMs)) {
      const lengths = await Promise.all(
        cast.hosts.map((host) => redis.call(['XLEN', stream(host)], 500)),
      ).catch(() => undefined)
      if (lengths === undefined) continue
      const wait = lengths.map(Number).reduce((sum, length) => sum + length, 0) > backlogAtMost
      for (const each of producers) each.tell({ wait })
    }
  }

  async function heal() {
    await redis.start()
    for (const each of everyone) each.kill('SIGCONT')
    await Promise.all(everyone.map((each) => each.whenUp(upWithinMs)))
    phase.calm = true
    phase.draining = true
    for (const each of [...nodes, operator]) each.tell({ calm: true })
    for (const each of producers) each.tell({ drain: true })
    await noteLate('fences', () => phase.lifted)
    await Promise.all(nodes.map(startAgain))
    await noteLate('producers', () => phase.drained.size === producers.length)
  }

  /** Asked to end and started: its next process recovers what this one could not tell of. @param {Keeper} node */
  async function startAgain(node) {
    history.write({ kind: 'restart', type: 'begin', target: node.target() })
    await node.stop(stopWithinMs)
    await node.start()
    history.write({ kind: 'restart', type: 'end', target: node.target() })
  }

  /** What is not so in time is noted: the checker will see what came of it. @param {string} what @param {() => boolean} isSo */
  async function noteLate(what, isSo) {
    const deadlineAt = performance.now() + calmWithinMs
    while (!isSo()) {
      if (performance.now() > deadlineAt) return history.write({ kind: 'late', what, withinMs: calmWithinMs })
      await sleep(50)
    }
  }

  return {
    world,
    start,
    heal,
    end: async () => {
      phase.draining = true
      await world.client.close()
      await Promise.all(everyone.map((each) => each.end()))
      await redis.dispose()
      history.close()
    },
    kill: () => {
      for (const each of everyone) each.kill('SIGKILL')
      redis.kill('SIGKILL')
    },
  }
}

/** Who speaks over HTTP: nobody is taken for somebody else, wherever it calls from. @type {import('../src/contract/hub.ts').PrincipalInput[]} */
const principals = [
  { name: 'conductor', role: 'operator' },
  { name: 'o1', role: 'operator' },
  ...names.producers.map((name) => ({ name, role: /** @type {const} */ ('producer'), anySender: true })),
  { name: nodeOverHttp, role: 'node', host: hostOf(nodeOverHttp), scopes: [scope] },
]

/** @param {string} url @param {{ afterLoss: boolean, tokens: Record<string, string> }} how `tokens`: of those who speak over HTTP */
async function makeRecord(url, { afterLoss, tokens }) {
  await initRecord({ redis: url, hub: hubName, afterLoss })
  const store = await openStore({ url, tag: keysOf(hubName).tag, name: 'torture-settings' })
  try {
    const functions = functionsOf(store, keysOf(hubName).tag)
    const more = url.startsWith('redis-cluster:') ? onClusters : {}
    const words = Object.entries({ ...settings, ...more }).map(([name, value]) => [name, String(value)])
    await functions.configure(Object.fromEntries(words), 'conductor')
    for (const { name, ...rest } of principals) {
      const tokenSha256 = createHash('sha256')
        .update(tokens[name] ?? '')
        .digest('hex')
      await functions.addPrincipal({ name, ...rest, tokenSha256 }, 'conductor')
    }
  } finally {
    await store.close()
  }
}
