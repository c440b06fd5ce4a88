// @ts-check
// npm run torture:campaign -- [--seeds N] [--seconds N] [--at-once K] [--first SEED] [--rate N] [--fan-out N]
//   [--faults A[,B]] [--out FILE] [--dir FOLDER] [--resume [--again]] [--report]
// Runs many seeds, each under a few faults that its number decides, and adds up what they acknowledged, lost, executed
// twice and left unknown. Each seed is kept as it finishes, so a campaign that was interrupted goes on with --resume. A
// seed that was too slow to be judged is run once more, alone. `--again` runs the red ones anew, after a repair: the
// result names both builds. `--report` runs nothing: it writes the result of the seeds that are kept so far. Exit 0 only
// where every seed is there and green.
import { existsSync, mkdirSync, mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { machineFacts } from '../bench/machine.mjs'
import { copyBuild, versionFacts } from './campaign/build.mjs'
import { figuresByFault, totalsOf } from './campaign/figures.mjs'
import {
  beginSeeds,
  endSeeds,
  keepBuild,
  keepSeed,
  readSeeds,
  resultFile,
  seedsFileOf,
  writeResult,
} from './campaign/file.mjs'
import { dealHands } from './campaign/hands.mjs'
import { runSeed } from './campaign/seed.mjs'
import { replayOf, seedLine, summaryOf, tableOf } from './campaign/words.mjs'
import { loadFaults } from './schedule.mjs'

/** @typedef {import('./campaign/hands.mjs').Hand} Hand */
/** @typedef {import('./campaign/seed.mjs').SeedRecord} SeedRecord */
/** @typedef {import('./campaign/file.mjs').Plan} Plan */

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '120' },
    seconds: { type: 'string', default: '30' },
    'at-once': { type: 'string', default: '2' },
    first: { type: 'string', default: '1' },
    rate: { type: 'string', default: '300' },
    'fan-out': { type: 'string', default: '6' },
    faults: { type: 'string', multiple: true },
    out: { type: 'string' },
    dir: { type: 'string' },
    resume: { type: 'boolean', default: false },
    again: { type: 'boolean', default: false },
    report: { type: 'boolean', default: false },
  },
})

const out = values.out === undefined ? resultFile : resolve(values.out)
const seedsFile = seedsFileOf(out)
const known = await loadFaults()
const leftOut = Object.fromEntries(
  [...known.values()].flatMap(({ name, loses, doubts, cluster, needs }) => {
    const why = loses || doubts || cluster ? undefined : needs?.()
    return why === undefined ? [] : [[name, why]]
  }),
)
const notCounted = [...known.values()]
  .filter(({ loses, doubts, cluster }) => loses || doubts || cluster)
  .map(({ name }) => name)

if (values.dir !== undefined) mkdirSync(values.dir, { recursive: true })
const folder =
  values.dir === undefined ? mkdtempSync(join(tmpdir(), 'holdfast-campaign-')) : resolve(values.dir)
const build = values.report ? undefined : copyBuild(join(folder, 'build'))
const { plan, builds, records } = values.report ? keptSoFar() : values.resume ? goOn() : begin()
const { version } = versionFacts()
const facts = { at: new Date().toISOString(), version, builds, machine: machineFacts(folder) }
const setup = { build: build?.dir ?? '', folder, seconds: plan.seconds, rate: plan.rate, fanOut: plan.fanOut }
const hands = dealHands(plan)
const stopping = new AbortController()
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
  process.on(signal, () => stopping.abort())
}

say(`${plan.seeds} seeds of ${plan.seconds} s, ${plan.atOnce} at once; ${records.size} are done`)
const left = hands.filter(
  ({ seed }) => !records.has(seed) || (values.again && records.get(seed)?.kind === 'red'),
)
if (!values.report) {
  await Promise.all(Array.from({ length: plan.atOnce }, work))
  // By itself each of them shows whether it was the company that made it slow.
  for (const hand of hands) await repeat(hand)
}

const isComplete = hands.every(({ seed }) => records.has(seed))
write()
// What is red may be run again: see `--again`.
if (isComplete && isGreen()) endSeeds(seedsFile)
build?.remove()
const all = [...records.values()]
for (const record of all) {
  if (record.kind !== 'green' || record.repeated !== undefined) say(seedLine(record))
  if (record.kind !== 'green') say(`  ${replayOf(record, setup)}`)
}
if (all.every(({ dir }) => dir === undefined) && values.dir === undefined) removeEmpty(folder)
for (const line of tableOf(figuresByFault(all, plan.names))) say(line)
if (!isComplete) say(`${all.length} of ${plan.seeds} seeds; go on with --resume`)
for (const line of summaryOf(totalsOf(all))) say(line)
process.exit(stopping.signal.aborted ? 130 : isComplete && isGreen() ? 0 : 1)

