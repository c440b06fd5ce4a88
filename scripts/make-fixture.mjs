// Makes test/fixtures/record-<version>: the AOF of a record as this release writes it, with the mirror of a node and
// what both hold (expected.json). Later releases must read it: test/record/fixture.test.ts. A fixture is made once,
// when its release is; with --again one of a release that nobody has yet is made anew. Run it with the oldest server
// that is supported (7.0): later ones read what that wrote, not the other way round.
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { play } from './fixture/scenario.mjs'
import { viewOf } from './fixture/view.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const fixture = join(root, 'test', 'fixtures', `record-${version}`)
const { values } = parseArgs({ options: { again: { type: 'boolean', default: false } } })

/** @param {string} message @returns {never} */
function fail(message) {
  console.error(`make-fixture: ${message}`)
  process.exit(1)
}

/** @param {string} path */
const built = (path) => import(new URL(`../dist/${path}`, import.meta.url).href)

/** @param {typeof import('../src/record/server-process.js')} processes @param {string} dir */
async function startServer({ findServer, launch, serverState }, dir) {
  /** @type {typeof import('../src/record/embedded.js')} */
  const { freePort } = await built('record/embedded.js')
  const program = findServer() ?? fail('no Redis server program: run node scripts/ensure-server.mjs')
  const server = launch(program, { dir, port: await freePort(), ownGroup: false })
  while ((await serverState(server.port)).kind !== 'ready') {
    if (!server.isRunning()) fail(`the server ended: ${server.logTail()}`)
    await sleep(20)
  }
  return server
}

/** The reads of a hub that changes nothing: an opened one would complete what was cut. @param {import('../src/record/connections.js').Store} store */
async function readsOn(store) {
  /** @type {typeof import('../src/record/keys.js')} */
  const { keysOf } = await built('record/keys.js')
  /** @type {typeof import('../src/record/reader.js')} */
  const { readerOf } = await built('record/reader.js')
  /** @type {typeof import('../src/hub/lists.js')} */
  const lists = await built('hub/lists.js')
  /** @type {typeof import('../src/hub/views.js')} */
  const { readMessage } = await built('hub/views.js')
  /** @type {typeof import('../src/hub/sessions.js')} */
  const { readSession } = await built('hub/sessions.js')
  /** @type {typeof import('../src/hub/effects.js')} */
  const { readEffect } = await built('hub/effects.js')
  /** @type {typeof import('../src/hub/principals.js')} */
  const { readPrincipals } = await built('hub/principals.js')
  const keys = keysOf('hf')
  const reader = readerOf(store, keys)
  const all = { limit: 500 }
  /** @type {import('./fixture/view.mjs').Reads} */
  const reads = {
    message: (id) => readMessage(reader, keys, id),
    session: (id) => readSession(reader, keys, id),
    effect: (id) => readEffect(reader, keys, id),
    fences: () => lists.listFences(reader, keys),
    principals: async () => (await readPrincipals(reader, keys)).map(({ view }) => view),
    held: async () => [...(await lists.listHeld(reader, keys, all)).entries],
    unknown: async () => [...(await lists.listUnknown(reader, keys, all)).entries],
    pending: async () => {
      const hosts = ['build-1', 'build-5']
      const pages = await Promise.all(hosts.map((host) => lists.listPending(reader, keys, host, all)))
      return pages.flatMap(({ entries }) => entries)
    },
  }
  return reads
}

/** @param {string} dir */
async function makeRecord(dir) {
  /** @type {typeof import('../src/record/server-process.js')} */
  const processes = await built('record/server-process.js')
  /** @type {typeof import('../src/record/connections.js')} */
  const { openStore } = await built('record/connections.js')
  /** @type {typeof import('../src/record/library.js')} */
  const { loadLibrary, libraryVersion } = await built('record/library.js')
  /** @type {typeof import('../src/record/functions.js')} */
  const { functionsOf } = await built('record/functions.js')
  /** @type {typeof import('../src/contract/message.js')} */
  const { prepareMessage } = await built('contract/message.js')
  /** @type {typeof import('../src/node/mirror.js')} */
  const { openMirror } = await built('node/mirror.js')
  const server = await startServer(processes, dir)
  const store = await openStore({ url: `redis://127.0.0.1:${server.port}`, name: 'make-fixture' })
  const mirror = openMirror({ file: join(dir, 'build-5.db'), hub: 'hf', host: 'build-5', node: 'm1' })
  async function rewriteLog() {
    await store.call(['BGREWRITEAOF'])
    const isDone = async () => {
      const info = String(await store.call(['INFO', 'persistence']))
      return /aof_rewrite_in_progress:0/.test(info) && /aof_rewrite_scheduled:0/.test(info)
    }
    while (!(await isDone())) await sleep(20)
  }
  try {
    const redis = /redis_version:(\S+)/.exec(String(await store.call(['INFO', 'server'])))?.[1]
    await loadLibrary(store)
    const functions = functionsOf(store, '{hf}')
    await functions.init(`fixture of ${version}`, false)
    const names = await play({ functions, prepareMessage, mirror, rewriteLog })
    const expected = await viewOf(await readsOn(store), names)
    return { release: version, library: libraryVersion, redis, names, expected }
  } finally {
    await mirror.close()
    await store.close()
    await server.stop()
  }
}

if (existsSync(fixture) && !values.again) fail(`${fixture} is there; --again makes it anew`)
const dir = mkdtempSync(join(tmpdir(), 'holdfast-fixture-'))
try {
  const told = await makeRecord(dir)
  rmSync(fixture, { recursive: true, force: true })
  mkdirSync(fixture, { recursive: true })
  for (const part of ['appendonlydir', 'build-5.db']) {
    cpSync(join(dir, part), join(fixture, part), { recursive: true })
  }
  const file = join(fixture, 'expected.json')
  writeFileSync(file, JSON.stringify(told))
  execFileSync(
    process.execPath,
    [join(root, 'node_modules', '@biomejs', 'biome', 'bin', 'biome'), 'format', '--write', file],
    { stdio: 'ignore' },
  )
  console.log(`made ${fixture}`)
} finally {
  rmSync(dir, { recursive: true, force: true })
}
