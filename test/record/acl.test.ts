import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { sweepNames, sweepSetting } from '../../src/contract/sweeps.js'
import { examine } from '../../src/hub/doctor.js'
import { initRecord } from '../../src/hub/open-hub.js'
import { openStore, type Store } from '../../src/record/connections.js'
import { functionsOf } from '../../src/record/functions.js'
import { keysOf } from '../../src/record/keys.js'
import { loadLibrary } from '../../src/record/library.js'
import { readerOf } from '../../src/record/reader.js'
import { startSchedule } from '../../src/sweeps/schedule.js'
import { type AclRole, aclPage, lastLine, makeUsers, refusals, roles, runLines } from '../support/acl.js'
import { call, startHubServer } from '../support/http.js'
import { reachOf, wholeLibrary, wordsIn } from '../support/lua-reach.js'
import { startNode, stopNodes } from '../support/nodes.js'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// The users of docs/acl.md. That no step of a node or a hub lacks a right: test/topology/acl.test.ts.

let server: TestServer
let urls: Record<AclRole, string>
/** As the user without limits. */
let admin: Store
const stores: Store[] = []

beforeAll(async () => {
  server = await startTestServer()
  urls = makeUsers(server)
  admin = await openStore({ url: server.url, name: 'admin' })
})
afterEach(async () => {
  await stopNodes()
  await Promise.all(stores.splice(0).map((store) => store.close()))
})
afterAll(async () => {
  await admin?.close()
  await server?.stop()
})

async function storeOf(role: AclRole): Promise<Store> {
  const store = await openStore({ url: urls[role], name: 'test' })
  stores.push(store)
  return store
}

/** `OK`, or why the server would refuse the command to the user. */
async function dryRun(role: AclRole, command: string): Promise<string> {
  return String(await admin.call(['ACL', 'DRYRUN', `holdfast-${role}`, ...command.split(' ')]))
}

describe('what a user may do', () => {
  const allowed: readonly (readonly [AclRole, readonly string[]])[] = [
    ['hub', ['FCALL hf_accept 1 {hf} x', 'FCALL_RO hf_why 1 {hf} x', 'FUNCTION LOAD x', 'SCAN 0', 'INFO']],
    ['hub', ['XREAD BLOCK 1 STREAMS {hf}:log 0', 'CONFIG GET append*', 'BZPOPMIN {hf}:bull:sweeps:marker 1']],
    ['node', ['FCALL hf_join 1 {hf} x', 'FCALL hf_claim 1 {hf} x', 'FCALL hf_report 1 {hf} x']],
    ['node', ['XREAD BLOCK 1 STREAMS {hf}:stream:a {hf}:bell:a 0 0', 'GET {hf}:payload:x', 'INFO']],
    ['reader', ['HGETALL {hf}:delivery:x', 'FCALL_RO hf_why 1 {hf} x', 'XPENDING {hf}:stream:a nodes']],
    ['operator', ['FCALL hf_init 1 {hf} x', 'FCALL hf_hold 1 {hf} x', 'HDEL {hf}:fences x']],
    ['operator', ['CONFIG SET appendfsync always', 'FUNCTION LOAD REPLACE x', 'HGETALL {hf}:config']],
  ]
  it.each(allowed)('%s: %j', async (role, commands) => {
    for (const command of commands) expect(await dryRun(role, command), command).toBe('OK')
  })

  const nobody = [
    ...[
      'FLUSHALL',
      'FLUSHDB',
      'KEYS *',
      'SHUTDOWN',
      'FUNCTION FLUSH',
      'ACL SETUSER x on',
      'ACL LIST',
      'DEBUG x',
    ],
    ...['HGETALL {other}:identity', 'HSET {other}:config a b', 'GET plain', 'FCALL hf_claim 1 {other} x'],
    ...['REPLICAOF h 1', 'MONITOR', 'SORT {hf}:nodes', 'RESTORE {hf}:x 0 x', 'SCRIPT FLUSH', 'SWAPDB 0 1'],
    ...['SUBSCRIBE x', 'PUBLISH {hf} x', 'MIGRATE h 1 {hf}:x 0 1', 'CLIENT KILL TYPE normal'],
  ]
  it.each(roles)('%s: not what empties the server, nor another hub', async (role) => {
    for (const command of nobody) expect(await dryRun(role, command), command).toMatch(/no permissions/)
  })

  const refused: readonly (readonly [AclRole, readonly string[]])[] = [
    ['hub', ['CONFIG SET appendonly no', 'CONFIG REWRITE', 'FUNCTION DELETE holdfast', 'CLIENT LIST']],
    [
      'node',
      ['CONFIG SET appendonly no', 'FUNCTION LOAD x', 'FUNCTION DELETE holdfast', 'SCAN 0', 'EVAL x 0'],
    ],
    ['node', ['FCALL hf_pause 1 {hf} hub x y', 'FCALL hf_add_principal 1 {hf} x', 'FCALL hf_init 1 {hf} x']],
    ['node', ['FCALL hf_accept 1 {hf} x', 'FCALL hf_resolve_attempt 1 {hf} x', 'FCALL hf_prune 1 {hf} 1']],
    ['node', ['HSET {hf}:fences a b', 'HSET {hf}:config a b', 'SET {hf}:payload:x y']],
    ['node', ['HGETALL {hf}:principal:x', 'HSET {hf}:principal:x role operator', 'HGET {hf}:certificates x']],
    ['node', ['GET {hf}:idempotency:x', 'HGETALL {hf}:effect:x', 'HGETALL {hf}:bull:sweeps:1']],
    [
      'reader',
      ['FCALL hf_pause 1 {hf} hub x y', 'FCALL hf_why 1 {hf} x', 'HSET {hf}:delivery:x a b', 'EVAL x 0'],
    ],
    ['reader', ['CONFIG SET appendonly no', 'FUNCTION LOAD x', 'DEL {hf}:log', 'XADD {hf}:log * a b']],
    ['operator', ['EVAL x 0', 'BZPOPMIN {hf}:bull:sweeps:marker 1']],
  ]
  it.each(refused)('%s: not %j', async (role, commands) => {
    for (const command of commands) expect(await dryRun(role, command), command).toMatch(/no permissions/)
  })
})

