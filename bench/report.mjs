// @ts-check
// The file of figures: one object a work item, each with when, how and where it was measured.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

/** @typedef {Record<string, any>} Report by the name of the item */

export const reportFile = fileURLToPath(new URL('./results/latest.json', import.meta.url))

/** Without a file there is nothing yet. @param {string} file @returns {Report} */
export function readReport(file) {
  if (!existsSync(file)) return {}
  const entries = Object.entries(JSON.parse(readFileSync(file, 'utf8')))
  return Object.fromEntries(entries.filter(([, item]) => typeof item === 'object' && 'title' in item))
}

/** Puts one item beside the others that are there. @param {string} file @param {string} name @param {object} figures */
export function writeReport(file, name, figures) {
  const report = { ...readReport(file), [name]: figures }
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, textOf(report))
}

/** @param {Report} report */
export const textOf = (report) => `${JSON.stringify(report, undefined, 2)}\n`
