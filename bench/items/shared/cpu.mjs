// @ts-check
import { readFileSync } from 'node:fs'

/** Of /proc/<pid>/stat: USER_HZ, the same on every Linux. */
const ticksPerSecond = 100

/** Milliseconds that a process has spent on a core so far, its children left out. @param {number} pid */
function cpuMs(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  // The second field is the program's name in brackets, and may hold anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [user, system] = [Number(fields[11]), Number(fields[12])]
  return ((user + system) * 1000) / ticksPerSecond
}

/**
 * The share of a core that each process takes meanwhile, in %.
 * @template {string} Name @param {Record<Name, number>} pids @param {() => Promise<void>} meanwhile
 * @returns {Promise<Record<Name, number>>}
 */
export async function cpuShares(pids, meanwhile) {
  const names = /** @type {Name[]} */ (Object.keys(pids))
  const before = names.map((name) => cpuMs(pids[name]))
  const startedAt = performance.now()
  await meanwhile()
  const tookMs = performance.now() - startedAt
  const shares = names.map((name, at) => [name, ((cpuMs(pids[name]) - (before[at] ?? 0)) / tookMs) * 100])
  return /** @type {Record<Name, number>} */ (Object.fromEntries(shares))
}
