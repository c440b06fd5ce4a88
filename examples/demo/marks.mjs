// @ts-check
// The marks that executors append and sync outside Redis (work.sh).
import { existsSync, readFileSync } from 'node:fs'

/**
 * @typedef {object} Mark
 * @property {'begin' | 'end'} kind
 * @property {string} attempt
 * @property {string} delivery
 * @property {number} epoch
 * @property {string} node `<host>/<node>`
 * @property {string} digest empty for a begin
 */

const line = /^(begin|end) (\S+) (\S+) (\d+) (\S+)(?: ([0-9a-f]{64}))?$/

/**
 * Every whole line of the files; a line that is no mark throws.
 * @param {readonly string[]} files
 * @returns {Mark[]}
 */
export function readMarks(files) {
  return files.filter(existsSync).flatMap((file) => {
    const lines = readFileSync(file, 'utf8').split('\n')
    return lines.slice(0, -1).map((text) => {
      const found = line.exec(text)
      if (found === null) throw new Error(`${file}: ${JSON.stringify(text)} is no mark`)
      const [, kind, attempt = '', delivery = '', epoch, node = '', digest = ''] = found
      return {
        kind: kind === 'begin' ? 'begin' : 'end',
        attempt,
        delivery,
        epoch: Number(epoch),
        node,
        digest,
      }
    })
  })
}

/**
 * Deliveries whose last mark is a begin.
 * @param {readonly Mark[]} marks
 */
export function openBegins(marks) {
  const ended = new Set(marks.filter((mark) => mark.kind === 'end').map((mark) => mark.attempt))
  return marks.filter((mark) => mark.kind === 'begin' && !ended.has(mark.attempt))
}
