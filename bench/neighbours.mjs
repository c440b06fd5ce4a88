// @ts-check
// The work item `neighbours`: how long a live host waits for a message, alone on its hub and beside hosts whose
// nodes died with work of theirs claimed, while the sweeps look after all of them.
import Table from 'cli-table3'
import { createNode, initRecord, openHub } from 'holdfast'
import { functionsOf, keysOf, openHubParts, openStore, prepareMessage, startSchedule } from './built.mjs'
import { inFlight, paced, quantilesOf, spreadOf } from './figures.mjs'
import { startServer } from './server.mjs'

/** @typedef {Awaited<ReturnType<typeof run>>} Neighbours */

const sizes = {
  full: { rounds: 5, messages: 2000, dead: 50, each: 1000 },
  quick: { rounds: 1, messages: 1000, dead: 50, each: 1000 },
}
const perSecond = 200
/** Of each dead host's deliveries, so many were claimed when its node died. */
const claimed = 100
/** Short, so that the dead are known to be dead while it is measured. */
const staleAfterMs = 3000
const quiet = { info: () => undefined, warn: () => undefined }

/** @param {import('./run.mjs').Options} options */
async function run({ quick, dir, say, ...given }) {
  const size = quick ? sizes.quick : sizes.full
  const rounds = given.rounds ?? size.rounds
  const messages = given.messages ?? size.messages
  /** @type {{ alone: { p50: number, p99: number }, beside: { p50: number, p99: number } }[]} */
  const measured = []
  for (let round = 0; round < rounds; round += 1) {
    const server = await startServer(dir)
    try {
      const figures = await runRound(server, { ...size, messages })
      measured.push(figures)
      say(
        `round ${round + 1} of ${rounds}: p50 ${figures.alone.p50} ms alone, ${figures.beside.p50} ms beside`,
      )
    } finally {
      await server.stop()
    }
  }
  const of = (/** @type {'alone' | 'beside'} */ when, /** @type {'p50' | 'p99'} */ which) =>
    spreadOf(
      measured.map((each) => each[when][which]),
      2,
    )
  const beside = `beside ${size.dead} dead hosts with ${size.each} deliveries each`
  return {
    title: item.title,
    unit: 'ms, from the accept call to `execute` entered: the median message of a round, and p99 beside it',
    rounds,
    messages,
    perSecond,
    dead: size.dead,
    deliveriesEach: size.each,
    claimedEach: claimed,
    systems: {
      alone: { label: 'alone on its hub', ...of('alone', 'p50'), p99: of('alone', 'p99') },
      beside: { label: beside, ...of('beside', 'p50'), p99: of('beside', 'p99') },
    },
    ratios: {
      p50: ratio(measured.map(({ alone, beside }) => beside.p50 / alone.p50)),
      p99: ratio(measured.map(({ alone, beside }) => beside.p99 / alone.p99)),
    },
    notes: [
      'ratios are beside over alone, within a round: smaller is better',
      `${perSecond} messages/s to the live host; of each dead host's deliveries ${claimed} were claimed when its node died, and the sweeps run`,
    ],
  }
}

/** @param {number[]} each */
const ratio = (each) => spreadOf(each, 2).median

/** @param {import('./server.mjs').Server} server @param {{ messages: number, dead: number, each: number }} size */
async function runRound({ url, folder }, { messages, dead, each }) {
  await initRecord({ redis: url })
  const [hub, parts] = [await openHub({ redis: url }), await openHubParts({ redis: url })]
  await hub.configure({ stale_after_ms: staleAfterMs, heartbeat_ms: staleAfterMs / 6 }, 'bench')
  const schedule = await startSchedule({ redis: url, parts, log: quiet })
  /** @type {Map<string, number>} */
  const executedAt = new Map()
  const node = createNode({
    host: 'live',
    redis: url,
    mirror: `${folder}/mirror.db`,
    execute: ({ payload }) => void executedAt.set(payload.toString(), performance.now()),
  })
  await node.start()
  let named = 0
  const measure = async () => {
    /** @type {number[]} */
    const waits = []
    await paced(messages, perSecond, async () => {
      named += 1
      const name = `m-${named}`
      const calledAt = performance.now()
      await hub.accept({
        key: name,
        conversation: `c${named % 100}`,
        sender: 'bench',
        to: [{ host: 'live' }],
        payload: Buffer.from(name),
      })
      while (!executedAt.has(name)) await new Promise((done) => setTimeout(done, 1))
      waits.push((executedAt.get(name) ?? 0) - calledAt)
    })
    const { p50, p99 } = quantilesOf(waits)
    return { p50, p99 }
  }
  try {
    await measure()
    const alone = await measure()
    await leaveDead(url, dead, each)
    await new Promise((done) => setTimeout(done, staleAfterMs))
    return { alone, beside: await measure() }
  } finally {
    await node.stop()
    await schedule.stop()
    await hub.close()
    await parts.hub.close()
  }
}

/** Hosts with deliveries whose nodes claimed some and were never heard again. @param {string} url @param {number} dead @param {number} each */
async function leaveDead(url, dead, each) {
  const store = await openStore({ url, name: 'bench-dead' })
  const functions = functionsOf(store, keysOf('hf').tag)
  const hosts = Array.from({ length: dead }, (_, n) => ({ host: `dead-${n}` }))
  await inFlight(each, 16, (n) =>
    functions.accept(
      prepareMessage({
        key: `dead-${n}`,
        conversation: `c${n % 50}`,
        sender: 'bench',
        to: hosts,
        payload: 'x',
      }),
    ),
  )
  for (const { host } of hosts) {
    const who = { host, node: 'dead', incarnation: 1 }
    await functions.join(who, `instance-${host}`, [], '0-0')
    await functions.claim(who, 1, claimed)
  }
  await store.close()
}

/** @param {Neighbours} neighbours */
function show({ systems, ratios }) {
  const table = new Table({ head: ['neighbours, ms', 'p50', 'min', 'max', 'p99', 'min', 'max'] })
  for (const { label, median, min, max, p99 } of Object.values(systems)) {
    table.push([label, median, min, max, p99.median, p99.min, p99.max])
  }
  return [table.toString(), `beside / alone: p50 ${ratios.p50}, p99 ${ratios.p99}`].join('\n')
}

export const item = {
  name: 'neighbours',
  title: 'A live host beside dead ones',
  run,
  show,
}
