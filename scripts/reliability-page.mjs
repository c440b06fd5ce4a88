// @ts-check
// Writes docs/reliability.md from torture/page/ and torture/results/. A test compares the page with these.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { readResult, resultFile } from '../torture/campaign/file.mjs'
import { pageOf } from '../torture/page/page.mjs'
import { groups } from '../torture/page/scenarios.mjs'

const template = new URL('../torture/page/template.md', import.meta.url)
const faults = new URL('../torture/faults/', import.meta.url)
const results = new URL('../torture/results/', import.meta.url)
export const pageFile = fileURLToPath(new URL('../docs/reliability.md', import.meta.url))

/** The page as it should be. */
export function reliabilityPage() {
  return pageOf(readFileSync(template, 'utf8'), {
    campaign: readResult(resultFile),
    mutants: resultOf('mutants.json'),
    mirrorPower: resultOf('mirror-power.json'),
    groups,
    faultFiles: readdirSync(faults).map((name) => name.replace(/\.mjs$/, '')),
  })
}

/** @param {string} name @returns {any} */
function resultOf(name) {
  const file = new URL(name, results)
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(pageFile, reliabilityPage())
