import { createHash } from 'node:crypto'
import { HoldfastError } from './errors.js'

/** Options of {@link hashPayload}. */
export interface HashOptions {
  /** JSON pointers (RFC 6901) of members that may differ between retries, such as `/sentAt`. */
  readonly leaveOut?: readonly string[] | undefined
}

/**
 * SHA-256 of what the caller means, lower-case hex: of the JSON value in canonical form (RFC 8785), so that the
 * order of members and blanks say nothing. Volatile members are left out by name. Bytes are hashed as they are.
 * @throws INVALID_ARGUMENT for what JSON cannot state (functions, NaN, cycles), and for a bad pointer
 */
export function hashPayload(value: unknown, options: HashOptions = {}): string {
  const hash = createHash('sha256')
  if (value instanceof Uint8Array) return hash.update(value).digest('hex')
  const left = new Set((options.leaveOut ?? []).map(checkedPointer))
  return hash.update(canonical(value, '', left, 0)).digest('hex')
}

const deepest = 200

function canonical(value: unknown, pointer: string, left: ReadonlySet<string>, depth: number): string {
  if (depth > deepest) throw invalid(`the payload nests deeper than ${deepest}, or holds itself`)
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'number') {
    if (Number.isFinite(value)) return JSON.stringify(value)
    throw invalid(`${pointer || 'the payload'} is ${value}, which JSON cannot state`)
  }
  if (Array.isArray(value)) {
    const items = value.map((each, at) => canonical(each ?? null, `${pointer}/${at}`, left, depth + 1))
    return `[${items.join(',')}]`
  }
  if (typeof value !== 'object') throw invalid(`${pointer || 'the payload'} is a ${typeof value}`)
  const stated: unknown = 'toJSON' in value && typeof value.toJSON === 'function' ? value.toJSON() : value
  if (stated !== value) return canonical(stated, pointer, left, depth + 1)
  const members = Object.entries(value)
    .filter(([name, member]) => member !== undefined && !left.has(`${pointer}/${escaped(name)}`))
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, member]) => {
      return `${JSON.stringify(name)}:${canonical(member, `${pointer}/${escaped(name)}`, left, depth + 1)}`
    })
  return `{${members.join(',')}}`
}

function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}

function checkedPointer(pointer: string): string {
  if (pointer.startsWith('/')) return pointer
  throw invalid(`${JSON.stringify(pointer)} is no JSON pointer: it begins with a slash`)
}

function invalid(why: string): HoldfastError {
  return new HoldfastError('INVALID_ARGUMENT', why)
}
