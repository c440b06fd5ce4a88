// @ts-check
// npm run torture -- [--seed S] [--seconds N] [--faults A[,B]] [--rate N] [--fan-out N] [--least N] [--no-probe]
//   [--cluster] [--dir FOLDER] [--keep] [--json]
// Real processes work under load while faults hit them; then everything heals, and a checker compares what every one
// of them saw with what the record holds. The same seed draws the same faults; one that is named several times is drawn
// as much more often. `--rate`: messages a second that each producer tries; `--fan-out`: to how many recipients at most.
// `--cluster`: the record is on a Redis Cluster, whose primaries die and whose slots move. `--least`: accepts a second below which a run says nothing (2; fewer where the machine was slow to start it all). Exit
// 0 only where the checker has nothing to say. What is under way goes to stderr.
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { check, summaryOf, textOf } from './built-checker.mjs'
import { runPlan } from './faulting.mjs'
import { settle, writeFinal } from './final.mjs'
import { createRandom } from './random.mjs'
import { isUsual, loadFaults, planFaults } from './schedule.mjs'
import { within } from './waiting.mjs'
import { names, setStage } from './world.mjs'

/** All but the load: nothing goes on for longer, where the machine is quick enough. */
const restMs = 88_000
const healWithinMs = 60_000
const settleWithinMs = 60_000
const writeWithinMs = 20_000
const startWithinMs = 150_000
/** An idle machine of two cores starts everything in so long. One that takes longer has to accept as much less, and has as much longer for the rest. */
const quickStartMs = 5000
const slowestCounted = 4

const { values } = parseArgs({
  allowNegative: true,
  options: {
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1e9)) },
    seconds: { type: 'string', default: '30' },
    faults: { type: 'string', multiple: true },
    rate: { type: 'string', default: '100' },
    'fan-out': { type: 'string', default: '0' },
    least: { type: 'string', default: '2' },
    probe: { type: 'boolean', default: true },
    dir: { type: 'string' },
    keep: { type: 'boolean', default: false },
    cluster: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
})
const { seed, probe, json } = values
const seconds = wholeNumber('seconds', values.seconds)
const rate = wholeNumber('rate', values.rate)
const fanOut = wholeNumber('fan-out', values['fan-out'], 0)
const leastPerSecond = Number(values.least)
if (!(leastPerSecond >= 0)) refuse(`--least ${values.least}: a number from 0`)
const faults = await chooseFaults(values.faults?.flatMap((text) => text.split(',')).filter(Boolean))
const dir = values.dir === undefined ? mkdtempSync(join(tmpdir(), 'holdfast-torture-')) : resolve(values.dir)
const historyDir = join(dir, 'history')
if (existsSync(historyDir)) refuse(`--dir ${values.dir}: there is a history already`)
mkdirSync(historyDir, { recursive: true })

const startedAt = performance.now()
let doing = 'starting'
/** @type {import('./world.mjs').Stage | undefined} */
let stage
/** What faults took: mounts, listeners. @type {(() => Promise<void> | void)[]} */
const undo = []
let isEnding = false

process.on('exit', () => stage?.kill())
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
  process.on(signal, () => void giveUp(`ended by ${signal}`, 130))
}
// Who read it is gone: to say so once more would be the next such error.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', () => {
    if (!isEnding) void giveUp('nobody reads what is said', 1)
  })
}
process.on('uncaughtException', (error) => void giveUp(error.stack ?? String(error), 1))
/** How much slower this machine is than an idle one. */
let slowness = 1
let hangs = setTimeout(hang, startWithinMs)

try {
  const code = await campaign()
  // Behind all that was said: a verdict of many words is longer than a pipe takes at once.
  process.stdout.write('', () => process.exit(code))
} catch (error) {
  await giveUp(error instanceof Error ? (error.stack ?? error.message) : String(error), 1)
}

/** @returns {Promise<number>} the exit code */
async function campaign() {
  const random = createRandom(seed)
  const plan = planFaults({ seed, seconds, faults, targets: names })
  const schedule = join(dir, 'schedule.json')
  writeFileSync(
    schedule,
    `${JSON.stringify({ seed, seconds, faults: faults.map(({ name }) => name), plan }, null, 1)}\n`,
  )
  tell(`seed ${seed}, ${plan.length} faults in ${seconds} s, schedule in ${schedule}`)

  stage = await setStage({ dir, seed, random, probe, rate, fanOut, onCluster: values.cluster })
  const { world } = stage
  const { history } = world
  history.write({ kind: 'run', seed, seconds, probe, faults: faults.map(({ name }) => name), rate, fanOut })
  for (const fault of new Set(faults)) {
    const end = await fault.prepare?.(world)
    if (end !== undefined) undo.push(end)
  }
  const startingAt = performance.now()
  await stage.start()
  slowness = Math.min(slowestCounted, Math.max(1, (performance.now() - startingAt) / quickStartMs))
  clearTimeout(hangs)
  hangs = setTimeout(hang, seconds * 1000 + restMs * slowness)

  doing = 'under load'
  history.write({ kind: 'phase', phase: 'load', probe, leastPerSecond: leastPerSecond / slowness })
  const loadedAt = performance.now()
  const made = await runPlan(world, plan, faults)
  await sleep(Math.max(0, seconds * 1000 - (performance.now() - loadedAt)))

  doing = 'healing'
  tell(doing)
  history.write({ kind: 'phase', phase: 'heal' })
  const isHealed = await healed(made, stage)

  doing = 'settling'
  tell(doing)
  history.write({ kind: 'phase', phase: 'final' })
  const leftMs = seconds * 1000 + (restMs - writeWithinMs) * slowness - (performance.now() - loadedAt)
  const rest = await settle(world, {
    none: probe && !faults.some(({ orphans }) => orphans),
    withinMs: Math.max(1000, Math.min(settleWithinMs * slowness, leftMs)),
  })
  history.write({ kind: 'settled', ...rest })
  tell(`${rest.settled ? 'settled' : 'not settled'}: ${JSON.stringify(rest)}`)
  doing = 'writing the final record'
  await within(writeFinal(world, historyDir, { seed, probe, rest }), writeWithinMs * slowness, doing)
  const { unexpectedEnds: ends, misbehaviours } = world
  await endAll()

  doing = 'checking'
  const verdict = check(historyDir)
  return report(verdict, {
    plan: schedule,
    counts: made.counts(),
    settled: rest,
    isHealed,
    ends,
    misbehaviours,
  })
}

