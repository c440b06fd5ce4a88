import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { startNode, stopNodes } from '../support/nodes.js'
import { makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// faults.md 18: the script cache is flushed every 50 ms, the function library is deleted once.

let server: TestServer
let record: TestRecord
let flushing: NodeJS.Timeout | undefined

beforeAll(async () => {
  server = await startTestServer()
})
afterEach(async () => {
  clearInterval(flushing)
  await stopNodes()
  await record.close()
})
afterAll(() => server?.stop())

const total = 240

it('has no error that a user sees, and leaves no half step', async () => {
  record = await makeRecord(server, 'flushed', { heartbeat_ms: 100, inline_fan_out: 2 })
  const nodes = [
    await startNode({ redis: server.url, hub: record.name, host: 'a', node: 'n1' }),
    await startNode({ redis: server.url, hub: record.name, host: 'a', node: 'n2' }),
    await startNode({ redis: server.url, hub: record.name, host: 'b', node: 'n1' }),
  ]
  let flushes = 0
  flushing = setInterval(() => {
    void record.send('SCRIPT', 'FLUSH').then(() => {
      flushes += 1
    })
  }, 50)

  const ids: string[] = []
  const produce = async (at: number) => {
    const { deliveries, fanOut } = await record.hub.accept({
      key: `load-${at}`,
      conversation: `c${at % 7}`,
      sender: 's',
      to: ['a', 'b', 'c'].map((host) => ({ host })),
      payload: `${at}`,
    })
    expect(fanOut).toBe('complete')
    ids.push(...deliveries.filter(({ host }) => host !== 'c').map(({ id }) => id))
  }
  for (let at = 0; at < total; at += 8) {
    if (at === total / 2) await record.send('FUNCTION', 'DELETE', 'holdfast')
    await Promise.all(Array.from({ length: 8 }, (_, offset) => produce(at + offset)))
  }
  await until(async () => Number((await record.hub.counts())['done'] ?? 0) === ids.length, {
    timeoutMs: 30_000,
    what: `${ids.length} done`,
  })
  await until(() => flushes >= 10, { what: 'ten flushes' })

  const executed = nodes.flatMap((node) => node.executed.map(({ deliveryId }) => deliveryId))
  expect(executed.toSorted()).toEqual(ids.toSorted())
  const attempts = nodes.flatMap((node) => node.executed.map(({ number }) => number))
  expect(new Set(attempts)).toEqual(new Set([1]))
  const complaints = nodes
    .flatMap(({ logs }) => logs)
    .filter(({ log }) => /not answered|no answer|repeated|failed|cut off/.test(log))
  expect(complaints).toEqual([])
  await record.checkInvariants()
})

it('every kind of call brings a deleted library back by itself', async () => {
  record = await makeRecord(server, 'deleted')
  const node = await record.join('a', 'n1')
  const [id = ''] = await record.acceptMany(1)
  const calls: [string, () => Promise<unknown>][] = [
    ['a read', () => record.hub.why(id)],
    ['an accept', () => record.acceptMany(1)],
    ['a claim', () => record.claimAll(node)],
    ['a fence', () => record.hub.pause('hub', { actor: 'kim', reason: 'r' })],
    ['a join', () => record.join('b', 'n1')],
  ]
  for (const [what, call] of calls) {
    await record.send('FUNCTION', 'DELETE', 'holdfast')
    await expect(call(), what).resolves.toBeDefined()
  }
  await record.send('FUNCTION', 'DELETE', 'holdfast')
  await Promise.all(Array.from({ length: 16 }, () => record.acceptMany(1)))
  await record.checkInvariants()
})
