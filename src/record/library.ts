import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Store } from './connections.js'

/** The version of the function library this package brings. Raised with every change that a server must learn. */
export const libraryVersion = 2

const libraryName = 'holdfast'
const versionWithClock = 1_000_000
const ownLuaDir = fileURLToPath(new URL('../../lua', import.meta.url))

/** The library as one text. */
export interface Library {
  readonly version: number
  readonly code: string
  /** sha256 of the code, in hex. */
  readonly digest: string
}

/** Where the sources are; the package's own `lua/` when absent. */
export interface LibraryOptions {
  readonly luaDir?: string | undefined
  /**
   * The library of the testing kit, with a clock that can be set ahead. Its version is above all others: nobody who opens
   * the record puts another in its place.
   */
  readonly withClock?: boolean | undefined
}

/** What {@link loadLibrary} found or did. `newer`: the server keeps a newer library, untouched. */
export interface LoadedLibrary {
  readonly kind: 'loaded' | 'present' | 'newer'
  readonly version: number
}

/** What {@link verifyLibrary} found; digests are sha256 in hex. */
export type LibraryState =
  | { readonly kind: 'loaded'; readonly version: number; readonly digest: string }
  | {
      readonly kind: 'differs'
      readonly version: number
      readonly digest: string
      readonly serverDigest: string
    }
  | { readonly kind: 'missing'; readonly digest: string }

/** Joins `lib/*.lua`, then `functions/*.lua`, each by name, around one shared table `hf`. */
export function assembleLibrary(options: LibraryOptions = {}): Library {
  const luaDir = options.luaDir ?? ownLuaDir
  const version = options.withClock === true ? versionWithClock : libraryVersion
  const folders = options.withClock === true ? ['lib', 'testing', 'functions'] : ['lib', 'functions']
  const code = [
    `#!lua name=${libraryName}`,
    `local LIBRARY_VERSION = ${version}`,
    'local hf = {}',
    ...folders.flatMap((folder) => sourcesIn(join(luaDir, folder))).map(enclosed),
    versionFunction,
    '',
  ].join('\n')
  return { version, code, digest: digestOf(code) }
}

const versionFunction = `redis.register_function{
  function_name = 'hf_version',
  callback = function() return LIBRARY_VERSION end,
  flags = { 'no-writes', 'allow-stale' },
}`

/** Each file's locals are its own: a Lua chunk has room for 200. */
function enclosed(source: string): string {
  return `do\n${source}\nend`
}

function sourcesIn(folder: string): string[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.lua'))
  return names.sort().map((name) => readFileSync(join(folder, name), 'utf8').trimEnd())
}

function digestOf(code: string): string {
  return createHash('sha256').update(code).digest('hex')
}

/**
 * Puts the library on the server when it has none or an older one, and when it has other code of the same
 * version (development). A newer one is left alone. Errors: as {@link Store}.
 *
 * An absent library is loaded without REPLACE, so that of two processes starting at once the newer wins.
 */
export async function loadLibrary(store: Store, options: LibraryOptions = {}): Promise<LoadedLibrary> {
  const library = assembleLibrary(options)
  const version = await versionOn(store)
  if (version === undefined) {
    if (await loadFirst(store, library)) return { kind: 'loaded', version: library.version }
    return loadOver(store, library, (await versionOn(store)) ?? 0)
  }
  return loadOver(store, library, version)
}

async function loadOver(store: Store, library: Library, version: number): Promise<LoadedLibrary> {
  if (version > library.version) return { kind: 'newer', version }
  if (version === library.version && (await codeOn(store)) === library.code)
    return { kind: 'present', version }
  await store.call(['FUNCTION', 'LOAD', 'REPLACE', library.code])
  return { kind: 'loaded', version: library.version }
}

/** False when there is a library of the name after all. */
async function loadFirst(store: Store, library: Library): Promise<boolean> {
  try {
    await store.call(['FUNCTION', 'LOAD', library.code])
    return true
  } catch (error) {
    if (error instanceof Error && /^ERR Library '.*' already exists/.test(error.message)) return false
    throw error
  }
}

/** Compares the server's library with this package's, changing nothing. Errors: as {@link Store}. */
export async function verifyLibrary(store: Store, options: LibraryOptions = {}): Promise<LibraryState> {
  const { digest } = assembleLibrary(options)
  const code = await codeOn(store)
  if (code === undefined) return { kind: 'missing', digest }
  const version = (await versionOn(store)) ?? 0
  const serverDigest = digestOf(code)
  if (serverDigest === digest) return { kind: 'loaded', version, digest }
  return { kind: 'differs', version, digest, serverDigest }
}

/** What an operator does about the library of a server; undefined where it is the package's own. */
export function nextStepFor(library: LibraryState): string | undefined {
  if (library.kind === 'loaded') return undefined
  const isNewer = library.kind === 'differs' && library.version > libraryVersion
  return isNewer
    ? `use a holdfast of that library: this one has version ${libraryVersion}`
    : 'holdfast functions load'
}

/** The version on the server; undefined when no library answers. */
async function versionOn(store: Store): Promise<number | undefined> {
  try {
    return Number(await store.call(['FCALL_RO', 'hf_version', 0]))
  } catch (error) {
    if (error instanceof Error && error.message.startsWith('ERR Function not found')) return undefined
    throw error
  }
}

async function codeOn(store: Store): Promise<string | undefined> {
  const reply = await store.call(['FUNCTION', 'LIST', 'LIBRARYNAME', libraryName, 'WITHCODE'])
  const [fields] = reply as unknown[][]
  const at = fields?.indexOf('library_code') ?? -1
  return at < 0 ? undefined : String(fields?.[at + 1])
}
