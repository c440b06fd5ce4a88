import { describe, expect, it } from 'vitest'
import { eachRecord } from '../support/each-record.js'
import type { OpenRecord, TestNode } from '../support/record.js'

let record: OpenRecord
let node: TestNode

eachRecord(async (made) => {
  record = made
  node = await record.join('a', 'n1')
})

describe('what was moved by hand', () => {
  it('an entry that was given to another node goes back to its owner, whose epoch stands', async () => {
    const other = await record.join('a', 'n2')
    await record.acceptMany(1)
    const [claimed] = await record.claimAll(node)
    const { id = '', epoch = 0 } = claimed ?? {}
    const { entry = '' } = await record.fields(id)
    await record.send('XCLAIM', record.keys.stream('a'), 'nodes', 'n2', 0, entry)
    await record.functions.leave(other)
    expect((await record.claim(node)).deliveries).toEqual([])
    expect(await record.functions.mirror(node, [{ id, epoch }])).toEqual([
      expect.objectContaining({ ok: true }),
    ])
  })

  it.each(['retire', 'set aside'] as const)(
    'a stray entry of a delivery of another host leaves the stream, and the delivery is let alone: %s',
    async (act) => {
      const [away = ''] = await record.acceptMany(1, { to: [{ host: 'b' }] })
      const { entry = '', ...row } = await record.fields(away)
      await record.send('XADD', record.keys.stream('a'), entry, 'delivery', away)
      if (act === 'retire') {
        await record.functions.retire('a', 'kim', 'gone')
      } else {
        await record.send('HSET', record.keys.doubted, 'a', 'start')
        await record.functions.attest('tests', '0-0', 'always')
      }
      expect(await record.fields(away)).toEqual({ entry, ...row })
      expect(await record.send('XLEN', record.keys.stream('a'))).toBe(0)
    },
  )

  it('a rehome takes along nothing that has failed or is finished, though its session lists it', async () => {
    const opening = { host: 'a', scope: '/srv' }
    await record.functions.openSession('s', opening, 'kim')
    await record.functions.join({ host: 'b', node: 'n1', incarnation: 1 }, 'i1', ['/srv'], '0-0')
    await record.acceptMany(1, { to: [{ session: 's' }] })
    const [finished] = await record.deliverAll(node)
    const { attempt, grant } = await record.begin(node, finished ?? { id: '', epoch: 0 })
    const outcome = { kind: 'result', result: '1' } as const
    await record.functions.report(node, [{ id: attempt, grant, key: 'k', outcome }])
    const [failed = ''] = await record.acceptMany(1, { to: [{ session: 's' }] })
    await record.functions.cancel(failed, 'kim', 'not needed')
    const ids = [finished?.id ?? '', failed]
    const before = await Promise.all(ids.map(record.fields))
    for (const [at, id] of ids.entries()) {
      await record.send('ZADD', record.keys.sessionDeliveries('s'), at + 1, id)
    }
    await record.functions.rehome('s', 'b', 'kim', 'a is gone')
    expect(await Promise.all(ids.map(record.fields))).toEqual(before)
    await record.send('DEL', record.keys.sessionDeliveries('s'))
  })
})

describe('lanes', () => {
  it('a later delivery waits behind a parked one whose fence was taken away by hand', async () => {
    const [first = ''] = await record.acceptMany(1)
    await record.functions.pause('conversation:c1', 'later', 'kim')
    await record.claim(node)
    await record.claim(node) // the lanes were looked at now: the next look is seconds away
    await record.send('DEL', record.keys.fences)
    const [second = ''] = await record.acceptMany(1)
    expect((await record.claim(node)).deliveries).toEqual([])
    expect(await record.fields(second)).toMatchObject({ state: 'queued', parked_by: 'lane' })
    await record.send('HSET', record.keys.host('a'), 'parked_look_at', 0)
    expect((await record.claimAll(node)).map(({ id }) => id)).toEqual([first, second])
  })

  it('a parked delivery that passes the hold over its lane still waits for the pause under it', async () => {
    await record.functions.hold('conversation:c1', 'look first', 'kim')
    const [id = ''] = await record.acceptMany(1)
    await record.claim(node)
    await record.functions.release(id, 'kim', 'looked')
    await record.functions.pause('conversation:c1', 'later', 'kim')
    for (let claims = 0; claims < 3; claims += 1) {
      expect((await record.claim(node)).deliveries).toEqual([])
      await record.send('HSET', record.keys.host('a'), 'parked_look_at', 0)
    }
    expect(await record.fields(id)).toMatchObject({ state: 'queued', parked_by: 'pause:conversation:c1' })
    await record.functions.lift('pause', 'conversation:c1', 'kim')
    expect((await record.claimAll(node)).map((each) => each.id)).toEqual([id])
  })

  it('a retired host with many parked lanes is left with none', async () => {
    for (let first = 0; first < 205; first += 41) {
      const some = Array.from({ length: 41 }, (_, at) => record.accept({ conversation: `c${first + at}` }))
      await Promise.all(some)
    }
    await record.functions.pause('hub', 'later', 'kim')
    await record.claimAll(node)
    expect(await record.send('ZCARD', record.keys.parked('a'))).toBe(205)
    while ((await record.functions.retire('a', 'kim', 'gone')).more);
    expect(await record.send('ZCARD', record.keys.parked('a'))).toBe(0)
  })
})

describe('ids of messages', () => {
  /** The log goes on from here: what the next ids of messages are is known. */
  async function takeIds(count: number): Promise<string[]> {
    await record.send('XADD', record.keys.log, '4102444800000-0', 'verb', 'test')
    const ids = Array.from(
      { length: count },
      (_, at) => `4102444800000-${String((at + 1) * 100).padStart(8, '0')}`,
    )
    for (const id of ids) {
      await record.send(
        'HSET',
        record.keys.message(id),
        'recipients',
        0,
        'made',
        0,
        'settled',
        0,
        'settled_at',
        1,
      )
    }
    return ids
  }

  it('one that exists already is not given again', async () => {
    const [taken] = await takeIds(1)
    const { id } = await record.accept()
    expect(id).toBe('4102444800000-00000200')
    expect(id).not.toBe(taken)
  })

  it('where all that the log mints exist, nothing is accepted', async () => {
    await takeIds(3)
    await expect(record.accept({ key: 'k' })).rejects.toMatchObject({ code: 'RECORD_DAMAGED' })
    expect(await record.send('GET', record.keys.idempotency('k'))).toBeNull()
  })
})
