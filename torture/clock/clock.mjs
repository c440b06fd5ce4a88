// @ts-check
// A wall clock that can be moved, for one process or several: a small library in front of the system's.
import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { addPreload, compileLibrary, preloadNeeds } from '../preload.mjs'

/** @typedef {import('../world.mjs').World} World */

/**
 * @typedef {object} Clock
 * @property {(env: Record<string, string>) => void} addTo the environment of a process makes this its clock
 * @property {(offsetMs: number) => void} set beside the true time; at once
 * @property {() => void} close
 */

const source = fileURLToPath(new URL('shim.c', import.meta.url))
const nanosecondsAMs = 1_000_000n

/** Why no clock can be moved here; undefined when it can. */
export const clockNeeds = () => preloadNeeds('moving a clock')

/** Compiles the library into the folder and makes a clock there that shows the true time. @param {string} dir @returns {Clock} */
function makeClock(dir) {
  const library = join(dir, 'clock.so')
  compileLibrary(source, library)
  const file = join(dir, 'clock-offset')
  writeFileSync(file, Buffer.alloc(8))
  const descriptor = openSync(file, 'r+')
  const bytes = Buffer.alloc(8)
  return {
    addTo: (env) => {
      addPreload(env, library)
      env['HOLDFAST_CLOCK'] = file
    },
    set: (offsetMs) => {
      bytes.writeBigInt64LE(BigInt(Math.round(offsetMs)) * nanosecondsAMs)
      writeSync(descriptor, bytes, 0, 8, 0)
    },
    close: () => closeSync(descriptor),
  }
}

/** @type {WeakMap<World, Clock>} */
const serverClocks = new WeakMap()

/** The server of the run gets a clock of its own; once, whichever faults ask for it. @param {World} world */
export async function prepareServerClock(world) {
  if (serverClocks.has(world)) return
  const clock = makeClock(world.dir)
  serverClocks.set(world, clock)
  clock.addTo(world.env.redis)
  return clock.close
}

/** @param {World} world @returns {Clock} */
export function serverClock(world) {
  const clock = serverClocks.get(world)
  if (clock === undefined)
    throw new Error('the server has no clock of its own: prepareServerClock comes before the start')
  return clock
}
