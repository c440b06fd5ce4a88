// @ts-check
// The work item `idle`: what a hub and its Redis spend while a thousand long polls and a hundred nodes wait for
// work, and how soon one of them is woken.
import { setTimeout as sleep } from 'node:timers/promises'
import Table from 'cli-table3'
import { initRecord, openHub } from 'holdfast'
import { inFlight, paced, quantilesOf, spreadOf } from '../figures.mjs'
import { startServer } from '../server.mjs'
import { clockMs } from './shared/clock.mjs'
import { cpuShares } from './shared/cpu.mjs'
import { messageTo } from './shared/message.mjs'
import { openPoll } from './shared/polls.mjs'
import { startHub, startScript } from './shared/processes.mjs'
import { atMost, showTargets } from './shared/rounds.mjs'

/** @typedef {import('./shared/polls.mjs').Poll} Poll */
/** @typedef {Awaited<ReturnType<typeof run>>} Idle */
/** @typedef {{ hub: number, redis: number }} Shares % of a core */
/** @typedef {ReturnType<typeof quantilesOf>} Quantiles */
/** @typedef {{ seconds: number, briefly: number, wakes: number, nodesWoken: number }} Size */

/**
 * Sweeps look at every host, each at its own interval, so that what idle costs comes in bursts: the figure is taken
 * over `seconds`, a multiple of the shorter intervals (10 s), and in full of the longer ones (30 s). The other
 * lines, which only tell where it comes from, over `briefly`.
 */
const sizes = {
  full: { rounds: 5, seconds: 30, briefly: 10, wakes: 500, nodesWoken: 200 },
  quick: { rounds: 1, seconds: 10, briefly: 1.5, wakes: 200, nodesWoken: 50 },
}
const [polls, nodes] = [1000, 100]
/** Nobody goes stale while it is measured: nothing but what the item does wakes anyone. */
const staleAfterMs = 120_000
/** The default of the record: what the polls keep to where they beat. */
const heartbeatMs = 2000
const settleMs = 500
const openedAtOnce = 32
const executedWithinMs = 20_000
const ratePerSecond = 1_000_000

const phases = {
  alone: 'the hub and its Redis, and nobody else',
  nodes: `and ${nodes} nodes over Redis`,
  polls: `and ${polls} long polls over HTTP`,
  beats: `and their heartbeats over HTTP, each every ${heartbeatMs} ms`,
}
/** @typedef {keyof typeof phases} Phase */
const names = /** @type {Phase[]} */ (Object.keys(phases))

/** @param {import('../run.mjs').Options} options */
async function run({ quick, dir, say, ...given }) {
  const size = quick ? sizes.quick : sizes.full
  const rounds = given.rounds ?? size.rounds
  const wakes = given.messages ?? size.wakes
  /** @type {Awaited<ReturnType<typeof runRound>>[]} */
  const measured = []
  for (let round = 0; round < rounds; round += 1) {
    const figures = await runRound(dir, { ...size, wakes })
    measured.push(figures)
    const { hub, redis } = figures.shares.polls
    const words = `hub ${hub.toFixed(1)} %, Redis ${redis.toFixed(1)} %, woken in ${figures.woken.polls.p50} ms`
    say(`round ${round + 1} of ${rounds}: ${words}`)
  }
  const of = (/** @type {Phase} */ name, /** @type {(shares: Shares) => number} */ pick) =>
    spreadOf(
      measured.map(({ shares }) => pick(shares[name])),
      2,
    )
  const wokenBy = (/** @type {'polls' | 'nodes'} */ whom, /** @type {'p50' | 'p99'} */ which) =>
    spreadOf(
      measured.map(({ woken }) => woken[whom][which]),
      2,
    )
  const systems = Object.fromEntries(
    names.map((name) => [
      name,
      {
        label: phases[name],
        ...of(name, ({ hub, redis }) => hub + redis),
        hub: of(name, ({ hub }) => hub),
        redis: of(name, ({ redis }) => redis),
      },
    ]),
  )
  const woken = {
    polls: { p50: wokenBy('polls', 'p50'), p99: wokenBy('polls', 'p99') },
    nodes: { p50: wokenBy('nodes', 'p50'), p99: wokenBy('nodes', 'p99') },
  }
  const share = systems['polls']?.median ?? Number.NaN
  return {
    title: item.title,
    unit: '% of a core, the hub process and its Redis together; each beside it',
    rounds,
    polls,
    nodes,
    wakes,
    systems,
    woken,
    complaints: measured.flatMap(({ complaints }) => complaints),
    ratios: {},
    targets: [
      atMost('idle share of a core, %', share, 5),
      atMost('long poll woken, p99 ms', woken.polls.p99.median, 50),
      atMost('node woken, p99 ms', woken.nodes.p99.median, 50),
    ],
    notes: [
      `user and system time of the two processes by /proc, over ${size.seconds} s in which nothing is accepted (the other lines: ${size.briefly} s); each line adds to the one above it`,
      `every poll is a claim of a host of its own that waits up to a minute; no node goes stale (${staleAfterMs} ms)`,
      'the target is held against the long polls and the nodes over Redis, with the heartbeats of these and the sweeps of the hub; the last line adds the heartbeats that nodes over HTTP send, and is no part of it',
      'woken: one message at a time, through a hub in this process, each to the next host; ms from the accept call to the poll answered, or to `execute` entered',
      `woken, p50 and p99: polls ${woken.polls.p50.median} and ${woken.polls.p99.median} ms, nodes ${woken.nodes.p50.median} and ${woken.nodes.p99.median} ms`,
    ],
  }
}

