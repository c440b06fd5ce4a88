// @ts-check
// Reads the folder of a history. What is damaged or missing is no violation: nothing can be judged then.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** @typedef {import('./words.mjs').Line} Line */
/** @typedef {import('./words.mjs').Final} Final */

const fileName = /^(producer|operator|node|marks|hub|conductor)-(.+)-(\d+)\.jsonl$/

/** The history itself cannot be believed. */
export class DamagedHistory extends Error {}

/** @param {string} dir @returns {{ lines: Line[], final: Final }} */
export function readHistory(dir) {
  const names = listOf(dir)
  const histories = names.filter((name) => name.endsWith('.jsonl')).sort()
  if (!names.includes('final.json')) throw new DamagedHistory(`${dir} has no final.json: the run did not end`)
  return {
    lines: histories.flatMap((name) => linesOf(name, readFileSync(join(dir, name), 'utf8'))),
    final: finalOf(readFileSync(join(dir, 'final.json'), 'utf8')),
  }
}

/** @param {string} dir */
function listOf(dir) {
  try {
    return readdirSync(dir)
  } catch (error) {
    throw new DamagedHistory(`${dir} cannot be read: ${error instanceof Error ? error.message : error}`)
  }
}

/** The lines of one file. A kill may cut the last one short; then it says nothing. @param {string} file @param {string} text @returns {Line[]} */
export function linesOf(file, text) {
  const [, role = '', name = '', pid = ''] = fileName.exec(file) ?? []
  if (role === '') throw new DamagedHistory(`${file}: no file of a history is named so`)
  const texts = text.split('\n')
  const rest = texts.pop() ?? ''
  const lines = texts.map((each, at) => lineOf(file, at + 1, each, parsed(each)))
  const last = rest === '' ? undefined : parsed(rest)
  // The conductor outlives everybody; it alone is never killed.
  if (last !== undefined) lines.push(lineOf(file, texts.length + 1, rest, last))
  else if (rest !== '' && role === 'conductor')
    throw new DamagedHistory(`${file} ends in the middle of a line`)
  for (const line of lines) {
    if (line.role !== role || line.pid !== Number(pid)) {
      throw new DamagedHistory(`${file}:${line.number} is a line of ${line.role} ${line.pid}`)
    }
    // A line about a fault has the name of the fault there.
    line.name = name
  }
  return lines
}

/** @param {string} text @returns {any} */
function parsed(text) {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** @param {string} file @param {number} number @param {string} text @param {any} data @returns {Line} */
function lineOf(file, number, text, data) {
  if (typeof data !== 'object' || data === null) {
    throw new DamagedHistory(`${file}:${number} is no line of a history: ${text.slice(0, 80)}`)
  }
  const { t, role, name, pid, kind } = data
  if (typeof t !== 'string' || !/^\d+$/.test(t) || typeof kind !== 'string') {
    throw new DamagedHistory(`${file}:${number} lacks its time or its kind`)
  }
  return { file, number, t: Number(t), role, name, pid, kind, data }
}

const lists = /** @type {const} */ (['deliveries', 'messages', 'log', 'unknown', 'held'])

/** @param {string} text @returns {Final} */
function finalOf(text) {
  const final = parsed(text)
  if (typeof final !== 'object' || final === null) throw new DamagedHistory('final.json is no JSON object')
  const missing = lists.filter((name) => !Array.isArray(final[name]))
  if (missing.length > 0) throw new DamagedHistory(`final.json lacks ${missing.join(', ')}`)
  if (!Array.isArray(final.audit?.disagreements) || typeof final.audit.conservation !== 'object') {
    throw new DamagedHistory('final.json lacks its audit')
  }
  return final
}