async function work() {
  for (let hand = left.shift(); hand !== undefined && !stopping.signal.aborted; hand = left.shift()) {
    const record = await runSeed(hand, setup, { name: nameOf(hand), signal: stopping.signal })
    const before = records.get(hand.seed)
    const repeated = before === undefined ? {} : { repeated: `red, by an earlier build: ${before.why ?? ''}` }
    if (!stopping.signal.aborted) keep({ ...record, ...repeated })
  }
}

/** Of the folder of its run: what an earlier one left is kept. @param {Hand} hand */
function nameOf({ seed }) {
  const name = `seed-${seed}`
  return existsSync(join(folder, name)) ? `${name}-${Date.now()}` : name
}

function isGreen() {
  return [...records.values()].every(({ kind }) => kind === 'green')
}

/** Once more, alone, where the first run could not be judged. @param {Hand} hand */
async function repeat(hand) {
  const first = records.get(hand.seed)
  if (first?.kind !== 'inconclusive' || stopping.signal.aborted) return

  const record = await runSeed(hand, setup, { name: nameOf(hand), signal: stopping.signal })
  if (stopping.signal.aborted) return
  keep({ ...record, kind: record.kind === 'inconclusive' ? 'red' : record.kind, repeated: first.why ?? '' })
}

/** @param {SeedRecord} record */
function keep(record) {
  keepSeed(seedsFile, record)
  records.set(record.seed, record)
  say(seedLine(record))
  if (record.kind !== 'green') say(`  ${replayOf(record, setup)}`)
}

/** What there is. */
function write() {
  const done = hands.flatMap(({ seed }) => records.get(seed) ?? [])
  writeResult(out, {
    ...plan,
    ...facts,
    complete: done.length === plan.seeds && done.every(({ kind }) => kind !== 'inconclusive'),
    totals: totalsOf(done),
    faults: figuresByFault(done, plan.names),
    notCounted,
    leftOut,
    records: done,
  })
}

/** @returns {{ plan: Plan, builds: string[], records: Map<string, SeedRecord> }} */
function begin() {
  if (existsSync(seedsFile)) refuse(`${seedsFile} is of a campaign that did not end: --resume, or remove it`)
  const counted = [...known.keys()].filter((name) => !notCounted.includes(name) && !(name in leftOut))
  const wanted = values.faults?.flatMap((text) => text.split(',')).filter(Boolean)
  const unknown = wanted?.find((name) => !counted.includes(name))
  if (unknown !== undefined) refuse(`--faults ${unknown}: there is ${counted.join(', ')}`)
  for (const [name, why] of Object.entries(leftOut)) say(`${name} is left out: ${why}`)
  const plan = {
    first: wholeNumber('first', values.first),
    seeds: wholeNumber('seeds', values.seeds),
    seconds: wholeNumber('seconds', values.seconds),
    atOnce: wholeNumber('at-once', values['at-once']),
    rate: wholeNumber('rate', values.rate),
    fanOut: wholeNumber('fan-out', values['fan-out']),
    names: wanted ?? counted,
  }
  const name = nameOfBuild()
  beginSeeds(seedsFile, { ...plan, build: name })
  return { plan, builds: [name], records: new Map() }
}

/** @returns {{ plan: Plan, builds: string[], records: Map<string, SeedRecord> }} */
function goOn() {
  const kept = keptSoFar()
  const name = nameOfBuild()
  if (kept.builds.includes(name)) return kept
  say('the package was built anew since: the result names both builds')
  keepBuild(seedsFile, name)
  return { ...kept, builds: [...kept.builds, name] }
}

/** Its digest, and the commit that was there when it was copied. */
function nameOfBuild() {
  return `${build?.digest} of ${versionFacts().commit}`
}

function keptSoFar() {
  return readSeeds(seedsFile) ?? refuse(`${seedsFile}: there is no campaign to go on with`)
}

/** @param {string} name @param {string} value */
function wholeNumber(name, value) {
  const number = Number(value)
  return Number.isSafeInteger(number) && number > 0
    ? number
    : refuse(`--${name} ${value}: a whole number from 1`)
}

/** @param {string} path */
function removeEmpty(path) {
  try {
    rmdirSync(path)
  } catch {
    // Something is kept in it.
  }
}

/** @param {string} message @returns {never} */
function refuse(message) {
  console.error(`torture: ${message}`)
  build?.remove()
  process.exit(2)
}

/** @param {string} line */
function say(line) {
  console.log(line)
}
