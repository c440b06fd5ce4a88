import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { DeliveryView } from '../../src/contract/delivery-views.js'
import { isHoldfastError } from '../../src/contract/errors.js'
import type { DeliveryFilter } from '../../src/contract/hub.js'
import { group } from '../../src/record/keys.js'
import { makeRecord, type TestNode, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

let server: TestServer
let record: TestRecord
let node: TestNode
let name = 0

beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server?.stop())
beforeEach(async () => {
  name += 1
  record = await makeRecord(server, `lists-${name}`)
  node = await record.join('a', 'n1')
})
afterEach(async () => {
  await record.checkInvariants()
  await record.close()
})

async function pages(filter: DeliveryFilter): Promise<DeliveryView[][]> {
  const found: DeliveryView[][] = []
  let cursor: string | undefined
  do {
    const page = await record.hub.deliveries({ ...filter, cursor })
    found.push([...page.deliveries])
    cursor = page.cursor
  } while (cursor !== undefined && found.length < 200)
  return found
}

const all = async (filter: DeliveryFilter) => (await pages(filter)).flat().map(({ id }) => id)
const fresh = { id: '', epoch: 0 }

describe('deliveries', () => {
  it('come whole and once over pages, 450 in every live state on two hosts', async () => {
    const ids = await record.acceptMany(300)
    const claimed = await record.claimAll(node, 250)
    const rest = claimed.slice(0, 250)
    await record.functions.mirror(node, rest.slice(0, 220))
    await record.functions.ack(node, rest.slice(0, 200))
    for (const [at, each] of rest.slice(0, 6).entries()) {
      await record.functions.refuse(node, [{ ...each, verdict: 'failed', reason: 'payload_corrupt' }])
      const last = rest[240 + at] ?? fresh
      await record.functions.refuse(node, [{ id: last.id, epoch: 1, verdict: 'unknown', reason: 'x' }])
    }
    ids.push(...(await record.acceptMany(150, { to: [{ host: 'b' }] })))

    for (const limit of [7, 100, 1000]) {
      const found = await all({ limit })
      expect(new Set(found).size).toBe(found.length)
      expect(found.toSorted()).toEqual(ids.toSorted())
    }
    const sizes = (await pages({ limit: 100 })).map((page) => page.length)
    expect(sizes.slice(0, -1).every((size) => size === 100)).toBe(true)
    expect((await all({ host: 'b' })).toSorted()).toEqual(ids.slice(300).toSorted())
    const counts = await record.hub.counts()
    for (const state of ['queued', 'claimed', 'mirrored', 'delivered', 'held', 'unknown'] as const) {
      const found = (await pages({ state, limit: 30 })).flat()
      expect(found.every((view) => view.state === state)).toBe(true)
      expect(found, state).toHaveLength(counts[state] ?? 0)
      expect(new Set(found.map(({ id }) => id)).size).toBe(found.length)
    }
  })

  it('do not skip any when some leave between two pages', async () => {
    await record.acceptMany(30)
    const delivered = await record.deliverAll(node)
    const first = await record.hub.deliveries({ state: 'delivered', limit: 10 })
    for (const { id } of first.deliveries.slice(0, 5)) {
      const open = await record.begin(node, { id, epoch: 1 })
      const outcome = { kind: 'result', result: '1' } as const
      await record.functions.report(node, [{ id: open.attempt, grant: open.grant, key: id, outcome }])
    }
    const seen = new Set(first.deliveries.map(({ id }) => id))
    for (let { cursor } = first; cursor !== undefined; ) {
      const page = await record.hub.deliveries({ state: 'delivered', limit: 10, cursor })
      for (const { id } of page.deliveries) seen.add(id)
      cursor = page.cursor
    }
    expect(delivered.map(({ id }) => id).filter((id) => !seen.has(id))).toEqual([])
  })

  it('do not skip or repeat any when a host appears between two pages', async () => {
    const ids = [
      ...(await record.acceptMany(5, { to: [{ host: 'm' }] })),
      ...(await record.acceptMany(5, { to: [{ host: 'z' }] })),
    ]
    const first = await record.hub.deliveries({ limit: 3 })
    await record.acceptMany(5, { to: [{ host: 'b' }] })
    const seen = first.deliveries.map(({ id }) => id)
    for (let { cursor } = first; cursor !== undefined; ) {
      const page = await record.hub.deliveries({ limit: 3, cursor })
      seen.push(...page.deliveries.map(({ id }) => id))
      cursor = page.cursor
    }
    expect(ids.filter((id) => !seen.includes(id))).toEqual([])
    expect(new Set(seen).size).toBe(seen.length)
  })

  it.each(['x', '0', '-1 ', '0 nonsense', '1 x'])('refuse the cursor %j', async (cursor) => {
    await record.acceptMany(1)
    const caught = await record.hub.deliveries({ host: 'a', cursor }).catch((error: unknown) => error)
    expect(isHoldfastError(caught, 'INVALID_ARGUMENT'), String(caught)).toBe(true)
  })
})

