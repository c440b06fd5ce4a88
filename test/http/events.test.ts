import { connect } from 'node:net'
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { call, openStream, type Stream, startHubServer, type TestHubServer } from '../support/http.js'
import { makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// GET /v1/events (contract section 10): the log as server-sent events.

let server: TestServer
let record: TestRecord
let hub: TestHubServer
const streams: Stream[] = []

/** A slow machine is no overload here. */
const serve = (over: TestRecord) => startHubServer(over, { limits: { lagMs: 0 } })

beforeAll(async () => {
  server = await startTestServer()
  record = await makeRecord(server, 'events')
  hub = await serve(record)
})
afterEach(async () => {
  await Promise.all(streams.splice(0).map((stream) => stream.close()))
})
afterAll(async () => {
  await hub?.close()
  await record?.close()
  await server?.stop()
})

/** Listens from after an event, or from now on. */
async function listen(after?: string, on: TestHubServer = hub): Promise<Stream> {
  const headers = after === undefined ? {} : { 'last-event-id': after }
  const stream = await openStream(on.url, { path: '/v1/events', headers })
  expect(stream.status).toBe(200)
  streams.push(stream)
  return stream
}

function eventsIn(text: string): EventSourceMessage[] {
  const events: EventSourceMessage[] = []
  createParser({ onEvent: (event) => void events.push(event) }).feed(text)
  return events
}

const idsIn = (stream: Stream) => eventsIn(stream.text()).map(({ id }) => id)

/** Waits for so many events. */
async function heard(stream: Stream, count: number): Promise<EventSourceMessage[]> {
  await until(() => eventsIn(stream.text()).length >= count, { what: `${count} events` })
  return eventsIn(stream.text())
}

async function logIds(after = '-'): Promise<string[]> {
  const from = after === '-' ? '-' : `(${after}`
  return ((await record.send('XRANGE', record.keys.log, from, '+')) as [string][]).map(([id]) => id)
}

const lastOfLog = async () => (await logIds()).at(-1) ?? '0-0'

async function waitingOn(on: TestHubServer): Promise<number> {
  const { text } = await call(on.url, { path: '/metrics' })
  return Number(/^holdfast_http_waiting (\d+)$/m.exec(text)?.[1])
}

/** Entries in the log by hand, so many bytes each; answers their ids. */
async function fill(count: number, bytes = 10): Promise<string[]> {
  const add = ['XADD', record.keys.log, '*', 'verb', 'test', 'actor', 'test', 'detail', 'x'.repeat(bytes)]
  const ids: string[] = []
  while (ids.length < count) {
    const batch = Array.from({ length: Math.min(100, count - ids.length) }, () => add)
    ids.push(...((await record.store.pipeline(batch)) as string[]))
  }
  return ids
}

describe('a stream', () => {
  it('has every entry of the log once, in order, as it is', async () => {
    await record.accept({ to: [{ host: 'b' }] })
    const before = await lastOfLog()
    const stream = await listen()
    const node = await record.join('a', 'n1')
    const { id } = await record.accept({ to: [{ host: 'a' }, { host: 'b' }] })
    await record.hub.pause('conversation:c9', { reason: 'two\nlines: ✓', actor: 'kim' })
    await record.claim(node)
    const expected = await logIds(before)
    const events = await heard(stream, expected.length)
    expect(events.map(({ id }) => id)).toEqual(expected)
    expect(events.map(({ event }) => event)).toEqual(['join', 'accept', 'pause', 'claim'])
    expect(events.map(({ data }) => JSON.parse(data))).toMatchObject([
      { verb: 'join' },
      {
        at: Number(expected[1]?.split('-')[0]),
        verb: 'accept',
        hosts: ['a', 'b'],
        details: { recipients: '2' },
      },
      {
        actor: 'kim',
        changes: [],
        hosts: [],
        details: { reason: 'two\nlines: ✓', scope: 'conversation:c9' },
      },
      { changes: [{ ids: [`${id}.1`], from: 'queued', to: 'claimed' }] },
    ])
  })

  it('begins with the oldest entry after 0-0, in more reads than one', async () => {
    await fill(950)
    const stream = await listen('0-0')
    await heard(stream, 950)
    await record.accept()
    const expected = await logIds()
    await heard(stream, expected.length)
    expect(idsIn(stream)).toEqual(expected)
  })

  it('is the same for everyone who listens', async () => {
    const from = await lastOfLog()
    const listeners = await Promise.all(Array.from({ length: 20 }, () => listen()))
    await record.acceptMany(30)
    const expected = await logIds(from)
    for (const each of listeners) {
      await heard(each, expected.length)
      expect(idsIn(each)).toEqual(expected)
    }
  })

  it('is resumed by header and by query, again and again, without loss or repeat', async () => {
    const from = await lastOfLog()
    const writing = (async () => {
      for (let n = 0; n < 20; n += 1) await record.acceptMany(10)
    })()
    const seen: string[] = []
    let last = from
    for (let turn = 0; seen.length < 200; turn += 1) {
      const asked =
        turn % 2 === 0
          ? { path: '/v1/events', headers: { 'last-event-id': last } }
          : { path: `/v1/events?lastEventId=${last}` }
      const stream = await openStream(hub.url, asked)
      await heard(stream, 1)
      await stream.close()
      seen.push(...idsIn(stream).map((id) => id ?? ''))
      last = seen.at(-1) ?? ''
    }
    await writing
    expect(seen).toEqual((await logIds(from)).slice(0, seen.length))
  })

  it('goes on where it was on another hub, and after a restart of its own', async () => {
    const from = await lastOfLog()
    const before = await serve(record)
    const first = await listen(undefined, before)
    await record.acceptMany(5)
    await heard(first, 5)
    await before.close()
    await first.ended
    await record.acceptMany(5)
    const after = await serve(record)
    const second = await listen(idsIn(first).at(-1), after)
    await heard(second, 5)
    const third = await listen(idsIn(first).at(-1), hub)
    await record.acceptMany(5)
    await heard(second, 10)
    await heard(third, 10)
    expect([...idsIn(first), ...idsIn(second)]).toEqual(await logIds(from))
    expect(idsIn(third)).toEqual(idsIn(second))
    await after.close()
  })
})

describe('with a server of its own, a stream', () => {
  let own: TestServer
  let shared: TestRecord
  let on: TestHubServer

  beforeAll(async () => {
    own = await startTestServer()
    shared = record
    record = await makeRecord(own, 'own')
    on = await serve(record)
  })
  afterAll(async () => {
    await on?.close()
    await record.close()
    record = shared
    await own?.stop()
  })

  it('stays while Redis is restarted, and misses nothing', async () => {
    const from = await lastOfLog()
    const stream = await listen(undefined, on)
    await record.acceptMany(3)
    await own.kill9()
    await own.restart()
    await until(() => record.acceptMany(3))
    // The hub has its own to say of the restart, before or after these are accepted.
    await until(async () => {
      expect(idsIn(stream)).toEqual(await logIds(from))
      return true
    })
  })

  it('outlives the loss of the record: a gap, then what is accepted after init', async () => {
    await record.accept()
    const lost = await lastOfLog()
    const stream = await listen(undefined, on)
    own.cli('FLUSHALL')
    const late = await listen(lost, on)
    expect(await call(on.url, { path: '/v1/events' })).toMatchObject({
      status: 503,
      json: { code: 'STORE_UNKNOWN' },
    })
    await record.functions.init('again', true)
    await record.accept()
    for (const each of [stream, late]) {
      const events = await heard(each, 2)
      expect(events.map(({ event }) => event)).toEqual(['gap', 'accept'])
      expect(JSON.parse(events[0]?.data ?? '')).toMatchObject({ after: lost })
      expect(events[1]?.id).toBe(await lastOfLog())
    }
  })
})

describe('a gap is told', () => {
  it('where the log was trimmed past the id', async () => {
    await record.acceptMany(3)
    const after = await lastOfLog()
    await record.acceptMany(10)
    await record.send('XTRIM', record.keys.log, 'MAXLEN', 4)
    const rest = await logIds()
    const stream = await listen(after)
    await heard(stream, 5)
    await record.accept()
    const events = await heard(stream, 6)
    expect(events[0]).toMatchObject({ event: 'gap', id: after })
    expect(JSON.parse(events[0]?.data ?? '')).toEqual({ after, first: rest[0] })
    expect(events.slice(1).map(({ id }) => id)).toEqual(await logIds())
  })

  it('not where the id is the oldest entry still there', async () => {
    await record.acceptMany(10)
    await record.send('XTRIM', record.keys.log, 'MAXLEN', 4)
    const [oldest = '', ...rest] = await logIds()
    const stream = await listen(oldest)
    await heard(stream, 3)
    expect(idsIn(stream)).toEqual(rest)
  })

  it('for an id ahead of the log', async () => {
    await record.acceptMany(3)
    const end = await lastOfLog()
    const ahead = `${Date.now() + 3_600_000}-7`
    const stream = await listen(ahead)
    await heard(stream, 1)
    await record.acceptMany(2)
    const events = await heard(stream, 3)
    expect(events[0]).toMatchObject({ event: 'gap', id: end })
    expect(JSON.parse(events[0]?.data ?? '')).toEqual({ after: ahead, first: end })
    expect(events.slice(1).map(({ id }) => id)).toEqual(await logIds(end))
  })

  it('for an id within the log that is no entry of it: the record lost what was there', async () => {
    await record.accept()
    const lost = await lastOfLog()
    await record.send('XDEL', record.keys.log, lost)
    await record.accept()
    await record.accept()
    const stream = await listen(lost)
    const events = await heard(stream, 3)
    expect(events.map(({ event }) => event)).toEqual(['gap', 'accept', 'accept'])
    expect(events.slice(1).map(({ id }) => id)).toEqual(await logIds(lost))
  })

  it('where the log is empty now, and then all that comes is told', async () => {
    await record.accept()
    const stream = await listen()
    await record.send('DEL', record.keys.log)
    await record.accept()
    const events = await heard(stream, 2)
    expect(events.map(({ event }) => event)).toEqual(['gap', 'accept'])
    expect(events[1]?.id).toBe(await lastOfLog())
  })
})

it('an id that is none is refused with 400', async () => {
  for (const id of ['x', '1', '1-', '-1', '1-1-1', '+', '$', '1764430000000_0', '9'.repeat(40), 'é-1']) {
    const byQuery = { path: `/v1/events?lastEventId=${encodeURIComponent(id)}` }
    const byHeader = { path: '/v1/events', headers: { 'last-event-id': id } }
    for (const asked of [byQuery, byHeader]) {
      const answer = await call(hub.url, asked)
      expect(answer.status, answer.text).toBe(400)
      expect(answer.headers.get('content-type')).toContain('application/problem+json')
      expect(answer.json).toMatchObject({ code: 'INVALID_ARGUMENT' })
    }
  }
})

it('is kept alive by comments while nothing happens', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const stream = await listen()
  vi.advanceTimersByTime(60_000)
  vi.useRealTimers()
  await until(
    () =>
      stream
        .text()
        .split('\n')
        .filter((line) => line.startsWith(':')).length >= 4,
    {
      what: 'four comments',
    },
  )
  await record.accept()
  expect(await heard(stream, 1)).toHaveLength(1)
})

