import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { killChildren, startHubProcess } from '../support/child.js'
import { makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

let server: TestServer
let record: TestRecord

beforeAll(async () => {
  server = await startTestServer()
})
afterEach(async () => {
  await killChildren()
  await record.close()
})
afterAll(() => server?.stop())

const hosts = (count: number) => Array.from({ length: count }, (_, at) => ({ host: `h${at}` }))
const messageTo = (count: number) => ({
  key: 'k',
  conversation: 'c',
  sender: 's',
  to: hosts(count),
  payload: 'to all',
})

/** One delivery for each, in the order they were named; nothing is owed. */
async function expectWhole(id: string, count: number): Promise<void> {
  const view = await record.hub.message(id)
  expect(view).toMatchObject({ recipients: count, fanOut: 'complete' })
  expect(view.deliveries.map(({ host }) => host)).toEqual(hosts(count).map(({ host }) => host))
  expect(await record.send('EXISTS', record.keys.recipients(id))).toBe(0)
  expect(await record.send('ZCARD', record.keys.obligations)).toBe(0)
}

describe('faults.md 27: recipients', () => {
  it('none: complete and settled at once, not stuck', async () => {
    record = await makeRecord(server, 'fan-0')
    const accepted = await record.hub.accept(messageTo(0))
    expect(accepted).toMatchObject({ deliveries: [], fanOut: 'complete', replayed: false })
    expect((await record.hub.waitFor(accepted.id, 10_000)).settledAt).toBeDefined()
    expect(await record.hub.accept(messageTo(0))).toMatchObject({ id: accepted.id, replayed: true })
    await expectWhole(accepted.id, 0)
    await record.checkInvariants()
  })

  it.each([1, 127, 128, 129])('%i: each has one delivery', async (count) => {
    record = await makeRecord(server, `fan-${count}`)
    const accepted = await record.hub.accept(messageTo(count))
    expect(accepted.fanOut).toBe('complete')
    expect(accepted.deliveries).toHaveLength(count)
    await expectWhole(accepted.id, count)
    await record.checkInvariants()
  })

  it('10,000 in one go: each has one delivery', async () => {
    record = await makeRecord(server, 'fan-10000')
    const accepted = await record.hub.accept(messageTo(10_000))
    expect(accepted.deliveries).toHaveLength(10_000)
    await expectWhole(accepted.id, 10_000)
    const node = await record.join('h9999', 'n1')
    expect(await record.deliverAll(node)).toHaveLength(1)
  })

  it('10,000: made in chunks, each a call of its own', async () => {
    record = await makeRecord(server, 'fan-10000-chunks')
    let reply = await record.accept({ to: hosts(10_000) })
    expect(reply.made).toBe(128)
    while (reply.made < reply.recipients) {
      const before: number = reply.made
      reply = await record.functions.fanOut(reply.id, 64)
      expect(reply.made - before).toBe(Math.min(64, 10_000 - before))
    }
    await expectWhole(reply.id, 10_000)
  })
})

describe('faults.md 27: a hub is killed at every chunk of a long fan-out', () => {
  const inline = 2
  const chunk = 64
  const chunks = 5
  const total = inline + chunks * chunk - 7

  it.each(['fan_out.before', 'fan_out.sent', 'fan_out.answered'] as const)(
    'at %s, one hub after the other: every recipient has one delivery',
    async (point) => {
      record = await makeRecord(server, `killed-${point.replace('_', '-')}`, { inline_fan_out: inline })
      const made = async () => Number((await record.hub.counts())['queued'] ?? 0)
      const first = startHubProcess({
        redis: server.url,
        hub: record.name,
        message: messageTo(total),
        at: { point, signal: 'SIGKILL' },
      })
      await first.line('hit', point)
      expect(await first.ended).toBe('SIGKILL')
      for (let before = await made(); before < total; ) {
        await record.checkInvariants()
        // A hub that dies before its first chunk brings nothing on: it gets one chunk further each time.
        const nth = point === 'fan_out.before' ? 2 : 1
        const at = { point, nth, signal: 'SIGKILL' } as const
        const next = startHubProcess({ redis: server.url, hub: record.name, at })
        const end = await next.ended
        const now = await until(async () => ((await made()) > before ? made() : undefined))
        if (end !== 'SIGKILL') expect(now).toBe(total)
        before = now
      }
      await record.checkInvariants()
      const again = await record.hub.accept(messageTo(total))
      expect(again).toMatchObject({ replayed: true, fanOut: 'complete' })
      await record.hub.repair()
      await expectWhole(again.id, total)
      await record.checkInvariants()
    },
  )
})
