// @ts-check
// npm run bench -- [--only ITEM] [--quick] [--json] [--messages N] [--rounds N] [--dir FOLDER] [--out FILE]
// Runs the work items (docs/benchmarks.md), writes their figures to bench/results/latest.json, and prints
// them as a table, or as JSON. Progress goes to stderr. Fails when an item's exactly-once check fails.
import { mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { runHandoff, showHandoff } from './handoff/item.mjs'
import { machineFacts } from './machine.mjs'
import { runNeighbours, showNeighbours } from './neighbours.mjs'

/** @typedef {{ quick: boolean, messages: number | undefined, rounds: number | undefined, dir: string, say: (line: string) => void }} Options */

/** @type {Record<string, { run: (options: Options) => Promise<any>, show: (figures: any) => string }>} */
const items = {
  handoff: { run: runHandoff, show: showHandoff },
  neighbours: { run: runNeighbours, show: showNeighbours },
}
const results = join(dirname(fileURLToPath(import.meta.url)), 'results', 'latest.json')

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: Object.keys(items) },
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    messages: { type: 'string' },
    rounds: { type: 'string' },
    dir: { type: 'string', default: tmpdir() },
    out: { type: 'string', default: results },
  },
})
const chosen = values.only.map(itemOf)
/** @type {Options} */
const options = {
  quick: values.quick,
  messages: wholeNumber('messages', values.messages),
  rounds: wholeNumber('rounds', values.rounds),
  dir: values.dir,
  say: (line) => console.error(line),
}

// An ending process takes its server with it, but only where it ends by itself.
for (const name of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
  process.once(name, () => process.exit(130))
}

/** @type {Record<string, unknown>} */
const report = { at: new Date().toISOString(), quick: values.quick, machine: machineFacts(values.dir) }
for (const { name, run, show } of chosen) {
  const figures = await run(options)
  report[name] = figures
  if (!values.json) console.log(show(figures))
}
mkdirSync(dirname(values.out), { recursive: true })
const text = `${JSON.stringify(report, undefined, 2)}\n`
writeFileSync(values.out, text)
if (values.json) process.stdout.write(text)
else console.error(`written to ${values.out}`)

/** @param {string} name */
function itemOf(name) {
  const item = items[name]
  return item === undefined
    ? refuse(`--only ${name}: there is ${Object.keys(items).join(', ')}`)
    : { name, ...item }
}

/** @param {string} name @param {string | undefined} given */
function wholeNumber(name, given) {
  if (given === undefined) return undefined
  const value = Number(given)
  return Number.isSafeInteger(value) && value > 0 ? value : refuse(`--${name} ${given}: a whole number`)
}

/** @param {string} message @returns {never} */
function refuse(message) {
  console.error(`bench: ${message}`)
  process.exit(2)
}
