// @ts-check
// The work item `handoff`: messages accepted one by one, 64 in flight, and consumed at the same time, until
// the last one is finished. Each round of each system has a new server; rounds of the systems take turns.
import Table from 'cli-table3'
import { spreadOf, topCommands } from '../figures.mjs'
import { fieldOf } from './entrants.mjs'
import { flights, payloadBytes, runRound, runTimes } from './round.mjs'

export { checkExactlyOnce } from '../figures.mjs'

/** @typedef {import('./round.mjs').Entrant} Entrant */
/** @typedef {import('./round.mjs').Round} Round */
/** @typedef {Record<string, Round[]>} Measured */
/** @typedef {Awaited<ReturnType<typeof run>>} Handoff */

const sizes = { full: { rounds: 5, messages: 20_000 }, quick: { rounds: 5, messages: 1000 } }
const leastRounds = 3
/** Of these, where the time goes; measured apart, with so many messages at most. */
const own = ['functions', 'holdfast']
const timesMessages = 3000
const [linesShown, linesTold] = [14, 8]
const targets = { bullmq: 2, nats: 1.2, raw: 0.3 }
/** Settled there is what was sent, not what is known. */
const withoutRatio = ['nats_single']

/** @param {import('../run.mjs').Options} options */
async function run({ quick, dir, say, shareMs, ...given }) {
  const size = quick ? sizes.quick : sizes.full
  const rounds = given.rounds ?? size.rounds
  const messages = given.messages ?? size.messages
  const deadlineAt = shareMs === undefined ? undefined : performance.now() + shareMs
  const { entrants, skipped } = fieldOf(dir)
  for (const [name, reason] of Object.entries(skipped)) say(`without ${name}: ${reason}`)
  const { serverTime, nodeTime } = await timesOf(entrants, dir, Math.min(messages, timesMessages))
  const measured = await runRounds(entrants, { rounds, messages, deadlineAt, dir, say })
  const others = Object.keys(entrants).filter((name) => name !== 'holdfast' && !withoutRatio.includes(name))
  return {
    title: item.title,
    unit: 'messages/s, from the first accept to the last settled',
    messages,
    rounds: measured['holdfast']?.length ?? 0,
    inFlight: flights,
    payloadBytes,
    exactlyOnce: 'checked in every round: the ids executed are the ids accepted, each once',
    systems: Object.fromEntries(
      Object.entries(entrants).map(([name, entrant]) => [name, figuresOf(entrant, measured[name] ?? [])]),
    ),
    skipped,
    subject: 'holdfast',
    ratios: ratiosOf(measured, 'holdfast', others),
    functionsRatios: ratiosOf(
      measured,
      'functions',
      others.filter((name) => name !== 'functions'),
    ),
    targets,
    notes: [
      'every round: the ids executed are the ids accepted, each once',
      'a ratio is taken within each round; shown is the median over the rounds',
      'time inside the functions is from SLOWLOG, time in Node from its profiler (by the clock: a commit of the mirror waits for the disk on that thread), both in a pass of their own; CPU is that of all threads over the timed rounds: the Node process is producer, consumer and client in one',
    ],
    serverTime,
    nodeTime,
    commandstats: Object.fromEntries(
      own.map((name) => [name, topCommands(measured[name]?.at(-1)?.commandStats ?? '', linesShown)]),
    ),
  }
}

/** @param {Record<string, Entrant>} entrants @param {string} dir @param {number} messages */
async function timesOf(entrants, dir, messages) {
  /** @type {Record<string, import('./inspector.mjs').FunctionTime[]>} */
  const serverTime = {}
  /** @type {Record<string, import('./profile.mjs').PlaceTime[]>} */
  const nodeTime = {}
  for (const [name, entrant] of Object.entries(entrants)) {
    if (!own.includes(name)) continue
    const times = await runTimes(entrant, dir, messages)
    serverTime[name] = times.server
    nodeTime[name] = times.node.slice(0, linesShown)
  }
  return { serverTime, nodeTime }
}

