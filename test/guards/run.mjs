// @ts-check
// npm run guards -- [--only TEXT] [--again] [--files FILE...]: shows that of every guard of lua/ some test notices when it
// does not bite. What catches it is written to test/guards/caught.json; a guard is tried again when the function that it
// stands in has changed, or with --again. `--only` takes those whose name holds the text. Exit 1 while one is not caught.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { bitesIn } from './bites.mjs'
import { readCaught, writeCaught } from './caught.mjs'
import { exempt } from './exempt.mjs'
import { guardsOf, mutantOf } from './guards.mjs'
import { Stage } from './stage.mjs'

/** @typedef {import('./guards.mjs').Guard} Guard */
/** @typedef {import('./bites.mjs').Test} Test */
/** A guard that is not caught yet, and the tests that are left to try. @typedef {{ guard: Guard, attempts: { file: string, tests: string[] }[], slow?: { file: string, test: string } }} Hunt */

const COPIES = 12
const TESTS_AT_ONCE = 4
const own = fileURLToPath(new URL('../..', import.meta.url))
/** Where tests are looked for, the quickest to tell first. */
const PLACES = [
  /^test\/record\/functions-/,
  /^test\/record\/(?:durability|fixture|wait-replicas)\./,
  /^test\/(?:hub|sweeps)\//,
  /^test\/client\/effects\./,
  /^test\/faults\/(?:takeover|clocks|idempotency|fence-races|poison|fan-out|values|rewound|section-4|incarnations)/,
]

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    again: { type: 'boolean', default: false },
  },
})

const guards = guardsOf()
const caught = readCaught()
const known = new Set(guards.map(({ name }) => name))
for (const name of caught.keys()) if (!known.has(name)) caught.delete(name)
const todo = guards.filter((guard) => {
  if (exempt.has(guard.name)) return false
  if (values.only !== undefined) return values.only.some((text) => guard.name.includes(text))
  return values.again || caught.get(guard.name)?.digest !== guard.digest
})
console.log(`${todo.length} of ${guards.length} guards to try`)

const stage = new Stage(COPIES)
process.on('exit', () => stage.remove())
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']))
  process.on(signal, () => process.exit(130))

// What caught it before is tried first: most changes of a function leave its other guards as they were.
let left = await hunt(
  todo.map((guard) => {
    const before = caught.get(guard.name)
    return { guard, attempts: before === undefined ? [] : [{ file: before.file, tests: [before.test] }] }
  }),
)
if (left.length > 0) {
  const tests = await bitesIn(stage, guards, candidates())
  stage.setLibrary(0, new Map())
  left = await hunt(
    left.map(({ guard }) => ({ guard, attempts: attemptsOf(tests.get(guards.indexOf(guard)) ?? []) })),
  )
}
for (const { guard } of left) console.error(`NOT CAUGHT ${guard.name}`)
console.log(`${todo.length - left.length} of ${todo.length} caught`)
process.exitCode = left.length === 0 ? 0 : 1

/** Tries mutants until nothing is left to try of any; answers those that are not caught. @param {Hunt[]} hunts @returns {Promise<Hunt[]>} */
async function hunt(hunts) {
  let open = hunts
  while (open.some(({ attempts }) => attempts.length > 0)) {
    const waiting = open.filter(({ attempts }) => attempts.length > 0)
    for (let first = 0; first < waiting.length; first += COPIES) {
      await tryOnce(waiting.slice(first, first + COPIES))
      writeCaught(guards, caught)
    }
    open = open.filter(({ guard }) => caught.get(guard.name)?.digest !== guard.digest)
  }
  return open
}

/** One attempt of each. @param {Hunt[]} hunts */
async function tryOnce(hunts) {
  const cases = hunts.map(({ guard, attempts }, copy) => {
    const { file, tests } = /** @type {{ file: string, tests: string[] }} */ (attempts.shift())
    caught.delete(guard.name)
    stage.setLibrary(copy, new Map([[guard.file, mutantOf(guard)]]))
    return { copy, file, tests }
  })
  const ended = await stage.run(cases)
  for (const [copy, { guard }] of hunts.entries()) {
    const asked = cases[copy]
    const failed = ended.filter(
      (each) => each.copy === copy && each.status === 'failed' && asked?.tests.includes(each.name),
    )
    const loads = failed.find(({ said }) => said.includes('Error compiling function'))
    if (loads !== undefined) throw new Error(`the mutant of ${guard.name} does not load: ${loads.said}`)
    // A test that ran out of time may have met a busy machine.
    const [first] = failed
      .filter(({ said }) => !/timed out in \d+ms/.test(said))
      .sort((one, other) => one.ms - other.ms)
    if (first === undefined) {
      console.log(`passes: ${guard.name}: ${asked?.file}${failed.length > 0 ? ' (timed out)' : ''}`)
      continue
    }
    caught.set(guard.name, { file: first.file, test: first.name, digest: guard.digest })
  }
  console.log(`${caught.size} of ${guards.length} caught`)
}

/** Those in which few guards bite first, a file at a time. @param {readonly Test[]} tests */
function attemptsOf(tests) {
  /** @type {Map<string, Test[]>} */
  const files = new Map()
  for (const test of tests) files.set(test.file, [...(files.get(test.file) ?? []), test])
  const ordered = [...files].sort(
    ([one, few], [other, more]) => placeOf(one) - placeOf(other) || more.length - few.length,
  )
  const attempts = ordered.map(([file, here]) => {
    const names = here.sort((one, other) => cost(one) - cost(other)).map(({ name }) => name)
    const slices = []
    for (let first = 0; first < names.length; first += TESTS_AT_ONCE)
      slices.push({ file, tests: names.slice(first, first + TESTS_AT_ONCE) })
    return slices
  })
  // The best of each file, then what is left.
  return [...attempts.flatMap(([first]) => first ?? []), ...attempts.flatMap(([, ...rest]) => rest)]
}

/** @param {Test} test */
function cost({ ms, guards: bitten }) {
  return ms + 20 * bitten
}

/** @param {string} file */
function placeOf(file) {
  return PLACES.findIndex((place) => place.test(file))
}

function candidates() {
  return readdirSync(join(own, 'test'), { recursive: true, encoding: 'utf8' })
    .map((name) => `test/${name}`)
    .filter((name) => name.endsWith('.test.ts') && placeOf(name) >= 0)
    .sort()
}
