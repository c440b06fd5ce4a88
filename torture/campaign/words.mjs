// @ts-check
// A campaign in words: a line a seed, a table by fault, and the sums.
import { summaryOf as verdictOf } from '../built-checker.mjs'
import { wordsOf } from './seed.mjs'

/** @typedef {import('./seed.mjs').SeedRecord} SeedRecord */
/** @typedef {import('./figures.mjs').FaultFigures} FaultFigures */

const numberOf = (/** @type {number} */ value) => value.toLocaleString('en-US')

/** @param {SeedRecord} record */
export function seedLine({
  seed,
  kind,
  why,
  repeated,
  struck,
  deliveries,
  lost,
  twice,
  unknown,
  tookMs,
  load,
}) {
  const made = Object.entries(struck).map(([name, times]) => `${name} ${times}`)
  const figures = `acknowledged ${deliveries}, lost ${lost}, twice ${twice}, unknown ${unknown}`
  const about = `${Math.round(tookMs / 1000)} s, load ${load}; ${made.join(', ') || 'no faults'}`
  const again = repeated === undefined ? '' : `; repeated alone, at first: ${repeated}`
  return `seed ${seed}: ${kind}${why === undefined ? '' : ` (${why})`}, ${figures}; ${about}${again}`
}

/** The command that runs a seed again. @param {import('./hands.mjs').Hand & { dir?: string | undefined }} record @param {import('./seed.mjs').Setup} setup */
export function replayOf(record, setup) {
  return `npm run torture -- ${wordsOf(record, setup).join(' ')}${record.dir === undefined ? '' : `   # kept: ${record.dir}`}`
}

/** @param {Record<string, FaultFigures>} figures @returns {string[]} */
export function tableOf(figures) {
  const head = ['fault', 'runs', 'struck', 'acknowledged', 'lost', 'twice', 'unknown']
  const rows = Object.entries(figures).map(([name, { runs, struck, deliveries, lost, twice, unknown }]) => [
    name,
    ...[runs, struck, deliveries, lost, twice, unknown].map(numberOf),
  ])
  const widths = head.map((_, at) => Math.max(...[head, ...rows].map((row) => row[at]?.length ?? 0)))
  return [head, ...rows].map((row) =>
    row
      .map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
      .join('  ')
      .trimEnd(),
  )
}

/** The last lines. @param {import('./figures.mjs').Totals} totals @returns {string[]} */
export function summaryOf(totals) {
  const {
    seeds,
    green,
    red,
    inconclusive,
    repeated,
    messages,
    deliveries,
    faults,
    powerCuts,
    mirrorPowerCuts,
  } = totals
  return [
    `${seeds} seeds: ${green} green, ${red} red, ${inconclusive} inconclusive (${repeated} repeated alone); ${numberOf(faults)} faults, ` +
      `${powerCuts} power cuts of the server, ${mirrorPowerCuts} of mirrors; ${numberOf(messages)} messages for ${numberOf(deliveries)} deliveries`,
    verdictOf({ ...totals, acknowledged: deliveries }),
  ]
}
