// @ts-check
// A release: npm run release [-- --dry-run] [--ci] [--publish]
//   --dry-run   says what would be done, and changes nothing
//   --ci        runs all of .ci/run instead of the checks of the package alone
//   --publish   publishes, with provenance: from a runner that can prove who it is (a GitHub workflow)
// It refuses on a tree with changes, off the branch main, and where there is nothing to release. It commits and tags,
// and pushes nothing.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { planOf, writeVersion } from './version.mjs'

/**
 * One step of a release.
 * @typedef {object} Step
 * @property {string} what
 * @property {() => void} act
 */

const { values } = parseArgs({
  options: {
    'dry-run': { type: 'boolean', default: false },
    ci: { type: 'boolean', default: false },
    publish: { type: 'boolean', default: false },
    root: { type: 'string', default: dirname(dirname(fileURLToPath(import.meta.url))) }, // tests only: another checkout
  },
})
const { root } = values

/** @param {string} message @returns {never} */
function fail(message) {
  console.error(`release: ${message}`)
  process.exit(1)
}

/** @param {string[]} words */
function git(...words) {
  return execFileSync('git', words, { cwd: root, encoding: 'utf8' }).trim()
}

function refuseWhereItMust() {
  const changes = git('status', '--porcelain')
  if (changes !== '') fail(`the tree has changes:\n${changes}`)
  const branch = git('rev-parse', '--abbrev-ref', 'HEAD')
  if (branch !== 'main') fail(`this is ${branch}: releases are made on main`)
  const { repository } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  if (values.publish && repository === undefined) {
    fail('provenance names the repository of the package, and package.json has none')
  }
}

/** @param {string} program @param {string[]} words @returns {Step} */
function running(program, ...words) {
  return {
    what: [program, ...words].join(' '),
    act: () => {
      const { status } = spawnSync(program, words, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
      if (status === 0) return
      fail(`this failed: ${[program, ...words].join(' ')}
nothing is published; until the commit \`git restore .\` and \`git clean -d\` take back what was written`)
    },
  }
}

/** @param {import('./version.mjs').Plan} plan @returns {Step[]} */
function stepsOf(plan) {
  const { before, version, changesets } = plan
  const from =
    changesets.length === 0 ? 'as package.json has it' : `from ${before}, by ${changesets.join(', ')}`
  const date = new Date().toISOString().slice(0, 10)
  const hasFixture = existsSync(join(root, 'test', 'fixtures', `record-${version}`))
  const checks = [
    running('npm', 'run', 'lint'),
    running('npm', 'run', 'typecheck'),
    running('npm', 'run', 'docs:api'),
    running('npx', 'vitest', 'run', 'test/package', 'test/docs', 'test/record/library-lock.test.ts'),
  ]
  return [
    {
      what: `write version ${version} (${from}) into package.json, package-lock.json, CHANGELOG.md and the docs`,
      act: () => writeVersion(root, plan, date),
    },
    running('npm', 'run', 'build'),
    ...(hasFixture ? [] : [running('node', 'scripts/make-fixture.mjs')]),
    ...(values.ci ? [running('.ci/run')] : checks),
    running('git', 'add', '--all'),
    running('git', 'commit', '--allow-empty', '--message', `Release ${version}`),
    running('git', 'tag', '--annotate', `v${version}`, '--message', `Release ${version}`),
    ...(values.publish ? [running('npm', 'publish', '--provenance', '--access', 'public')] : []),
  ]
}

refuseWhereItMust()
const plan = planOf(root)
if (git('tag', '--list', `v${plan.version}`) !== '') {
  fail(`v${plan.version} is released, and no changeset makes another: npx changeset`)
}
const steps = stepsOf(plan)
for (const [at, { what, act }] of steps.entries()) {
  console.log(`${at + 1}/${steps.length} ${what}`)
  if (!values['dry-run']) act()
}
console.log(
  values['dry-run']
    ? 'nothing was changed'
    : `v${plan.version} is committed and tagged here; git push --follow-tags makes it known`,
)
