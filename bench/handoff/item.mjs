// @ts-check
// The work item `handoff`: messages accepted one by one, 64 in flight, and consumed at the same time, until
// the last one is finished. Each round of each system has a new server; rounds of the systems take turns.
import Table from 'cli-table3'
import { inFlight, spreadOf, topCommands } from '../figures.mjs'
import { startServer } from '../server.mjs'
import { openBullmq } from './bullmq.mjs'
import { openFunctions } from './functions.mjs'
import { openHoldfast } from './holdfast.mjs'
import { openRaw } from './raw.mjs'

/**
 * One system at work on its own server.
 * @typedef {object} System
 * @property {(id: string) => Promise<unknown>} accept resolves once the message is durable
 * @property {(count: number) => Promise<void>} finished resolves when so many messages are settled; rejects
 *   with what went wrong
 * @property {() => Promise<string>} commandStats INFO commandstats since the last call
 * @property {() => Promise<void>} close
 */
/** @typedef {{ url: string, port: number, dir: string, payload: (id: string) => Buffer, onExecute: (payload: string) => void }} Place */
/** @typedef {Awaited<ReturnType<typeof runHandoff>>} Handoff */
/** @typedef {{ perSecond: number, acceptPerSecond: number, commandStats: string }} Round */

/** @satisfies {Record<string, { label: string, open: (place: Place) => Promise<System> }>} */
const systems = {
  raw: { label: 'raw streams: XADD, XREADGROUP/XACK/XDEL in hundreds', open: openRaw },
  functions: { label: 'functions only: typed callers in hundreds, no mirror', open: openFunctions },
  holdfast: { label: 'hub and node, with its mirror', open: openHoldfast },
  bullmq: { label: 'BullMQ: add with jobId, one worker at concurrency 100', open: openBullmq },
}
/** @typedef {keyof typeof systems} Name */
const names = /** @type {Name[]} */ (Object.keys(systems))

const flights = 64
const payloadBytes = 200
const sizes = { full: { rounds: 5, messages: 20_000 }, quick: { rounds: 3, messages: 3000 } }
/** Before the clock starts, so many go through the same connections. */
const warmUp = { share: 0.1, most: 1000 }
const topCommandsShown = 14

/** @param {import('../run.mjs').Options} options */
export async function runHandoff({ quick, dir, say, ...given }) {
  const size = quick ? sizes.quick : sizes.full
  const rounds = given.rounds ?? size.rounds
  const messages = given.messages ?? size.messages
  /** @type {Record<Name, Round[]>} */
  const measured = { raw: [], functions: [], holdfast: [], bullmq: [] }
  for (let round = 0; round < rounds; round += 1) {
    for (const name of turned(names, round)) {
      const result = await runRound(systems[name].open, dir, messages)
      measured[name].push(result)
      say(`round ${round + 1} of ${rounds}: ${name} ${result.perSecond.toFixed(0)}/s`)
    }
  }
  return {
    unit: 'messages/s, from the first accept to the last settled',
    messages,
    rounds,
    inFlight: flights,
    payloadBytes,
    fsync: 'always',
    exactlyOnce: 'checked in every round: the ids executed are the ids accepted, each once',
    systems: Object.fromEntries(names.map((name) => [name, figuresOf(systems[name].label, measured[name])])),
    ratios: ratiosOf(measured, 'holdfast', ['bullmq', 'raw', 'functions']),
    functionsRatios: ratiosOf(measured, 'functions', ['bullmq', 'raw']),
    commandstats: Object.fromEntries(
      /** @type {const} */ (['holdfast', 'functions']).map((name) => [
        name,
        topCommands(measured[name].at(-1)?.commandStats ?? '', topCommandsShown),
      ]),
    ),
  }
}