/** Asks for the stream from the beginning, and reads nothing of it until it is resumed. */
async function listenDeafly() {
  const { hostname, port } = new URL(hub.url)
  const socket = connect(Number(port), hostname)
  const events: { readonly id: string | undefined; readonly event: string | undefined }[] = []
  // To the parser the head of the answer is a block without data.
  const parser = createParser({ onEvent: ({ id, event }) => void events.push({ id, event }) })
  socket.setEncoding('utf8').on('error', () => undefined)
  socket.on('data', (text: string) => parser.feed(text))
  socket.pause()
  socket.write(`GET /v1/events HTTP/1.0\r\nHost: ${hostname}:${port}\r\nLast-Event-ID: 0-0\r\n\r\n`)
  await until(async () => (await waitingOn(hub)) === 1, { what: 'the stream beginning' })
  await settled()
  return { socket, events }
}

/** Reads of the log that Redis has served. */
async function reads(): Promise<number> {
  return Number(/cmdstat_xrange:calls=(\d+)/.exec(String(await record.send('INFO', 'commandstats')))?.[1])
}

/** Resolves when the log is not read any more: there is nothing new, or the client does not take it. */
async function settled(): Promise<void> {
  let [count, same] = [-1, 0]
  await until(
    async () => {
      const now = await reads()
      same = now === count ? same + 1 : 0
      count = now
      return same >= 8
    },
    { everyMs: 25, what: 'the log at rest' },
  )
}

