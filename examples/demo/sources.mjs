// @ts-check
// The demo's messages: the project's own source files.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, extname, join, relative } from 'node:path'

/**
 * @typedef {object} Source
 * @property {string} key path in the project
 * @property {string} conversation its folder; every twelfth file goes to one of three slow ones instead
 * @property {Buffer<ArrayBuffer>} payload
 */

const folders = ['src', 'dist', 'lua', 'test', 'scripts', 'examples']
const kinds = ['.ts', '.js', '.mjs', '.lua', '.sh', '.json']
const slowEvery = 12
const slowConversations = 3
/** However many files a folder has, it leaves room for others. */
const conversationsAtLeast = 6

/**
 * At most `most` files, the folders taking turns so that every conversation is busy all along.
 * @param {string} root
 * @param {number} most
 * @returns {Source[]}
 */
export function readSources(root, most) {
  const paths = folders
    .flatMap((folder) => filesIn(join(root, folder)))
    .filter((path) => kinds.includes(extname(path)) && !path.endsWith('.d.ts'))
    .filter(firstOfEach(Math.ceil(most / conversationsAtLeast)))
    .slice(0, most)
  return takingTurns(paths).map((path, at) => {
    const key = relative(root, path)
    return { key, conversation: conversationOf(key, at), payload: readFileSync(path) }
  })
}

/** @param {string} key @param {number} at */
function conversationOf(key, at) {
  if (at % slowEvery !== slowEvery / 2) return dirname(key)
  return `slow/${1 + (Math.floor(at / slowEvery) % slowConversations)}`
}

/** @param {string} folder @returns {string[]} */
function filesIn(folder) {
  try {
    const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    return names
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .sort()
  } catch {
    return []
  }
}

/** Lets so many files of each folder through. @param {number} most */
function firstOfEach(most) {
  /** @type {Map<string, number>} */
  const met = new Map()
  return (/** @type {string} */ path) => {
    const before = met.get(dirname(path)) ?? 0
    met.set(dirname(path), before + 1)
    return before < most
  }
}

/** @param {readonly string[]} paths */
function takingTurns(paths) {
  /** @type {Map<string, string[]>} */
  const byFolder = new Map()
  for (const path of paths) byFolder.set(dirname(path), [...(byFolder.get(dirname(path)) ?? []), path])
  /** @type {string[]} */
  const order = []
  for (let turn = 0; order.length < paths.length; turn += 1) {
    for (const files of byFolder.values()) order.push(...files.slice(turn, turn + 1))
  }
  return order
}
