// @ts-check
// One seed of a campaign: a run in a process of its own, and the line that is kept of it.
import { spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { judge } from './judgement.mjs'

/** @typedef {import('./hands.mjs').Hand} Hand */
/** @typedef {import('./judgement.mjs').Ended} Ended */

/** Where and how seeds are run. `build`: the folder with `dist` and `torture`. @typedef {{ build: string, folder: string, seconds: number, rate: number, fanOut: number }} Setup */

/**
 * What is kept of a seed. `struck`: how often each fault was made; `load`: of the machine, when it began; `repeated`: why
 * it had to be run again, alone; `dir`: its folder, where that was kept.
 * @typedef {object} SeedRecord
 * @property {string} seed
 * @property {'green' | 'red' | 'inconclusive'} kind
 * @property {string} [why]
 * @property {string} [repeated]
 * @property {boolean} probe
 * @property {string[]} faults
 * @property {Record<string, number>} struck
 * @property {number} messages
 * @property {number} deliveries
 * @property {number} lost
 * @property {number} twice
 * @property {number} unknown
 * @property {number} explained
 * @property {number} tookMs
 * @property {number} load
 * @property {string} [dir]
 */

/** A run that hangs ends itself before this. */
const restMs = 600_000
const endsWithinMs = 30_000

/** @param {Hand} hand @param {Setup} setup */
export function wordsOf({ seed, faults, probe }, { seconds, rate, fanOut }) {
  const given = { seed, seconds, rate, 'fan-out': fanOut, faults: faults.join(',') }
  const words = Object.entries(given).flatMap(([name, value]) => [`--${name}`, String(value)])
  return probe ? words : [...words, '--no-probe']
}

/**
 * Runs it; the folder of one that is not green is kept.
 * @param {Hand} hand @param {Setup} setup @param {{ name: string, signal: AbortSignal }} how
 * @returns {Promise<SeedRecord>}
 */
export async function runSeed(hand, setup, { name, signal }) {
  const dir = join(setup.folder, name)
  const load = Math.round((loadavg()[0] ?? 0) * 10) / 10
  const ended = await spawned([...wordsOf(hand, setup), '--dir', dir, '--json'], setup, signal)
  const { kind, why } = judge(ended)
  if (kind === 'green') rmSync(dir, { recursive: true, force: true })
  const { verdict, tookMs } = ended
  return {
    seed: hand.seed,
    kind,
    ...(why === '' ? {} : { why }),
    probe: hand.probe,
    faults: hand.faults,
    struck: verdict?.faults ?? {},
    messages: verdict?.acknowledged ?? 0,
    deliveries: verdict?.deliveries ?? 0,
    lost: verdict?.lost ?? 0,
    twice: verdict?.twice ?? 0,
    unknown: verdict?.unknown ?? 0,
    explained: verdict?.explained ?? 0,
    tookMs,
    load,
    ...(kind === 'green' ? {} : { dir }),
  }
}

/** @param {string[]} words @param {Setup} setup @param {AbortSignal} signal @returns {Promise<Ended>} */
function spawned(words, { build, seconds }, signal) {
  const startedAt = performance.now()
  const child = spawn(process.execPath, ['torture/run.mjs', ...words], {
    cwd: build,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (piece) => {
    stdout += piece
  })
  child.stderr.on('data', (piece) => {
    stderr += piece
  })
  // Asked first: it ends what it has started.
  const end = () => void child.kill('SIGTERM')
  const kill = () => void child.kill('SIGKILL')
  signal.addEventListener('abort', end, { once: true })
  const timers = [
    setTimeout(end, seconds * 1000 + restMs),
    setTimeout(kill, seconds * 1000 + restMs + endsWithinMs),
  ]
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => {
      for (const timer of timers) clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve({ code, verdict: verdictIn(stdout), stderr, tookMs: Math.round(performance.now() - startedAt) })
    })
  })
}

/** @param {string} stdout @returns {any} */
function verdictIn(stdout) {
  try {
    return JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
  } catch {
    return undefined
  }
}