describe('a reader that is slow', () => {
  let shared: TestRecord
  let sharedHub: TestHubServer
  /** More than the sockets between hub and reader take. */
  const [entries, bytes] = [400, 20 * 1024]
  let ids: string[]
  let records = 0

  beforeAll(() => {
    shared = record
    sharedHub = hub
  })
  beforeEach(async () => {
    records += 1
    record = await makeRecord(server, `slow-${records}`)
    hub = await serve(record)
    ids = await fill(entries, bytes)
  })
  afterEach(async () => {
    await hub.close()
    await record.send('DEL', record.keys.log)
    await record.close()
  })
  afterAll(() => {
    record = shared
    hub = sharedHub
  })

  it('does not make the hub read on, and loses nothing', async () => {
    const before = await reads()
    const { socket, events } = await listenDeafly()
    // Three commands a read, 200 entries a read: the hub holds one read, beside what the sockets take.
    const first = (await reads()) - before
    expect(first).toBeLessThanOrEqual(9)
    ids.push(...(await fill(100, bytes)))
    await settled()
    expect((await reads()) - before).toBe(first)
    socket.resume()
    await until(() => events.length >= ids.length, { timeoutMs: 20_000, what: 'every event' })
    expect(events.map(({ id }) => id)).toEqual(ids)
    socket.destroy()
  })

  it('is told of a gap where the log was trimmed meanwhile', async () => {
    const { socket, events } = await listenDeafly()
    await fill(10)
    await record.send('XTRIM', record.keys.log, 'MAXLEN', 5)
    const rest = await logIds()
    socket.resume()
    await until(() => events.at(-1)?.id === rest.at(-1), { timeoutMs: 20_000, what: 'the last event' })
    const gap = events.findIndex(({ event }) => event === 'gap')
    expect(events.slice(0, gap).map(({ id }) => id)).toEqual(ids.slice(0, gap))
    expect(events.slice(gap + 1).map(({ id }) => id)).toEqual(rest)
    socket.destroy()
  })

  it('is forgotten when it goes away', async () => {
    const { socket } = await listenDeafly()
    socket.destroy()
    await until(async () => (await waitingOn(hub)) === 0, { what: 'nobody waiting' })
    const from = performance.now()
    await hub.close()
    expect(performance.now() - from).toBeLessThan(1000)
  })

  it('does not hold up the end of the hub', async () => {
    const { socket } = await listenDeafly()
    const from = performance.now()
    await hub.close()
    expect(performance.now() - from).toBeLessThan(3000)
    socket.destroy()
  })
})

