import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { redactUrl } from '../../src/record/address.js'
import { type BlockingReader, openBlockingReader } from '../../src/record/blocking-reader.js'
import { openStore, type Store } from '../../src/record/connections.js'
import { type FaultyProxy, startProxy } from '../support/proxy.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

let server: TestServer
let proxy: FaultyProxy
const opened: (Store | BlockingReader)[] = []

beforeAll(async () => {
  server = await startTestServer()
  proxy = await startProxy(server.port)
})

afterEach(async () => {
  server.thaw()
  proxy.restore()
  await Promise.all(opened.splice(0).map((connection) => connection.close()))
  server.cli('FLUSHALL')
})

afterAll(async () => {
  await proxy?.close()
  await server?.stop()
})

async function open(url: string, deadlineMs = 3_000): Promise<Store> {
  const store = await openStore({ url, name: 'test', deadlineMs })
  opened.push(store)
  return store
}

function openReader(url: string, connectDeadlineMs = 3_000): BlockingReader {
  const reader = openBlockingReader({ url, name: 'test-reader', connectDeadlineMs })
  opened.push(reader)
  return reader
}

describe('call', () => {
  it('answers text, numbers, nothing and buffers as the server gives them', async () => {
    const store = await open(server.url)
    const bytes = Buffer.from([0, 255, 13, 10, 128])
    expect(await store.call(['SET', 'k', bytes])).toBe('OK')
    expect(await store.call(['GET', 'k'], { buffers: true })).toEqual(bytes)
    expect(await store.call(['incrby', 'n', 7])).toBe(7)
    expect(await store.call(['GET', 'absent'])).toBeNull()
    await store.call(['HSET', 'h', 'a', '1', 'b', '2'])
    expect(await store.call(['hgetall', 'h'])).toEqual(['a', '1', 'b', '2'])
  })

  it('tells that a command was sent in the same tick, in order of calling', async () => {
    const store = await open(server.url)
    const events: string[] = []
    const first = store.call(['RPUSH', 'l', '1'], { onSent: () => events.push('sent 1') })
    events.push('called 1')
    const second = store.call(['RPUSH', 'l', '2'], { onSent: () => events.push('sent 2') })
    expect(events).toEqual(['sent 1', 'called 1', 'sent 2'])
    expect(await Promise.all([first, second])).toEqual([1, 2])
  })

  it('rejects a lost reply as ambiguous and never sends the command again', async () => {
    const store = await open(proxy.url)
    const cut = proxy.cutAfterReply('XADD lost-reply')
    const lost = store.call(['XADD', 'lost-reply', '*', 'a', 'b'])
    await expect(lost).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    await cut
    expect(await store.call(['XLEN', 'lost-reply'])).toBe(1)
    expect(proxy.count('XADD lost-reply')).toBe(1)
  })

  it('rejects everything under way on a lost socket, each written once', async () => {
    const store = await open(proxy.url)
    const cut = proxy.cutAfterReply((words) => words[2] === '10')
    const calls = Array.from({ length: 50 }, (_, n) => store.call(['RPUSH', 'burst', n]))
    const results = await Promise.allSettled(calls)
    await cut
    const lost = results.filter((result) => result.status === 'rejected')
    expect(lost.length).toBe(40)
    for (const { reason } of lost) expect(reason).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    const stored = (await store.call(['LRANGE', 'burst', 0, -1])) as string[]
    expect(new Set(stored).size).toBe(stored.length)
    expect(stored.length).toBeGreaterThanOrEqual(11)
  })

  it('calls it ambiguous when the socket is cut before the server saw a written command', async () => {
    const store = await open(proxy.url)
    const cut = proxy.cutBeforeSend('XADD cut-before')
    await expect(store.call(['XADD', 'cut-before', '*', 'a', 'b'])).rejects.toMatchObject({
      code: 'DEADLINE_EXCEEDED',
    })
    await cut
    expect(await store.call(['XLEN', 'cut-before'])).toBe(0)
  })

  it('rejects as unavailable when nothing was written, and drops the command for good', async () => {
    const store = await open(proxy.url)
    proxy.refuse()
    await until(() => !store.healthy)
    const onSent = vi.fn()
    const calledAt = performance.now()
    const call = store.call(['RPUSH', 'offline', 'x'], { deadlineMs: 300, onSent })
    await expect(call).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(performance.now() - calledAt).toBeLessThan(2_000)
    expect(onSent).not.toHaveBeenCalled()
    proxy.restore()
    expect(await store.call(['LLEN', 'offline'])).toBe(0)
    expect(store.healthy).toBe(true)
  })

  it('waits for the connection to come back within the deadline', async () => {
    const store = await open(proxy.url, 10_000)
    proxy.refuse()
    await until(() => !store.healthy)
    const call = store.call(['RPUSH', 'patient', 'x'])
    proxy.restore()
    expect(await call).toBe(1)
    expect(proxy.count('RPUSH patient')).toBe(1)
  })

  it('drops a half-open socket at the deadline, and a late delivery runs once', async () => {
    const store = await open(proxy.url)
    proxy.blackhole(true)
    const silent = store.call(['RPUSH', 'half-open', 'x'], { deadlineMs: 200 })
    await expect(silent).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(store.healthy).toBe(false)
    proxy.blackhole(false)
    expect(await store.call(['PING'], { deadlineMs: 10_000 })).toBe('PONG')
    expect(await until(async () => (await store.call(['LLEN', 'half-open'])) === 1)).toBe(true)
    expect(proxy.count('RPUSH half-open')).toBe(1)
  })

  it('gives up on a connection that is accepted and then silent, and tries again', async () => {
    proxy.blackhole(true)
    const opening = openStore({ url: proxy.url, name: 'test', connectDeadlineMs: 300 })
    await expect(opening).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    proxy.restore()

    const store = await openStore({ url: proxy.url, name: 'test', connectDeadlineMs: 300 })
    opened.push(store)
    proxy.blackhole(true)
    await expect(store.call(['PING'], { deadlineMs: 100 })).rejects.toMatchObject({
      code: 'DEADLINE_EXCEEDED',
    })
    // The reconnection runs into the same silence until its handshake is given up.
    await expect(store.call(['PING'], { deadlineMs: 1_000 })).rejects.toThrow(/not ready 300 ms after/)
    // What was held belongs to dropped sockets: only a fresh connection can answer.
    proxy.cutAll()
    proxy.blackhole(false)
    expect(await store.call(['PING'], { deadlineMs: 10_000 })).toBe('PONG')
  })

  it('is ambiguous when the server is frozen, then works on', async () => {
    const store = await open(server.url)
    server.freeze()
    const frozen = store.call(['RPUSH', 'frozen', 'x'], { deadlineMs: 200 })
    await expect(frozen).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    server.thaw()
    await until(async () => (await store.call(['LLEN', 'frozen'])) === 1)
  })

  it('connects again after the server was killed and restarted', async () => {
    const store = await open(server.url, 10_000)
    await store.call(['SET', 'kept', 'yes'])
    await server.kill9()
    await until(() => !store.healthy)
    await server.restart()
    expect(await store.call(['GET', 'kept'])).toBe('yes')
  })

  it('reads an answer that came while the process itself was stalled', async () => {
    const store = await open(server.url)
    const call = store.call(['PING'], { deadlineMs: 50 })
    const stalledUntil = performance.now() + 300
    while (performance.now() < stalledUntil);
    expect(await call).toBe('PONG')
  })

  it('refuses calls after close, and lets those under way finish', async () => {
    const store = await openStore({ url: server.url, name: 'test' })
    const last = store.call(['RPUSH', 'closing', 'x'])
    await store.close()
    expect(await last).toBe(1)
    await expect(store.call(['PING'])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(store.healthy).toBe(false)
  })
})

describe('error replies', () => {
  const fail = (text: string) => ['EVAL', 'return redis.error_reply(ARGV[1])', 0, text]

  it.each([
    ['STALE_EPOCH delivery d1 is at epoch 3', 'STALE_EPOCH'],
    ['PAUSED', 'PAUSED'],
    ['MISCONF cannot persist', 'STORE_UNAVAILABLE'],
    ['LOADING the dataset', 'STORE_UNAVAILABLE'],
    ['NOREPLICAS not enough', 'STORE_UNAVAILABLE'],
  ])('%s', async (text, code) => {
    const store = await open(server.url)
    const failed = await store.call(fail(text)).catch((error: unknown) => error)
    expect(failed).toMatchObject({ name: 'HoldfastError', code })
    expect(String(failed)).toContain(text)
    expect(store.healthy).toBe(code !== 'STORE_UNAVAILABLE')
  })

  it('passes any other error on as a plain Error without the arguments', async () => {
    const store = await open(server.url)
    await store.call(['SET', 'text', 'x'])
    const failed = await store.call(['LPUSH', 'text', 'secret payload']).catch((error: unknown) => error)
    expect(failed).toBeInstanceOf(Error)
    expect(failed).toMatchObject({ name: 'Error', message: expect.stringMatching(/^WRONGTYPE /) })
    expect(JSON.stringify(failed)).not.toContain('secret')
  })

  it('maps a full memory, and a demoted primary, which it leaves', async () => {
    const store = await open(server.url)
    server.cli('CONFIG', 'SET', 'maxmemory', '1')
    await expect(store.call(['SET', 'full', 'x'])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    server.cli('CONFIG', 'SET', 'maxmemory', '0')
    const before = await store.call(['CLIENT', 'ID'])
    server.cli('REPLICAOF', '127.0.0.1', '1')
    await expect(store.call(['SET', 'demoted', 'x'])).rejects.toThrow(/^STORE_UNAVAILABLE READONLY/)
    server.cli('REPLICAOF', 'NO', 'ONE')
    expect(await store.call(['SET', 'demoted', 'x'])).toBe('OK')
    expect(await store.call(['CLIENT', 'ID'])).not.toBe(before)
  })
})

describe('pipeline', () => {
  it('answers all in order, and throws on the first error', async () => {
    const store = await open(server.url)
    await store.call(['SET', 'a', '1'])
    expect(
      await store.pipeline([
        ['GET', 'a'],
        ['GET', 'b'],
        ['STRLEN', 'a'],
      ]),
    ).toEqual(['1', null, 1])
    await expect(
      store.pipeline([
        ['GET', 'a'],
        ['LLEN', 'a'],
      ]),
    ).rejects.toThrow(/^WRONGTYPE/)
    expect(await store.pipeline([])).toEqual([])
  })
})

describe('the URL', () => {
  it('takes user, password and database', async () => {
    server.cli('ACL', 'SETUSER', 'kim', 'on', '>p@ss/word', '~*', '+@all')
    const store = await open(`redis://kim:p%40ss%2Fword@127.0.0.1:${server.port}/3`)
    expect(await store.call(['ACL', 'WHOAMI'])).toBe('kim')
    await store.call(['SET', 'where', 'db3'])
    expect(server.cli('-n', '3', 'GET', 'where')).toBe('db3')
    expect(store.url).toBe(`redis://kim:***@127.0.0.1:${server.port}/3`)
  })

  it('keeps the password out of every error, and fails at once when it is wrong', async () => {
    server.cli('ACL', 'SETUSER', 'lee', 'on', '>right', '~*', '+@all')
    const opening = openStore({ url: `redis://lee:wr0ng-secret@127.0.0.1:${server.port}`, name: 'test' })
    const failed = await opening.catch((error: unknown) => error)
    expect(failed).toMatchObject({ code: 'STORE_UNAVAILABLE', message: expect.stringContaining('WRONGPASS') })
    expect(String(failed)).not.toContain('wr0ng-secret')
    expect(() => redactUrl('http://u:wr0ng-secret@h')).toThrow(/^INVALID_ARGUMENT (?!.*wr0ng-secret)/)
    expect(() => redactUrl('wr0ng-secret')).toThrow(/^INVALID_ARGUMENT (?!.*wr0ng-secret)/)
  })

  it('never works on database 0 when the asked-for one does not exist', async () => {
    const opening = openStore({ url: `${server.url}/999`, name: 'test', connectDeadlineMs: 2_000 })
    await expect(opening).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })

  it('nor after a reconnection that may not select its database any more', async () => {
    server.cli('ACL', 'SETUSER', 'sam', 'on', '>right', '~*', '+@all')
    const store = await open(`redis://sam:right@127.0.0.1:${server.port}/3`)
    server.cli('ACL', 'SETUSER', 'sam', '-select')
    server.cli('CLIENT', 'KILL', 'USER', 'sam')
    await until(() => !store.healthy)
    await expect(store.call(['SET', 'astray', 'x'])).rejects.toThrow(/^STORE_UNAVAILABLE .*NOPERM/)
    expect(server.cli('GET', 'astray')).toBe('')
    server.cli('ACL', 'SETUSER', 'sam', '+select')
    expect(await until(() => store.call(['SET', 'astray', 'x']))).toBe('OK')
    expect(server.cli('-n', '3', 'GET', 'astray')).toBe('x')
  })

  it('is unavailable where nothing listens', async () => {
    const opening = openStore({ url: 'redis://127.0.0.1:1', name: 'test', connectDeadlineMs: 300 })
    await expect(opening).rejects.toThrow(/^STORE_UNAVAILABLE redis:\/\/127.0.0.1:1: .*ECONNREFUSED/)
  })
})

it('says so where what answers is no Redis', async () => {
  const web = createServer((_, response) => response.end())
  await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve))
  const { port } = web.address() as AddressInfo
  try {
    const opening = openStore({ url: `redis://127.0.0.1:${port}`, name: 'test', connectDeadlineMs: 300 })
    await expect(opening).rejects.toThrow(/\(what answers there does not speak the protocol of Redis\)/)
  } finally {
    await new Promise((resolve) => web.close(resolve))
  }
})

