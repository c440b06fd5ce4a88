// @ts-check
// Which faults each seed of a campaign gets. They are dealt like cards: every fault comes equally often, in another
// company each time, and a campaign of the same first seed deals the same.
import { createRandom } from '../random.mjs'

/** @typedef {import('../random.mjs').Random} Random */
/**
 * What a seed is run with. A fault that `faults` names several times is drawn as much more often.
 * @typedef {{ seed: string, faults: string[], probe: boolean }} Hand
 */

/** Faults a seed, beside the power cuts. */
export const handSize = 4
/** The server's power is cut in every second seed, and there in half of what is drawn. */
const powerCut = 'power-cut'
const powerEvery = 2
/** How many seeds' nodes have no probe, of 1: there an attempt may stay unknown. */
const withoutProbe = 0.25

/** @param {{ first: number, seeds: number, names: readonly string[] }} given @returns {Hand[]} */
export function dealHands({ first, seeds, names }) {
  const random = createRandom(`campaign ${first}`)
  const next = dealer(
    names.filter((name) => name !== powerCut),
    random,
  )
  const hasPower = names.includes(powerCut)
  return Array.from({ length: seeds }, (_, nth) => {
    const hand = next(handSize)
    const isPower = hasPower && nth % powerEvery === 0
    const cuts = isPower ? Array.from({ length: Math.max(1, hand.length) }, () => powerCut) : []
    return { seed: String(first + nth), faults: [...cuts, ...hand], probe: !random.chance(withoutProbe) }
  })
}

/** Deals from a shuffled pack, and from the next where it ends; no hand has a card twice. @param {readonly string[]} names @param {Random} random */
function dealer(names, random) {
  /** @type {string[]} */
  let pack = []
  return (/** @type {number} */ count) => {
    /** @type {string[]} */
    const hand = []
    while (hand.length < Math.min(count, names.length)) {
      const at = pack.findIndex((name) => !hand.includes(name))
      // The rest of the old pack is on top of the new one: it comes with the next hand.
      if (at < 0) pack = [...pack, ...shuffled(names, random)]
      else hand.push(...pack.splice(at, 1))
    }
    return hand
  }
}

/** @param {readonly string[]} names @param {Random} random */
function shuffled(names, random) {
  const left = [...names]
  return names.flatMap(() => left.splice(random.int(0, left.length - 1), 1))
}
