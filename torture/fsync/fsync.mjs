// @ts-check
// Syncs of the server that can be made to fail.
import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { addPreload, compileLibrary, preloadNeeds } from '../preload.mjs'

/** @typedef {import('../world.mjs').World} World */
/** @typedef {{ fail: (fails: boolean) => void }} Syncs */

const source = fileURLToPath(new URL('shim.c', import.meta.url))

/** Why no sync can be made to fail here; undefined when one can. */
export const fsyncNeeds = () => preloadNeeds('a sync that fails')

/** @type {WeakMap<World, Syncs>} */
const serverSyncsOf = new WeakMap()

/** Before the start: from then on the server's syncs fail on demand. @param {World} world */
export async function prepareServerSyncs(world) {
  const library = join(world.dir, 'fsync.so')
  compileLibrary(source, library)
  const file = join(world.dir, 'fsync-fails')
  writeFileSync(file, Buffer.alloc(1))
  const descriptor = openSync(file, 'r+')
  addPreload(world.env.redis, library)
  world.env.redis['HOLDFAST_FSYNC'] = file
  serverSyncsOf.set(world, {
    fail: (fails) => void writeSync(descriptor, Buffer.of(fails ? 1 : 0), 0, 1, 0),
  })
  return () => closeSync(descriptor)
}

/** @param {World} world @returns {Syncs} */
export function serverSyncs(world) {
  const syncs = serverSyncsOf.get(world)
  if (syncs === undefined) throw new Error('prepareServerSyncs comes before the start')
  return syncs
}
