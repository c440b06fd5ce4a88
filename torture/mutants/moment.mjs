// @ts-check
// When a violation was complete, and what had gone wrong just before.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** @typedef {import('../../src/testing/checker/words.ts').Violation} Violation */

/** Histories bear the monotonic clock, the log bears the server's, which is this machine's: no mutant runs under faults of clocks. */
const monotonicLessWallNs = Number(process.hrtime.bigint()) - Date.now() * 1e6

/** When its evidence is complete; what only the record at the end tells has no time. @param {Violation} violation */
export function timeOf({ evidence }) {
  const times = evidence.flatMap((line) => {
    const seen = /"t":"(\d+)"/.exec(line)?.[1]
    if (seen !== undefined) return [Number(seen)]
    const logged = /^log (\d+)-\d+ /.exec(line)?.[1]
    return logged === undefined ? [] : [Number(logged) * 1e6 + monotonicLessWallNs]
  })
  return times.length === 0 ? Number.POSITIVE_INFINITY : Math.max(...times)
}

/**
 * The fault that led to a violation, in words: the last one that began before its evidence was complete. What was lost, or
 * is unknown, had been there before: the first one after it is told.
 * @param {string} history a folder @param {Violation} violation
 */
export function faultOf(history, violation) {
  const file = readdirSync(history).find((name) => name.startsWith('conductor-'))
  if (file === undefined) return ''
  const faults = readFileSync(join(history, file), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
    .filter(({ kind, type }) => kind === 'fault' && type === 'begin')
  const t = timeOf(violation)
  const before = faults.findLast(({ t: at }) => Number(at) <= t)
  const wasThere = violation.means === 'lost' || violation.invariant === 'unknown'
  const after = wasThere ? faults.find(({ t: at }) => Number(at) > t) : undefined
  return wordsOf(after ?? before)
}

/** @param {{ name: string, target?: { role: string, name: string } } | undefined} fault */
function wordsOf(fault) {
  if (fault === undefined) return 'none yet'
  const { role, name } = fault.target ?? {}
  return [fault.name, role, ...(role === name ? [] : [name])].filter(Boolean).join(' ')
}
