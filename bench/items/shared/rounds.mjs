// @ts-check
import { spreadOf } from '../../figures.mjs'

/**
 * A figure that a ratio is held against: `most` or `least` is the bound.
 * @typedef {{ name: string, value: number, most?: number, least?: number, met: boolean }} Target
 */

/**
 * One round of each in turn, so many times; each round begins with another one.
 * @template {string} Name @template Result
 * @param {readonly Name[]} names @param {number} rounds
 * @param {(name: Name, round: number) => Promise<Result>} run
 * @returns {Promise<Record<Name, Result[]>>}
 */
export async function takeTurns(names, rounds, run) {
  const measured = /** @type {Record<Name, Result[]>} */ (
    Object.fromEntries(names.map((name) => [name, /** @type {Result[]} */ ([])]))
  )
  for (let round = 0; round < rounds; round += 1) {
    const first = round % names.length
    for (const name of [...names.slice(first), ...names.slice(0, first)]) {
      measured[name].push(await run(name, round))
    }
  }
  return measured
}

/**
 * One over the other, each within its round: the median over the rounds.
 * @param {readonly number[]} over @param {readonly number[]} under
 */
export function ratioOf(over, under) {
  return spreadOf(
    over.map((value, round) => value / (under[round] ?? Number.NaN)),
    3,
  ).median
}

/** @param {string} name @param {number} value @param {number} most @returns {Target} */
export const atMost = (name, value, most) => ({ name, value, most, met: value <= most })

/** @param {string} name @param {number} value @param {number} least @returns {Target} */
export const atLeast = (name, value, least) => ({ name, value, least, met: value >= least })

/** @param {readonly Target[]} targets */
export function showTargets(targets) {
  const lines = targets.map(({ name, value, most, least, met }) => {
    const bound = most === undefined ? `at least ${least}` : `at most ${most}`
    return `${name}: ${value} (${bound}: ${met ? 'met' : 'missed'})`
  })
  return lines.join('\n')
}
