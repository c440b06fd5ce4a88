import { HoldfastError } from '../contract/errors.js'
import type { Argument, Store } from './connections.js'
import type { Keys } from './keys.js'

/** Plain reads of the record, for lists and views. Each checks that there is a record. */
export interface Reader {
  /** Sends the commands in one write. Throws STORE_UNKNOWN where there is no record. */
  all(commands: readonly (readonly Argument[])[]): Promise<unknown[]>
  one(command: readonly Argument[]): Promise<unknown>
  hash(key: string): Promise<ReadonlyMap<string, string>>
  /** Empty for a key that is not there, and for one of another type: a list is read around what was damaged. */
  hashes(keys: readonly string[]): Promise<ReadonlyMap<string, string>[]>
  strings(command: readonly Argument[]): Promise<string[]>
}

const hashesAtOnce = 200

export function readerOf(store: Store, keys: Keys): Reader {
  async function all(commands: readonly (readonly Argument[])[]): Promise<unknown[]> {
    const [identity, ...replies] = await store.pipeline([['HGET', keys.identity, 'store_id'], ...commands])
    if (typeof identity !== 'string') {
      throw new HoldfastError(
        'STORE_UNKNOWN',
        `there is no record under ${keys.tag}; holdfast init makes one`,
      )
    }
    return replies
  }
  async function one(command: readonly Argument[]): Promise<unknown> {
    return (await all([command]))[0]
  }
  async function hashes(wanted: readonly string[]): Promise<ReadonlyMap<string, string>[]> {
    const found: ReadonlyMap<string, string>[] = []
    for (let first = 0; first < wanted.length; first += hashesAtOnce) {
      const slice = wanted.slice(first, first + hashesAtOnce)
      const replies = await all(slice.map((key) => ['HGETALL', key])).catch((error: unknown) =>
        isWrongType(error) ? soundOnes(slice) : Promise.reject(error),
      )
      found.push(...replies.map(mapOf))
    }
    return found
  }
  async function soundOnes(wanted: readonly string[]): Promise<unknown[]> {
    const types = await all(wanted.map((key) => ['TYPE', key]))
    const sound = wanted.filter((_, at) => types[at] === 'hash')
    const replies = await all(sound.map((key) => ['HGETALL', key]))
    return wanted.map((key) => replies[sound.indexOf(key)] ?? [])
  }
  return {
    all,
    one,
    hashes,
    hash: async (key) => mapOf(await one(['HGETALL', key])),
    strings: async (command) => stringsOf(await one(command)),
  }
}

function isWrongType(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('WRONGTYPE')
}

/** HGETALL's reply, as an array (RESP2) or an object. */
function mapOf(reply: unknown): ReadonlyMap<string, string> {
  const fields = new Map<string, string>()
  if (Array.isArray(reply)) {
    for (let at = 0; at + 1 < reply.length; at += 2) fields.set(String(reply[at]), String(reply[at + 1]))
  } else if (typeof reply === 'object' && reply !== null) {
    for (const [name, value] of Object.entries(reply)) fields.set(name, String(value))
  }
  return fields
}

/** TIME's reply in Unix ms. */
export function timeOf(reply: unknown): number {
  const [seconds, micros] = stringsOf(reply)
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
}

export function stringsOf(reply: unknown): string[] {
  return Array.isArray(reply) ? reply.map(String) : []
}
