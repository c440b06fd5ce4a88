import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startTestServer, type TestServer } from '../support/server.js'
import { type Everything, essenceOf, openSwept, type SweptRecord, stageEverything } from './stage.js'

let server: TestServer
let record: SweptRecord
let all: Everything

beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server.stop())
beforeEach(async () => {
  record = await openSwept(server)
  all = await stageEverything(record)
  await record.sweepAll() // completes what is owed, so that only damage is left to repair
})
afterEach(() => record.close())

/** Every index of the record, as it is named after the tag. */
const indexes: readonly (readonly [name: string, key: () => string])[] = [
  [':held', () => record.keys.held],
  [':unknown', () => record.keys.unknown],
  [':awaiting:a', () => record.keys.awaiting('a')],
  [':parked:a', () => record.keys.parked('a')],
  [':parked', () => record.keys.parkedHosts],
  [':lane:a/parked/', () => record.keys.lane('a', 'parked/')],
  [':stream:a', () => record.keys.stream('a')],
  [':bell:a', () => record.keys.bell('a')],
  [':hosts', () => record.keys.hosts],
  [':host:a', () => record.keys.host('a')],
  [':nodes', () => record.keys.nodes],
  [':counts', () => record.keys.counts],
  [':holding', () => record.keys.holding],
  [':held:<fence>', () => record.keys.heldBy('hold:conversation:fenced')],
  [':sessions', () => record.keys.sessions],
  [':children:parent', () => record.keys.children('parent')],
  [':session_deliveries:s1', () => record.keys.sessionDeliveries('s1')],
  [':session_attempts:s1', () => record.keys.sessionAttempts('s1')],
  [':effects', () => record.keys.effects],
  [':executing', () => record.keys.executing],
  [':settled_days', () => record.keys.settledDays],
  [':settled:<day>', () => record.keys.settled(Math.floor(Date.now() / 86_400_000))],
  [':retired', () => record.keys.retired],
  [':log', () => record.keys.log],
]

describe('an index that was deleted by hand', () => {
  it.each(indexes)('%s is there again after one round', async (_, key) => {
    const before = essenceOf(await record.dump())
    expect(await record.send('DEL', key())).toBe(1)
    await record.sweepAll()
    await record.sweepAll()
    expect((await record.parts.hub.audit()).disagreements).toEqual([])
    await record.checkInvariants()
    expect(essenceOf(await record.dump())).toEqual(before)
  })
})

describe('an index of a wrong type', () => {
  const mended = indexes.filter(([name]) => name !== ':host:a' && name !== ':bell:a')
  it.each(mended)('%s is set aside, told, and there again', async (_, key) => {
    const before = essenceOf(await record.dump())
    await record.send('DEL', key())
    await record.send('SET', key(), 'not an index')
    await record.sweepAll().catch(() => undefined) // a sweep may fail before another has set it aside
    await record.sweepAll()
    await record.sweepAll()
    const { disagreements } = await record.parts.hub.audit()
    expect(disagreements.every(({ about }) => about.includes(':damaged:'))).toBe(true)
    await record.checkInvariants()
    expect(essenceOf(await record.dump())).toEqual(before)
  })

  it('of the fences lifts nothing: nothing is claimed, and an audit says so', async () => {
    const fences = record.keys.fences
    await record.send('RENAME', fences, 'kept-fences')
    await record.send('SET', fences, 'not a hash')
    const { disagreements } = await record.parts.hub.audit()
    expect(disagreements).toContainEqual(expect.objectContaining({ about: fences, repaired: false }))
    await record.send('RENAME', 'kept-fences', fences)
    await record.sweepAll()
    expect((await record.parts.hub.audit()).disagreements).toEqual([])
  })
})

describe('a group or an entry that was taken away', () => {
  it('is made again at 0 and filled from the rows, in order', async () => {
    const before = essenceOf(await record.dump())
    await record.send('XGROUP', 'DESTROY', record.keys.stream('a'), 'nodes')
    await record.sweepAll()
    expect((await record.parts.hub.audit()).disagreements).toEqual([])
    expect(essenceOf(await record.dump())).toEqual(before)
    await record.checkInvariants()
  })

  it.each(['queued', 'claimed', 'mirrored', 'parked'])('of a %s delivery', async (name) => {
    const id = all.ids[name] ?? ''
    const { entry = '' } = await record.fields(id)
    await record.send('XDEL', record.keys.stream('a'), entry)
    await record.sweepAll()
    expect((await record.fields(id))['entry']).not.toBe(entry)
    expect((await record.parts.hub.audit()).disagreements).toEqual([])
    await record.checkInvariants()
  })

  it('from under a node, and read by a stranger', async () => {
    const stream = record.keys.stream('a')
    await record.send('XREADGROUP', 'GROUP', 'nodes', 'stranger', 'COUNT', 10, 'STREAMS', stream, '>')
    await record.sweep('claims')
    expect((await record.parts.hub.audit()).disagreements).toEqual([])
    await record.checkInvariants()
    await record.sweep('nodes')
    const consumers = (await record.send('XINFO', 'CONSUMERS', stream, 'nodes')) as string[][]
    expect(consumers.map((each) => each[1])).toEqual(['n1'])
  })

  it('read under the name of a live node', async () => {
    const stream = record.keys.stream('a')
    await record.send('XREADGROUP', 'GROUP', 'nodes', 'n1', 'COUNT', 10, 'STREAMS', stream, '>')
    await record.sweep('claims')
    await record.checkInvariants()
  })
})

describe('a row that was deleted by hand', () => {
  const rows: readonly (readonly [name: string, key: () => string, about: () => string])[] = [
    [
      'a delivery',
      () => record.keys.delivery(all.ids['queued'] ?? ''),
      () => all.ids['queued']?.slice(0, -2) ?? '',
    ],
    [
      'a message',
      () => record.keys.message(all.ids['queued']?.slice(0, -2) ?? ''),
      () => all.ids['queued'] ?? '',
    ],
    [
      'a payload',
      () => record.keys.payload(all.ids['queued']?.slice(0, -2) ?? ''),
      () => all.ids['queued'] ?? '',
    ],
    ['a session', () => record.keys.session('s1'), () => all.ids['in-session'] ?? ''],
  ]
  it.each(rows)('%s is told by its id, and twenty rounds change nothing more', async (_, key, about) => {
    await record.send('DEL', key())
    await record.sweepAll()
    const told = (await record.parts.hub.audit()).disagreements
    expect(told.map((each) => each.about)).toContain(about())
    const after = essenceOf(await record.dump())
    for (let round = 0; round < 20; round += 1) await record.sweepAll()
    expect(essenceOf(await record.dump())).toEqual(after)
  })

  it('of a wrong type is told by its key', async () => {
    const key = record.keys.delivery(all.ids['queued'] ?? '')
    await record.send('RENAME', key, `${record.keys.tag}:kept`)
    await record.send('SET', key, 'not a row')
    await record.sweep('audit')
    const { disagreements } = await record.parts.hub.audit()
    expect(disagreements).toContainEqual(
      expect.objectContaining({ about: all.ids['queued'], what: 'its row is a string, not a hash' }),
    )
  })
})

describe('counts that drifted', () => {
  it('are put right, by name', async () => {
    await record.send('HINCRBY', record.keys.counts, 'queued', 7)
    const told = (await record.parts.hub.audit()).disagreements
    expect(told.map(({ what }) => what).join('\n')).toMatch(/queued: \d+ by the counts, \d+ rows/)
    await record.sweep('audit')
    expect((await record.parts.hub.audit()).disagreements).toEqual([])
    await record.checkInvariants()
  })
})