describe('views', () => {
  it('tell a delivery with its attempts and its timeline in order', async () => {
    await record.acceptMany(1)
    const [delivered = fresh] = await record.deliverAll(node)
    const open = await record.begin(node, delivered)
    const report = (
      key: string,
      outcome: { kind: 'outcome_unknown'; errorCode: string } | { kind: 'result'; result: string },
    ) => record.functions.report(node, [{ id: open.attempt, grant: open.grant, key, outcome }])
    await report('u', { kind: 'outcome_unknown', errorCode: 'timeout' })
    expect(await record.hub.unknown()).toEqual([
      expect.objectContaining({ id: open.attempt, reason: 'timeout', host: 'a' }),
    ])
    await report('r', { kind: 'result', result: '{"n":1.0}' })
    const view = await record.hub.delivery(delivered.id)
    expect(view).toMatchObject({ state: 'delivered', epoch: 1, owner: 'n1', host: 'a', conversation: 'c1' })
    expect(view.attempts).toMatchObject([{ status: 'done', outcome: 'result', result: '{"n":1.0}' }])
    const times = view.timeline.map(({ at }) => at)
    expect(times).toEqual(times.toSorted((one, other) => one - other))
    expect(view.timeline.map(({ what }) => what)).toEqual(
      expect.arrayContaining(['queued', 'claimed', 'mirrored', 'delivered', 'settled']),
    )
    expect(view.timeline.filter(({ what }) => what.startsWith('attempt'))).toMatchObject([
      { what: 'attempt 1 begun on a/n1', actor: 'a/n1', epoch: 1 },
      { what: 'attempt 1 unknown: timeout', reason: 'timeout' },
      { what: 'attempt 1 result', actor: 'a/n1' },
    ])
    expect(await record.hub.unknown()).toEqual([])
  })

  it('tell in a timeline who did something, and why', async () => {
    const [id = ''] = await record.acceptMany(1)
    const { hub } = record
    await hub.holdDelivery(id, { actor: 'kim', reason: 'looks wrong' })
    await hub.release(id, { actor: 'lee', reason: 'is right' })
    const said = async () => (await hub.delivery(id)).timeline.map(({ at, ...rest }) => rest)
    expect(await said()).toEqual(
      expect.arrayContaining([
        { what: 'queued' },
        { what: 'held', actor: 'kim', reason: 'looks wrong' },
        { what: 'requeued', actor: 'lee', reason: 'is right' },
      ]),
    )
    await hub.pause('conversation:c1', { actor: 'kim', reason: 'r' })
    await record.claimAll(node, 1)
    expect(await said()).toContainEqual({ what: 'parked', reason: 'pause:conversation:c1' })
    await hub.cancel(id, { actor: 'kim', reason: 'no more' })
    expect(await said()).toContainEqual(expect.objectContaining({ what: 'failed', actor: 'kim' }))
  })

  it('of a message all deliveries are listed by number, in every state', async () => {
    const to = Array.from({ length: 7 }, (_, at) => ({ host: at < 4 ? 'a' : 'b' }))
    const hosts = to.map(({ host }, at) => ({ host: `${host}${at}` }))
    const { id: message } = await record.accept({ to: hosts })
    await record.hub.cancel(`${message}.2`, { actor: 'kim', reason: 'r' })
    await record.hub.holdDelivery(`${message}.5`, { actor: 'kim', reason: 'r' })
    const numbers = async (filter: DeliveryFilter) =>
      (await all({ message, ...filter })).map((id) => Number(id.split('.')[1]))
    for (const limit of [1, 3, 100]) expect(await numbers({ limit })).toEqual([1, 2, 3, 4, 5, 6, 7])
    expect(await numbers({ state: 'held' })).toEqual([5])
    expect(await numbers({ host: 'b6' })).toEqual([7])
    expect(await numbers({ reason: 'operator', limit: 2 })).toEqual([])
    expect(await all({ message: '1-0' })).toEqual([])
  })

  it('show effects by pages, whatever their ids hold', async () => {
    const ids = [' x', 'a b', 'a  b', 'a/b', '{a}', 'z ']
    const claim = { type: 't', payloadHash: 'a'.repeat(64), executor: 'e' }
    for (const [at, id] of ids.entries()) {
      const { epoch } = await record.functions.claimEffect(id, { ...claim, grant: `g${at}` })
      const outcome = { kind: 'outcome_unknown', errorCode: 'cut' } as const
      await record.functions.settleEffect(id, { executor: 'e', grant: `g${at}`, epoch, outcome })
    }
    const pages: string[] = []
    for (let cursor: string | undefined; pages.length <= ids.length; ) {
      const page = await record.hub.effectPage({ limit: 1, cursor })
      pages.push(...page.entries.map(({ id }) => id))
      cursor = page.cursor
      if (cursor === undefined) break
    }
    expect(pages.toSorted()).toEqual(ids.toSorted())
    expect((await record.hub.effectPage({ executing: true })).entries).toHaveLength(ids.length)
    const first = await record.hub.unknownPage({ limit: 4 })
    const rest = await record.hub.unknownPage({ limit: 4, cursor: first.cursor })
    const unknown = [...first.entries, ...rest.entries].filter(({ id }) => id.startsWith('effect:'))
    expect(unknown.map(({ id }) => id).toSorted()).toEqual(ids.map((id) => `effect:${id}`).toSorted())
    expect(unknown[0]).toMatchObject({ reason: 'cut', node: 'e' })
  })

  it('say what is not there', async () => {
    const id = '1764430000000-000000'
    const caught = (call: Promise<unknown>) => call.catch((error: unknown) => error)
    expect(isHoldfastError(await caught(record.hub.message(id)), 'MESSAGE_NOT_FOUND')).toBe(true)
    expect(isHoldfastError(await caught(record.hub.delivery(`${id}.1`)), 'DELIVERY_NOT_FOUND')).toBe(true)
    expect(isHoldfastError(await caught(record.hub.message('x')), 'INVALID_ARGUMENT')).toBe(true)
    expect(isHoldfastError(await caught(record.hub.delivery(id)), 'INVALID_ARGUMENT')).toBe(true)
  })
})