it('a client that goes away is forgotten: nothing waits, and nothing is read for it', async () => {
  await until(async () => (await waitingOn(hub)) === 0, { what: 'nobody waiting' })
  const listeners = await Promise.all(Array.from({ length: 10 }, () => listen()))
  expect(await waitingOn(hub)).toBe(10)
  await Promise.all(listeners.map((each) => each.close()))
  await until(async () => (await waitingOn(hub)) === 0, { what: 'nobody waiting' })
  const before = await reads()
  await record.accept()
  const alone = await listen(await lastOfLog())
  await record.accept()
  await heard(alone, 1)
  expect((await reads()) - before).toBeLessThan(12)
})

it('the stream ends with the hub, at once', async () => {
  const ending = await serve(record)
  const listeners = await Promise.all(Array.from({ length: 10 }, () => listen(undefined, ending)))
  const from = performance.now()
  await ending.close()
  await Promise.all(listeners.map(({ ended }) => ended))
  expect(performance.now() - from).toBeLessThan(1000)
})

it('the stream is there for who asks for it by its type, and for nothing else', async () => {
  const refused = await call(hub.url, { path: '/v1/events', headers: { accept: 'application/json' } })
  expect(refused.status).toBe(406)
  const stream = await listen()
  expect(stream.text()).toBe('')
})
