// @ts-check
// One round: a new server, a system opened on it, messages accepted one by one and consumed at the same time.
import { checkExactlyOnce, inFlight } from '../figures.mjs'
import { cpuUsOf } from '../program.mjs'
import { openInspector } from './inspector.mjs'
import { profileOf } from './profile.mjs'

/**
 * One system at work on its own server.
 * @typedef {object} System
 * @property {(id: string) => Promise<unknown>} accept resolves once the message is accepted
 * @property {(count: number) => Promise<void>} finished resolves when so many messages are settled; rejects
 *   with what went wrong
 * @property {() => Promise<void>} close
 */
/** @typedef {{ url: string, port: number, dir: string, payload: (id: string) => Buffer, onExecute: (payload: string) => void }} Place */
/** @typedef {import('../server.mjs').Server} Server */
/**
 * A system that can be measured.
 * @typedef {object} Entrant
 * @property {string} label
 * @property {string} fsync
 * @property {boolean} redis says whether its server is a Redis server
 * @property {(dir: string) => Promise<Server>} start
 * @property {(place: Place) => Promise<System>} open
 */
/** @typedef {{ acceptedMs: number, settledMs: number }} Times */
/** @typedef {{ perSecond: number, acceptPerSecond: number, nodeUs: number, serverUs: number | undefined, commandStats: string }} Round */

export const flights = 64
export const payloadBytes = 200
/** Before the clock starts, so many go through the same connections. */
const warmUp = { share: 0.1, most: 1000 }

/** @param {Entrant} entrant @param {string} dir @param {number} messages @returns {Promise<Round>} */
export function runRound(entrant, dir, messages) {
  return onNewServer(entrant, dir, async (send, server) => {
    const inspector = entrant.redis ? openInspector(server.port) : undefined
    await send(warmUpOf(messages))
    await inspector?.commandStats()
    const [serverBefore, nodeBefore] = [cpuUsOf(server.pid), process.cpuUsage()]
    const { acceptedMs, settledMs } = await send(messages)
    const [serverAfter, node] = [cpuUsOf(server.pid), process.cpuUsage(nodeBefore)]
    const commandStats = (await inspector?.commandStats()) ?? ''
    await inspector?.close()
    const serverUs =
      serverBefore === undefined || serverAfter === undefined ? undefined : serverAfter - serverBefore
    return {
      perSecond: (messages * 1000) / settledMs,
      acceptPerSecond: (messages * 1000) / acceptedMs,
      nodeUs: (node.user + node.system) / messages,
      serverUs: serverUs === undefined ? undefined : serverUs / messages,
      commandStats,
    }
  })
}

/**
 * Where the time goes, from a pass of its own that no speed is read off.
 * @param {Entrant} entrant @param {string} dir @param {number} messages
 */
export function runTimes(entrant, dir, messages) {
  return onNewServer(entrant, dir, async (send, { port }) => {
    const inspector = openInspector(port)
    await send(warmUpOf(messages))
    await inspector.noteCalls()
    const node = await profileOf(messages, () => send(messages))
    const server = await inspector.notedCalls(messages)
    await inspector.close()
    return { node, server }
  })
}

/** @param {number} messages */
const warmUpOf = (messages) => Math.max(1, Math.min(warmUp.most, Math.floor(messages * warmUp.share)))

/**
 * Answers what the job made of it, once every message it sent was executed exactly once.
 * @template Result
 * @param {Entrant} entrant @param {string} dir
 * @param {(send: (count: number) => Promise<Times>, server: Server) => Promise<Result>} job
 */
async function onNewServer({ start, open }, dir, job) {
  const server = await start(dir)
  /** @type {Map<string, number>} */
  const executed = new Map()
  /** @type {string[]} */
  const accepted = []
  const onExecute = (/** @type {string} */ text) => {
    const id = text.trimEnd()
    executed.set(id, (executed.get(id) ?? 0) + 1)
  }
  const payload = (/** @type {string} */ id) => Buffer.from(id.padEnd(payloadBytes))
  try {
    const { url, port, folder } = server
    const system = await open({ url, port, dir: folder, payload, onExecute })
    try {
      const result = await job((count) => {
        const ids = Array.from({ length: count }, (_, n) => `m-${accepted.length + n}`)
        accepted.push(...ids)
        return send(system, ids, accepted.length)
      }, server)
      checkExactlyOnce(accepted, executed)
      return result
    } finally {
      await system.close()
    }
  } finally {
    await server.stop()
  }
}

/** Accepts these, until `total` messages are settled. @param {System} system @param {string[]} ids @param {number} total @returns {Promise<Times>} */
async function send(system, ids, total) {
  const startedAt = performance.now()
  const accepting = inFlight(ids.length, flights, (n) => system.accept(ids[n] ?? '')).then(
    () => performance.now() - startedAt,
  )
  const [acceptedMs] = await Promise.all([accepting, system.finished(total)])
  return { acceptedMs, settledMs: performance.now() - startedAt }
}
