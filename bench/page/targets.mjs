// @ts-check
// Targets of an item, in one shape.
import { numberOf } from './words.mjs'

/** @typedef {{ name: string, value: number, most?: number, least?: number }} Target */
/**
 * Either a list that carries the figures, or what ratios of the item should be at least.
 * @typedef {readonly Target[] | Readonly<Record<string, number>>} Targets
 */
/** @typedef {{ name: string, what: string, value: number, bound: string, met: boolean }} Judged */

/** A target of a ratio that was not measured is left out. @param {import('./section.mjs').Figures} item @returns {Judged[]} */
export function targetsOf({ targets = [], ratios = {}, subject }) {
  const list = Array.isArray(targets)
    ? targets
    : Object.entries(targets).flatMap(([name, least]) =>
        ratios[name] === undefined ? [] : [{ name, value: ratios[name], least }],
      )
  return list.map((/** @type {Target} */ { name, value, most, least }) => ({
    name,
    what: ratioName(name, ratios, subject),
    value,
    bound: most === undefined ? `at least ${numberOf(least ?? 0)}` : `at most ${numberOf(most)}`,
    met: most === undefined ? value >= (least ?? 0) : value <= most,
  }))
}

/** @param {string} name @param {Readonly<Record<string, number>>} ratios @param {string | undefined} subject */
export function ratioName(name, ratios, subject) {
  if (ratios[name] === undefined) return name
  return subject === undefined ? `\`${name}\`` : `\`${subject}\` / \`${name}\``
}
