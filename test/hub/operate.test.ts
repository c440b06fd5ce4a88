import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openHub } from '../../src/hub/open-hub.js'
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
  record = await makeRecord(server, `operate-${records}`, { heartbeat_ms: 100, stale_after_ms: 60_000 })
})
afterEach(async () => {
  await stopNodes()
  await record.checkInvariants()
  await record.close()
})
afterAll(() => server?.stop())

const act = { actor: 'kim', reason: 'r' }
const start = (execute?: () => unknown) =>
  startNode({ redis: server.url, hub: record.name, host: 'a', node: 'n1', ...(execute ? { execute } : {}) })

it('every call has the deadline that the hub was opened with', async () => {
  const hub = await openHub({ redis: server.url, hub: record.name, deadlineMs: 200 })
  await hub.counts()
  server.freeze()
  const from = performance.now()
  const message = { key: 'k', conversation: 'c', sender: 's', to: [{ host: 'a' }], payload: 'p' }
  const ends = await Promise.allSettled([
    hub.counts(),
    hub.why(`${Date.now()}-00000000.1`),
    hub.drain('a', 'kim'),
    hub.accept(message),
  ])
  for (const end of ends) expect(end).toMatchObject({ reason: { code: 'DEADLINE_EXCEEDED' } })
  expect(performance.now() - from).toBeLessThan(4000)
  server.thaw()
  await hub.close()
  await record.hub.lift('pause', 'host:a', 'kim').catch(() => undefined) // where it arrived after all
})

describe('an operator', () => {
  it('drains a host: what runs ends, nothing more begins until it is lifted', async () => {
    const { executed } = await start()
    await record.hub.drain('a', 'kim')
    const [id = ''] = await record.acceptMany(1)
    await until(async () => (await record.fields(id))['parked_by'] === 'pause:host:a')
    expect(await record.hub.fences()).toMatchObject([
      { fence: 'pause:host:a', reason: 'drain', actor: 'kim' },
    ])
    await record.hub.lift('pause', 'host:a', 'kim')
    expect(await settlement(record, id)).toBe('done')
    expect(executed).toHaveLength(1)
  })

  it('holds a conversation, looks at what is held and why, releases one and rejects the other', async () => {
    await start()
    await record.hub.hold('conversation:c1', { reason: 'legal', actor: 'kim' })
    const [one = '', two = ''] = await record.acceptMany(2)
    await until(async () => (await record.hub.held()).length === 2)
    expect((await record.hub.held()).map(({ id, reason }) => ({ id, reason }))).toEqual(
      [one, two].map((id) => ({ id, reason: expect.stringContaining('hold:conversation:c1') })),
    )
    await record.hub.release(one, act)
    await record.hub.reject(two, act)
    expect(await settlement(record, one)).toBe('done')
    expect(await record.hub.delivery(two)).toMatchObject({ state: 'failed', reason: 'rejected r' })
    expect(await record.hub.held()).toEqual([])
  })

  it('cancels what waits behind a long handler: it never runs', async () => {
    let end: (value: unknown) => void = () => undefined
    const gate = new Promise((resolve) => {
      end = resolve
    })
    const { executed } = await start(() => gate)
    const [first = '', second = ''] = await record.acceptMany(2)
    await until(async () => executed.length === 1 && (await record.states([second]))[0] === 'delivered')
    await record.hub.cancel(second, act)
    end(1)
    expect(await settlement(record, first)).toBe('done')
    const [last = ''] = await record.acceptMany(1)
    expect(await settlement(record, last)).toBe('done')
    expect(executed.map(({ deliveryId }) => deliveryId)).toEqual([first, last])
  })

  it('holds and releases what a node had already taken on: it runs once, under the new epoch', async () => {
    let end: (value: unknown) => void = () => undefined
    const gate = new Promise((resolve) => {
      end = resolve
    })
    const { executed } = await start(() => gate)
    const [first = '', second = ''] = await record.acceptMany(2)
    await until(async () => executed.length === 1 && (await record.states([second]))[0] === 'delivered')
    await record.hub.holdDelivery(second, act)
    await record.hub.release(second, act)
    end(1)
    for (const id of [first, second]) expect(await settlement(record, id)).toBe('done')
    expect(executed.map(({ deliveryId }) => deliveryId)).toEqual([first, second])
    expect((await record.hub.delivery(second)).attempts).toHaveLength(1)
  })

  it('retires a host of more than a slice; its node ends, what ran may be reported', async () => {
    let end: (value: unknown) => void = () => undefined
    const gate = new Promise((resolve) => {
      end = resolve
    })
    const { node, executed } = await start(() => gate)
    const [running = ''] = await record.acceptMany(1)
    await until(() => executed.length === 1)
    const rest = await record.acceptMany(420)
    await record.hub.retire('a', act)
    expect(await record.hub.unknown()).toMatchObject([{ id: `${running}/1`, reason: 'retired' }])
    end(1)
    expect(await settlement(record, running)).toBe('done')
    expect(await record.hub.unknown()).toEqual([])
    expect(executed).toHaveLength(1)
    expect(new Set(await record.states(rest))).toEqual(new Set(['held']))
    expect(
      await until(() => Promise.race([node.closed, undefined]), { what: 'its node ending' }),
    ).toMatchObject({
      kind: 'failed',
      error: { code: 'HOST_RETIRED' },
    })
  })

  it('an idle node of a retired host ends by itself', async () => {
    const { node } = await start()
    await until(async () => String(await record.send('CLIENT', 'LIST')).includes('cmd=xread'))
    await record.hub.retire('a', act)
    expect(
      await until(() => Promise.race([node.closed, undefined]), { what: 'its node ending' }),
    ).toMatchObject({
      kind: 'failed',
      error: { code: 'HOST_RETIRED' },
    })
  })
})
