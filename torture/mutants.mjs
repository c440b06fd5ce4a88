// @ts-check
// npm run torture:mutants -- [--only NAME] [--seed S] [--jobs N] [--out FILE] [--keep]: shows that runs notice what they
// are there to notice. Each mutant is a broken copy of the built package; it runs under the faults and seeds that are
// known to catch it. In the controls nothing is broken, and all their seeds have to be green. Exit 0 when everything is
// as it should be. It needs the package as it is built now. When all were run, the outcome is written to
// torture/results/mutants.json. When some were, `--out` puts them in the place of what the file tells of them.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { brokenFiles, makeBuild } from './mutants/build.mjs'
import { endRuns, tryToCatch } from './mutants/campaign.mjs'
import { controls, mutants } from './mutants/list.mjs'
import { headLine, lineOf, resultOf } from './mutants/result.mjs'

/** @typedef {import('./mutants/list.mjs').Mutant} Mutant */
/** @typedef {import('./mutants/result.mjs').Result} Result */

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    seed: { type: 'string', multiple: true },
    jobs: { type: 'string', default: '2' },
    out: { type: 'string' },
    keep: { type: 'boolean', default: false },
  },
})
const known = [...controls, ...mutants]
const chosen = known.filter(({ name }) => values.only === undefined || values.only.includes(name))
if (chosen.length === 0) {
  console.error(`no mutant is named so; there are: ${known.map(({ name }) => name).join('; ')}`)
  process.exit(2)
}
const jobs = Number(values.jobs)
if (!Number.isSafeInteger(jobs) || jobs < 1) {
  console.error(`--jobs ${values.jobs}: a whole number from 1`)
  process.exit(2)
}
const wholeList = values.only === undefined && values.seed === undefined
const out =
  values.out ?? (wholeList ? fileURLToPath(new URL('results/mutants.json', import.meta.url)) : undefined)
// None of them is run before all of them are known to apply.
for (const mutant of known) brokenFiles(mutant)

const startedAt = performance.now()
/** @type {Map<string, Result>} */
const results = new Map()
const waiting = [...chosen]
let isEnding = false
/** @type {Set<() => void>} */
const undo = new Set()
process.on('exit', () => {
  for (const remove of undo) remove()
})
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
  process.on(signal, () => {
    console.error(`ended by ${signal}`)
    isEnding = true
    waiting.length = 0
    void endRuns().then(() => process.exit(130))
  })
}

console.log(headLine)
await Promise.all(Array.from({ length: jobs }, work))

const ordered = chosen.flatMap(({ name }) => results.get(name) ?? [])
const right = ordered.filter(({ ok }) => ok).length
const seconds = secondsSince(startedAt)
console.log(`${right} of ${chosen.length} as they should be, in ${seconds} s`)
if (out !== undefined) write(resolve(out))
process.exitCode = right === chosen.length ? 0 : 1

async function work() {
  for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
    const result = await hunt(mutant)
    results.set(mutant.name, result)
    console.log(lineOf(result))
    if (result.first !== '') console.error(`  ${result.first}`)
  }
}

/** Seed after seed: a mutant until it is caught, a control while it is green. @param {Mutant} mutant @returns {Promise<Result>} */
async function hunt(mutant) {
  const isControl = controls.includes(mutant)
  const build = makeBuild(mutant)
  if (values.keep) console.error(`${mutant.name}: ${build.dir}`)
  undo.add(build.remove)
  /** @type {Result[]} */
  const tried = []
  for (const seed of values.seed ?? mutant.seeds) {
    const beganAt = performance.now()
    const found = await tryPatiently(build.dir, mutant, seed)
    const result = resultOf(mutant, { seed, found, isControl, seconds: secondsSince(beganAt) })
    tried.push(result)
    if (result.ok !== isControl || isEnding) break
  }
  const last = /** @type {Result} */ (tried.at(-1))
  if (!last.ok) console.error(`${mutant.name}: its histories are in ${build.dir}`)
  const isKept = values.keep || !last.ok
  if (isKept) undo.delete(build.remove)
  else build.remove()
  return { ...last, tried: tried.map(({ seed, kind }) => ({ seed, kind })) }
}

/** Once more where the machine was too busy to let a run come to its end. @param {string} dir @param {Mutant} mutant @param {string} seed */
async function tryPatiently(dir, mutant, seed) {
  const found = await tryToCatch(dir, mutant, seed)
  return found.kind === 'busy' ? await tryToCatch(dir, mutant, seed) : found
}

/** @param {string} file */
function write(file) {
  mkdirSync(dirname(file), { recursive: true })
  const told = all(wholeList || !existsSync(file) ? [] : JSON.parse(readFileSync(file, 'utf8')).mutants)
  const about = {
    at: new Date().toISOString(),
    seconds: wholeList ? seconds : Math.round(told.reduce((sum, each) => sum + each.seconds, 0)),
    right: told.filter(({ ok }) => ok).length,
    of: told.length,
  }
  writeFileSync(file, `${JSON.stringify({ ...about, mutants: told }, null, 1)}\n`)
  console.log(`written to ${file}`)
}

/** What was found now, and before of those that were not run. @param {Result[]} earlier @returns {Result[]} */
function all(earlier) {
  const before = new Map(earlier.map((result) => [result.name, result]))
  return known.flatMap(({ name }) => results.get(name) ?? before.get(name) ?? [])
}

/** @param {number} since */
function secondsSince(since) {
  return Math.round((performance.now() - since) / 100) / 10
}
