// @ts-check
// A wall clock that can be moved, for one process or several: a small library in front of the system's.
import { spawnSync } from 'node:child_process'
import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** @typedef {import('../world.mjs').World} World */

/**
 * @typedef {object} Clock
 * @property {Record<string, string>} env for the processes whose clock it is
 * @property {(offsetMs: number) => void} set beside the true time; at once
 * @property {() => void} close
 */

const source = fileURLToPath(new URL('shim.c', import.meta.url))
const nanosecondsAMs = 1_000_000n

/** Why no clock can be moved here; undefined when it can. @returns {string | undefined} */
export function clockNeeds() {
  if (process.platform !== 'linux') return 'moving a clock needs Linux (LD_PRELOAD)'
  if (process.arch !== 'x64' && process.arch !== 'arm64')
    return `moving a clock is not made for ${process.arch}`
  if (compiler() === undefined) return 'moving a clock needs a C compiler: apt-get install -y gcc libc6-dev'
  return undefined
}

function compiler() {
  return ['cc', 'gcc', 'clang'].find(
    (name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0,
  )
}

/** Compiles the library into the folder and makes a clock there that shows the true time. @param {string} dir @returns {Clock} */
export function makeClock(dir) {
  const library = join(dir, 'clock.so')
  const words = ['-shared', '-fPIC', '-O2', '-o', library, source]
  const built = spawnSync(compiler() ?? 'cc', words, { encoding: 'utf8' })
  if (built.status !== 0)
    throw new Error(`the clock cannot be compiled: ${built.stderr || built.error?.message}`)
  const file = join(dir, 'clock-offset')
  writeFileSync(file, Buffer.alloc(8))
  const descriptor = openSync(file, 'r+')
  const bytes = Buffer.alloc(8)
  return {
    env: { LD_PRELOAD: library, HOLDFAST_CLOCK: file },
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
  Object.assign(world.env.redis, clock.env)
  return clock.close
}

/** @param {World} world @returns {Clock} */
export function serverClock(world) {
  const clock = serverClocks.get(world)
  if (clock === undefined)
    throw new Error('the server has no clock of its own: prepareServerClock comes before the start')
  return clock
}
