import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { TestNode } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'
import { openSwept, type SweptRecord } from './stage.js'

// A row that somebody damaged by hand stops nothing but its own delivery, and nothing is decided by it.

let server: TestServer
let record: SweptRecord
let node: TestNode

beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server?.stop())
beforeEach(async () => {
  record = await openSwept(server)
  node = await record.join('a', 'n1')
})
afterEach(() => record.close())

type Damage = readonly [what: string, command: (key: string) => (string | number)[]]
const damages: readonly Damage[] = [
  ['an epoch that is no number', (key) => ['HSET', key, 'epoch', 'abc']],
  ['no epoch', (key) => ['HDEL', key, 'epoch']],
  ['no host', (key) => ['HDEL', key, 'host']],
  ['no conversation', (key) => ['HDEL', key, 'conversation']],
  ['no state', (key) => ['HDEL', key, 'state']],
  ['attempts that are no number', (key) => ['HSET', key, 'attempts', 'x']],
  ['a key of another type', (key) => ['SET', key, 'x']],
]
const entryDamage: Damage = ['an entry that is none', (key) => ['HSET', key, 'entry', 'abc']]

/** Answers what puts the row back. */
async function damage(id: string, [, command]: Damage): Promise<() => Promise<void>> {
  const key = record.keys.delivery(id)
  const before = await record.fields(id)
  await record.send(...command(key))
  record.damaged(id)
  return async () => {
    await record.send('DEL', key)
    await record.send('HSET', key, ...Object.entries(before).flat())
  }
}

describe.each([...damages, entryDamage])('%s', (...given) => {
  it('a claim hands out its neighbours; mended, the delivery is handed out too', async () => {
    const [first = '', second = '', third = ''] = await record.acceptMany(3)
    const mend = await damage(second, given)
    expect((await record.claimAll(node)).map(({ id }) => id)).toEqual([first, third])
    expect(await record.states([first, third])).toEqual(['claimed', 'claimed'])
    await record.sweepAll()
    await mend()
    await record.sweep('audit')
    expect((await record.claimAll(node)).map(({ id }) => id)).toEqual([second])
    expect((await record.parts.hub.audit()).disagreements).toEqual([])
    await record.checkInvariants()
  })

  it('pages and pending lists show the others', async () => {
    const ids = await record.acceptMany(3)
    await record.claimAll(node)
    await damage(ids[1] ?? '', given)
    const { deliveries } = await record.parts.hub.deliveries()
    expect(deliveries.map(({ id }) => id)).toEqual(expect.arrayContaining([ids[0], ids[2]]))
    const pending = await record.parts.hub.pending('a')
    expect(pending.map(({ delivery }) => delivery)).toEqual(expect.arrayContaining([ids[0], ids[2]]))
    expect((await record.parts.hub.message(ids[0]?.replace(/\..*/, '') ?? '')).deliveries).toHaveLength(1)
  })

  it('steps on its neighbours are taken', async () => {
    await record.acceptMany(3)
    const items = await record.claimAll(node)
    const broken = items[1]?.id ?? ''
    await damage(broken, given)
    const answers = await record.functions.refuse(
      node,
      items.map((item) => ({ ...item, verdict: 'failed' as const, reason: 'disk' })),
    )
    expect(answers.map(({ ok }) => ok)).toEqual([true, false, true])
    expect(answers[1]).toMatchObject({ code: 'DELIVERY_NOT_FOUND' })
  })
})

describe.each(damages)('%s', (...given) => {
  it('the deadlines of others pass, and its own once it is mended', async () => {
    const soon = { deliverBy: (await record.nowMs()) + 400 }
    const [broken = ''] = await record.acceptMany(1, { ...soon, to: [{ host: 'b' }] })
    const [other = ''] = await record.acceptMany(1, { ...soon, to: [{ host: 'c' }] })
    const mend = await damage(broken, given)
    await until(async () => (await record.nowMs()) > soon.deliverBy)
    await record.sweepAll()
    expect(await record.states([other])).toEqual(['failed'])
    expect(await record.send('ZSCORE', record.keys.deadlines, broken)).not.toBeNull()
    await mend()
    await record.send('ZADD', record.keys.deadlines, soon.deliverBy, broken)
    await record.sweep('deadlines')
    expect(await record.states([broken])).toEqual(['failed'])
  })

  it('what is held stays in the held queue, what is unknown in the unknown list', async () => {
    const [held = '', unknown = ''] = await record.acceptMany(2)
    await record.functions.holdDelivery(held, 'kim', 'look')
    const [claimed] = await record.claimAll(node)
    await record.functions.refuse(node, [
      { id: unknown, epoch: claimed?.epoch ?? 0, verdict: 'unknown', reason: 'disk' },
    ])
    const mends = [await damage(held, given), await damage(unknown, given)]
    await record.sweepAll()
    expect(await record.send('ZRANGE', record.keys.held, 0, -1)).toEqual([held])
    expect(await record.send('ZRANGE', record.keys.unknown, 0, -1)).toEqual([unknown])
    for (const mend of mends) await mend()
    expect((await record.parts.hub.audit()).disagreements).toEqual([])
  })
})

it('an entry decides while it is in the stream alone: without it what is held is released', async () => {
  const [id = ''] = await record.acceptMany(1)
  await record.functions.holdDelivery(id, 'kim', 'look')
  await record.send('HDEL', record.keys.delivery(id), 'entry')
  expect(await record.functions.release(id, 'kim', 'looked')).toMatchObject({ state: 'queued' })
  expect((await record.claimAll(node)).map((each) => each.id)).toEqual([id])
})

it('a host that cannot be swept keeps no other from it', async () => {
  const far = await record.join('z', 'n1')
  const open: string[] = []
  for (const who of [node, far]) {
    const [id = ''] = await record.acceptMany(1, { to: [{ host: who.host }] })
    const [item] = await record.deliverAll(who)
    open.push((await record.begin(who, item ?? { id, epoch: 0 })).attempt)
  }
  await record.functions.leave(far)
  await record.send('SET', record.keys.node('a', 'n1'), 'x')
  await expect(record.sweep('reports')).rejects.toThrow('WRONGTYPE')
  expect(await record.send('ZRANGE', record.keys.unknown, 0, -1)).toEqual([open[1]])
})
