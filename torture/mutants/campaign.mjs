// @ts-check
// One run of a broken build, and what it was caught by.
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { grouped } from '../checker/evidence.mjs'

/** @typedef {import('./list.mjs').Mutant} Mutant */
/** @typedef {import('../checker/words.mjs').Violation} Violation */

/**
 * `by`: invariants, each with how many ids it was broken for; what the run itself noticed stands behind them. `other`:
 * something was noticed, but not what the mutant breaks. `broken`: the run itself did not work.
 * @typedef {{ kind: 'caught' | 'green' | 'other' | 'broken', by: string[], fault: string, first: string }} Catch
 */

const defaultSeconds = 15
/** Enough to meet every fault, little enough to be healed soon. */
const rate = '30'
/** A run that heals badly waits for long; this is when it hangs. */
const restMs = 150_000
const endWithinMs = 15_000

/** @param {string} dir of the build @param {Mutant} mutant @param {string} seed @returns {Promise<Catch>} */
export async function tryToCatch(dir, mutant, seed) {
  const { faults, seconds = defaultSeconds, probe = true } = mutant
  const run = join(dir, `run-${seed}`)
  const words = ['--seed', seed, '--seconds', String(seconds), '--rate', rate, '--faults', faults.join(',')]
  if (!probe) words.push('--no-probe')
  const { code, stdout, stderr } = await spawned(dir, [...words, '--dir', run, '--json'], seconds)
  const verdict = verdictIn(stdout)
  if (verdict !== undefined) return told(verdict, mutant, join(run, 'history'))
  return { kind: 'broken', by: [`no verdict (exit ${code})`], fault: '', first: stderr.slice(-400).trim() }
}

/** @param {string} dir @param {string[]} words @param {number} seconds @returns {Promise<{ code: number | null, stdout: string, stderr: string }>} */
function spawned(dir, words, seconds) {
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
  const end = () => void child.kill('SIGTERM')
  process.once('exit', end)
  // Asked first: it ends what it has started.
  const timers = [
    setTimeout(end, seconds * 1000 + restMs),
    setTimeout(() => child.kill('SIGKILL'), seconds * 1000 + restMs + endWithinMs),
  ]
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => {
      for (const timer of timers) clearTimeout(timer)
      process.removeListener('exit', end)
      resolve({ code, stdout, stderr })
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

/** @param {any} verdict @param {Mutant} mutant @param {string} history @returns {Catch} */
function told(verdict, mutant, history) {
  /** @type {Violation[]} */
  const violations = verdict.violations
  const ids = [...grouped(violations, ({ invariant }) => invariant)].map(([invariant, found]) => {
    return `${invariant} (${new Set(found.map(({ id }) => id)).size})`
  })
  const noticed = [
    ...(verdict.unexpected?.length > 0 ? [`${verdict.unexpected.length} ended by themselves`] : []),
    ...(verdict.isHealed === false ? ['not healed'] : []),
    ...(verdict.settled?.settled === false ? ['not settled'] : []),
  ]
  const wanted = violations.filter(({ invariant }) => mutant.by.includes(invariant))
  const [first] = wanted.toSorted((one, other) => timeOf(one) - timeOf(other))
  const by = [...ids, ...noticed]
  if (first === undefined) return { kind: verdict.ok ? 'green' : 'other', by, fault: '', first: '' }
  const fault = faultBefore(history, timeOf(first))
  return { kind: 'caught', by, fault, first: `${first.invariant} ${first.id}: ${first.text}` }
}

/** When the evidence of a violation is complete; what is told by the log and the record alone has no time. @param {Violation} violation */
function timeOf({ evidence }) {
  const times = evidence.flatMap((line) => {
    const t = /"t":"(\d+)"/.exec(line)?.[1]
    return t === undefined ? [] : [Number(t)]
  })
  return times.length === 0 ? Number.POSITIVE_INFINITY : Math.max(...times)
}

/** The last fault that began before. @param {string} history @param {number} t */
function faultBefore(history, t) {
  const file = readdirSync(history).find((name) => name.startsWith('conductor-'))
  if (file === undefined) return ''
  const lines = readFileSync(join(history, file), 'utf8').trim().split('\n')
  const faults = lines
    .map((line) => JSON.parse(line))
    .filter(({ kind, type, t: at }) => kind === 'fault' && type === 'begin' && Number(at) <= t)
  const last = faults.at(-1)
  return last === undefined
    ? 'none yet'
    : [last.name, last.target?.role, last.target?.name].filter(Boolean).join(' ')
}
