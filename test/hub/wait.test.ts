import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openHub } from '../../src/hub/open-hub.js'
import { makeRecord, type TestNode, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

let server: TestServer
let record: TestRecord
let node: TestNode
let records = 0

beforeAll(async () => {
  server = await startTestServer()
})
beforeEach(async () => {
  records += 1
  record = await makeRecord(server, `wait-${records}`)
  node = await record.join('a', 'n1')
})
afterEach(() => record.close())
afterAll(() => server?.stop())

const longMs = 60_000

/** Executes everything queued for host a. */
async function settleAll(): Promise<void> {
  for (const item of await record.deliverAll(node)) {
    const { attempt, grant } = await record.begin(node, item)
    const outcome = { kind: 'result', result: '1' } as const
    await record.functions.report(node, [{ id: attempt, grant, key: `${grant}.outcome`, outcome }])
  }
}

const blockedReads = async () =>
  String(await record.send('CLIENT', 'LIST'))
    .split('\n')
    .filter((line) => line.includes('name=holdfast-tail') && / flags=[^ ]*b/.test(line)).length

const waiting = () => until(async () => (await blockedReads()) > 0, { what: 'a wait under way' })

describe('waitFor', () => {
  it('answers at once when all is settled, and when there was nobody to deliver to', async () => {
    const { id } = await record.accept()
    await settleAll()
    expect(await record.hub.waitFor(id, longMs)).toMatchObject({ id, deliveries: [{ state: 'delivered' }] })
    const none = await record.accept({ to: [] })
    expect((await record.hub.waitFor(none.id, longMs)).deliveries).toEqual([])
  })

  it('wakes when the last delivery is settled, with the outcomes', async () => {
    const { id } = await record.accept()
    const wait = record.hub.waitFor(id, longMs)
    await waiting()
    await settleAll()
    const view = await wait
    expect(view.settledAt).toBeDefined()
    expect(view.deliveries[0]?.attempts).toMatchObject([{ status: 'done', result: '1' }])
  })

  it('does not wake for what goes on elsewhere, nor for one recipient of two', async () => {
    const { id } = await record.accept({ to: [{ host: 'a' }, { host: 'b' }] })
    let over = false
    const wait = record.hub.waitFor(id, longMs).then((view) => {
      over = true
      return view
    })
    await waiting()
    await settleAll()
    await record.acceptMany(3)
    await settleAll()
    expect(over).toBe(false)
    await record.functions.cancel(`${id}.2`, 'kim', 'r')
    expect((await wait).deliveries.map(({ state }) => state)).toEqual(['delivered', 'failed'])
  })

  it('answers the message as it stands when the time is up', async () => {
    const { id } = await record.accept()
    const view = await record.hub.waitFor(id, 50)
    expect(view).toMatchObject({ id, deliveries: [{ state: 'queued' }] })
    expect(view).not.toHaveProperty('settledAt')
    expect((await record.hub.waitFor(id, 0)).deliveries).toHaveLength(1)
  })

  it('keeps its time while others wait longer', async () => {
    const { id } = await record.accept()
    const other = await record.accept()
    let longOver = false
    const long = record.hub.waitFor(id, longMs).finally(() => {
      longOver = true
    })
    long.catch(() => undefined)
    await waiting()
    const from = performance.now()
    const views = await Promise.all([1, 2, 3].map(() => record.hub.waitFor(other.id, 100)))
    const tookMs = performance.now() - from
    expect(views.every(({ settledAt }) => settledAt === undefined)).toBe(true)
    expect(longOver).toBe(false)
    expect(tookMs).toBeLessThan(2500)
    await settleAll()
    await long
  })

  it('wakes each of many when its message is settled', async () => {
    const messages = await Promise.all(Array.from({ length: 20 }, () => record.accept()))
    const from = performance.now()
    const waits = Promise.all(messages.map(({ id }) => record.hub.waitFor(id, longMs)))
    await waiting()
    await settleAll()
    expect((await waits).every(({ settledAt }) => settledAt !== undefined)).toBe(true)
    expect(performance.now() - from).toBeLessThan(4900) // not woken by the end of a block
  })

  it('ends when the hub closes', async () => {
    const hub = await openHub({ redis: server.url, hub: record.name })
    const { id } = await record.accept()
    const wait = hub.waitFor(id, longMs).catch((error: unknown) => error)
    await waiting()
    await hub.close()
    await wait
    expect(await blockedReads()).toBe(0)
  })

  it('is refused at once for a message that is not there', async () => {
    const refusing = record.refused('MESSAGE_NOT_FOUND', () =>
      record.hub.waitFor('1764430000000-000000', 20_000),
    )
    const blocked = await Promise.race([refusing.then(() => false), waiting().then(() => true)])
    expect(blocked, 'it waits for what is not there').toBe(false)
  })

  it.each([Number.NaN, undefined, '1000'])('is refused for %s milliseconds', async (timeoutMs) => {
    const { id } = await record.accept()
    await record.refused('INVALID_ARGUMENT', () => record.hub.waitFor(id, timeoutMs as number))
  })

  it('is refused for what is no id, as every call is: by a rejection', async () => {
    let thrown: unknown
    let answer: Promise<unknown> | undefined
    try {
      answer = record.hub.waitFor('x', longMs)
    } catch (error) {
      thrown = error
    }
    expect(thrown, 'thrown instead of rejected').toBeUndefined()
    await expect(answer).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  })
})
