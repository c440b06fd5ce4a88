// @ts-check
// The version of a release, written everywhere that states it: package.json and CHANGELOG.md by changesets, then the
// lock file, the names of the tarball and of the image in the docs, and the changelog's own shape.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const changesets = fileURLToPath(new URL('../node_modules/@changesets/cli/bin.js', import.meta.url))

/**
 * What the next release is.
 * @typedef {object} Plan
 * @property {string} before the version that package.json has
 * @property {string} version the one that is released
 * @property {readonly string[]} changesets the names of those that make it
 */

/** @param {string} root @param {string[]} words */
function runChangesets(root, ...words) {
  return execFileSync(process.execPath, [changesets, ...words], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

/** @param {string} root @returns {Plan} */
export function planOf(root) {
  const before = versionIn(root)
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-release-'))
  try {
    const file = join(folder, 'plan.json')
    // It knows paths below its own folder only.
    runChangesets(root, 'status', `--output=${relative(root, file)}`)
    const { changesets: found, releases } = JSON.parse(readFileSync(file, 'utf8'))
    const version = releases.find(
      (/** @type {{ name: string }} */ { name }) => name === 'holdfast',
    )?.newVersion
    return {
      before,
      version: version ?? before,
      changesets: found.map((/** @type {{ id: string }} */ { id }) => id),
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** @param {string} root */
function versionIn(root) {
  return String(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version)
}

/**
 * Writes it all into a checkout; commits nothing.
 * @param {string} root
 * @param {Plan} plan
 * @param {string} date as it stands in the changelog: 2026-01-31
 */
export function writeVersion(root, { before, version, changesets: found }, date) {
  const changelog = join(root, 'CHANGELOG.md')
  const old = readFileSync(changelog, 'utf8')
  if (found.length > 0) runChangesets(root, 'version')
  if (versionIn(root) !== version) throw new Error(`changesets made ${versionIn(root)}, not ${version}`)
  writeFileSync(changelog, releasedChangelog(old, readFileSync(changelog, 'utf8'), version, date))
  const lockFile = join(root, 'package-lock.json')
  const lock = JSON.parse(readFileSync(lockFile, 'utf8'))
  lock.version = version
  lock.packages[''].version = version
  writeFileSync(lockFile, `${JSON.stringify(lock, undefined, 2)}\n`)
  const kubernetes = join('docs', 'operations', 'kubernetes')
  const manifests = readdirSync(join(root, kubernetes)).map((name) => join(kubernetes, name))
  for (const path of ['README.md', join('docs', 'operations.md'), ...manifests]) {
    const file = join(root, path)
    const text = readFileSync(file, 'utf8')
    writeFileSync(
      file,
      text
        .replaceAll(`holdfast-${before}.tgz`, `holdfast-${version}.tgz`)
        .replaceAll(`holdfast:${before}`, `holdfast:${version}`),
    )
  }
}

/**
 * The changelog of a release. Changesets put its section directly below the title; it belongs below the words that
 * stand there before the first section. What was noted under `## Unreleased` is of this release too.
 * @param {string} before as it was
 * @param {string} after as changesets left it: the same where there were none
 * @param {string} version
 * @param {string} date
 */
export function releasedChangelog(before, after, version, date) {
  const title = before.slice(0, before.indexOf('\n') + 1)
  const first = before.search(/^## /m)
  const words = before.slice(title.length, first < 0 ? undefined : first)
  const sections = after.slice(title.length).replace(words, '\n').trimStart()
  const head = `## ${version}\n`
  const made = sections.startsWith(head) ? sections.slice(head.length).trimStart() : sections
  const text = `## ${version} (${date})\n\n${made}`.replace(/\n+## Unreleased\n/, '\n')
  return `${title}${words}${text.replaceAll(/\n{3,}/g, '\n\n')}`
}
