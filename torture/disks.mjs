// @ts-check
// Disks for a run: one under the server's data, one under the mirror of every node.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { makeDisk } from './disk.mjs'

/** @typedef {import('./world.mjs').World} World */
/** @typedef {import('./disk.mjs').Disk} Disk */

const serverMib = 1024
const mirrorMib = 256

/** @type {WeakMap<World, Disk>} */
const serverDisks = new WeakMap()
/** @type {WeakMap<World, Map<string, Disk>>} */
const mirrorDisks = new WeakMap()

/** The server's data goes to a disk of its own; once, whichever faults ask for it. @param {World} world */
export async function prepareServerDisk(world) {
  if (serverDisks.has(world)) return
  const disk = makeDisk(world.dir, 'server-disk', { sizeMib: serverMib })
  serverDisks.set(world, disk)
  world.redis.dir = join(disk.dir, 'data')
  return disk.remove
}

/** @param {World} world @returns {Disk} */
export function serverDisk(world) {
  const disk = serverDisks.get(world)
  if (disk === undefined)
    throw new Error('the server has no disk of its own: prepareServerDisk comes before the start')
  return disk
}

/** Every node keeps its mirror in a folder of its own, which becomes a disk. @param {World} world */
export async function prepareMirrorDisks(world) {
  if (mirrorDisks.has(world)) return
  const folder = join(world.dir, 'mirrors')
  const disks = new Map(
    world.nodes.map(({ name }) => [`node ${name}`, makeDisk(folder, name, { sizeMib: mirrorMib })]),
  )
  mirrorDisks.set(world, disks)
  return async () => {
    for (const disk of disks.values()) await disk.remove()
  }
}

/** The disk under a node's mirror. @param {World} world @param {string} target @returns {Disk} */
export function mirrorDisk(world, target) {
  const disk = mirrorDisks.get(world)?.get(target)
  if (disk === undefined) throw new Error(`${target} has no disk: prepareMirrorDisks comes before the start`)
  if (!existsSync(join(disk.dir, 'mirror.db')))
    throw new Error(`${target} does not keep its mirror in ${disk.dir}`)
  return disk
}