/** @param {(place: Place) => Promise<System>} open @param {string} dir @param {number} messages @returns {Promise<Round>} */
async function runRound(open, dir, messages) {
  const server = await startServer(dir)
  /** @type {Map<string, number>} */
  const executed = new Map()
  const payload = (/** @type {string} */ id) => Buffer.from(id.padEnd(payloadBytes))
  const onExecute = (/** @type {string} */ text) => {
    const id = text.trimEnd()
    executed.set(id, (executed.get(id) ?? 0) + 1)
  }
  try {
    const { url, port, folder } = server
    const system = await open({ url, port, dir: folder, payload, onExecute })
    try {
      const warm = Math.max(1, Math.min(warmUp.most, Math.floor(messages * warmUp.share)))
      const ids = Array.from({ length: warm + messages }, (_, n) => `m-${n}`)
      await send(system, ids.slice(0, warm), warm)
      await system.commandStats()
      const { acceptedMs, settledMs } = await send(system, ids.slice(warm), ids.length)
      const commandStats = await system.commandStats()
      checkExactlyOnce(ids, executed)
      return {
        perSecond: (messages * 1000) / settledMs,
        acceptPerSecond: (messages * 1000) / acceptedMs,
        commandStats,
      }
    } finally {
      await system.close()
    }
  } finally {
    await server.stop()
  }
}

/** Accepts these, until `total` messages are settled. @param {System} system @param {string[]} ids @param {number} total */
async function send(system, ids, total) {
  const startedAt = performance.now()
  const accepting = inFlight(ids.length, flights, (n) => system.accept(ids[n] ?? '')).then(
    () => performance.now() - startedAt,
  )
  const [acceptedMs] = await Promise.all([accepting, system.finished(total)])
  return { acceptedMs, settledMs: performance.now() - startedAt }
}

/** @param {string[]} accepted @param {ReadonlyMap<string, number>} executed */
export function checkExactlyOnce(accepted, executed) {
  const never = accepted.filter((id) => !executed.has(id))
  const twice = [...executed].filter(([, times]) => times > 1).map(([id]) => id)
  const known = new Set(accepted)
  const unasked = [...executed.keys()].filter((id) => !known.has(id))
  const found = Object.entries({ never, twice, unasked }).filter(([, ids]) => ids.length > 0)
  if (found.length === 0) return
  const words = found.map(([what, ids]) => `${ids.length} ${what} (${ids.slice(0, 3).join(', ')})`)
  throw new Error(`not exactly once: executed ${words.join('; ')}`)
}

/** Each round begins with another system. @param {Name[]} list @param {number} by */
function turned(list, by) {
  const at = by % list.length
  return [...list.slice(at), ...list.slice(0, at)]
}

/** @param {string} label @param {Round[]} rounds */
function figuresOf(label, rounds) {
  return {
    label,
    ...spreadOf(rounds.map((round) => round.perSecond)),
    accept: spreadOf(rounds.map((round) => round.acceptPerSecond)),
  }
}

/**
 * How many times as fast as each other system: the median over the rounds of one run.
 * @param {Record<Name, Round[]>} measured @param {Name} own @param {Name[]} others
 */
function ratiosOf(measured, own, others) {
  const pairs = others.map((other) => {
    const each = measured[own].map(({ perSecond }, at) => perSecond / (measured[other][at]?.perSecond ?? 0))
    return [other, spreadOf(each, 3).median]
  })
  return /** @type {Record<string, number>} */ (Object.fromEntries(pairs))
}

/** @param {Handoff} handoff */
export function showHandoff(handoff) {
  const table = new Table({ head: ['handoff, messages/s', 'median', 'min', 'max', 'accept'] })
  for (const { label, median, min, max, accept } of Object.values(handoff.systems)) {
    table.push([label, median, min, max, accept.median])
  }
  const words = [
    ...Object.entries(handoff.ratios).map(([other, ratio]) => `hub and node / ${other}: ${ratio}`),
    ...Object.entries(handoff.functionsRatios).map(([other, ratio]) => `functions / ${other}: ${ratio}`),
  ]
  return [table.toString(), ...words].join('\n')
}
