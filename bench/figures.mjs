// @ts-check

/** @typedef {{ median: number, min: number, max: number, rounds: number[] }} Spread */

/** @param {number[]} values @param {number} [digits] @returns {Spread} */
export function spreadOf(values, digits = 0) {
  const rounds = values.map((value) => Number(value.toFixed(digits)))
  const sorted = [...rounds].sort((a, b) => a - b)
  const [low = 0, high = 0] = [
    sorted[Math.floor((sorted.length - 1) / 2)],
    sorted[Math.ceil((sorted.length - 1) / 2)],
  ]
  return {
    median: Number(((low + high) / 2).toFixed(digits)),
    min: sorted[0] ?? 0,
    max: sorted.at(-1) ?? 0,
    rounds,
  }
}

/**
 * Runs `count` jobs, at most `width` at a time; rejects with the first failure.
 * @param {number} count @param {number} width @param {(n: number) => Promise<unknown>} job
 */
export async function inFlight(count, width, job) {
  let next = 0
  const worker = async () => {
    while (next < count) {
      const n = next
      next += 1
      await job(n)
    }
  }
  await Promise.all(Array.from({ length: Math.min(width, count) }, worker))
}

/**
 * The commands that took the most time in the server, from INFO commandstats. What runs inside a function is
 * counted in the function's time too.
 * @param {string} info @param {number} most
 */
export function topCommands(info, most) {
  const found = [...info.matchAll(/^cmdstat_([^:]+):calls=(\d+),usec=(\d+)/gm)]
  return found
    .map(([, command = '', calls, usec]) => ({ command, calls: Number(calls), usec: Number(usec) }))
    .map((each) => ({ ...each, usecPerCall: Number((each.usec / each.calls).toFixed(2)) }))
    .sort((a, b) => b.usec - a.usec)
    .slice(0, most)
}

/**
 * Begins `count` jobs at a fixed rate, whether earlier ones have ended or not, and waits for all of them.
 * @param {number} count @param {number} perSecond @param {(n: number) => Promise<unknown>} job
 */
export async function paced(count, perSecond, job) {
  const startedAt = performance.now()
  /** @type {Promise<unknown>[]} */
  const jobs = []
  while (jobs.length < count) {
    const due = Math.min(count, Math.ceil(((performance.now() - startedAt) * perSecond) / 1000))
    while (jobs.length < due) jobs.push(job(jobs.length))
    await new Promise((done) => setTimeout(done, 1))
  }
  await Promise.all(jobs)
}

/** @param {number[]} values */
export function quantilesOf(values) {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (/** @type {number} */ share) =>
    Number((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0).toFixed(3))
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1) }
}

/** @param {readonly string[]} accepted @param {ReadonlyMap<string, number>} executed how often, by id */
export function checkExactlyOnce(accepted, executed) {
  const never = accepted.filter((id) => !executed.has(id))
  const twice = [...executed].filter(([, times]) => times > 1).map(([id]) => id)
  const known = new Set(accepted)
  const unasked = [...executed.keys()].filter((id) => !known.has(id))
  const found = Object.entries({ never, twice, unasked }).filter(([, ids]) => ids.length > 0)
  if (found.length === 0) return
  const words = found.map(([what, ids]) => `${ids.length} ${what} (${ids.slice(0, 3).join(', ')})`)
  throw new Error(`not exactly once: executed ${words.join('; ')}`)
}
