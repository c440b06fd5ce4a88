import { Buffer, isUtf8 } from 'node:buffer'
import { HoldfastError } from './errors.js'

/** A JSON document as it was sent: its value, and the exact source text of its parts. */
export interface JsonSource {
  /** What JSON.parse makes of it: a number may have lost digits here (or be Infinity), never in `textAt`. */
  readonly value: unknown
  /**
   * The exact bytes of the value at the path, without the white space around it; undefined when there is none.
   * A string names a member of an object, a number an element of an array; `[]` is the whole document.
   */
  textAt(path: readonly (string | number)[]): Buffer | undefined
}

/** What a document may hold at most. */
export interface JsonLimits {
  /** Objects and arrays open at once: 64 unless given. */
  readonly maxDepth?: number
}

/**
 * Reads one JSON value (RFC 8259) and keeps its source text (contract section 7), in time linear in the bytes.
 * @throws HoldfastError INVALID_ARGUMENT with the position, for invalid UTF-8, a byte order mark, anything that
 * is not one JSON value, nesting over the limit, and members of one object with the same name (names compared
 * unescaped). Bodies hold secrets: of the document the text shows member names only, cut.
 */
export function parseJsonSource(bytes: Buffer, limits: JsonLimits = {}): JsonSource {
  if (!isUtf8(bytes)) throw refusal(`not JSON: invalid UTF-8 at byte ${firstInvalidByte(bytes)}`)
  const text = bytes.toString('utf8')
  if (text.startsWith('\ufeff')) throw refusal('not JSON: starts with a byte order mark, at byte 0')
  check({ text, at: 0, maxDepth: limits.maxDepth ?? 64, open: [] })
  const value = parseChecked(text)
  const childrenAt = new Map<number, Children>()
  return {
    value,
    textAt(path) {
      const start = startOf(text, path, childrenAt)
      return start === undefined ? undefined : Buffer.from(text.slice(start, valueEnd(text, start)), 'utf8')
    },
  }
}

/** The JSON pointer (RFC 6901) of a path: `/to/0/host`; the empty path is the empty text. */
export function jsonPointer(path: readonly PropertyKey[]): string {
  return path.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}

// The check: one pass over the text before anything is built. It finds what JSON.parse does not tell.

/** An object or array not yet closed. */
interface Frame {
  /** The names met so far; undefined in an array. */
  readonly names: Set<string> | undefined
  /** The member or element being read. */
  key: string | number
}

interface Scan {
  readonly text: string
  readonly maxDepth: number
  readonly open: Frame[]
  at: number
}

function check(scan: Scan): void {
  do {
    while (enters(scan));
  } while (goesOn(scan))
}

/** Reads a scalar or an empty container, or goes up to the first value of another: true when that one is due. */
function enters(scan: Scan): boolean {
  const { text, open } = scan
  const start = blanksEnd(text, scan.at)
  const first = text[start]
  if (first !== '{' && first !== '[') {
    scan.at = scalarEnd(text, start)
    return false
  }
  if (open.length >= scan.maxDepth) {
    throw refusal(`nested deeper than ${scan.maxDepth} at ${position(text, start)}`)
  }
  scan.at = blanksEnd(text, start + 1)
  if (text[scan.at] === (first === '{' ? '}' : ']')) {
    scan.at++
    return false
  }
  open.push({ names: first === '{' ? new Set() : undefined, key: 0 })
  if (first === '{') readName(scan)
  return true
}

/** Reads what follows a value, closing containers: true when another value is due, false at the end. */
function goesOn(scan: Scan): boolean {
  const { text, open } = scan
  for (let frame = open.at(-1); frame !== undefined; frame = open.at(-1)) {
    const at = blanksEnd(text, scan.at)
    scan.at = at + 1
    if (text[at] === ',') {
      if (typeof frame.key === 'number') frame.key++
      else readName(scan)
      return true
    }
    const close = frame.names === undefined ? ']' : '}'
    if (text[at] !== close) throw unexpected(text, at, `"," or "${close}"`)
    open.pop()
  }
  const end = blanksEnd(text, scan.at)
  if (end < text.length) throw unexpected(text, end, 'the end')
  return false
}

/** Reads a member's name and its colon. */
function readName(scan: Scan): void {
  const { text, open } = scan
  const start = blanksEnd(text, scan.at)
  if (text[start] !== '"') throw unexpected(text, start, 'a member name')
  const end = stringEnd(text, start)
  const frame = open.at(-1)
  const name = nameOf(text, start, end)
  if (frame?.names !== undefined) {
    frame.key = name
    if (frame.names.has(name)) throw duplicate(scan, start)
    frame.names.add(name)
  }
  const colon = blanksEnd(text, end)
  if (text[colon] !== ':') throw unexpected(text, colon, '":"')
  scan.at = colon + 1
}

// Places in the text. The first three also serve on text that was never checked, and refuse what is not JSON.

