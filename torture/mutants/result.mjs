// @ts-check
// What is told of a mutant: as a line, and as an object of a file.

/** @typedef {import('./list.mjs').Mutant} Mutant */
/** @typedef {import('./campaign.mjs').Catch} Catch */

/**
 * `ok`: a mutant that was caught, a control that was green. `fault`: the one that led to the first violation; `under`: all
 * kinds that were made. `seconds`: of the run with this seed, from its start to the verdict.
 * @typedef {object} Result
 * @property {string} name
 * @property {string} broken
 * @property {boolean} isControl
 * @property {boolean} ok
 * @property {Catch['kind']} kind
 * @property {Catch['by']} by
 * @property {string[]} noticed
 * @property {string} fault
 * @property {string[]} under
 * @property {number} faults
 * @property {string} seed
 * @property {number} seconds
 * @property {number} acknowledged
 * @property {number} lost
 * @property {number} twice
 * @property {number} unknown
 * @property {string} first the first violation, in words
 * @property {{ seed: string, kind: Catch['kind'] }[]} tried every seed
 */

/** @param {Mutant} mutant @param {{ seed: string, found: Catch, isControl: boolean, seconds: number }} run @returns {Result} */
export function resultOf({ name, broken, faults: under }, { seed, found, isControl, seconds }) {
  const { kind, by, noticed, fault, first, counts, faults } = found
  const ok = kind === (isControl ? 'green' : 'caught')
  return {
    name,
    broken,
    isControl,
    ok,
    kind,
    by,
    noticed,
    fault,
    under,
    faults,
    seed,
    seconds,
    ...counts,
    first,
    tried: [],
  }
}

export const headLine = ['mutant', 'caught', 'by', 'fault', 'seed', 'seconds', 'counts'].join(' | ')

/** @param {Result} result */
export function lineOf({ name, isControl, ok, kind, by, noticed, fault, under, seed, seconds, ...counts }) {
  const said = isControl ? (ok ? 'green' : 'NOT GREEN') : ok ? 'yes' : `NO (${kind})`
  const how = [...by.map(({ invariant, ids }) => `${invariant} (${ids})`), ...noticed].join(', ')
  const { acknowledged, lost, twice, unknown, tried } = counts
  const figures = `acknowledged ${acknowledged}, lost ${lost}, executed twice ${twice}, unknown ${unknown}`
  const seeds = isControl ? tried.map((each) => each.seed).join(' ') : seed
  return [name, said, how || '-', fault || under.join(' '), seeds, `${seconds}`, figures].join(' | ')
}
