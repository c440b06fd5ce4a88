// Rewrites lua/library.lock.json: the version and the digest of the function library, as the built package
// assembles it (`npm run lock:library` builds first). Servers replace a library only by a newer one, so code
// that changed needs a new version: raise `libraryVersion` in src/record/library.ts. With --same-version the
// version is kept while nobody can have it: no git tag v* holds a lock of that version.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

/** @typedef {{ version: number, digest: string }} Lock */

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const lockPath = 'lua/library.lock.json'
const { values } = parseArgs({
  options: {
    'same-version': { type: 'boolean', default: false },
    root: { type: 'string', default: root }, // tests only: another checkout
  },
})
const lockFile = join(values.root, lockPath)

/** @param {string} message @returns {never} */
function fail(message) {
  console.error(`lock-library: ${message}`)
  process.exit(1)
}

/** @returns {Promise<Lock>} */
async function assembled() {
  const path = new URL('../dist/record/library.js', import.meta.url).href
  /** @type {typeof import('../src/record/library.ts')} */
  const { assembleLibrary } = await import(path).catch(() => fail('there is no dist/: npm run build'))
  const { version, digest } = assembleLibrary({ luaDir: join(values.root, 'lua') })
  return { version, digest }
}

/** @returns {Lock | undefined} */
function locked() {
  try {
    return JSON.parse(readFileSync(lockFile, 'utf8'))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

/** @param {string[]} args */
function git(...args) {
  return execFileSync('git', ['-C', values.root, ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
}

/** The tag of a release that holds this version of the library. @param {number} version */
function releaseOf(version) {
  const tags = git('tag', '--list', 'v*').split('\n').filter(Boolean)
  return tags.find((tag) => {
    try {
      return JSON.parse(git('show', `${tag}:${lockPath}`)).version === version
    } catch {
      return false // a release from before the lock
    }
  })
}

/** @param {Lock} before @param {Lock} now */
function checkVersion(before, now) {
  if (now.version < before.version) {
    fail(`libraryVersion went back from ${before.version} to ${now.version}: it only ever grows`)
  }
  if (now.version > before.version || now.digest === before.digest) return
  if (!values['same-version']) {
    fail(
      `the library changed and its version is still ${now.version}: raise libraryVersion in src/record/library.ts, or, while ${now.version} is unreleased, pass --same-version`,
    )
  }
  const release = releaseOf(now.version)
  if (release !== undefined) {
    fail(`version ${now.version} was released as ${release}: raise libraryVersion in src/record/library.ts`)
  }
}

const before = locked()
const now = await assembled()
if (before !== undefined) checkVersion(before, now)
writeFileSync(lockFile, `${JSON.stringify(now, undefined, 2)}\n`)
console.log(`${lockPath}: version ${now.version}, digest ${now.digest.slice(0, 12)}…`)
