// @ts-check
// Chance that a seed repeats: sfc32 over a hash of the seed's text.

/**
 * @typedef {object} Random
 * @property {() => number} next from 0 up to 1
 * @property {(least: number, most: number) => number} int a whole number, both ends included
 * @property {(chance: number) => boolean} chance true so often, of 1
 * @property {<Item>(items: readonly Item[]) => Item} pick
 * @property {<Item>(items: readonly Item[], weight: (item: Item) => number) => Item} weighted
 * @property {(mean: number) => number} exponential time between two events that happen independently
 * @property {(name: string) => Random} fork another of its own; how often this one was asked changes nothing in it
 */

/** @param {string} seed @returns {Random} */
export function createRandom(seed) {
  const next = sfc32(hashOf(seed))

  /** @template Item @param {readonly Item[]} items @param {(item: Item) => number} weight @returns {Item} */
  function weighted(items, weight) {
    const sum = items.reduce((all, item) => all + weight(item), 0)
    let left = next() * sum
    for (const item of items) {
      left -= weight(item)
      if (left < 0) return item
    }
    return last(items)
  }

  return {
    next,
    int: (least, most) => least + Math.floor(next() * (most - least + 1)),
    chance: (chance) => next() < chance,
    pick: (items) => items[Math.floor(next() * items.length)] ?? last(items),
    weighted,
    exponential: (mean) => -mean * Math.log(1 - next()),
    fork: (name) => createRandom(`${seed} | ${name}`),
  }
}

/** @template Item @param {readonly Item[]} items @returns {Item} */
function last(items) {
  const item = items.at(-1)
  if (item === undefined) throw new Error('nothing to choose from')
  return item
}

/** Four words of 32 bits (cyrb128). @param {string} text @returns {[number, number, number, number]} */
function hashOf(text) {
  let [h1, h2, h3, h4] = [1779033703, 3144134277, 1013904242, 2773480762]
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    h1 = h2 ^ Math.imul(h1 ^ code, 597399067)
    h2 = h3 ^ Math.imul(h2 ^ code, 2869860233)
    h3 = h4 ^ Math.imul(h3 ^ code, 951274213)
    h4 = h1 ^ Math.imul(h4 ^ code, 2716044179)
  }
  h1 = Math.imul(h3 ^ (h1 >>> 18), 597399067)
  h2 = Math.imul(h4 ^ (h2 >>> 22), 2869860233)
  h3 = Math.imul(h1 ^ (h3 >>> 17), 951274213)
  h4 = Math.imul(h2 ^ (h4 >>> 19), 2716044179)
  h1 ^= h2 ^ h3 ^ h4
  return [h1 >>> 0, (h2 ^ h1) >>> 0, (h3 ^ h1) >>> 0, (h4 ^ h1) >>> 0]
}

/** @param {[number, number, number, number]} words */
function sfc32([a, b, c, d]) {
  const next = () => {
    const sum = (((a + b) | 0) + d) | 0
    d = (d + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (c << 21) | (c >>> 11)
    c = (c + sum) | 0
    return (sum >>> 0) / 4294967296
  }
  for (let warming = 0; warming < 12; warming += 1) next()
  return next
}
