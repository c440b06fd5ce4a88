import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { call, openStream, type Stream, startHubServer, type TestHubServer } from '../support/http.js'
import { makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// GET /v1/events of what a filter wants, and summed up.

let server: TestServer
let record: TestRecord
let hub: TestHubServer
const streams: Stream[] = []

beforeAll(async () => {
  server = await startTestServer()
  record = await makeRecord(server, 'filters')
  hub = await startHubServer(record)
})
afterEach(async () => {
  await Promise.all(streams.splice(0).map((stream) => stream.close()))
})
afterAll(async () => {
  await hub?.close()
  await record?.close()
  await server?.stop()
})

async function listen(query: string): Promise<() => EventSourceMessage[]> {
  const stream = await openStream(hub.url, { path: `/v1/events?${query}` })
  expect(stream.status).toBe(200)
  streams.push(stream)
  return () => {
    const events: EventSourceMessage[] = []
    createParser({ onEvent: (event) => void events.push(event) }).feed(stream.text())
    return events
  }
}

async function lastId(): Promise<string> {
  const [last] = (await record.send('XREVRANGE', record.keys.log, '+', '-', 'COUNT', 1)) as [string][]
  return last?.[0] ?? '0-0'
}

test('only what every member of the filter wants comes, each at its place', async () => {
  const from = await lastId()
  const { id } = await record.accept({ to: [{ host: 'x' }] })
  await record.accept({ to: [{ host: 'y' }] })
  await record.hub.cancel(`${id}.1`, { actor: 'kim', reason: 'r' })
  await record.hub.pause('host:y', { actor: 'kim', reason: 'r' })
  const end = await lastId()
  const heard = async (filter: string, count: number) => {
    const events = await listen(`lastEventId=${from}&${filter}`)
    await until(() => events().length >= count, { what: `${count} events of ${filter}` })
    return events()
  }
  expect((await heard('verb=accept,pause&host=y', 2)).map(({ event }) => event)).toEqual(['accept', 'pause'])
  const [paused] = await heard('actor=kim&verb=pause', 1)
  expect(paused?.id).toBe(end)
  expect((await heard(`about=${id}`, 2)).map(({ event }) => event)).toEqual(['accept', 'cancel'])
})

test('a digest sums up all since the last, and says no more than one in its time', async () => {
  const from = await lastId()
  await record.accept({ to: [{ host: 'b' }] })
  await record.accept({ to: [{ host: 'a' }] })
  await record.hub.pause('host:c', { actor: 'kim', reason: 'r' })
  const startedAt = performance.now()
  const events = await listen(`lastEventId=${from}&digestMs=1000`)
  const [first] = await until(() => (events().length > 0 ? events() : undefined), { what: 'a digest' })
  expect(first).toMatchObject({ event: 'changes', id: await lastId() })
  expect(JSON.parse(first?.data ?? '')).toEqual({
    entries: 3,
    verbs: { accept: 2, pause: 1 },
    hosts: ['a', 'b'],
  })
  for (let made = 0; made < 20; made += 1) await record.accept({ to: [{ host: 'd' }] })
  await until(() => events().length >= 2, { what: 'the next digest' })
  expect(performance.now() - startedAt).toBeGreaterThan(990)
  await until(() => entriesIn(events()) === 23, { what: 'all that changed' })
  expect(events().length).toBeLessThanOrEqual(2 + Math.floor((performance.now() - startedAt) / 990))
  expect(events().at(-1)?.id).toBe(await lastId())
})

function entriesIn(events: EventSourceMessage[]): number {
  return events.reduce((sum, { data }) => sum + (JSON.parse(data) as { entries: number }).entries, 0)
}

test('a digest tells of a gap, and that any host may have work', async () => {
  const to = Array.from({ length: 120 }, (_, at) => ({ host: `many-${at}` }))
  await record.accept({ to })
  const events = await listen('lastEventId=1-0&verb=accept&digestMs=250')
  await until(() => events().length >= 2, { what: 'a gap and a digest' })
  expect(events().map(({ event }) => event)).toEqual(['gap', 'changes'])
  expect(JSON.parse(events()[1]?.data ?? '')).toMatchObject({ hosts: '*' })
})

test.each([
  'verb=',
  'verb=No',
  'verb=a,,b',
  'host=No',
  'actor=',
  'digestMs=249',
  'digestMs=10001',
  'other=1',
])('the filter %s is refused', async (query) => {
  for (const path of [`/v1/events?${query}`, `/v1/log?${query}`]) {
    const { status, json } = await call<{ code: string }>(hub.url, { path })
    expect({ status, code: json.code }, path).toEqual({ status: 400, code: 'INVALID_ARGUMENT' })
  }
})