/**
 * What does not heal is told, and judged by what came of it.
 * @param {{ ended: () => Promise<void> }} made @param {import('./world.mjs').Stage} healing
 */
async function healed(made, healing) {
  try {
    await within(made.ended(), healWithinMs * slowness, 'ending the faults')
    await within(healing.heal(), healWithinMs * slowness, 'healing')
    return true
  } catch (error) {
    healing.world.history.write({ kind: 'late', what: String(error) })
    tell(String(error))
    return false
  }
}

/**
 * @param {import('../src/testing/checker/index.ts').Verdict} verdict
 * @param {{ plan: string, counts: Record<string, number>, settled: { settled: boolean }, isHealed: boolean, ends: import('./world.mjs').World['unexpectedEnds'], misbehaviours: string[] }} run
 */
function report(verdict, { plan, counts, settled, isHealed, ends, misbehaviours }) {
  const isGreen = verdict.ok && ends.length === 0 && misbehaviours.length === 0 && isHealed && settled.settled
  const isKept = values.keep || values.dir !== undefined || !isGreen
  if (!isKept) rmSync(dir, { recursive: true, force: true })
  const unexpected = [
    ...misbehaviours,
    ...ends.map(
      ({ target: { role, name, pid }, code, signal }) =>
        `${role} ${name} (pid ${pid}) ended by itself: ${signal ?? `exit ${code}`}`,
    ),
  ]
  if (json) {
    const tookMs = Math.round(performance.now() - startedAt)
    const folder = isKept ? { dir, schedule: plan } : {}
    const run = { seed, seconds, probe, faults: counts, isHealed, settled, unexpected, tookMs, ...folder }
    console.log(JSON.stringify({ ...run, ...verdict, ok: isGreen }))
    return isGreen ? 0 : 1
  }
  const made = Object.entries(counts).map(([name, count]) => `${name} ${count}`)
  console.log(`seed ${seed}; faults: ${made.join(', ') || 'none'}`)
  if (isKept) console.log(`history: ${historyDir}`)
  for (const line of unexpected) console.log(line)
  if (!isHealed) console.log('not everything came back')
  if (!settled.settled) console.log(`not everything was settled: ${JSON.stringify(settled)}`)
  for (const line of textOf(verdict)) console.log(line)
  console.log(summaryOf(verdict))
  return isGreen ? 0 : 1
}

/** @param {string[] | undefined} wanted */
async function chooseFaults(wanted) {
  const known = await loadFaults()
  const all = [...known.values()]
  const usual = all.filter((fault) => isUsual(fault, values.cluster))
  const chosen = (wanted ?? usual.map(({ name }) => name)).map(
    (name) => known.get(name) ?? refuse(`--faults ${name}: there is ${[...known.keys()].join(', ')}`),
  )
  const misplaced = chosen.find(({ cluster }) => cluster === true && !values.cluster)
  if (misplaced !== undefined) refuse(`--faults ${misplaced.name}: it is made only with --cluster`)
  return chosen.filter(({ name, needs }) => {
    const why = needs?.()
    if (why !== undefined) tell(`${name} is left out: ${why}`)
    return why === undefined
  })
}

async function endAll() {
  isEnding = true
  await within(stage?.end() ?? Promise.resolve(), 20_000, 'ending all processes').catch((error) =>
    tell(String(error)),
  )
  stage?.kill()
  for (const end of undo.splice(0).reverse())
    await within(Promise.resolve(end()), 10_000, 'putting back').catch((error) => tell(String(error)))
}

function hang() {
  void giveUp(`it hangs while ${doing}`, 1)
}

/** Ends everything and says why. @param {string} why @param {number} code */
async function giveUp(why, code) {
  console.error(`torture: ${why}`)
  if (isEnding && code !== 130) return
  console.error(`torture: seed ${seed}, folder ${dir}`)
  await endAll()
  process.exit(code)
}

/** @param {string} name @param {string} value @param {number} [from] */
function wholeNumber(name, value, from = 1) {
  const number = Number(value)
  return Number.isSafeInteger(number) && number >= from
    ? number
    : refuse(`--${name} ${value}: a whole number from ${from}`)
}

/** @param {string} message @returns {never} */
function refuse(message) {
  console.error(`torture: ${message}`)
  process.exit(2)
}

/** @param {string} line */
function tell(line) {
  console.error(`torture: ${line}`)
}
