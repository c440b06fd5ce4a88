// @ts-check
// A bar chart of one item as SVG: a bar is the median over the rounds, the thin line from the least to the most.
import { numberOf } from './words.mjs'

/** @typedef {import('../figures.mjs').Spread} Spread */
/** @typedef {{ name: string, title: string, unit: string, systems: Record<string, Spread>, own: string[] }} Chart */

const width = 760
const [row, bar, top, bottom] = [34, 18, 44, 14]
/** Where the bars begin and may end; the names stand before, the figures behind. */
const [left, right] = [130, 640]

// Readable on a page of either colour: the viewer's choice, not the page's, decides.
const style = `
    text { font: 13px system-ui, sans-serif; fill: #24292f; }
    .title { font-weight: 600; }
    .unit { fill: #57606a; font-size: 12px; }
    .name { font-family: ui-monospace, monospace; }
    .bar { fill: #8c959f; }
    .own { fill: #1f6feb; }
    .line { stroke: #24292f; stroke-width: 1.5; }
    .axis { stroke: #8c959f; stroke-width: 1; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; }
      .unit { fill: #9198a1; }
      .bar { fill: #6e7681; }
      .own { fill: #58a6ff; }
      .line { stroke: #e6edf3; }
    }`

/** @param {Chart} chart */
export function chartOf({ name, title, unit, systems, own }) {
  const each = Object.entries(systems)
  const most = Math.max(...each.map(([, { max }]) => max), 0) || 1
  const at = (/** @type {number} */ value) => left + ((right - left) * value) / most
  const height = top + each.length * row + bottom
  const rows = each.map(([system, spread], n) =>
    rowOf(system, spread, { y: top + n * row, at, own: own.includes(system) }),
  )
  const words = each.map(
    ([system, { median, min, max }]) =>
      `${system} ${numberOf(median)} (${numberOf(min)} to ${numberOf(max)})`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="${name}-title ${name}-figures">
  <title id="${name}-title">${xml(`${title}: ${plain(unit)}`)}</title>
  <desc id="${name}-figures">${xml(words.join('; '))}</desc>
  <style>${style}
  </style>
  <text x="0" y="16" class="title">${xml(title)}</text>
  <text x="0" y="34" class="unit">${xml(plain(unit))}</text>
${rows.join('\n')}
  <line class="axis" x1="${left}" y1="${top}" x2="${left}" y2="${height - bottom}" />
</svg>
`
}

/**
 * @param {string} system @param {Spread} spread
 * @param {{ y: number, at: (value: number) => number, own: boolean }} place
 */
function rowOf(system, { median, min, max }, { y, at, own }) {
  const middle = y + row / 2
  const [from, to] = [place(at(min)), place(at(max))]
  return [
    `  <text class="name" x="${left - 8}" y="${middle + 4}" text-anchor="end">${xml(system)}</text>`,
    `  <rect class="${own ? 'bar own' : 'bar'}" x="${left}" y="${middle - bar / 2}" width="${place(at(median) - left)}" height="${bar}" />`,
    `  <line class="line" x1="${from}" y1="${middle}" x2="${to}" y2="${middle}" />`,
    ...[from, to].map(
      (x) => `  <line class="line" x1="${x}" y1="${middle - 5}" x2="${x}" y2="${middle + 5}" />`,
    ),
    `  <text x="${place(at(Math.max(max, median)) + 10)}" y="${middle + 4}">${xml(numberOf(median))}</text>`,
  ].join('\n')
}

/** @param {number} x */
const place = (x) => Number(x.toFixed(1))

/** @param {string} text */
const plain = (text) => text.replaceAll('`', '')

/** @param {string} text */
const xml = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
