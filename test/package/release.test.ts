import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { planOf, releasedChangelog, writeVersion } from '../../scripts/version.mjs'
import { root } from './pack.js'

// The release script on a throwaway checkout. What it writes is written for real; builds, checks and publishing are not
// made here: they are the commands that it names.

let checkout: string

/** What the script reads and writes. */
const parts = [
  '.changeset',
  'CHANGELOG.md',
  'README.md',
  'docs',
  'package-lock.json',
  'package.json',
  'test/fixtures',
]

beforeAll(() => {
  checkout = mkdtempSync(join(tmpdir(), 'holdfast-release-'))
  for (const part of parts) cpSync(join(root, part), join(checkout, part), { recursive: true })
  git('init', '--quiet', '--initial-branch', 'main')
  git('add', '.')
  git('commit', '--quiet', '--message', 'As it is')
  git('branch', 'start')
})
beforeEach(() => {
  git('checkout', '--quiet', 'main')
  git('reset', '--quiet', '--hard', 'start')
  for (const tag of git('tag', '--list').split('\n').filter(Boolean)) git('tag', '--delete', tag)
})
afterAll(() => rmSync(checkout, { recursive: true, force: true }))

function git(...words: string[]): string {
  const who = ['-c', 'user.name=tests', '-c', 'user.email=tests@localhost']
  return execFileSync('git', [...who, ...words], { cwd: checkout, encoding: 'utf8', stdio: 'pipe' })
}

function release(...words: string[]): { status: number | null; stdout: string; stderr: string } {
  const script = join(root, 'scripts', 'release.mjs')
  return spawnSync(process.execPath, [script, '--root', checkout, ...words], { encoding: 'utf8' })
}

function read(path: string): string {
  return readFileSync(join(checkout, path), 'utf8')
}

const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }

/** The version after a minor change, which is committed. */
function changed(): { readonly next: string } {
  writeFileSync(
    join(checkout, '.changeset', 'a-change.md'),
    "---\n'holdfast': minor\n---\n\nIt holds faster.\n",
  )
  git('add', '.')
  git('commit', '--quiet', '--message', 'A change')
  const [major = '', minor = ''] = version.split('.')
  return { next: `${major}.${Number(minor) + 1}.0` }
}

test('a dry run says every step, and changes nothing', () => {
  const { next } = changed()
  const { status, stdout, stderr } = release('--dry-run')
  expect(status, stderr).toBe(0)
  const lines = stdout.trim().split('\n')
  expect(lines[0]).toBe(
    `1/${lines.length - 1} write version ${next} (from ${version}, by a-change) into package.json, package-lock.json, CHANGELOG.md and the docs`,
  )
  const rest = lines.slice(1, -1).map((line) => line.replace(/^\d+\/\d+ /, ''))
  expect(rest).toEqual([
    'npm run build',
    'node scripts/make-fixture.mjs',
    'npm run lint',
    'npm run typecheck',
    'npm run docs:api',
    expect.stringContaining('npx vitest run test/package'),
    'git add --all',
    `git commit --allow-empty --message Release ${next}`,
    `git tag --annotate v${next} --message Release ${next}`,
  ])
  expect(lines.at(-1)).toBe('nothing was changed')
  expect(git('status', '--porcelain')).toBe('')
  expect(git('tag', '--list')).toBe('')
})

test('with --ci it runs what must hold; it publishes only when asked, and from a known repository', () => {
  expect(release('--dry-run', '--ci').stdout).toContain(' .ci/run\n')
  expect(release('--dry-run').stdout).not.toContain('publish')
  const unknown = release('--dry-run', '--publish')
  expect(unknown.status).toBe(1)
  expect(unknown.stderr).toContain('package.json has none')

  const manifest = JSON.parse(read('package.json')) as object
  writeFileSync(
    join(checkout, 'package.json'),
    JSON.stringify({ ...manifest, repository: 'somebody/holdfast' }),
  )
  git('commit', '--quiet', '--all', '--message', 'It lives somewhere')
  const { stdout } = release('--dry-run', '--publish')
  expect(stdout).toMatch(/git tag .*\n.* npm publish --provenance --access public\nnothing was changed\n$/)
})

test('it refuses a tree with changes, another branch, and a release that there was', () => {
  writeFileSync(join(checkout, 'stray.txt'), '')
  expect(release('--dry-run')).toMatchObject({ status: 1, stderr: expect.stringContaining('?? stray.txt') })
  rmSync(join(checkout, 'stray.txt'))

  git('checkout', '--quiet', '-B', 'other')
  expect(release('--dry-run')).toMatchObject({ status: 1, stderr: expect.stringContaining('this is other') })
  git('checkout', '--quiet', 'main')

  git('tag', `v${version}`)
  expect(release('--dry-run')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining(`v${version} is released`),
  })
})

test('the version is written wherever it stands', () => {
  const { next } = changed()
  const plan = planOf(checkout)
  expect(plan).toEqual({ before: version, version: next, changesets: ['a-change'] })
  writeVersion(checkout, plan, '2026-01-31')
  expect(JSON.parse(read('package.json'))).toMatchObject({ version: next })
  expect(JSON.parse(read('package-lock.json'))).toMatchObject({
    version: next,
    packages: { '': { version: next } },
  })
  expect(readdirSync(join(checkout, '.changeset'))).not.toContain('a-change.md')
  expect(read('CHANGELOG.md').slice(0, 500)).toMatch(
    new RegExp(
      `^# Changelog\n\n[^#]+\n\n## ${next} \\(2026-01-31\\)\n\n### Minor Changes\n\n- .*It holds faster\\.\n`,
    ),
  )
  const { stdout } = spawnSync('git', ['grep', '-lF', version, 'README.md', 'docs/operations*'], {
    cwd: checkout,
    encoding: 'utf8',
  })
  expect(stdout, 'these name the version before').toBe('')
})

test('what stands under Unreleased is of the release, with changesets and without', () => {
  const words = '# Changelog\n\nHow it is written.\n\n'
  const old = '## Unreleased\n\n### Added\n\n- By hand.\n\n## 0.1.0 (2026-01-01)\n\n- First.\n'
  const dated = '## 0.2.0 (2026-01-31)\n'
  expect(releasedChangelog(`${words}${old}`, `${words}${old}`, '0.2.0', '2026-01-31')).toBe(
    `${words}${dated}\n### Added\n\n- By hand.\n\n## 0.1.0 (2026-01-01)\n\n- First.\n`,
  )
  const made = '# Changelog\n\n## 0.2.0\n\n### Minor Changes\n\n- 1a2b: One.\n\nHow it is written.\n\n'
  expect(releasedChangelog(`${words}${old}`, `${made}${old}`, '0.2.0', '2026-01-31')).toBe(
    `${words}${dated}\n### Minor Changes\n\n- 1a2b: One.\n\n### Added\n\n- By hand.\n\n## 0.1.0 (2026-01-01)\n\n- First.\n`,
  )
})