/** @param {string} dir @param {Size} size */
async function runRound(dir, { seconds, briefly, wakes, nodesWoken }) {
  const server = await startServer(dir)
  /** @type {(() => Promise<unknown> | void)[]} */
  const closers = [server.stop]
  try {
    await initRecord({ redis: server.url })
    const hub = await openHub({ redis: server.url })
    closers.push(hub.close)
    await hub.configure({ stale_after_ms: staleAfterMs, heartbeat_ms: heartbeatMs }, 'bench')
    const served = await startHub(server.url, ['--rate', String(ratePerSecond)])
    closers.push(served.stop)
    const pids = { hub: served.pid, redis: server.pid }
    const shares = async (/** @type {number} */ over) => {
      await sleep(settleMs)
      return cpuShares(pids, () => sleep(over * 1000))
    }

    const alone = await shares(briefly)
    const nodeHosts = Array.from({ length: nodes }, (_, n) => `node-${n}`)
    const place = { url: server.url, folder: server.folder, hosts: nodeHosts }
    const child = await startScript('idle-nodes.mjs', place)
    closers.push(child.stop)
    const withNodes = await shares(briefly)

    /** @type {Poll[]} */
    const waiting = []
    closers.push(() => {
      for (const poll of waiting) poll.close()
    })
    await inFlight(polls, openedAtOnce, async (n) => {
      waiting.push(await openPoll(served.port, `poll-${n}`))
    })
    const withPolls = await shares(seconds)
    const woken = {
      polls: await wakePolls(hub, waiting, wakes),
      nodes: await wakeNodes(hub, child, nodeHosts, nodesWoken),
    }

    const beating = async () => {
      const count = Math.ceil((polls * briefly * 1000) / heartbeatMs)
      await paced(count, (polls * 1000) / heartbeatMs, async (n) => waiting[n % polls]?.beat())
    }
    const withBeats = await cpuShares(pids, beating)
    for (const poll of waiting) poll.check()
    return {
      complaints: served.complaints(),
      shares: { alone, nodes: withNodes, polls: withPolls, beats: withBeats },
      woken,
    }
  } finally {
    for (const close of closers.reverse()) await close()
  }
}

/** @param {import('holdfast').Hub} hub @param {readonly Poll[]} waiting @param {number} wakes @returns {Promise<Quantiles>} */
async function wakePolls(hub, waiting, wakes) {
  /** @type {number[]} */
  const waits = []
  for (let n = 0; n < wakes; n += 1) {
    const poll = waiting[n % waiting.length]
    if (poll === undefined) throw new Error('nobody waits')
    const woken = poll.woken()
    const calledAt = clockMs()
    const { deliveries } = await hub.accept(messageTo(`poll-${n}`, n, [poll.host]))
    const { at, ids } = await woken
    if (ids.length !== 1 || ids[0] !== deliveries[0]?.id) {
      throw new Error(`${poll.host} got ${ids.join(', ')} for ${deliveries[0]?.id}`)
    }
    waits.push(at - calledAt)
  }
  return quantilesOf(waits)
}

/**
 * @param {import('holdfast').Hub} hub @param {{ ask: (question: object) => Promise<any> }} child
 * @param {readonly string[]} hosts @param {number} wakes @returns {Promise<Quantiles>}
 */
async function wakeNodes(hub, child, hosts, wakes) {
  /** @type {number[]} */
  const waits = []
  for (let n = 0; n < wakes; n += 1) {
    const id = `node-${n}`
    const calledAt = clockMs()
    await hub.accept(messageTo(id, n, [hosts[n % hosts.length] ?? '']))
    const { executed } = await child.ask({ count: n + 1, withinMs: executedWithinMs })
    const last = executed.at(-1)
    if (executed.length !== n + 1 || last.id !== id) throw new Error(`executed ${last.id} for ${id}`)
    waits.push(last.at - calledAt)
  }
  return quantilesOf(waits)
}

/** @param {Idle} idle */
function show({ systems, woken, targets }) {
  const table = new Table({ head: ['idle, % of a core', 'both', 'min', 'max', 'hub', 'Redis'] })
  for (const { label, median, min, max, hub, redis } of Object.values(systems)) {
    table.push([label, median, min, max, hub.median, redis.median])
  }
  const words = /** @type {const} */ (['polls', 'nodes']).map(
    (whom) => `${whom} woken in, ms: p50 ${woken[whom].p50.median}, p99 ${woken[whom].p99.median}`,
  )
  return [table.toString(), ...words, showTargets(targets)].join('\n')
}

export const item = {
  name: 'idle',
  title: 'A thousand long polls and a hundred nodes that wait',
  run,
  show,
}
