import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { silentLog } from '../../src/node/log.js'
import type { NodeTransport } from '../../src/node/transport.js'
import { openRedisTransport } from '../../src/node/transports/redis.js'
import { startNode, stopNodes } from '../support/nodes.js'
import { makeRecord, settlement, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

let server: TestServer
let record: TestRecord
let records = 0

beforeAll(async () => {
  server = await startTestServer()
})
beforeEach(async () => {
  records += 1
  record = await makeRecord(server, `block-${records}`, { heartbeat_ms: 100, stale_after_ms: 60_000 })
})
afterEach(async () => {
  await stopNodes()
  await record.checkInvariants()
  await record.close()
})
afterAll(() => server?.stop())

/** Ids of the clients that are blocked in a read. */
async function blocked(): Promise<string[]> {
  const text = String(await record.send('CLIENT', 'LIST'))
  const lines = text.split('\n').filter((line) => / flags=[^ ]*b/.test(line) && / cmd=xread /.test(line))
  return lines.map((line) => line.match(/^id=(\d+)/)?.[1] ?? '')
}

const someBlocked = () =>
  until(async () => ((await blocked()).length > 0 ? blocked() : undefined), { what: 'a blocked read' })

const blockMs = 60_000
const beat = { lastLogId: '0-0', progressAgeMs: 0, blocking: { sumMs: 0, longestMs: 0 } }

describe('faults.md 15: an idle node blocks in a read', () => {
  it('no step of it waits for the end of the block', async () => {
    const open = () => openRedisTransport({ redis: server.url, hub: record.name, log: silentLog })
    const [idle, transport] = [await open(), await open()]
    const aborting = new AbortController()
    try {
      const who = { host: 'a', node: 'n1', incarnation: 1 }
      await transport.join(who, 'i1', [], '0-0')
      const elsewhere = { host: 'b', node: 'n1', incarnation: 1 }
      await idle.join(elsewhere, 'i1', [], '0-0')
      const wait = { waitMs: blockMs, signal: aborting.signal }
      await idle.claim(elsewhere, 1, 1, wait)
      let over = false
      const waiting = idle.claim(elsewhere, 2, 1, wait).then(() => {
        over = true
      })
      const before = await someBlocked()
      const ids = await record.acceptMany(20)
      await allSteps(transport, who, ids.length)
      expect(over).toBe(false)
      expect(await blocked()).toEqual(before)
      aborting.abort()
      await waiting
    } finally {
      await Promise.all([idle.close(), transport.close()])
    }
  })

  /** Health, claims, and settlements: each answered while the block stands. */
  async function allSteps(
    transport: NodeTransport,
    who: { host: string; node: string; incarnation: number },
    count: number,
  ) {
    let settled = 0
    const at = { waitMs: 0, signal: new AbortController().signal }
    for (let request = 1; settled < count; request += 1) {
      await transport.heartbeat(who, beat)
      const { deliveries } = await transport.claim(who, request, 3, at)
      if (deliveries.length === 0) throw new Error(`${settled} of ${count} were handed out`)
      await transport.mirror(who, deliveries, {})
      await transport.ack(who, deliveries, {})
      const items = deliveries.map(({ id, epoch }) => ({ id, epoch, grant: `g-${id}` }))
      await transport.begin(who, items, {})
      const reports = items.map(({ id, grant }) => ({
        id,
        grant,
        key: `${grant}.outcome`,
        outcome: { kind: 'result', result: '1' } as const,
      }))
      const answers = await transport.report(who, reports, {})
      expect(answers.every(({ ok }) => ok)).toBe(true)
      settled += deliveries.length
    }
  }

  it('heartbeats of a node go on while its doorbell blocks', async () => {
    await startNode({ redis: server.url, hub: record.name, host: 'a' })
    const before = await someBlocked()
    const beatAt = async () => Number(await record.send('HGET', record.keys.node('a', 'a'), 'heartbeat_at'))
    const first = await beatAt()
    await until(async () => (await beatAt()) >= first + 500, { what: 'five heartbeats' })
    expect(await blocked()).toEqual(before)
  })

  it('a delivery wakes it at once, whatever else blocks', async () => {
    for (let at = 0; at < 5; at += 1)
      await startNode({ redis: server.url, hub: record.name, host: `idle-${at}` })
    await startNode({ redis: server.url, hub: record.name, host: 'a' })
    await until(async () => (await blocked()).length === 6, { what: 'six blocked reads' })
    const [id = ''] = await record.acceptMany(1)
    expect(await settlement(record, id)).toBe('done')
  })

  it('a hub answers while it waits for messages, and each wait ends by itself', async () => {
    const [one, two] = [await record.accept(), await record.accept({ to: [{ host: 'b' }] })]
    let over = 0
    const waits = [one, two].map(({ id }) =>
      record.hub.waitFor(id, blockMs).then((view) => {
        over += 1
        return view
      }),
    )
    await someBlocked()
    expect(await record.hub.message(one.id)).toMatchObject({ recipients: 1 })
    expect(over).toBe(0)
    await startNode({ redis: server.url, hub: record.name, host: 'b' })
    expect((await waits[1])?.settledAt).toBeDefined()
    expect(over).toBe(1)
    await startNode({ redis: server.url, hub: record.name, host: 'a' })
    expect((await waits[0])?.settledAt).toBeDefined()
  })
})
