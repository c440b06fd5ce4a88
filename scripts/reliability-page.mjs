// @ts-check
// Writes docs/reliability.md from torture/page/ and torture/results/. A test compares the page with these.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { readResult, resultFile } from '../torture/campaign/file.mjs'
import { pageOf } from '../torture/page/page.mjs'
import { groups } from '../torture/page/scenarios.mjs'

const template = new URL('../torture/page/template.md', import.meta.url)
const mutantsFile = new URL('../torture/results/mutants.json', import.meta.url)
export const pageFile = fileURLToPath(new URL('../docs/reliability.md', import.meta.url))

/** The page as it should be. */
export function reliabilityPage() {
  const mutants = existsSync(mutantsFile) ? JSON.parse(readFileSync(mutantsFile, 'utf8')) : undefined
  return pageOf(readFileSync(template, 'utf8'), { campaign: readResult(resultFile), mutants, groups })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(pageFile, reliabilityPage())
