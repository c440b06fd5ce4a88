import { beforeEach, describe, expect, it } from 'vitest'
import { eachRecord } from '../support/each-record.js'
import type { OpenRecord, TestNode } from '../support/record.js'

let record: OpenRecord
let node: TestNode

eachRecord(async (made) => {
  record = made
  node = await record.join('a', 'n1')
})

const result = { kind: 'result', result: '1' } as const
const idsOf = (reply: { readonly deliveries: readonly { id: string }[] }) =>
  reply.deliveries.map(({ id }) => id)

describe('a claim', () => {
  it('hands out as many new ones as were asked for', async () => {
    const ids = await record.acceptMany(5)
    const reply = await record.claim(node, 2)
    expect(reply.more).toBe(true)
    expect(idsOf(reply)).toEqual(ids.slice(0, 2))
  })

  it('looks at a bounded number where none of them is to be handed out', async () => {
    const ids = await record.acceptMany(400)
    await record.functions.block('conversation:c1', 'stop', 'kim')
    const reply = await record.claim(node, 10)
    expect(reply).toMatchObject({ more: true, deliveries: [] })
    const failed = (await record.states(ids)).filter((state) => state === 'failed').length
    expect(failed).toBeGreaterThan(100)
    expect(failed).toBeLessThan(300)
  })

  it('hands out as many of a gone node as were asked for', async () => {
    const other = await record.join('a', 'n2')
    await record.acceptMany(3)
    await record.claimAll(other)
    await record.functions.leave(other)
    expect((await record.claim(node, 2)).deliveries).toHaveLength(2)
    expect((await record.claim(node, 2)).deliveries).toHaveLength(1)
  })

  it('hands out as many as were asked for of what a stranger read', async () => {
    await record.acceptMany(3)
    const stream = record.keys.stream('a')
    await record.send('XREADGROUP', 'GROUP', 'nodes', 'stranger', 'STREAMS', stream, '>')
    expect((await record.claim(node, 2)).deliveries).toHaveLength(2)
    expect((await record.claim(node, 2)).deliveries).toHaveLength(1)
  })

  it('hands out what a crashed process held alone, also after what another left cleanly', async () => {
    const [clean, crashed] = [await record.join('a', 'n2'), await record.join('a', 'n3')]
    const [first = ''] = await record.acceptMany(1)
    await record.claimAll(clean)
    const [second = ''] = await record.acceptMany(1)
    await record.claimAll(crashed)
    await record.functions.leave(clean)
    await record.send('HSET', record.keys.node('a', 'n3'), 'heartbeat_at', 1)
    await record.send('HSET', record.keys.host('a'), 'peers_look_at', 0)
    expect(idsOf(await record.claim(node, 10))).toEqual([first])
    expect(idsOf(await record.claim(node, 10))).toEqual([second])
  })
})

it('a mirror that is repeated after the handoff is answered, and changes nothing', async () => {
  await record.acceptMany(1)
  const [delivered] = await record.deliverAll(node)
  const { id = '', epoch = 0 } = delivered ?? {}
  const before = await record.dump()
  expect(await record.functions.mirror(node, [{ id, epoch }])).toEqual([
    { id, ok: true, epoch, state: 'delivered' },
  ])
  expect(await record.dump()).toEqual(before)
})

describe('a session', () => {
  const opening = { host: 'a', scope: '/srv' }
  const toSession = { to: [{ session: 's' }] }
  beforeEach(async () => {
    await record.functions.openSession('s', opening, 'kim')
    await record.functions.join({ host: 'b', node: 'n1', incarnation: 1 }, 'i1', ['/srv'], '0-0')
  })

  it('that moves in slices leaves alone what was sent to its new host meanwhile', async () => {
    await record.acceptMany(101, toSession)
    expect((await record.functions.rehome('s', 'b', 'kim', 'better there')).more).toBe(true)
    const [late = ''] = await record.acceptMany(1, toSession)
    const before = await record.fields(late)
    expect(before).toMatchObject({ host: 'b', epoch: '0' })
    expect((await record.functions.move('s', 'kim')).more).toBe(false)
    expect(await record.fields(late)).toEqual(before)
  })

  it('of a retired host goes to another, though nodes of the retired one still live', async () => {
    await record.config('rehome_on_redrive', 1)
    await record.acceptMany(1, toSession)
    await record.functions.retire('a', 'kim', 'gone')
    await record.functions.sweepHub('rehome', '')
    expect(await record.send('HGET', record.keys.session('s'), 'host')).toBe('b')
    while ((await record.functions.move('s', 'kim')).more);
  })

  it('is no more asked to list what is finished', async () => {
    await record.acceptMany(1, toSession)
    const [delivered] = await record.deliverAll(node)
    const { attempt, grant, id } = await record.begin(node, delivered ?? { id: '', epoch: 0 })
    await record.functions.report(node, [{ id: attempt, grant, key: 'k', outcome: result }])
    const [found] = await record.functions.reconcile([id], { repair: false, lanes: true })
    expect(found?.problems).toEqual([])
  })

  it('is not its own parent', async () => {
    await record.refused('INVALID_ARGUMENT', () =>
      record.functions.openSession('own', { ...opening, parent: 'own' }, 'kim'),
    )
  })

  it('closes for a reason that is one', async () => {
    const closing = ['s', 1, 'bored', '', 0, 0, 'kim']
    await record.refused('INVALID_ARGUMENT', () =>
      record.store.fcall('hf_close_session', record.keys.tag, closing),
    )
    const untold = ['s', 1, 'bored', '', 0, '', 'kim']
    await record.refused('INVALID_ARGUMENT', () =>
      record.store.fcall('hf_close_session', record.keys.tag, untold),
    )
  })
})
