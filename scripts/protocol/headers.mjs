// @ts-check
// What the functions of the library say of themselves: the headers of lua/functions, and how they are registered.
import { readdirSync, readFileSync } from 'node:fs'

/** The parts of a header, in order. `ITEMS`: the codes of items that are refused in a call that is answered. */
export const headerParts = /** @type {const} */ (['KEYS', 'ARGV', 'REPLY', 'ERRORS', 'ITEMS', 'STATES'])

/**
 * @typedef {object} LibraryFunction
 * @property {string} name such as hf_claim
 * @property {string} about what it does
 * @property {ReadonlyMap<string, readonly string[]>} parts the lines of each part, without the one about replicas
 * @property {readonly string[]} flags those it is registered with
 * @property {boolean} replicated its reply may ask to wait for replicas
 */

const replicasLine =
  'Where wait_replicas asks for it replicas and replicas_ms come last: an answer only once WAIT says so.'

/**
 * The lines of a header by part; what it does is under the empty name.
 * @param {string} text a file of lua/functions
 */
export function headerLines(text) {
  const parts = /** @type {Map<string, string[]>} */ (new Map())
  const start = new RegExp(`^-- (${headerParts.join('|')})\\s+(.*)$`)
  let current = ''
  for (const line of text.split('\n')) {
    if (!line.startsWith('--')) break
    const [, name = '', rest = ''] = start.exec(line) ?? []
    if (name !== '') current = name
    const lines = parts.get(current) ?? []
    lines.push(name === '' ? line.slice(2).trim() : rest)
    parts.set(current, lines)
  }
  return parts
}

/** One function. @param {string} text a file of lua/functions @returns {LibraryFunction} */
export function functionOf(text) {
  const parts = headerLines(text)
  const [, name = '', flags = ''] = /hf\.register\('(\w+)', \{([^}]*)\}/.exec(text) ?? []
  const about = (parts.get('') ?? []).join(' ')
  if (name === '' || !about.startsWith(`${name}: `))
    throw new Error(`no header of the function ${name}: ${about}`)
  parts.delete('')
  const reply = parts.get('REPLY') ?? []
  const plain = reply.filter((line) => line !== replicasLine)
  parts.set('REPLY', plain)
  return {
    name,
    about: about.slice(name.length + 2),
    parts,
    flags: [...flags.matchAll(/'([a-z-]+)'/g)].map(([, flag = '']) => flag),
    replicated: plain.length < reply.length,
  }
}

const folder = new URL('../../lua/functions/', import.meta.url)

/** All functions, by name. */
export function libraryFunctions() {
  const files = readdirSync(folder).filter((name) => name.endsWith('.lua'))
  return files.sort().map((name) => functionOf(readFileSync(new URL(name, folder), 'utf8')))
}
