// @ts-check
// The files of a campaign: a line a seed while it goes on, and the result that is made of them.
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

/** @typedef {import('./seed.mjs').SeedRecord} SeedRecord */
/** What a campaign was started with: enough to go on with it. @typedef {{ first: number, seeds: number, seconds: number, atOnce: number, rate: number, fanOut: number, names: string[] }} Plan */
/**
 * `builds`: digest and commit of the package as it was built, one where the campaign was made in one go. `notCounted`: faults that
 * take away what was acknowledged; `leftOut`: those that this machine cannot make, each with the reason.
 * @typedef {Plan & {
 *   at: string, complete: boolean, version: string, builds: string[], machine: Record<string, any>,
 *   totals: import('./figures.mjs').Totals, faults: Record<string, import('./figures.mjs').FaultFigures>,
 *   notCounted: string[], leftOut: Record<string, string>, records: SeedRecord[] }} Result
 */

export const resultFile = fileURLToPath(new URL('../results/campaign.json', import.meta.url))

/** @param {string} out of the result */
export const seedsFileOf = (out) => out.replace(/(\.json)?$/, '.seeds.jsonl')

/** @param {string} file @param {Plan & { build: string }} plan */
export function beginSeeds(file, plan) {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, `${JSON.stringify({ plan })}\n`)
}

/** @param {string} file @param {SeedRecord} record */
export function keepSeed(file, record) {
  appendFileSync(file, `${JSON.stringify(record)}\n`)
}

/** Goes on with another build. @param {string} file @param {string} build */
export function keepBuild(file, build) {
  appendFileSync(file, `${JSON.stringify({ build })}\n`)
}

/**
 * The seeds so far, by seed: a later line of a seed takes the place of the earlier one.
 * @param {string} file @returns {{ plan: Plan, builds: string[], records: Map<string, SeedRecord> } | undefined}
 */
export function readSeeds(file) {
  if (!existsSync(file)) return undefined
  const [head, ...lines] = readFileSync(file, 'utf8').split('\n').flatMap(parsed)
  if (head?.plan === undefined) return undefined
  const { build, ...plan } = head.plan
  const builds = [build, ...lines.flatMap((line) => (line.build === undefined ? [] : [line.build]))]
  const records = lines.filter(({ seed }) => seed !== undefined)
  return {
    plan,
    builds: [...new Set(builds)],
    records: new Map(records.map((record) => [record.seed, record])),
  }
}

/** A line that an interruption cut says nothing. @param {string} line @returns {any[]} */
function parsed(line) {
  try {
    return [JSON.parse(line)]
  } catch {
    return []
  }
}

/** @param {string} file */
export function endSeeds(file) {
  rmSync(file, { force: true })
}

/** @param {string} file @param {Result} result */
export function writeResult(file, result) {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, textOf(result))
}

/** @param {string} file @returns {Result | undefined} */
export function readResult(file) {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined
}

/** A line for every fault and for every seed. @param {Result} result */
function textOf(result) {
  const members = Object.entries(result).map(
    ([name, value]) => `  ${JSON.stringify(name)}: ${memberOf(name, value)}`,
  )
  return `{\n${members.join(',\n')}\n}\n`
}

/** @param {string} name @param {unknown} value */
function memberOf(name, value) {
  if (name === 'records' && Array.isArray(value)) {
    return value.length === 0
      ? '[]'
      : `[\n${value.map((line) => `    ${JSON.stringify(line)}`).join(',\n')}\n  ]`
  }
  if (name !== 'faults' || typeof value !== 'object' || value === null) return JSON.stringify(value)
  const lines = Object.entries(value).map(
    ([fault, figures]) => `    ${JSON.stringify(fault)}: ${JSON.stringify(figures)}`,
  )
  return lines.length === 0 ? '{}' : `{\n${lines.join(',\n')}\n  }`
}
