// @ts-check
// Mutants tried in the tests that are planned for them, one after the other in the same process: test/guards/runner.mjs.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** @typedef {import('./runner.mjs').Plan} Plan */
/** @typedef {import('./runner.mjs').Tried} Tried */
/** @typedef {import('./bites.mjs').Test} Test */

const LANES = 2
const runner = fileURLToPath(new URL('runner.mjs', import.meta.url))
let plans = 0

/**
 * Tries guards, by their places in the list, in these tests.
 * @param {import('./stage.mjs').Stage} stage @param {ReadonlyMap<number, readonly Test[]>} tests @returns {Promise<Tried[]>}
 */
export async function trySwitched(stage, tests) {
  /** @type {Plan} */
  const plan = {}
  /** @type {Map<string, number>} */
  const costs = new Map()
  for (const [guard, each] of tests) {
    for (const { file, name, ms } of each) {
      plan[file] = { ...plan[file], [name]: [...(plan[file]?.[name] ?? []), guard] }
      costs.set(file, (costs.get(file) ?? 3000) + ms)
    }
  }
  const planFile = join(stage.dir, `plan-${plans++}.json`)
  writeFileSync(planFile, JSON.stringify(plan))
  const env = { HOLDFAST_GUARDS_PLAN: planFile, HOLDFAST_GUARDS_STAGE: stage.dir }
  await Promise.all(
    lanesOf(costs).map(async (files, copy) => {
      if (files.length === 0) return
      stage.setLibrary(copy, new Map())
      const cases = files.map((file) => ({ copy, file, tests: [] }))
      await stage.run(cases, { workers: 1, setup: '', runner, env, limitMs: 3_600_000 })
    }),
  )
  const told = `${planFile}.told`
  if (!existsSync(told)) return []
  return readFileSync(told, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}

/** Files parted evenly by what they cost. @param {ReadonlyMap<string, number>} costs */
function lanesOf(costs) {
  const lanes = Array.from({ length: LANES }, () => ({ cost: 0, files: /** @type {string[]} */ ([]) }))
  for (const [file, cost] of [...costs].sort(([, one], [, other]) => other - one)) {
    const lane = lanes.reduce((least, each) => (each.cost < least.cost ? each : least))
    lane.cost += cost
    lane.files.push(file)
  }
  return lanes.map(({ files }) => files)
}
