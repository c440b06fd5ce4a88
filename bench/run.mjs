// @ts-check
// npm run bench -- [--only ITEM[,ITEM]] [--quick] [--json] [--messages N] [--rounds N] [--dir FOLDER] [--out FILE]
// Runs the work items (docs/benchmarks.md), puts their figures into bench/results/latest.json beside those of
// the other items, and prints them as tables, or the file as JSON. Progress goes to stderr. Fails when an item's
// exactly-once check fails.
import { tmpdir } from 'node:os'
import { parseArgs } from 'node:util'
import { loadItems } from './load-items.mjs'
import { machineFacts } from './machine.mjs'
import { readReport, reportFile, textOf, writeReport } from './report.mjs'

/**
 * `shareMs`: how long the item should take, warm-ups and all; only with --quick.
 * @typedef {{ quick: boolean, messages: number | undefined, rounds: number | undefined, dir: string, say: (line: string) => void, shareMs?: number | undefined }} Options
 */

/**
 * With --quick, how long each item should take; together, and with a build before them, less than four minutes.
 * What the others leave over or take too much is handoff's, which comes last: it does fewer rounds.
 * @type {Record<string, number>}
 */
const quickSeconds = {
  backlog: 18,
  'fan-out': 20,
  'http-accept': 28,
  idle: 30,
  latency: 24,
  neighbours: 22,
  recovery: 34,
  handoff: 44,
}
const otherQuickSeconds = 20

const items = await loadItems()
const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [...items.keys()] },
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    messages: { type: 'string' },
    rounds: { type: 'string' },
    dir: { type: 'string', default: tmpdir() },
    out: { type: 'string', default: reportFile },
  },
})
const { quick, dir, out } = values
const chosen = values.only.flatMap((names) => names.split(',')).map(itemOf)
const given = {
  quick,
  dir,
  messages: wholeNumber('messages', values.messages),
  rounds: wholeNumber('rounds', values.rounds),
}

// An ending process takes its server with it, but only where it ends by itself.
for (const name of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
  process.once(name, () => process.exit(130))
}

let dueAt = performance.now()
for (const { name, run, show } of chosen) {
  const startedAt = performance.now()
  dueAt += (quickSeconds[name] ?? otherQuickSeconds) * 1000
  const shareMs = quick ? Math.max(0, dueAt - startedAt) : undefined
  const at = new Date().toISOString()
  const machine = machineFacts(dir)
  const figures = await run({ ...given, shareMs, say: (line) => console.error(`${name}: ${line}`) })
  const tookMs = performance.now() - startedAt
  writeReport(out, name, { at, quick, machine, tookSeconds: Math.round(tookMs / 1000), ...figures })
  if (!values.json) console.log(show(figures))
  const of = shareMs === undefined ? '' : ` of ${seconds(shareMs)}`
  console.error(`${name}: took ${seconds(tookMs)}${of}, written to ${out}`)
}
if (values.json) process.stdout.write(textOf(readReport(out)))

/** @param {number} ms */
function seconds(ms) {
  return `${(ms / 1000).toFixed(0)} s`
}

/** @param {string} name */
function itemOf(name) {
  return items.get(name) ?? refuse(`--only ${name}: there is ${[...items.keys()].join(', ')}`)
}

/** @param {string} name @param {string | undefined} value */
function wholeNumber(name, value) {
  if (value === undefined) return undefined
  const number = Number(value)
  return Number.isSafeInteger(number) && number > 0 ? number : refuse(`--${name} ${value}: a whole number`)
}

/** @param {string} message @returns {never} */
function refuse(message) {
  console.error(`bench: ${message}`)
  process.exit(2)
}