describe('pending', () => {
  it('shows each pending entry beside its row, past one page', async () => {
    await record.acceptMany(230)
    const claimed = await record.claimAll(node)
    await record.functions.mirror(node, claimed.slice(0, 30))
    const pending = await record.hub.pending('a')
    expect(pending.map(({ delivery }) => delivery).toSorted()).toEqual(claimed.map(({ id }) => id).toSorted())
    expect(pending.every((each) => each.consumer === 'n1' && each.owner === 'n1' && each.epoch === 1)).toBe(
      true,
    )
    expect(pending.filter(({ state }) => state === 'mirrored')).toHaveLength(30)
    expect(await record.hub.pending()).toHaveLength(230)
  })

  it('shows a ghost as an entry without delivery', async () => {
    const [id = ''] = await record.acceptMany(1)
    await record.claimAll(node)
    const entry = (await record.fields(id))['entry'] ?? ''
    await record.send('XDEL', record.keys.stream('a'), entry)
    record.damaged(id)
    const [ghost] = await record.hub.pending()
    expect(ghost).toMatchObject({ entry, consumer: 'n1' })
    expect(ghost?.delivery).toBeUndefined()
  })

  it('is empty for hosts without stream, and where the group was destroyed', async () => {
    await record.join('idle', 'n1')
    await record.acceptMany(1)
    await record.send('XGROUP', 'DESTROY', record.keys.stream('a'), group)
    expect(await record.hub.pending('idle')).toEqual([])
    expect(await record.hub.pending()).toEqual([])
  })
})

it('fences: every field, JSON or text, and those that no rule reads', async () => {
  const until = Date.now() + 3_600_000
  await record.hub.pause('conversation:c1', { reason: 'asked', actor: 'kim', until: new Date(until) })
  await record.send(
    'HSET',
    record.keys.fences,
    'pause:host:a',
    'by hand',
    'block:session:s',
    '{not json',
    'pauze:hub',
    'x',
    'pause:host:A',
    'y',
    'hold:hub',
    '{"reason":"r"}',
    'pause:host:-a',
    'z',
  )
  const found = await record.hub.fences()
  expect(found).toEqual([
    { fence: 'block:session:s', known: true, reason: '{not json' },
    { fence: 'hold:hub', known: true, reason: 'r' },
    {
      fence: 'pause:conversation:c1',
      known: true,
      reason: 'asked',
      actor: 'kim',
      at: expect.any(Number),
      until,
    },
    { fence: 'pause:host:-a', known: false, reason: 'z' },
    { fence: 'pause:host:A', known: false, reason: 'y' },
    { fence: 'pause:host:a', known: true, reason: 'by hand' },
    { fence: 'pauze:hub', known: false, reason: 'x' },
  ])
})

it('hosts and counts', async () => {
  await record.acceptMany(2, { to: [{ host: 'z' }, { host: 'b' }] })
  const hosts = await record.hub.hosts()
  expect(hosts.map(({ host, joined, entries }) => ({ host, joined, entries }))).toEqual([
    { host: 'a', joined: true, entries: 0 },
    { host: 'b', joined: false, entries: 2 },
    { host: 'z', joined: false, entries: 2 },
  ])
  expect(await record.hub.counts()).toEqual({ queued: 4, recipients: 4 })
})
