import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startNode, stopNodes } from '../support/nodes.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { openSwept, type SweptRecord } from './stage.js'

let server: TestServer
let record: SweptRecord

beforeAll(async () => {
  server = await startTestServer()
})
afterAll(async () => {
  await stopNodes()
  await server.stop()
})
beforeEach(async () => {
  record = await openSwept(server)
})
afterEach(async () => {
  await record.checkInvariants()
  await record.close()
})

/** A node that was last heard long ago. */
async function silence(host: string, node: string): Promise<void> {
  const { keys } = record
  await record.send('HSET', keys.node(host, node), 'heartbeat_at', 1)
  await record.send('ZADD', keys.nodes, 1, `${host}/${node}`)
}

const audit = async () => (await record.parts.hub.audit()).disagreements

describe('held', () => {
  it('gives back what holds kept that were taken away by hand, thousands too', async () => {
    await record.functions.hold('conversation:c1', 'wait', 'kim')
    const ids = await record.acceptMany(2500)
    await record.claimAll(await record.join('a', 'n1'))
    expect(new Set(await record.states(ids.slice(0, 50)))).toEqual(new Set(['held']))
    await record.send('HDEL', record.keys.fences, 'hold:conversation:c1')
    expect(await record.sweep('held')).toMatchObject({ left: 0, cursor: '' })
    expect(new Set(await record.states(ids))).toEqual(new Set(['queued']))
    expect(await record.sweep('held')).toMatchObject({ found: 0 })
  })
})

describe('parked', () => {
  it('rings for lanes whose pause was taken away by hand', async () => {
    await record.functions.pause('conversation:c1', 'wait', 'kim')
    await record.acceptMany(3)
    const node = await record.join('a', 'n1')
    await record.claimAll(node)
    expect(await record.sweep('parked')).toMatchObject({ found: 0 })
    const bell = await record.send('XREVRANGE', record.keys.bell('a'), '+', '-')
    await record.send('HDEL', record.keys.fences, 'pause:conversation:c1')
    expect(await record.sweep('parked')).toMatchObject({ found: 1, repaired: 1 })
    expect(await record.send('XREVRANGE', record.keys.bell('a'), '+', '-')).not.toEqual(bell)
    expect(await record.claimAll(node)).toHaveLength(3)
  })
})

describe('stale', () => {
  it('rings once for a peer that is gone; then all 300 stale claims are found behind 200 fresh ones', async () => {
    const fresh = await record.join('a', 'fresh')
    const gone = await record.join('a', 'gone')
    await record.acceptMany(500)
    expect((await record.claim(fresh, 200)).deliveries).toHaveLength(200)
    for (let at = 0; at < 3; at += 1) expect((await record.claim(gone, 100)).deliveries).toHaveLength(100)
    await silence('a', 'gone')
    expect(await record.sweep('stale')).toMatchObject({ found: 1, repaired: 1 })
    const taken = await record.claimAll(fresh)
    expect(taken).toHaveLength(300)
    expect(new Set(taken.map(({ how }) => how))).toEqual(new Set(['takeover']))
    expect(await record.sweep('stale')).toMatchObject({ found: 0 })
  })

  it('lists a host that has work and no live node, since when, until it has one', async () => {
    await record.join('b', 'n1') // somebody lives: silence is judged
    await record.accept()
    expect(await record.sweep('stale')).toMatchObject({ found: 1, left: 1 })
    const [host, since] = (await record.send('ZRANGE', record.keys.stranded, 0, -1, 'WITHSCORES')) as string[]
    expect(host).toBe('a')
    await record.sweep('stale')
    expect(await record.send('ZSCORE', record.keys.stranded, 'a')).toBe(since)
    await record.join('a', 'n1')
    expect(await record.sweep('stale')).toMatchObject({ found: 0 })
    expect(await record.send('ZCARD', record.keys.stranded)).toBe(0)
  })
})

describe('reports', () => {
  it('lists open attempts of gone executors of a host that has no node left, and overdue ones of live nodes', async () => {
    await record.join('b', 'n1')
    const gone = await record.join('a', 'n1')
    const live = await record.join('c', 'n1')
    await record.acceptMany(150)
    await record.accept({ to: [{ host: 'c' }] })
    const grants = []
    for (const item of await record.deliverAll(gone)) grants.push((await record.begin(gone, item)).attempt)
    const [own] = await record.deliverAll(live)
    if (own === undefined) throw new Error('nothing was delivered')
    const { attempt } = await record.begin(live, own)
    await silence('a', 'n1')
    expect(await record.sweep('reports')).toMatchObject({ found: 150, repaired: 150 })
    expect((await record.parts.hub.unknown()).map(({ id, reason }) => `${id} ${reason}`).sort()).toEqual(
      grants.map((id) => `${id} stale`).sort(),
    )
    await record.send('HSET', record.keys.delivery(own.id), 'attempt_1_begun_at', 1)
    await record.sweep('reports')
    expect((await record.parts.hub.unknown()).find(({ id }) => id === attempt)).toMatchObject({
      reason: 'overdue',
    })
    expect(await record.sweep('reports')).toMatchObject({ found: 0 })
  })
})

