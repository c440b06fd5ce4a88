// @ts-check
// Mirrors that are lost: what an operator does about it.
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** @typedef {import('./world.mjs').World} World */

const file = 'mirror.db'

/** @param {World} world @param {string} target `node a1` */
export function mirrorOf(world, target) {
  return join(world.dir, 'mirrors', world.find(target).name, file)
}

/**
 * A mirror that is gone cannot be had back, and what its node had begun stays unknown: the process goes on with a new
 * mirror, as another node of its host.
 * @param {World} world @param {string} target
 */
export async function goOnAsAnother(world, target) {
  const node = world.find(target)
  await node.end()
  const folder = join(world.dir, 'mirrors', node.name)
  for (const name of readdirSync(folder)) if (name.startsWith(file)) rmSync(join(folder, name))
  const [, nth = '1'] = (world.nodeIds[node.name] ?? '').split('~')
  world.nodeIds[node.name] = `${node.name}~${Number(nth) + 1}`
  await node.start()
}
