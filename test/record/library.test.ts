import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { openStore, type Store } from '../../src/record/connections.js'
import { assembleLibrary, libraryVersion, loadLibrary, verifyLibrary } from '../../src/record/library.js'
import { type FaultyProxy, startProxy } from '../support/proxy.js'
import { startTestServer, type TestServer } from '../support/server.js'

const sources = {
  'lib/b.lua': 'do\n  hf.twice = function(n) return hf.base + n end\nend\n',
  'lib/a.lua': 'do\n  hf.base = 40\nend\n',
  'functions/answer.lua':
    "do\n  redis.register_function{ function_name = 'hf_answer', flags = { 'no-writes' },\n" +
    '    callback = function(keys, args) return { keys[1], hf.twice(tonumber(args[1])) } end }\nend\n',
  'functions/push.lua':
    "do\n  redis.register_function{ function_name = 'hf_push',\n" +
    "    callback = function(keys, args) return redis.call('RPUSH', keys[1] .. ':list', args[1]) end }\nend\n",
}

let server: TestServer
let proxy: FaultyProxy
let luaDir: string
let store: Store

beforeAll(async () => {
  server = await startTestServer()
  proxy = await startProxy(server.port)
})

beforeEach(async () => {
  luaDir = mkdtempSync(join(tmpdir(), 'holdfast-lua-'))
  mkdirSync(join(luaDir, 'lib'))
  mkdirSync(join(luaDir, 'functions'))
  for (const [name, text] of Object.entries(sources)) write(name, text)
  store = await openStore({ url: proxy.url, name: 'test', luaDir })
})

afterEach(async () => {
  await store.close()
  proxy.restore()
  server.cli('FUNCTION', 'FLUSH')
  server.cli('FLUSHALL')
  rmSync(luaDir, { recursive: true })
})

afterAll(async () => {
  await proxy?.close()
  await server?.stop()
})

function write(name: string, text: string): void {
  writeFileSync(join(luaDir, name), text)
}

/** Puts a library of another version on the server. */
function putVersion(version: number): void {
  const code = `#!lua name=holdfast\nredis.register_function{ function_name = 'hf_version', callback = function() return ${version} end, flags = { 'no-writes' } }`
  server.cli('FUNCTION', 'LOAD', 'REPLACE', code)
}

it('joins lib, then functions, by name, the same each time', () => {
  const { code, digest, version } = assembleLibrary({ luaDir })
  expect(code.startsWith(`#!lua name=holdfast\nlocal LIBRARY_VERSION = ${libraryVersion}\n`)).toBe(true)
  const order = ['hf.base = 40', 'hf.twice =', 'hf_answer', 'hf_push', 'hf_version'].map((text) =>
    code.indexOf(text),
  )
  expect(order).toEqual([...order].sort((a, b) => a - b))
  expect(order).not.toContain(-1)
  expect(version).toBe(libraryVersion)
  expect(assembleLibrary({ luaDir }).digest).toBe(digest)
})

it('loads into an empty server, and is present from then on', async () => {
  expect(await verifyLibrary(store, { luaDir })).toMatchObject({ kind: 'missing' })
  expect(await loadLibrary(store, { luaDir })).toEqual({ kind: 'loaded', version: libraryVersion })
  expect(await loadLibrary(store, { luaDir })).toEqual({ kind: 'present', version: libraryVersion })
  expect(await verifyLibrary(store, { luaDir })).toEqual({
    kind: 'loaded',
    version: libraryVersion,
    digest: assembleLibrary({ luaDir }).digest,
  })
  expect(await store.fcall('hf_answer', '{hf}', [2], { readOnly: true })).toEqual(['{hf}', 42])
})

it('replaces an older library, and one of the same version with other code', async () => {
  putVersion(libraryVersion - 1)
  expect(await loadLibrary(store, { luaDir })).toEqual({ kind: 'loaded', version: libraryVersion })
  write('lib/a.lua', 'do\n  hf.base = 50\nend\n')
  const state = await verifyLibrary(store, { luaDir })
  expect(state).toMatchObject({ kind: 'differs', version: libraryVersion })
  expect(await loadLibrary(store, { luaDir })).toEqual({ kind: 'loaded', version: libraryVersion })
  expect(await store.fcall('hf_answer', '{hf}', [2])).toEqual(['{hf}', 52])
})

it('leaves a newer library in place, and says so when a function is not in it', async () => {
  putVersion(libraryVersion + 1)
  expect(await loadLibrary(store, { luaDir })).toEqual({ kind: 'newer', version: libraryVersion + 1 })
  expect(await verifyLibrary(store, { luaDir })).toMatchObject({
    kind: 'differs',
    version: libraryVersion + 1,
  })
  await expect(store.fcall('hf_push', '{hf}', ['x'])).rejects.toMatchObject({ code: 'LIBRARY_NEWER' })
  expect(server.cli('FCALL_RO', 'hf_version', '0')).toBe(String(libraryVersion + 1))
})

it('lets several processes load at once', async () => {
  const others = await Promise.all([1, 2, 3].map(() => openStore({ url: server.url, name: 'other', luaDir })))
  const answers = await Promise.all(others.map((other) => loadLibrary(other, { luaDir })))
  for (const { version } of answers) expect(version).toBe(libraryVersion)
  await Promise.all(others.map((other) => other.close()))
  expect(await verifyLibrary(store, { luaDir })).toMatchObject({ kind: 'loaded' })
})

it('is loaded by the first call that misses it, once for all of them, and each runs once', async () => {
  const before = proxy.count('FUNCTION LOAD')
  let sent = 0
  const onSent = () => {
    sent += 1
  }
  const calls = Array.from({ length: 20 }, (_, n) => store.fcall('hf_push', '{hf}', [n], { onSent }))
  await Promise.all(calls)
  expect(sent).toBe(20)
  expect(proxy.count('FUNCTION LOAD') - before).toBe(1)
  expect(await store.call(['LLEN', '{hf}:list'])).toBe(20)
})

it('does not hide a function that exists nowhere, or a library that does not compile', async () => {
  // It was loaded, and is not there: as when somebody deletes it again and again. Nothing ran.
  await expect(store.fcall('hf_nowhere', '{hf}', [])).rejects.toThrow(
    /^STORE_UNAVAILABLE .*Function not found/,
  )
  write('functions/push.lua', 'this is not Lua')
  await expect(loadLibrary(store, { luaDir })).rejects.toThrow(/Error compiling function/)
})

it('keeps a lost reply of a function ambiguous and runs it once', async () => {
  await loadLibrary(store, { luaDir })
  const cut = proxy.cutAfterReply('FCALL hf_push')
  await expect(store.fcall('hf_push', '{hf}', ['x'])).rejects.toThrow(/^DEADLINE_EXCEEDED FCALL hf_push: /)
  await cut
  expect(await store.call(['LLEN', '{hf}:list'])).toBe(1)
})

it('survives a restart of the server', async () => {
  await loadLibrary(store, { luaDir })
  await server.restart()
  expect(await verifyLibrary(store, { luaDir })).toMatchObject({ kind: 'loaded' })
})

it('a call that has the library loaded keeps to its deadline', async () => {
  server.cli('CLIENT', 'PAUSE', '3000', 'WRITE') // FUNCTION LOAD waits, FCALL_RO and FUNCTION LIST do not
  const startedAt = performance.now()
  const called = store.fcall('hf_version', '{hf}', [], { deadlineMs: 300, readOnly: true })
  await expect(called).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringContaining('the library was not loaded in time'),
  })
  expect(performance.now() - startedAt).toBeLessThan(2500)
  server.cli('CLIENT', 'UNPAUSE')
})