const plainScalar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y
const escapeSequence = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y

/** Where the string, number, true, false or null at `start` ends. */
function scalarEnd(text: string, start: number): number {
  if (text[start] === '"') return stringEnd(text, start)
  plainScalar.lastIndex = start
  if (!plainScalar.test(text)) throw unexpected(text, start, 'a value')
  return plainScalar.lastIndex
}

function stringEnd(text: string, start: number): number {
  let at = start + 1
  for (;;) {
    const code = text.charCodeAt(at)
    if (code === 0x22) return at + 1
    if (code === 0x5c) {
      escapeSequence.lastIndex = at
      if (!escapeSequence.test(text)) throw unexpected(text, at, 'an escape sequence of JSON')
      at = escapeSequence.lastIndex
    } else if (code >= 0x20) at++
    else throw unexpected(text, at, 'the end of the string or a character not of control')
  }
}

function blanksEnd(text: string, start: number): number {
  let at = start
  for (;;) {
    const code = text.charCodeAt(at)
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return at
    at++
  }
}

/** Where the value at `start` of checked text ends. */
function valueEnd(text: string, start: number): number {
  let depth = 0
  let at = start
  do {
    const first = text[at]
    if (first === '"') at = stringEnd(text, at)
    else if (depth === 0 && first !== '{' && first !== '[') return scalarEnd(text, at)
    else {
      if (first === '{' || first === '[') depth++
      else if (first === '}' || first === ']') depth--
      at++
    }
  } while (depth > 0)
  return at
}

/** Where the values of a container start, by member name or element number. */
type Children = ReadonlyMap<string | number, number>

/** Follows a path through checked text. Each container on the way is indexed once, when first asked for. */
function startOf(
  text: string,
  path: readonly (string | number)[],
  childrenAt: Map<number, Children>,
): number | undefined {
  let start: number | undefined = blanksEnd(text, 0)
  for (const key of path) {
    let children = childrenAt.get(start)
    if (children === undefined) {
      children = childrenOf(text, start)
      childrenAt.set(start, children)
    }
    start = children.get(key)
    if (start === undefined) return undefined
  }
  return start
}

function childrenOf(text: string, start: number): Children {
  const children = new Map<string | number, number>()
  const isObject = text[start] === '{'
  if (!isObject && text[start] !== '[') return children
  let at = blanksEnd(text, start + 1)
  while (text[at] !== '}' && text[at] !== ']') {
    let key: string | number = children.size
    if (isObject) {
      const end = stringEnd(text, at)
      key = nameOf(text, at, end)
      at = blanksEnd(text, blanksEnd(text, end) + 1)
    }
    children.set(key, at)
    at = blanksEnd(text, valueEnd(text, at))
    if (text[at] === ',') at = blanksEnd(text, at + 1)
  }
  return children
}

/** The unescaped name between two places, its quotes included. */
function nameOf(text: string, start: number, end: number): string {
  const raw = text.slice(start + 1, end - 1)
  return raw.includes('\\') ? String(JSON.parse(text.slice(start, end))) : raw
}

// Refusals. Nothing but cut member names goes from the document into a text.

function refusal(detail: string): HoldfastError {
  return new HoldfastError('INVALID_ARGUMENT', detail)
}

function unexpected(text: string, at: number, expected: string): HoldfastError {
  return refusal(`not JSON: expected ${expected} at ${position(text, at)}`)
}

function duplicate({ text, open }: Scan, at: number): HoldfastError {
  const pointer = jsonPointer(open.map(({ key }) => (typeof key === 'string' ? shown(key) : key)))
  return refusal(`duplicate member ${JSON.stringify(pointer)} at ${position(text, at)}`)
}

/** At most 64 characters of a name, unprintable ones as `?`. */
function shown(name: string): string {
  const characters = [...name.slice(0, 130)]
  const kept = characters.length > 64 ? [...characters.slice(0, 63), '…'] : characters
  return kept.join('').replaceAll(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, '?')
}

/** Lines and columns count from 1 (a column is a UTF-16 unit, as in editors), bytes from 0. */
function position(text: string, at: number): string {
  const before = text.slice(0, at)
  const lines = before.split('\n')
  const column = at - before.lastIndexOf('\n')
  return `line ${lines.length}, column ${column} (byte ${Buffer.byteLength(before)})`
}

/** The first byte that no decoder takes: there the replacement character was not in the bytes. */
function firstInvalidByte(bytes: Buffer): number {
  const replacement = Buffer.from('\ufffd')
  let at = 0
  for (const part of bytes.toString('utf8').split('\ufffd')) {
    at += Buffer.byteLength(part)
    if (!bytes.subarray(at, at + 3).equals(replacement)) break
    at += 3
  }
  return at
}

/** JSON.parse on checked text; should it still refuse, its own message, which quotes the text, stays unseen. */
function parseChecked(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw refusal('not JSON')
  }
}
