// @ts-check
// A node on a machine of its own, as far as the network goes; the cable is pulled. No connection is told.
import { readlinkSync } from 'node:fs'
import { cableNeeds, makeCable } from '../netns.mjs'
import { startHttpProxy } from '../proxy/http.mjs'
import { startRespProxy } from '../proxy/resp.mjs'
import { behindNear, putLayer } from '../proxy/ways.mjs'

/** @typedef {import('../world.mjs').World} World */
/** @typedef {import('../netns.mjs').Cable} Cable */

/** @type {WeakMap<World, Map<string, Cable>>} */
const cables = new WeakMap()

/** @param {World} world */
async function prepare(world) {
  /** @type {Map<string, Cable>} */
  const made = new Map()
  /** @type {Map<string, { redis: import('../proxy/proxy.mjs').Relay, hubs: import('../proxy/proxy.mjs').Relay[] }>} */
  const ways = new Map()
  for (const [at, { name }] of world.nodes.entries()) {
    const node = `node ${name}`
    const cable = makeCable(at + 1)
    const { host } = cable
    const redis = await startRespProxy(() => portOf(behindNear(world, node).redis), { host })
    const hubs = await Promise.all(
      world.hubUrls.map((_, nth) =>
        startHttpProxy(() => portOf(behindNear(world, node).hubs[nth]), { host }),
      ),
    )
    made.set(node, cable)
    ways.set(node, { redis, hubs })
  }
  cables.set(world, made)
  putLayer(world, 'near', {
    redis: (process) => ways.get(process)?.redis.url,
    hubs: (process) => ways.get(process)?.hubs.map(({ url }) => url),
  })
  const { wrap } = world
  world.wrap = (role, name) => [...(made.get(`${role} ${name}`)?.wrap ?? []), ...wrap(role, name)]
  return async () => {
    for (const { redis, hubs } of ways.values()) await Promise.all([redis, ...hubs].map((way) => way.close()))
    for (const cable of made.values()) cable.remove()
  }
}

/** @param {string | undefined} url */
function portOf(url) {
  return Number(new URL(url ?? '').port)
}

/** @param {number | 'self'} process */
function networkOf(process) {
  return readlinkSync(`/proc/${process}/ns/net`)
}

/** @type {import('../schedule.mjs').Fault} */
export const fault = {
  name: 'partition',
  needs: cableNeeds,
  prepare,
  targets: ({ nodes }) => nodes.map((name) => `node ${name}`),
  leastMs: 200,
  longestMs: 4000,
  restMs: 2000,
  begin: async (world, _, { target }) => {
    const cable = cables.get(world)?.get(target)
    if (cable === undefined) throw new Error(`${target} is on no cable`)
    const { pid, isUp } = world.find(target)
    if (isUp && networkOf(pid) === networkOf('self'))
      throw new Error(`${target} was not started on its cable`)
    cable.set(false)
    return () => cable.set(true)
  },
}
