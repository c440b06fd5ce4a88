// @ts-check
// The package as it is built now, in a folder of its own: what is built meanwhile does not disturb a campaign.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const own = fileURLToPath(new URL('../..', import.meta.url))
const copied = ['dist', 'lua', 'torture', 'package.json']
const results = join(own, 'torture', 'results')
const digestLength = 12

/** @param {string} folder to be made @returns {{ dir: string, digest: string, remove: () => void }} */
export function copyBuild(folder) {
  mkdirSync(folder, { recursive: true })
  for (const each of copied) {
    cpSync(join(own, each), join(folder, each), { recursive: true, filter: (from) => from !== results })
  }
  symlinkSync(join(own, 'node_modules'), join(folder, 'node_modules'))
  const digest = digestOf(folder, ['dist', 'lua'])
  return { dir: folder, digest, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

/** @param {string} folder @param {string[]} parts */
function digestOf(folder, parts) {
  const hash = createHash('sha256')
  const files = parts.flatMap((part) => filesIn(join(folder, part))).sort()
  for (const file of files) hash.update(`${relative(folder, file)}\n`).update(readFileSync(file))
  return hash.digest('hex').slice(0, digestLength)
}

/** @param {string} folder @returns {string[]} */
function filesIn(folder) {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}

/** The package's version, and the commit it was built at; `+` where the working tree had changes. */
export function versionFacts() {
  const { version } = JSON.parse(readFileSync(join(own, 'package.json'), 'utf8'))
  return { version: String(version), commit: commitOf() }
}

function commitOf() {
  const git = (/** @type {string[]} */ ...words) => spawnSync('git', words, { cwd: own, encoding: 'utf8' })
  const { status, stdout } = git('rev-parse', '--short=12', 'HEAD')
  if (status !== 0) return 'unknown'
  const changed = git('status', '--porcelain', '--', 'src', 'lua', 'torture').stdout.trim() !== ''
  return `${stdout.trim()}${changed ? '+' : ''}`
}
