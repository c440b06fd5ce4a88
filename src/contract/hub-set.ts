import { createHash } from 'node:crypto'
import { HoldfastError, isHoldfastError } from './errors.js'
import { isHubName, nameForm } from './ids.js'

/** Hubs of one set. */
const mostHubs = 64

/**
 * Reads the names of a set: `hf-0..hf-7` for a range of the numbers they end in, names between commas, or both.
 * The order is that of the text; it decides nothing but the order of lists.
 * @throws INVALID_ARGUMENT for no name, a bad one, one twice, a range that is none, or more than 64
 */
export function hubNames(text: string): string[] {
  return checkedHubs(text.split(',').flatMap((part) => namesOf(part.trim(), text)))
}

/** The names of a set that was given as a list, checked. @throws INVALID_ARGUMENT */
export function checkedHubs(names: readonly string[]): string[] {
  if (names.length === 0) throw bad('a set of hubs has no name', names)
  for (const [at, name] of names.entries()) {
    if (!isHubName(name)) throw bad(`hub ${JSON.stringify(name)} ${nameForm}`, name)
    if (names.indexOf(name) !== at) throw bad(`hub ${name} is named twice`, name)
  }
  if (names.length > mostHubs) throw bad(`${names.length} hubs are more than ${mostHubs}`, names.length)
  return [...names]
}

/** What a part between commas names. @throws INVALID_ARGUMENT */
function namesOf(part: string, text: string): string[] {
  if (!part.includes('..')) {
    if (part === '') throw bad(`a name is empty in ${JSON.stringify(text)}`, text)
    return [part]
  }
  const ends = /^(.*?)(\d+)\.\.(.*?)(\d+)$/.exec(part)
  const [, prefix = '', first = '', otherPrefix = '', last = ''] = ends ?? []
  if (ends === null || prefix !== otherPrefix) {
    throw bad(`${JSON.stringify(part)} is no range: both ends are one prefix and a number`, part)
  }
  const [from, to] = [Number(first), Number(last)]
  if (!Number.isSafeInteger(to) || from > to)
    throw bad(`the range ${JSON.stringify(part)} runs backwards`, part)
  if (to - from >= mostHubs) throw bad(`the range ${JSON.stringify(part)} is over ${mostHubs} hubs`, part)
  // hf-00..hf-15: as wide as it is written.
  const width = first.startsWith('0') ? first.length : 0
  return Array.from(
    { length: to - from + 1 },
    (_, at) => `${prefix}${String(from + at).padStart(width, '0')}`,
  )
}

function bad(detail: string, current: unknown): HoldfastError {
  return new HoldfastError('INVALID_ARGUMENT', detail, {
    current,
    next: `name 1 to ${mostHubs} hubs, each once: hf-0..hf-7, or hf-a,hf-b`,
  })
}

/**
 * The hub of a set that a conversation lives on: the one whose name weighs most with it (rendezvous hashing). It is
 * the same for everyone who names the same hubs, in whatever order; a hub that is added takes its share from each of
 * the others, and moves nothing else.
 */
export function hubOf(conversation: string, hubs: readonly string[]): string {
  const [only, second] = hubs
  if (only === undefined) throw bad('a set of hubs has no name', hubs)
  if (second === undefined) return only
  let [found, most] = [only, weight(only, conversation)]
  for (const hub of hubs.slice(1)) {
    const other = weight(hub, conversation)
    if (other > most) [found, most] = [hub, other]
  }
  return found
}

/** Neither a hub's name nor an id holds a line feed: no two pairs have the same text. */
function weight(hub: string, conversation: string): bigint {
  return createHash('sha256').update(`${hub}\n${conversation}`).digest().readBigUInt64BE(0)
}

/** An id of one hub as a set of several says it: `<hub>:<id>`. No hub's name holds a colon. */
export function qualifiedId(hub: string, id: string): string {
  return `${hub}:${id}`
}

/** An id with the hub it belongs to. */
export interface HubId {
  readonly hub: string
  readonly id: string
}

/**
 * The hub and its own id of an id of a set. In a set of one, ids are as they are on the hub.
 * @throws INVALID_ARGUMENT for an id that names no hub of the set
 */
export function partsOfId(id: string, hubs: readonly string[]): HubId {
  const [only, second] = hubs
  if (only !== undefined && second === undefined) return { hub: only, id }
  const colon = id.indexOf(':')
  const hub = id.slice(0, Math.max(0, colon))
  if (hubs.includes(hub) && colon + 1 < id.length) return { hub, id: id.slice(colon + 1) }
  throw new HoldfastError('INVALID_ARGUMENT', `${JSON.stringify(id)} names no hub of the set`, {
    current: id,
    next: `in a set of several hubs an id begins with the name of its hub, such as ${only ?? 'hf-0'}:${id.slice(0, 80)}; the set is ${hubs.join(', ')}`,
  })
}

/** An error of what is done with one hub says which one it was. */
export async function naming<Value>(hub: string, act: () => Promise<Value>): Promise<Value> {
  try {
    return await act()
  } catch (error) {
    throw isHoldfastError(error) ? ofHub(hub, error) : error
  }
}

/** The error with the name of the hub before its detail. */
export function ofHub(hub: string, error: HoldfastError): HoldfastError {
  const { code, message, next, current } = error
  return new HoldfastError(code, `hub ${hub}: ${message.slice(code.length + 1)}`, {
    cause: error,
    next,
    current,
  })
}
