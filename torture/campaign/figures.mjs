// @ts-check
// What the seeds of a campaign come to, over all of them and by fault.

/** @typedef {import('./seed.mjs').SeedRecord} SeedRecord */
/** @typedef {{ messages: number, deliveries: number, lost: number, twice: number, unknown: number, explained: number }} Sums */
/** @typedef {Sums & { seeds: number, green: number, red: number, inconclusive: number, repeated: number, faults: number, powerCuts: number, mirrorPowerCuts: number, minutes: number }} Totals */
/** Of a fault: the runs that it was part of, how often it was made in them, and what these runs came to. @typedef {Sums & { runs: number, struck: number }} FaultFigures */

const summed = /** @type {const} */ (['messages', 'deliveries', 'lost', 'twice', 'unknown', 'explained'])

/** @param {readonly SeedRecord[]} records @returns {Totals} */
export function totalsOf(records) {
  const count = (/** @type {(record: SeedRecord) => boolean} */ is) => records.filter(is).length
  const struck = (/** @type {string} */ name) => sum(records, (record) => record.struck[name] ?? 0)
  return {
    seeds: records.length,
    green: count(({ kind }) => kind === 'green'),
    red: count(({ kind }) => kind === 'red'),
    inconclusive: count(({ kind }) => kind === 'inconclusive'),
    repeated: count(({ repeated }) => repeated !== undefined),
    ...sumsOf(records),
    faults: sum(records, (record) => sum(Object.values(record.struck), (times) => times)),
    powerCuts: struck('power-cut'),
    mirrorPowerCuts: struck('mirror-power-cut'),
    minutes: Math.round(sum(records, ({ tookMs }) => tookMs) / 60_000),
  }
}

/** @param {readonly SeedRecord[]} records @param {readonly string[]} names @returns {Record<string, FaultFigures>} */
export function figuresByFault(records, names) {
  return Object.fromEntries(
    names.map((name) => {
      const own = records.filter(({ faults }) => faults.includes(name))
      return [name, { runs: own.length, struck: sum(own, ({ struck }) => struck[name] ?? 0), ...sumsOf(own) }]
    }),
  )
}

/** @param {readonly SeedRecord[]} records @returns {Sums} */
function sumsOf(records) {
  return /** @type {Sums} */ (
    Object.fromEntries(summed.map((name) => [name, sum(records, (record) => record[name])]))
  )
}

/** @template Item @param {readonly Item[]} items @param {(item: Item) => number} of */
function sum(items, of) {
  return items.reduce((all, item) => all + of(item), 0)
}