/**
 * The systems take turns, and each round begins with another one. Where there is a deadline, a round that would
 * pass it is not begun.
 * @param {Record<string, Entrant>} entrants
 * @param {{ rounds: number, messages: number, deadlineAt: number | undefined, dir: string, say: (line: string) => void }} how
 */
async function runRounds(entrants, { rounds, messages, deadlineAt, dir, say }) {
  const list = Object.entries(entrants)
  /** @type {Measured} */
  const measured = Object.fromEntries(list.map(([name]) => [name, []]))
  let longestMs = 0
  for (let round = 0; round < rounds; round += 1) {
    const startedAt = performance.now()
    if (deadlineAt !== undefined && round >= leastRounds && startedAt + longestMs > deadlineAt) break
    const first = round % list.length
    for (const [name, entrant] of [...list.slice(first), ...list.slice(0, first)]) {
      const result = await runRound(entrant, dir, messages)
      measured[name]?.push(result)
      say(`round ${round + 1} of ${rounds}: ${name} ${result.perSecond.toFixed(0)}/s`)
    }
    longestMs = Math.max(longestMs, performance.now() - startedAt)
  }
  return measured
}

/** @param {Entrant} entrant @param {Round[]} rounds */
function figuresOf({ label, fsync }, rounds) {
  const serverUs = rounds.flatMap((round) => round.serverUs ?? [])
  return {
    label,
    fsync,
    ...spreadOf(rounds.map((round) => round.perSecond)),
    accept: spreadOf(rounds.map((round) => round.acceptPerSecond)),
    nodeCpuUsPerMessage: spreadOf(
      rounds.map((round) => round.nodeUs),
      1,
    ).median,
    ...(serverUs.length === 0 ? {} : { serverCpuUsPerMessage: spreadOf(serverUs, 1).median }),
  }
}

/**
 * How many times as fast as each other system: the median over the rounds of one run.
 * @param {Measured} measured @param {string} subject @param {string[]} others
 */
function ratiosOf(measured, subject, others) {
  return Object.fromEntries(
    others.map((other) => {
      const each = (measured[subject] ?? []).map(
        ({ perSecond }, at) => perSecond / (measured[other]?.[at]?.perSecond ?? Number.NaN),
      )
      return [other, spreadOf(each, 3).median]
    }),
  )
}

/** @param {Handoff} handoff */
function show({ systems, skipped, ratios, functionsRatios, serverTime, nodeTime }) {
  const head = ['handoff, messages/s', 'median', 'min', 'max', 'accept', 'node µs', 'server µs']
  const table = new Table({ head })
  for (const { label, median, min, max, accept, ...cpu } of Object.values(systems)) {
    const { nodeCpuUsPerMessage, serverCpuUsPerMessage = '' } = cpu
    table.push([label, median, min, max, accept.median, nodeCpuUsPerMessage, serverCpuUsPerMessage])
  }
  const words = [
    ...Object.entries(skipped).map(([name, reason]) => `without ${name}: ${reason}`),
    ...Object.entries(ratios).map(([other, ratio]) => `hub and node / ${other}: ${ratio}`),
    ...Object.entries(functionsRatios).map(([other, ratio]) => `functions / ${other}: ${ratio}`),
    ...Object.entries(serverTime).map(([name, times]) => {
      const each = times.map((time) => `${time.name} ${time.usPerMessage}`)
      return `µs a message in Redis, ${name}: ${each.join(', ')}`
    }),
    ...Object.entries(nodeTime).map(([name, times]) => {
      const each = times.slice(0, linesTold).map((time) => `${time.place} ${time.usPerMessage}`)
      return `µs a message in Node, ${name}: ${each.join(', ')}`
    }),
  ]
  return [table.toString(), ...words].join('\n')
}

export const item = {
  name: 'handoff',
  title: 'From accept to settled, producers and consumers at the same time',
  run,
  show,
}
