// @ts-check
// What stands between a process of a run and the servers it speaks to: layers, each of which leads on to the next.

/** @typedef {import('../world.mjs').World} World */
/** @typedef {import('../world.mjs').Role} Role */

/**
 * Each answers where a process is to go instead, or undefined where it stands in nobody's way.
 * @typedef {object} Layer
 * @property {(process: string) => string | undefined} redis
 * @property {(process: string) => string[] | undefined} hubs
 */

/** `near` is nearer to the process than `far`, in whichever order they were put in. @typedef {{ near?: Layer, far?: Layer }} Layers */

/** @type {WeakMap<World, { layers: Layers, direct: Layer }>} */
const known = new WeakMap()

/** Puts a layer in, before anything is started. @param {World} world @param {keyof Layers} place @param {Layer} layer */
export function putLayer(world, place, layer) {
  let ways = known.get(world)
  if (ways === undefined) {
    ways = { layers: {}, direct: directOf(world) }
    known.set(world, ways)
    world.redisVia = (role, name) => lead(world, `${role} ${name}`, 'redis')
    world.hubsVia = (role, name) => lead(world, `${role} ${name}`, 'hubs')
  }
  ways.layers[place] = layer
}

/** The URLs behind the nearest layer. @param {World} world @param {string} process */
export function behindNear(world, process) {
  const { layers, direct } = waysOf(world)
  return {
    redis: layers.far?.redis(process) ?? direct.redis(process) ?? '',
    hubs: layers.far?.hubs(process) ?? direct.hubs(process) ?? [],
  }
}

/** @param {World} world @returns {Layer} */
function directOf({ redisVia, hubsVia }) {
  /** @param {string} process @returns {[Role, string]} */
  const split = (process) => {
    const [role = '', name = ''] = process.split(' ')
    return [/** @type {Role} */ (role), name]
  }
  return {
    redis: (process) => redisVia(...split(process)),
    hubs: (process) => hubsVia(...split(process)),
  }
}

/** @template {'redis' | 'hubs'} Kind @param {World} world @param {string} process @param {Kind} kind */
function lead(world, process, kind) {
  const near = waysOf(world).layers.near?.[kind](process)
  return /** @type {ReturnType<typeof behindNear>[Kind]} */ (near ?? behindNear(world, process)[kind])
}

/** @param {World} world */
function waysOf(world) {
  const ways = known.get(world)
  if (ways === undefined) throw new Error('no layer was put in')
  return ways
}
