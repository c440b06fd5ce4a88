// @ts-check
// A proxy of its own for every way that a process of a run takes to the server or to a hub.
import { startHttpProxy } from './http.mjs'
import { startRespProxy } from './resp.mjs'
import { putLayer } from './ways.mjs'

/** @typedef {import('../world.mjs').World} World */
/** @typedef {import('../schedule.mjs').Fault} Fault */
/** @typedef {import('./proxy.mjs').Relay} Relay */
/** @typedef {import('./proxy.mjs').Trouble} Trouble */

/** The proxies of a process, by its role and name. @typedef {Map<string, { redis: Relay, hubs: Relay[] }>} Ways */

/** @type {WeakMap<World, Ways>} */
const known = new WeakMap()

/** Sends every process of the run through proxies; once, whichever faults ask for it. @param {World} world */
async function prepareVia(world) {
  if (known.has(world)) return
  /** @type {Ways} */
  const ways = new Map()
  known.set(world, ways)
  for (const { role, name } of [...world.hubs, ...world.nodes, ...world.producers, world.operator]) {
    const redis = await startRespProxy(world.redis.port)
    const hubUrls = role === 'hub' ? [] : world.hubUrls
    const hubs = await Promise.all(hubUrls.map((url) => startHttpProxy(Number(new URL(url).port))))
    ways.set(`${role} ${name}`, { redis, hubs })
  }
  putLayer(world, 'far', {
    redis: (process) => ways.get(process)?.redis.url,
    hubs: (process) => ways.get(process)?.hubs.map(({ url }) => url),
  })
  return async () => {
    for (const { redis, hubs } of ways.values()) await Promise.all([redis, ...hubs].map((way) => way.close()))
  }
}

/** The ways that a process takes. @param {World} world @param {string} target @returns {Relay[]} */
function waysOf(world, target) {
  const found = known.get(world)?.get(target)
  if (found === undefined)
    throw new Error(`${target} goes through no proxy: prepareVia comes before the start`)
  return [found.redis, ...found.hubs]
}

/** Whose traffic a fault of the network may hit. @type {NonNullable<Fault['targets']>} */
function eachTraveller({ hubs, nodes, producers }) {
  return [
    ...hubs.map((name) => `hub ${name}`),
    ...nodes.map((name) => `node ${name}`),
    ...producers.map((name) => `producer ${name}`),
  ]
}

/**
 * A fault of the network that is one trouble for all the ways of a process.
 * @param {Omit<Fault, 'begin' | 'prepare' | 'targets'>} words
 * @param {(random: import('../random.mjs').Random) => Trouble} troubleOf @returns {Fault}
 */
export function troubleFault(words, troubleOf) {
  return waysFault(words, (ways, random) => {
    const ends = ways.map((way) => way.add(troubleOf(random)))
    return () => {
      for (const end of ends) end()
    }
  })
}

/**
 * A fault that does something to all the ways of a process.
 * @param {Omit<Fault, 'begin' | 'prepare' | 'targets'>} words
 * @param {(ways: Relay[], random: import('../random.mjs').Random) => () => void} act @returns {Fault}
 */
export function waysFault(words, act) {
  return {
    needs: () => undefined,
    prepare: prepareVia,
    targets: eachTraveller,
    ...words,
    begin: async (world, random, { target }) => act(waysOf(world, target), random),
  }
}
