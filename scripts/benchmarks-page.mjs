// @ts-check
// Writes docs/benchmarks.md and docs/benchmarks/*.svg from bench/results/latest.json. The prose is in
// bench/page/template.md. A test compares the page with the figures.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { pageOf } from '../bench/page/page.mjs'
import { svgOf } from '../bench/page/section.mjs'
import { readReport, reportFile } from '../bench/report.mjs'

const template = new URL('../bench/page/template.md', import.meta.url)
const docs = new URL('../docs/', import.meta.url)

/**
 * Every file of the page, by its path below docs/.
 * @param {import('../bench/page/page.mjs').Report} report
 */
export function benchmarksPage(report) {
  const charts = Object.entries(report).map(([name, item]) => [`benchmarks/${name}.svg`, svgOf(name, item)])
  const page = pageOf(readFileSync(template, 'utf8'), report)
  return /** @type {Record<string, string>} */ ({ 'benchmarks.md': page, ...Object.fromEntries(charts) })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const charts = new URL('benchmarks/', docs)
  mkdirSync(charts, { recursive: true })
  for (const name of readdirSync(charts)) if (name.endsWith('.svg')) rmSync(new URL(name, charts))
  for (const [path, text] of Object.entries(benchmarksPage(readReport(reportFile)))) {
    writeFileSync(new URL(path, docs), text)
  }
}
