import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { type Figures, svgOf } from '../../bench/page/section.mjs'
import { targetsOf } from '../../bench/page/targets.mjs'
import { readReport, reportFile } from '../../bench/report.mjs'
import { benchmarksPage } from '../../scripts/benchmarks-page.mjs'

// The page of figures, against the figures it is made of.

const docs = fileURLToPath(new URL('../../docs/', import.meta.url))

const item: Figures = {
  title: 'Of < and &',
  unit: 'calls of `x`/s',
  at: '2026-01-02T03:04:05.678Z',
  quick: true,
  machine: {
    node: 'v20',
    server: 'redis-server 7',
    cores: 2,
    cpu: 'a cpu',
    fileSystem: 'ext4',
    loadAtStart: 0,
  },
  rounds: 3,
  systems: {
    holdfast: { label: 'ours', median: 2000, min: 1500, max: 2500, rounds: [2000, 1500, 2500], p99: 3 },
    other: { label: 'a | b', median: 1000, min: 900, max: 1100, rounds: [1000, 900, 1100] },
  },
  skipped: { third: 'it is not here' },
  subject: 'holdfast',
  ratios: { other: 2, fourth: 0.5 },
  targets: { other: 1.5, fourth: 1, third: 1 },
  notes: ['a note'],
}

test('the page and its charts are what scripts/benchmarks-page.mjs writes', () => {
  const files = benchmarksPage(readReport(reportFile))
  for (const [path, text] of Object.entries(files)) {
    const there = existsSync(`${docs}${path}`) ? readFileSync(`${docs}${path}`, 'utf8') : ''
    expect(there, `${path}: run node scripts/benchmarks-page.mjs`).toBe(text)
  }
  const charts = readdirSync(`${docs}benchmarks`).map((name) => `benchmarks/${name}`)
  expect([...charts, 'benchmarks.md'].sort()).toEqual(Object.keys(files).sort())
})

test('every item of the report is on the page, with its chart', () => {
  const report = readReport(reportFile)
  expect(Object.keys(report)).toContain('handoff')
  const page = benchmarksPage(report)['benchmarks.md'] ?? ''
  for (const name of Object.keys(report)) {
    expect(page.match(new RegExp(`^## \`${name}\`$`, 'gm')), name).toHaveLength(1)
    expect(page).toContain(`(benchmarks/${name}.svg)`)
  }
  expect(page).not.toContain('<!-- figures')
})

test('an item that no template names has a section of its own', () => {
  const page = benchmarksPage({ sample: item })['benchmarks.md'] ?? ''
  for (const line of [
    '## `sample`',
    '| `sample` | `holdfast` / `other`  |     2 | at least 1.5 | met    |',
    '| `holdfast` |  2,000 | 1,500 | 2,500 |   3 |',
    '| `other`    | a \\| b |',
    '- a note',
    '- without `third`: it is not here',
  ]) {
    expect(page.split('\n')).toContain(line)
  }
  expect(page).toContain('Not measured yet.')
})

test('a chart tells its figures in words too, in either colour', () => {
  const chart = svgOf('sample', item)
  expect(chart).toContain('<title id="sample-title">Of &lt; and &amp;: calls of x/s</title>')
  expect(chart).toContain('holdfast 2,000 (1,500 to 2,500); other 1,000 (900 to 1,100)')
  expect(chart).toContain('prefers-color-scheme: dark')
  expect(chart.match(/<rect class="bar own"/g)).toHaveLength(1)
})

test('targets are a list with figures, or the least that ratios should be', () => {
  const judged = targetsOf(item).map(({ what, bound, met }) => [what, bound, met])
  expect(judged).toEqual([
    ['`holdfast` / `other`', 'at least 1.5', true],
    ['`holdfast` / `fourth`', 'at least 1', false],
  ])
  const listed = targetsOf({ ...item, targets: [{ name: 'slow calls', value: 3, most: 0 }] })
  expect(listed).toMatchObject([{ what: 'slow calls', bound: 'at most 0', met: false }])
})
