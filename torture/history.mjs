// @ts-check
// The history of a run: one file for every start of a process, one line of JSON for everything it saw.
import { closeSync, fdatasyncSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** @typedef {'producer' | 'operator' | 'node' | 'marks' | 'hub' | 'conductor'} HistoryRole */

/**
 * @typedef {object} History
 * @property {string} dir
 * @property {(line: { kind: string, [member: string]: unknown }) => void} write one append, before anything else happens
 * @property {() => void} sync what was written is on disk when it returns
 * @property {() => void} close
 */

/**
 * Opens the file of this process. Each line is stamped with CLOCK_MONOTONIC, which all processes of a machine share.
 * @param {string} dir @param {HistoryRole} role @param {string} name @returns {History}
 */
export function openHistory(dir, role, name) {
  const { pid } = process
  const file = openSync(join(dir, `${role}-${name}-${pid}.jsonl`), 'a')
  let isOpen = true
  return {
    dir,
    write: (line) => {
      if (!isOpen) return
      const t = String(process.hrtime.bigint())
      writeSync(file, `${JSON.stringify({ t, role, name, pid, ...line })}\n`)
    },
    sync: () => fdatasyncSync(file),
    close: () => {
      if (isOpen) closeSync(file)
      isOpen = false
    },
  }
}

/**
 * What earlier processes of this role and name wrote. A last line that a kill cut is left out.
 * @param {string} dir @param {HistoryRole} role @param {string} name @returns {any[]}
 */
export function readEarlier(dir, role, name) {
  const own = `${role}-${name}-${process.pid}.jsonl`
  const pattern = new RegExp(`^${role}-${name}-\\d+\\.jsonl$`)
  const files = readdirSync(dir).filter((file) => pattern.test(file) && file !== own)
  return files.flatMap((file) => linesOf(join(dir, file))).sort((one, other) => compare(one.t, other.t))
}

/** @param {string} file @returns {any[]} */
function linesOf(file) {
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.flatMap((line) => {
    try {
      return [JSON.parse(line)]
    } catch {
      return []
    }
  })
}

/** @param {string} one @param {string} other */
function compare(one, other) {
  return one.length - other.length || (one < other ? -1 : 1)
}
