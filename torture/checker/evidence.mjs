// @ts-check
// What a violation shows: the lines, shortened to what they say.

/** @typedef {import('./words.mjs').Line} Line */
/** @typedef {import('./words.mjs').Entry} Entry */
/** @typedef {import('./words.mjs').FinalDelivery} FinalDelivery */

/** @param {Line | undefined} line */
export function told(line) {
  if (line === undefined) return 'nothing: no line of any history'
  return `${line.file}:${line.number} ${JSON.stringify(line.data)}`
}

/** An entry of the log, with what it did to one delivery. @param {Entry} entry @param {string} [delivery] */
export function logged(entry, delivery) {
  const about = delivery === undefined ? [] : entry.moves.filter(({ id }) => deliveryOf(id) === delivery)
  const moves = about.map(({ id, from, to }) => `${id} ${from}>${to}`)
  const more = [...entry.more].map(([name, value]) => `${name}=${value.slice(0, 120)}`)
  return ['log', entry.id, entry.verb, 'by', entry.actor, ...moves, ...more].join(' ')
}

/** @param {FinalDelivery} delivery */
export function recorded({ id, state, epoch, host, attempts, heldReason, reason }) {
  const tries = attempts.map(({ number, status, node }) => `/${number} ${status} on ${node}`)
  const why = reason ?? heldReason
  return ['record', id, state, ...(why ? [`(${why})`] : []), `epoch ${epoch}`, `host ${host}`, ...tries].join(
    ' ',
  )
}

/** @param {string} id of a delivery or of one of its attempts */
export function deliveryOf(id) {
  const slash = id.indexOf('/')
  return slash < 0 ? id : id.slice(0, slash)
}

/** @template Item @param {Iterable<Item>} items @param {(item: Item) => string} keyOf @returns {Map<string, Item[]>} */
export function grouped(items, keyOf) {
  /** @type {Map<string, Item[]>} */
  const groups = new Map()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  return groups
}