describe('a blocking reader', () => {
  const isBlocked = () => server.cli('INFO', 'clients').includes('blocked_clients:1')

  it('wakes with the id of the new entry', async () => {
    const reader = openReader(server.url)
    const reading = reader.read({ s1: '0-0', s2: '0-0' }, 20_000)
    await until(isBlocked)
    server.cli('XADD', 's2', '5-1', 'a', 'b')
    expect(await reading).toEqual({ s2: '5-1' })
  })

  it('answers at once what is there, for each stream', async () => {
    server.cli('XADD', 's1', '1-1', 'a', 'b')
    server.cli('XADD', 's2', '2-1', 'a', 'b')
    const reader = openReader(server.url)
    expect(await reader.read({ s1: '0-0', s2: '0-0', s3: '0-0' }, 20_000)).toEqual({ s1: '1-1', s2: '2-1' })
  })

  it('answers nothing when the time has passed', async () => {
    expect(await openReader(server.url).read({ s1: '$' }, 20)).toEqual({})
  })

  it('stops at once when aborted, before and during the read, and can read again', async () => {
    const reader = openReader(server.url)
    expect(await reader.read({ s1: '$' }, 20_000, { signal: AbortSignal.abort() })).toEqual({})
    const stopping = new AbortController()
    const reading = reader.read({ s1: '$' }, 20_000, { signal: stopping.signal })
    await until(isBlocked)
    const abortedAt = performance.now()
    stopping.abort()
    expect(await reading).toEqual({})
    expect(performance.now() - abortedAt).toBeLessThan(500)
    await until(() => !isBlocked())
    server.cli('XADD', 's1', '7-1', 'a', 'b')
    expect(await reader.read({ s1: '0-0' }, 20_000)).toEqual({ s1: '7-1' })
  })

  it('waits on the connection that it is told, and never on a later one', async () => {
    const reader = openReader(proxy.url)
    server.cli('XADD', 's1', '7-1', 'a', 'b')
    expect(await reader.read({ s1: '0-0' }, 20_000)).toEqual({ s1: '7-1' })
    const over = reader.connections
    expect(await reader.read({ s1: '0-0' }, 20_000, { over })).toEqual({ s1: '7-1' })
    proxy.cutAll()
    await until(() => reader.read({ s1: '0-0' }, 20_000).catch(() => undefined))
    expect(await reader.read({ s1: '7-1' }, 20_000, { over })).toEqual({})
  })

  it('does not wait for ever on a half-open socket', async () => {
    const reader = openReader(proxy.url)
    await reader.read({ s1: '$' }, 1)
    proxy.blackhole(true)
    const calledAt = performance.now()
    expect(await reader.read({ s1: '$' }, 100)).toEqual({})
    expect(performance.now() - calledAt).toBeLessThan(4_000)
    proxy.blackhole(false)
    server.cli('XADD', 's1', '8-1', 'a', 'b')
    expect(await reader.read({ s1: '0-0' }, 20_000)).toEqual({ s1: '8-1' })
  })

  it('rejects as unavailable when the connection is lost or cannot be made', async () => {
    const reader = openReader(proxy.url, 2000)
    const reading = reader.read({ s1: '$' }, 20_000)
    const lost = expect(reading).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await until(isBlocked)
    proxy.refuse()
    await lost
    await expect(reader.read({ s1: '$' }, 20_000)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })

  it('ends a read under way when closed', async () => {
    const reader = openReader(server.url)
    const reading = reader.read({ s1: '$' }, 20_000)
    await until(isBlocked)
    await reader.close()
    expect(await reading).toEqual({})
  })
})
