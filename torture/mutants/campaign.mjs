// @ts-check
// One run of a build, and what it was caught by.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { grouped } from '../built-checker.mjs'
import { faultOf, timeOf } from './moment.mjs'

/** @typedef {import('./list.mjs').Mutant} Mutant */
/** @typedef {import('../../src/testing/checker/words.ts').Violation} Violation */

/**
 * `by`: the invariants that it missed, each with how many ids it was missed for. `noticed`: what the run itself saw.
 * `other`: something was noticed, but not what the mutant breaks. `busy`: all that was wrong is that things still moved
 * when the run ended. `broken`: the run itself did not work.
 * @typedef {object} Catch
 * @property {'caught' | 'green' | 'other' | 'busy' | 'broken'} kind
 * @property {{ invariant: string, ids: number }[]} by
 * @property {string[]} noticed
 * @property {string} fault that led to the first violation
 * @property {string} first
 * @property {{ acknowledged: number, lost: number, twice: number, unknown: number }} counts
 * @property {number} faults how many were made
 */

const defaultSeconds = 12
/** Enough to meet every fault, little enough to be healed soon. */
const defaultRate = 30
/** A run that heals badly waits for long; this is when it hangs. */
const restMs = 300_000
const endWithinMs = 40_000
/** What a run misses that ends while things still move. Without anybody to ask, what is unknown stays so. */
const ofTheEnd = (/** @type {boolean} */ probe) => (probe ? ['I7', 'unknown'] : ['I7'])

/** @param {string} dir of the build @param {Mutant} mutant @param {string} seed @returns {Promise<Catch>} */
export async function tryToCatch(dir, mutant, seed) {
  const { faults, seconds = defaultSeconds, rate = defaultRate, probe = true } = mutant
  const run = mkdtempSync(join(dir, `run-${seed}-`))
  const words = ['--seed', seed, '--seconds', String(seconds), '--rate', String(rate)]
  words.push('--faults', faults.join(','), '--dir', run, '--json')
  if (!probe) words.push('--no-probe')
  const { code, stdout, stderr } = await spawned(dir, words, seconds)
  const verdict = verdictIn(stdout)
  if (verdict !== undefined) return told(verdict, mutant, join(run, 'history'))
  return {
    kind: 'broken',
    by: [],
    noticed: [`no verdict (exit ${code})`],
    fault: '',
    first: stderr.slice(-400).trim(),
    counts: { acknowledged: 0, lost: 0, twice: 0, unknown: 0 },
    faults: 0,
  }
}

/** Those that run now, each with what tells that it has ended. @type {Map<import('node:child_process').ChildProcess, Promise<unknown>>} */
const running = new Map()

/** Ends every run, and waits until each has put back what it took. */
export async function endRuns() {
  const ended = [...running].map(([child, closed]) => {
    child.kill('SIGTERM')
    setTimeout(() => child.kill('SIGKILL'), endWithinMs).unref()
    return closed
  })
  await Promise.all(ended)
}

/** @param {string} dir @param {string[]} words @param {number} seconds @returns {Promise<{ code: number | null, stdout: string, stderr: string }>} */
async function spawned(dir, words, seconds) {
  const child = spawn(process.execPath, ['torture/run.mjs', ...words], {
    cwd: dir,
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
  const timers = [
    setTimeout(() => child.kill('SIGTERM'), seconds * 1000 + restMs),
    setTimeout(() => child.kill('SIGKILL'), seconds * 1000 + restMs + endWithinMs),
  ]
  const closed = once(child, 'close')
  running.set(child, closed)
  try {
    const [code] = await closed
    return { code, stdout, stderr }
  } finally {
    running.delete(child)
    for (const timer of timers) clearTimeout(timer)
  }
}

/** @param {string} stdout @returns {any} */
function verdictIn(stdout) {
  try {
    return JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
  } catch {
    return undefined
  }
}

/** @param {any} verdict @param {Mutant} mutant @param {string} history @returns {Catch} */
function told(verdict, mutant, history) {
  /** @type {Violation[]} */
  const violations = verdict.violations
  const by = [...grouped(violations, ({ invariant }) => invariant)].map(([invariant, found]) => {
    return { invariant, ids: new Set(found.map(({ id }) => id)).size }
  })
  const noticed = [
    ...(verdict.unexpected?.length > 0 ? [`${verdict.unexpected.length} ended by themselves`] : []),
    ...(verdict.isHealed === false ? ['not healed'] : []),
    ...(verdict.settled?.settled === false ? ['not settled'] : []),
  ]
  const { acknowledged, lost, twice, unknown } = verdict
  const made = Object.values(verdict.faults ?? {}).reduce((sum, count) => sum + count, 0)
  const rest = { by, noticed, counts: { acknowledged, lost, twice, unknown }, faults: made }
  const isMoving = verdict.settled?.isMoving === true
  if (isMoving && violations.every(({ invariant }) => ofTheEnd(mutant.probe !== false).includes(invariant))) {
    return { ...rest, kind: 'busy', fault: '', first: `not settled: ${JSON.stringify(verdict.settled)}` }
  }
  const wanted = violations.filter(({ invariant }) => mutant.by.includes(invariant))
  const [first] = wanted.toSorted((one, other) => timeOf(one) - timeOf(other))
  if (first === undefined) {
    const [other] = violations
    const text = other === undefined ? '' : `${other.invariant} ${other.id}: ${other.text}`
    return { ...rest, kind: verdict.ok ? 'green' : 'other', fault: '', first: text }
  }
  const fault = faultOf(history, first)
  return { ...rest, kind: 'caught', fault, first: `${first.invariant} ${first.id}: ${first.text}` }
}
