// @ts-check
// Damage to the append-only file of a server that is down.
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { respScanner, wordsOf } from './proxy/resp-frames.mjs'

/** @typedef {import('./random.mjs').Random} Random */

/** One command in the file: where it begins and ends. @typedef {{ from: number, to: number }} Entry */

const folderName = 'appendonlydir'

/** @param {string} dataDir */
export function aofFolder(dataDir) {
  return join(dataDir, folderName)
}

/** The file that is appended to. @param {string} dataDir @returns {string} */
export function liveFile(dataDir) {
  const manifest = readFileSync(manifestFile(dataDir), 'utf8')
  const names = [...manifest.matchAll(/^file (\S+) .*type i/gm)].map(([, name = '']) => name)
  const last = names.at(-1)
  if (last === undefined) throw new Error(`no file to append to in ${manifestFile(dataDir)}`)
  return join(aofFolder(dataDir), last)
}

/** @param {string} dataDir @returns {string} */
export function manifestFile(dataDir) {
  const name = readdirSync(aofFolder(dataDir)).find((file) => file.endsWith('.manifest'))
  if (name === undefined) throw new Error(`no manifest in ${aofFolder(dataDir)}`)
  return join(aofFolder(dataDir), name)
}

/** The whole commands of a file, in order. @param {Buffer} bytes @returns {Entry[]} */
export function entriesOf(bytes) {
  const ends = respScanner()(bytes)
  return ends.map((to, at) => ({ from: ends[at - 1] ?? 0, to }))
}

/**
 * What was written by one step: a transaction, or a command of its own; the last in the file.
 * @param {Buffer} bytes @returns {Entry}
 */
export function lastStep(bytes) {
  const entries = entriesOf(bytes)
  const last = entries.at(-1)
  if (last === undefined) throw new Error('the file holds no command')
  if (nameOf(bytes, last) !== 'EXEC') return last
  const start = entries.findLast((entry) => nameOf(bytes, entry) === 'MULTI')
  return { from: start?.from ?? last.from, to: last.to }
}

/** @param {Buffer} bytes @param {Entry} entry */
function nameOf(bytes, { from, to }) {
  return wordsOf(bytes.subarray(from, to), 1)[0]?.toUpperCase()
}

/**
 * Cuts the file within what its last step wrote; answers how many bytes are left of that step.
 * @param {string} dataDir @param {Random} random @returns {{ file: string, left: number, of: number }}
 */
export function cutLast(dataDir, random) {
  const file = liveFile(dataDir)
  const { from, to } = lastStep(readFileSync(file))
  const left = random.int(0, to - from - 1)
  truncateSync(file, from + left)
  return { file, left, of: to - from }
}

/** The bytes of payloads in the file: the value of every SET of a payload's key. @param {Buffer} bytes @returns {Entry[]} */
export function payloadRegions(bytes) {
  return entriesOf(bytes).flatMap((entry) => {
    const [name = '', key = '', value = ''] = wordsOf(bytes.subarray(entry.from, entry.to), 3)
    if (name.toUpperCase() !== 'SET' || !key.includes(':payload:')) return []
    if (value === '') return []
    // The command ends with its value where SET has no further words.
    const head = bytes.indexOf(key, entry.from, 'utf8') + Buffer.byteLength(key) + 2
    const from = bytes.indexOf('\r\n', head) + 2
    const size = Number(bytes.toString('latin1', head + 1, from - 2))
    return [{ from, to: from + size }]
  })
}

/**
 * Flips one bit of a payload; answers where.
 * @param {string} dataDir @param {Random} random @returns {{ file: string, at: number } | undefined} undefined where there is none
 */
export function flipPayload(dataDir, random) {
  const file = liveFile(dataDir)
  const bytes = readFileSync(file)
  const regions = payloadRegions(bytes)
  if (regions.length === 0) return undefined
  // Of the last ones: most of the others have been delivered.
  const { from, to } = random.pick(regions.slice(-20))
  const at = random.int(from, to - 1)
  bytes[at] = (bytes[at] ?? 0) ^ (1 << random.int(0, 7))
  writeFileSync(file, bytes)
  return { file, at }
}

/** @param {string} dataDir */
export function removeManifest(dataDir) {
  rmSync(manifestFile(dataDir))
}

/** @param {string} dataDir @param {string} to */
export function copyData(dataDir, to) {
  rmSync(to, { recursive: true, force: true })
  if (existsSync(aofFolder(dataDir))) cpSync(aofFolder(dataDir), join(to, folderName), { recursive: true })
}

/** @param {string} from @param {string} dataDir */
export function restoreData(from, dataDir) {
  rmSync(aofFolder(dataDir), { recursive: true, force: true })
  cpSync(join(from, folderName), aofFolder(dataDir), { recursive: true })
}