describe('the lists of the page', () => {
  /** The rights of a shell variable, without their signs. */
  const list = (name: string) => {
    const text = new RegExp(`^${name}='([^']*)'`, 'm').exec(aclPage)?.[1] ?? ''
    return text.split(/\s+/).map((word) => word.replace(/^[+~]/, ''))
  }

  /** Those words that are commands of the server. */
  async function commandsAmong(words: Iterable<string>): Promise<string[]> {
    const all = [...words]
    const names = all.map((word) => word.split('|')[0] ?? '')
    const infos = (await admin.call(['COMMAND', 'INFO', ...names])) as unknown[]
    return all.filter((_, at) => infos[at] !== null).sort()
  }

  it('hold every command that the functions use, and no other', async () => {
    const used = await commandsAmong(wordsIn(wholeLibrary()))
    expect([...list('FUNCTION_WRITES'), ...list('FUNCTION_READS')].sort()).toEqual(used)
  })

  it('hold every command that the scripts of BullMQ use, and no other', () => {
    const folder = fileURLToPath(new URL('../../node_modules/bullmq/dist/cjs/scripts', import.meta.url))
    const used = new Set(['eval', 'evalsha', 'bzpopmin']) // by its client
    for (const name of readdirSync(folder)) {
      const calls = readFileSync(join(folder, name), 'utf8').matchAll(
        /(?:rcall|redis\.p?call)\(\s*["']([A-Za-z]+)["']/g,
      )
      for (const [, word = ''] of calls) used.add(word.toLowerCase())
    }
    const given = ['FUNCTION_WRITES', 'FUNCTION_READS', 'OWN_READS'].flatMap(list)
    expect(list('BULLMQ').sort()).toEqual([...used].filter((word) => !given.includes(word)).sort())
  })

  it('give a node the commands and keys of the functions that it calls, and no other', async () => {
    const calls = list('NODE_CALLS').map((word) => word.replace(/^fcall\|hf_/, ''))
    const { words, keys } = reachOf(calls)
    expect(list('NODE_COMMANDS').sort()).toEqual(await commandsAmong(words))
    const given = list('NODE_KEYS').map((word) => word.replace(/^%R~/, ''))
    expect(given.sort()).toEqual(['{hf}', ...keys].sort())
  })

  it('name the functions that the transport of a node calls', () => {
    const file = fileURLToPath(new URL('../../src/node/transports/redis.ts', import.meta.url))
    const used = readFileSync(file, 'utf8').matchAll(/\b(?:functions|heartbeats)\.(?!js\b)(\w+)/g)
    const names = new Set([...used].map(([, name]) => `fcall|hf_${name}`))
    names.add('fcall|hf_attest') // through attestRecord
    expect(list('NODE_CALLS').sort()).toEqual([...names].sort())
  })
})

describe('at work', () => {
  let record: OpenRecord

  beforeAll(async () => {
    server.cli('ACL', 'LOG', 'RESET')
    await initRecord({ redis: urls.operator })
    record = await openRecord(server, { init: false, name: 'hf' })
    for (const name of sweepNames) await record.config(sweepSetting(name), 100)
  })
  afterAll(() => record?.close())
  afterEach(() => {
    expect(refusals(server)).toBe('')
  })

  it('a hub serves, its sweeps run by their schedule, and a node executes what it is sent', async () => {
    const warnings: object[] = []
    const note = (particulars: object) => void warnings.push(particulars)
    const log = { info: () => undefined, warn: note }
    const redis = urls.hub
    const hub = await startHubServer(record, {
      redis,
      sweeps: (parts) => startSchedule({ redis, parts, log }),
    })
    try {
      const { executed } = await startNode({ host: 'a', redis: urls.node, scopes: ['/srv/agents'] })
      const sent = await call<{ id: string }>(hub.url, {
        method: 'POST',
        path: '/v1/messages',
        headers: { 'idempotency-key': 'k1' },
        body: { conversation: 'c', sender: 'shop', to: [{ host: 'a' }], payload: { n: 1 } },
      })
      expect(sent.status, sent.text).toBe(201)
      const path = `/v1/messages/${sent.json.id}?waitMs=20000`
      const settled = await call(hub.url, { path })
      expect(settled.json).toMatchObject({ deliveries: [{ attempts: [{ status: 'done' }] }] })
      expect(executed).toHaveLength(1)
      await until(
        async () => {
          const runs = sweepNames.map((name) => record.send('HGET', record.keys.sweep(name), 'runs'))
          return (await Promise.all(runs)).every((count) => Number(count) >= 3)
        },
        { timeoutMs: 30_000, what: 'three runs of every sweep' },
      )
      expect(await call(hub.url, { path: '/readyz' })).toMatchObject({ status: 200 })
      const audit = await call(hub.url, { path: '/v1/audit' })
      expect(audit.json).toMatchObject({ disagreements: [] })
      expect(warnings).toEqual([])
    } finally {
      await stopNodes()
      await hub.close()
    }
  })

  it('someone who looks sees it all, and doctor finds nothing to say', async () => {
    const store = await storeOf('reader')
    const keys = keysOf('hf')
    const parts = { store, keys, reader: readerOf(store, keys), functions: functionsOf(store, keys.tag) }
    for (const name of sweepNames) await record.config(sweepSetting(name), 600_000)
    const findings = await examine(parts)
    expect(findings.filter(({ verdict }) => verdict === 'bad')).toEqual([])
    expect(await store.call(['HGETALL', keys.counts])).toContain('done')
  })

  it('a library that was deleted is brought back by a hub', async () => {
    const store = await storeOf('hub')
    server.cli('FUNCTION', 'FLUSH')
    expect(await loadLibrary(store)).toMatchObject({ kind: 'loaded' })
  })
})

it('a node cannot bring a library, and says what it was refused', async () => {
  server.cli('FUNCTION', 'FLUSH')
  const store = await storeOf('node')
  await expect(loadLibrary(store)).rejects.toThrow(/^STORE_UNAVAILABLE .*NOPERM/)
  await loadLibrary(await storeOf('operator'))
  expect(await loadLibrary(store)).toMatchObject({ kind: 'present' })
})

it('in the end nobody without a password does anything, and the users still do', async () => {
  runLines(server, lastLine)
  await expect(
    openStore({ url: server.url, name: 'nobody', connectDeadlineMs: 2_000 }),
  ).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
  })
  const store = await storeOf('hub')
  expect(await store.call(['HGET', '{hf}:identity', 'schema'])).toBe('1')
})
