// `npm run test:topology [-- --only NAME]`: the tests of test/topology, one file after the other, on other versions
// of the server, and on several servers together. Brings those servers here first, and builds. Behind the file
// `versions` come the tests of `onVersions`, on each other version. What stands behind a second `--` goes to vitest.
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { serverPath } from './ensure-servers.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const ending = '.test.ts'
const vitest = join('node_modules', 'vitest', 'vitest.mjs')

/** Tests of `npm test` where servers differ: what they load, attest, refuse, forget, and schedule. */
const onVersions = [
  'test/record/fixture.test.ts',
  'test/record/acl.test.ts',
  'test/record/library.test.ts',
  'test/record/functions-attest.test.ts',
  'test/faults/rewound.test.ts',
  'test/faults/out-of-memory.test.ts',
  'test/http/readiness.test.ts',
  'test/http/sweeps.test.ts',
]
const versions = [
  ['redis-server', '8.0'],
  ['valkey-server', '8.1'],
]

/** The names of the files in test/topology. */
function names() {
  const files = readdirSync(join(root, 'test', 'topology')).filter((file) => file.endsWith(ending))
  return files.map((file) => file.slice(0, -ending.length)).sort()
}

/** @param {string} message @returns {never} */
function refuse(message) {
  console.error(`topology: ${message}`)
  process.exit(2)
}

function readArguments() {
  try {
    return parseArgs({
      options: { only: { type: 'string', multiple: true, default: [] } },
      allowPositionals: true,
    })
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error))
  }
}

/** Runs a step; says whether it went well. @param {string[]} words @param {Record<string, string>} [env] */
function runs(words, env = {}) {
  const options = /** @type {const} */ ({ cwd: root, stdio: 'inherit', env: { ...process.env, ...env } })
  return spawnSync(process.execPath, words, options).status === 0
}

/** A step whose failure is the end. @param {string[]} words */
function step(words) {
  if (!runs(words)) process.exit(1)
}

const { values, positionals } = readArguments()
const there = names()
const unknown = values.only.filter((name) => !there.includes(name))
if (unknown.length > 0) refuse(`no test is named ${unknown.join(', ')}; there are: ${there.join(', ')}`)

step(['scripts/ensure-server.mjs'])
const isOnVersions = values.only.length === 0 || values.only.includes('versions')
if (isOnVersions) step(['scripts/ensure-servers.mjs'])
step(['scripts/build.mjs'])
const files = values.only.map((name) => `test/topology/${name}${ending}`)
const went = [runs([vitest, 'run', '--config', 'vitest.topology.config.ts', ...files, ...positionals])]
if (isOnVersions) {
  for (const [name = '', version = ''] of versions) {
    console.log(`topology: ${onVersions.length} files of npm test, on ${name} ${version}`)
    const words = [vitest, 'run', '--no-file-parallelism', ...onVersions, ...positionals]
    went.push(runs(words, { HOLDFAST_TEST_REDIS_PROGRAM: serverPath(name, version) }))
  }
}
process.exit(went.every(Boolean) ? 0 : 1)
