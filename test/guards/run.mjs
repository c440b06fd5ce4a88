// @ts-check
// npm run guards -- [--only TEXT] [--again]: shows that of every guard of lua/ some test notices when it
// does not bite. What catches it is written to test/guards/caught.json; a guard is tried again when the function that it
// stands in has changed, or with --again. `--only` takes those whose name holds the text. Exit 1 while one is not caught.
import { readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { bitesIn } from './bites.mjs'
import { readCaught, writeCaught } from './caught.mjs'
import { exempt } from './exempt.mjs'
import { guardsOf, mutantOf } from './guards.mjs'
import { Stage } from './stage.mjs'
import { trySwitched } from './switched.mjs'

/** @typedef {import('./guards.mjs').Guard} Guard */
/** @typedef {import('./bites.mjs').Test} Test */
/** A guard that is not caught yet, and the tests that are left to try. @typedef {{ guard: Guard, attempts: { file: string, tests: string[] }[] }} Hunt */

const COPIES = 12
const TESTS_AT_ONCE = 4
const FILES_AT_MOST = 3
/** How many tests of each guard are tried in a turn. */
const TURNS = [
  [0, 4],
  [4, 16],
  [16, 48],
]
const own = fileURLToPath(new URL('../..', import.meta.url))
/** Where tests are looked for, the quickest to tell first. */
const PLACES = [/^test\/record\/functions-/, /^test\/(?:hub|sweeps)\//, /^test\/client\/effects\./]

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
/** What was caught in this run. @type {Map<string, import('./caught.mjs').Caught>} */
const found = new Map()
console.log(`${todo.length} of ${guards.length} guards to try`)

const stage = new Stage(COPIES)
process.on('exit', () => stage.remove())
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']))
  process.on(signal, () => process.exit(130))

// What caught it before is tried first: most changes of a function leave its other guards as they were.
await inTurns(
  new Map(
    todo.flatMap(({ name }) => [before(name)].flatMap((test) => (test ? [[placeIn(name), [test]]] : []))),
  ),
)
if (left().length > 0) {
  const tests = await bitesIn(stage, guards, candidates())
  const ordered = new Map(
    left().map((guard) => [placeIn(guard.name), orderedTests(guard, tests.get(placeIn(guard.name)) ?? [])]),
  )
  for (const [first, last] of TURNS) {
    await inTurns(new Map([...ordered].map(([place, each]) => [place, each.slice(first, last)])))
  }
  await hunt(left().map((guard) => ({ guard, attempts: attemptsOf(ordered.get(placeIn(guard.name)) ?? []) })))
}
for (const { name } of left()) console.error(`NOT CAUGHT ${name}`)
console.log(`${todo.length - left().length} of ${todo.length} caught`)
process.exitCode = left().length === 0 ? 0 : 1

/** The guards that are not caught yet. */
function left() {
  return todo.filter(({ name, digest }) => found.get(name)?.digest !== digest)
}

/** @param {string} name */
function placeIn(name) {
  return guards.findIndex((guard) => guard.name === name)
}

/** What caught a guard before. @param {string} name @returns {Test | undefined} */
function before(name) {
  const entry = caught.get(name)
  return entry && { file: entry.file, name: entry.test, ms: 0, guards: 0 }
}

/** Tries those that are left in tests of theirs, one mutant after the other in each. @param {Map<number, Test[]>} tests by the place of the guard */
async function inTurns(tests) {
  const open = new Map([...tests].filter(([place, each]) => each.length > 0 && isLeft(place)))
  if (open.size === 0) return
  const tried = await trySwitched(stage, open)
  for (const { guard: place, file, test, said, end } of tried) {
    const guard = guards[place]
    if (guard === undefined || end !== 'caught') continue
    if (said.includes('Error compiling function'))
      throw new Error(`the mutant of ${guard.name} does not load: ${said}`)
    note(guard, { file, test, digest: guard.digest })
  }
  console.log(`${found.size} of ${todo.length} caught, after ${tried.length} runs of a test`)
}

/** @param {number} place */
function isLeft(place) {
  return left().some((guard) => guard === guards[place])
}

/** @param {Guard} guard @param {import('./caught.mjs').Caught} entry */
function note(guard, entry) {
  found.set(guard.name, entry)
  caught.set(guard.name, entry)
  writeCaught(guards, caught)
}

/** Tries mutants each in a process of its own, until nothing is left to try of any. @param {Hunt[]} hunts */
async function hunt(hunts) {
  for (let open = hunts; open.length > 0; ) {
    open = open.filter(({ guard, attempts }) => attempts.length > 0 && left().includes(guard))
    for (let first = 0; first < open.length; first += COPIES) await tryOnce(open.slice(first, first + COPIES))
  }
}

/** One attempt of each. @param {Hunt[]} hunts */
async function tryOnce(hunts) {
  const cases = hunts.map(({ guard, attempts }, copy) => {
    const { file, tests } = /** @type {{ file: string, tests: string[] }} */ (attempts.shift())
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
    note(guard, { file: first.file, test: first.name, digest: guard.digest })
  }
  console.log(`${found.size} of ${todo.length} caught`)
}

/** Those first that are quick and in which few guards bite, from several files in turn. @param {Guard} guard @param {readonly Test[]} tests */
function orderedTests(guard, tests) {
  const subject = basename(guard.file, '.lua').split('_')[0] ?? ''
  /** @param {Test} test */
  const cost = ({ file, ms, guards: bitten }) =>
    ms + 20 * bitten + 500 * placeOf(file) - (file.includes(subject) ? 2000 : 0)
  /** @type {Map<string, Test[]>} */
  const files = new Map()
  for (const test of tests.toSorted((one, other) => cost(one) - cost(other))) {
    files.set(test.file, [...(files.get(test.file) ?? []), test])
  }
  const lists = [...files.values()].sort(([one], [other]) => (one && other ? cost(one) - cost(other) : 0))
  const longest = Math.max(0, ...lists.map(({ length }) => length))
  return Array.from({ length: longest }, (_, at) => lists.flatMap((list) => list[at] ?? [])).flat()
}

/** A few of each file, a file at a time. @param {readonly Test[]} tests */
function attemptsOf(tests) {
  /** @type {Map<string, string[]>} */
  const files = new Map()
  for (const { file, name } of tests) files.set(file, [...(files.get(file) ?? []), name])
  return [...files]
    .slice(0, FILES_AT_MOST)
    .map(([file, names]) => ({ file, tests: names.slice(0, TESTS_AT_ONCE) }))
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
