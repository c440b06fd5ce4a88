// @ts-check
// Where the Node process spends its time, by the package, or the room of ours, that the running code is from. The
// time is that of the clock: a commit of the mirror waits for the disk on this thread.
import { Session } from 'node:inspector/promises'

/** @typedef {import('node:inspector').Profiler.Profile} Profile */
/** @typedef {{ place: string, share: number, usPerMessage: number }} PlaceTime */

/**
 * @param {number} messages that the job is about @param {() => Promise<unknown>} job
 * @returns {Promise<PlaceTime[]>} the most expensive first
 */
export async function profileOf(messages, job) {
  const session = new Session()
  session.connect()
  try {
    await session.post('Profiler.enable')
    await session.post('Profiler.start')
    await job()
    const { profile } = await session.post('Profiler.stop')
    return placeTimes(profile, messages)
  } finally {
    session.disconnect()
  }
}

/** Neither is counted: waiting, and the profiler's own start and stop. */
const notCounted = new Set(['(idle)', '(profiler)'])

/** @param {Profile} profile @param {number} messages @returns {PlaceTime[]} */
export function placeTimes({ nodes, samples = [], timeDeltas = [] }, messages) {
  const places = placesOf(nodes)
  /** @type {Map<string, number>} */
  const sums = new Map()
  samples.forEach((id, at) => {
    const place = places.get(id) ?? ''
    if (!notCounted.has(place)) sums.set(place, (sums.get(place) ?? 0) + (timeDeltas[at] ?? 0))
  })
  const all = [...sums.values()].reduce((sum, us) => sum + us, 0)
  return [...sums]
    .sort(([, a], [, b]) => b - a)
    .map(([place, us]) => ({
      place,
      share: Number((us / all).toFixed(3)),
      usPerMessage: Number((us / messages).toFixed(1)),
    }))
}

/** What has no source of its own, as native code has not, belongs to who called it. @param {Profile['nodes']} nodes */
function placesOf(nodes) {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  /** @type {Map<number, string>} */
  const places = new Map()
  const visit = (/** @type {Profile['nodes'][number]} */ node, /** @type {string} */ caller) => {
    const place = placeOf(node.callFrame) ?? caller
    places.set(node.id, place)
    for (const id of node.children ?? []) {
      const child = byId.get(id)
      if (child !== undefined) visit(child, place === '(root)' ? 'node' : place)
    }
  }
  if (nodes[0] !== undefined) visit(nodes[0], 'node')
  return places
}

/** @param {{ url: string, functionName: string }} frame */
function placeOf({ url, functionName }) {
  const packaged = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)
  const ours = /\/dist\/([^/.]+)/.exec(url)
  if (packaged !== null) return packaged[1]
  if (ours !== null) return `src/${ours[1]}`
  if (/\/bench\//.test(url)) return 'bench'
  if (url !== '') return 'node'
  if (functionName === 'dispatch') return '(profiler)'
  return /^\(.+\)$/.test(functionName) ? functionName : undefined
}