describe('deadlines', () => {
  it('fails what nobody claimed or began in time, also where no node ever joined, parked or not', async () => {
    const soon = Date.now() + 3_600_000
    const pass = (id: string, field: string) => record.send('HSET', record.keys.delivery(id), field, 1)
    const [queued] = await record.acceptMany(1, { to: [{ host: 'nobody' }], deliverBy: soon })
    const [begun] = await record.acceptMany(1, { executeBy: soon })
    const node = await record.join('a', 'n1')
    await record.deliverAll(node)
    await record.functions.pause('conversation:p', 'wait', 'kim')
    const [parked] = await record.acceptMany(1, { conversation: 'p', deliverBy: soon })
    await record.claimAll(node)
    const ids = [queued, begun, parked].map((id) => id ?? '')
    expect(await record.sweep('deadlines')).toMatchObject({ found: 0 })
    await pass(ids[0] ?? '', 'deliver_by')
    await pass(ids[1] ?? '', 'execute_by')
    await pass(ids[2] ?? '', 'deliver_by')
    for (const id of ids) await record.send('ZADD', record.keys.deadlines, 1, id)
    expect(await record.sweep('deadlines')).toMatchObject({ found: 3, repaired: 3 })
    expect(await record.states(ids)).toEqual(['failed', 'failed', 'failed'])
    expect(await record.send('ZCARD', record.keys.deadlines)).toBe(0)
    expect(await audit()).toEqual([])
  })
})

describe('nodes', () => {
  it('takes consumers out of the group only when they own nothing and are gone', async () => {
    const stream = record.keys.stream('a')
    const [idle, busy, live] = [
      await record.join('a', 'idle'),
      await record.join('a', 'busy'),
      await record.join('a', 'live'),
    ]
    await record.acceptMany(3)
    for (const node of [idle, busy, live]) await record.claim(node, 1)
    const [own] = (await record.claim(idle, 1)).deliveries.concat()
    expect(own).toBeUndefined()
    const consumers = async () =>
      ((await record.send('XINFO', 'CONSUMERS', stream, 'nodes')) as string[][]).map((each) => each[1]).sort()
    for (const node of [idle, busy]) await record.functions.leave(node)
    await record.sweep('nodes')
    expect(await consumers()).toEqual(['busy', 'idle', 'live'])
    await record.deliverAll(live)
    await record.sweep('nodes')
    expect(await consumers()).toEqual(['live'])
  })
})

describe('retention and fan-out', () => {
  it('complete what was cut, and prune what is over, without being asked', async () => {
    await record.config('inline_fan_out', 1)
    const { id } = await record.accept({ to: ['a', 'b', 'c'].map((host) => ({ host })) })
    expect(await record.sweep('fan-out')).toMatchObject({ found: 1, repaired: 1 })
    expect((await record.parts.hub.message(id)).deliveries).toHaveLength(3)
    await record.functions.block('hub', 'no', 'kim')
    for (const host of ['a', 'b', 'c']) await record.claimAll(await record.join(host, 'n1'))
    await record.send('HSET', record.keys.message(id), 'settled_at', 1)
    const day = Math.floor(Date.now() / 86_400_000)
    await record.send('RENAME', record.keys.settled(day), record.keys.settled(0))
    await record.send('SADD', record.keys.settledDays, 0)
    await record.send('SREM', record.keys.settledDays, day)
    expect(await record.sweep('retention')).toMatchObject({ repaired: 1 })
    expect(await record.send('EXISTS', record.keys.message(id))).toBe(0)
    expect(await audit()).toEqual([])
  })
})

describe('an audit of a hub at work', () => {
  it('has nothing to say: what moves meanwhile is no disagreement', async () => {
    const { node } = await startNode({ redis: server.url, hub: record.name, host: 'a' })
    let busy = true
    const work = (async () => {
      for (let at = 0; busy; at += 1) {
        const conversation = `c${at % 3}`
        if (at % 20 === 0) await record.functions.pause(`conversation:${conversation}`, 'wait', 'kim')
        if (at % 20 === 10) {
          await record.functions.lift('pause', `conversation:c${(at - 10) % 3}`, 'kim')
        }
        await record.accept({ conversation, to: [{ host: 'a' }, { host: 'b' }] })
      }
    })()
    for (let audits = 0; audits < 6; audits += 1) expect(await audit()).toEqual([])
    for (let sweeps = 0; sweeps < 2; sweeps += 1)
      expect(await record.sweep('audit')).toMatchObject({ found: 0 })
    busy = false
    await work
    await node.stop()
  })
})

describe('fifty dead hosts beside a live one', () => {
  it('are each looked at in bounded slices; the live one goes on, and nothing of theirs is lost', async () => {
    await record.join('live', 'n1')
    for (let host = 0; host < 50; host += 1) {
      const name = `dead-${host}`
      await record.join(name, 'n1')
      await silence(name, 'n1')
    }
    const to = Array.from({ length: 50 }, (_, host) => ({ host: `dead-${host}` }))
    for (let message = 0; message < 20; message += 1) await record.accept({ to })
    await record.sweep('fan-out')
    const run = await record.sweep('stale')
    expect(run).toMatchObject({ found: 50, left: 50 })
    expect(run.notes).toHaveLength(20)
    await record.sweepAll()
    expect((await record.parts.functions.tally()).queued).toBe(1000)
    expect(await audit()).toEqual([])
  })
})
