import { describe, expect, it } from 'vitest'
import type { ClaimedDelivery } from '../../src/contract/steps.js'
import { eachRecord } from '../support/each-record.js'
import type { OpenRecord, TestNode } from '../support/record.js'

let record: OpenRecord
let node: TestNode

eachRecord(async (made) => {
  record = made
  node = await record.join('a', 'n1')
})

async function claimOne(): Promise<ClaimedDelivery> {
  await record.acceptMany(1)
  const [claimed] = await record.claimAll(node)
  if (claimed === undefined) throw new Error('nothing was handed out')
  return claimed
}

async function deliverOne(): Promise<ClaimedDelivery> {
  await record.acceptMany(1)
  const [delivered] = await record.deliverAll(node)
  if (delivered === undefined) throw new Error('nothing was handed out')
  return delivered
}

const unknownId = '1764430000000-000000.1'

describe.each(['mirror', 'ack'] as const)('%s', (verb) => {
  const [from, to] =
    verb === 'mirror' ? (['claimed', 'mirrored'] as const) : (['mirrored', 'delivered'] as const)
  async function ready(): Promise<ClaimedDelivery> {
    const claimed = await claimOne()
    if (verb === 'ack') await record.functions.mirror(node, [claimed])
    return claimed
  }

  it(`takes ${from} to ${to}, in a batch, each item on its own`, async () => {
    await record.acceptMany(3)
    const claimed = await record.claimAll(node)
    if (verb === 'ack') await record.functions.mirror(node, claimed)
    const items = [...claimed, { id: unknownId, epoch: 1 }]
    const results = await record.functions[verb](node, items)
    expect(results).toEqual([
      ...claimed.map(({ id }) => ({ id, ok: true, epoch: 1, state: to })),
      { id: unknownId, ok: false, code: 'DELIVERY_NOT_FOUND' },
    ])
  })

  it('is answered the same again, changing nothing', async () => {
    const claimed = await ready()
    const first = await record.functions[verb](node, [claimed])
    const before = await record.dump()
    expect(await record.functions[verb](node, [claimed])).toEqual(first)
    expect(await record.dump()).toEqual(before)
  })

  it('refuses what is not so far, another epoch, and another owner', async () => {
    const claimed = await ready()
    const stale = { id: claimed.id, epoch: claimed.epoch - 1 }
    const found = await record.itemRefused('STALE_EPOCH', () => record.functions[verb](node, [stale]))
    expect(found).toMatchObject({ id: claimed.id, epoch: claimed.epoch, state: from, owner: 'n1' })
    const other = await record.join('a', 'n2')
    await record.itemRefused('NOT_OWNER', () => record.functions[verb](other, [claimed]))
    await record.itemRefused('DELIVERY_NOT_FOUND', () =>
      record.functions[verb](node, [{ id: unknownId, epoch: 1 }]),
    )
    const refusal = { id: claimed.id, epoch: claimed.epoch, verdict: 'failed', reason: 'bad' } as const
    await record.functions.refuse(node, [refusal])
    await record.itemRefused('WRONG_STATE', () => record.functions[verb](node, [claimed]))
  })

  it('refuses malformed batches as a whole, and who may not speak', async () => {
    const claimed = await ready()
    const { functions } = record
    await record.refused('INVALID_ARGUMENT', () => functions[verb](node, []))
    await record.refused('INVALID_ARGUMENT', () => functions[verb](node, [claimed, { id: 'x', epoch: 1 }]))
    await record.refused('INVALID_ARGUMENT', () =>
      functions[verb](node, [claimed, { ...claimed, epoch: -1 }]),
    )
    const tooMany = Array.from({ length: 1001 }, () => claimed)
    await record.refused('INVALID_ARGUMENT', () => functions[verb](node, tooMany))
    await record.refused('INVALID_ARGUMENT', () =>
      record.store.fcall(`hf_${verb}`, record.keys.tag, ['a', 'n1', 1, claimed.id, 1, claimed.id]),
    )
    const stranger = { host: 'a', node: 'n9', incarnation: 1 }
    await record.refused('NOT_JOINED', () => functions[verb](stranger, [claimed]))
    const later = await record.join('a', 'n1', 2)
    await record.refused('SUPERSEDED', () => functions[verb](node, [claimed]))
    await record.itemRefused('NOT_OWNER', () => functions[verb](later, [claimed]))
    await functions.leave(later)
    await record.refused('LEFT', () => functions[verb](later, [claimed]))
  })
})

it('ack refuses what is only claimed, and takes the entry out of stream and pending list', async () => {
  const claimed = await claimOne()
  await record.itemRefused('WRONG_STATE', () => record.functions.ack(node, [claimed]))
  await record.functions.mirror(node, [claimed])
  await record.functions.ack(node, [claimed])
  expect(await record.send('XLEN', record.keys.stream('a'))).toBe(0)
  expect(await record.send('ZRANGE', record.keys.awaiting('a'), 0, -1)).toEqual([claimed.id])
})

it('takes a thousand items in one call', async () => {
  await record.config('max_payload_bytes', 1024)
  await record.acceptMany(1000)
  const claimed = await record.claimAll(node, 1000)
  expect(claimed).toHaveLength(1000)
  for (const verb of ['mirror', 'ack'] as const) {
    expect((await record.functions[verb](node, claimed)).every(({ ok }) => ok)).toBe(true)
  }
  const begins = claimed.map(({ id, epoch }) => ({ id, epoch, grant: `g ${id}` }))
  expect((await record.functions.begin(node, begins)).every(({ ok }) => ok)).toBe(true)
})

describe('refuse', () => {
  const refusal = (delivery: ClaimedDelivery, verdict: 'failed' | 'unknown', reason: string) => ({
    id: delivery.id,
    epoch: delivery.epoch,
    verdict,
    reason,
  })

  describe.each(['claimed', 'mirrored'] as const)('of what is %s', (state) => {
    async function ready(): Promise<ClaimedDelivery> {
      const claimed = await claimOne()
      if (state === 'mirrored') await record.functions.mirror(node, [claimed])
      return claimed
    }

    it.each(['failed', 'unknown'] as const)(
      'as %s leaves it so, and is answered the same again',
      async (verdict) => {
        const item = refusal(await ready(), verdict, 'no_room')
        const first = await record.functions.refuse(node, [item])
        expect(first).toEqual([{ id: item.id, ok: true, epoch: 1, state: verdict }])
        const before = await record.dump()
        expect(await record.functions.refuse(node, [item])).toEqual(first)
        expect(await record.dump()).toEqual(before)
        expect(await record.functions.why(item.id)).toMatchObject({ reason: verdict })
        expect((await record.functions.why(item.id)).detail).toContain('no_room')
      },
    )

    it('as payload_corrupt holds it under a new epoch, and is answered the same again', async () => {
      const item = refusal(await ready(), 'failed', 'payload_corrupt')
      const first = await record.functions.refuse(node, [item])
      expect(first).toEqual([{ id: item.id, ok: true, epoch: 2, state: 'held' }])
      const before = await record.dump()
      expect(await record.functions.refuse(node, [item])).toEqual(first)
      expect(await record.dump()).toEqual(before)
      expect(await record.fields(item.id)).toMatchObject({ held_reason: 'payload_corrupt', held_by: 'a/n1' })
    })
  })

  it('of what is delivered and idle: payload_corrupt holds it, any other reason is WRONG_STATE', async () => {
    const delivered = await deliverOne()
    await record.itemRefused('WRONG_STATE', () =>
      record.functions.refuse(node, [refusal(delivered, 'failed', 'no_room')]),
    )
    const [held] = await record.functions.refuse(node, [refusal(delivered, 'unknown', 'payload_corrupt')])
    expect(held).toMatchObject({ ok: true, state: 'held' })
  })

  it('refuses while an attempt is open and after it was settled', async () => {
    const delivered = await deliverOne()
    const open = await record.begin(node, delivered)
    const item = refusal(delivered, 'failed', 'payload_corrupt')
    await record.itemRefused('WRONG_STATE', () => record.functions.refuse(node, [item]))
    const outcome = { kind: 'result', result: '1' } as const
    await record.functions.report(node, [{ id: open.attempt, grant: open.grant, key: 'k', outcome }])
    await record.itemRefused('WRONG_STATE', () => record.functions.refuse(node, [item]))
  })

  it('refuses another verdict, epoch or owner, and what is not there', async () => {
    const claimed = await claimOne()
    const item = refusal(claimed, 'failed', 'x')
    await record.refused('INVALID_ARGUMENT', () =>
      record.functions.refuse(node, [{ ...item, verdict: 'done' as 'failed' }]),
    )
    await record.refused('INVALID_ARGUMENT', () => record.functions.refuse(node, [{ ...item, reason: '' }]))
    await record.itemRefused('STALE_EPOCH', () => record.functions.refuse(node, [{ ...item, epoch: 9 }]))
    const other = await record.join('a', 'n2')
    await record.itemRefused('NOT_OWNER', () => record.functions.refuse(other, [item]))
    await record.itemRefused('DELIVERY_NOT_FOUND', () =>
      record.functions.refuse(node, [{ ...item, id: unknownId }]),
    )
  })
})

describe('begin', () => {
  it('opens attempt 1 under the grant, and answers the same grant the same', async () => {
    const delivered = await deliverOne()
    const item = { id: delivered.id, epoch: delivered.epoch, grant: 'g1' }
    const first = await record.functions.begin(node, [item])
    expect(first).toEqual([{ id: item.id, ok: true, epoch: 1, state: 'delivered', attempt: 1 }])
    const before = await record.dump()
    expect(await record.functions.begin(node, [item])).toEqual(first)
    expect(await record.dump()).toEqual(before)
    await record.itemRefused('GRANT_OPEN', () => record.functions.begin(node, [{ ...item, grant: 'g2' }]))
  })

  it('refuses what is settled, under the same grant and under another', async () => {
    const delivered = await deliverOne()
    const open = await record.begin(node, delivered, 'g1')
    const outcome = { kind: 'result', result: '1' } as const
    await record.functions.report(node, [{ id: open.attempt, grant: 'g1', key: 'k', outcome }])
    for (const grant of ['g1', 'g2']) {
      await record.itemRefused('ALREADY_SETTLED', () =>
        record.functions.begin(node, [{ id: delivered.id, epoch: delivered.epoch, grant }]),
      )
    }
  })

  it('refuses what is not delivered yet, is held, has another epoch or owner, or is not there', async () => {
    const claimed = await claimOne()
    const item = { id: claimed.id, epoch: claimed.epoch, grant: 'g' }
    await record.itemRefused('WRONG_STATE', () => record.functions.begin(node, [item]))
    await record.functions.mirror(node, [claimed])
    await record.itemRefused('WRONG_STATE', () => record.functions.begin(node, [item]))
    await record.functions.ack(node, [claimed])
    await record.itemRefused('STALE_EPOCH', () => record.functions.begin(node, [{ ...item, epoch: 7 }]))
    const other = await record.join('a', 'n2')
    await record.itemRefused('NOT_OWNER', () => record.functions.begin(other, [item]))
    await record.itemRefused('DELIVERY_NOT_FOUND', () =>
      record.functions.begin(node, [{ ...item, id: unknownId }]),
    )
    await record.refused('INVALID_ARGUMENT', () => record.functions.begin(node, [{ ...item, grant: '' }]))
    await record.functions.refuse(node, [{ ...claimed, verdict: 'failed', reason: 'payload_corrupt' }])
    await record.itemRefused('HELD', () => record.functions.begin(node, [item]))
  })

  it('fails what was to be begun before now', async () => {
    const { nowMs } = await record.claim(node)
    await record.acceptMany(1, { executeBy: nowMs })
    const [delivered] = await record.deliverAll(node)
    const item = { id: delivered?.id ?? '', epoch: delivered?.epoch ?? 0, grant: 'g' }
    expect(await record.functions.begin(node, [item])).toEqual([
      expect.objectContaining({ ok: false, code: 'EXPIRED', state: 'failed' }),
    ])
    expect(await record.fields(item.id)).toMatchObject({
      state: 'failed',
      failed_code: 'expired',
      attempts: '0',
    })
  })

  it('keeps an open attempt whose executeBy passes, and its grant', async () => {
    const { nowMs } = await record.claim(node)
    await record.acceptMany(1, { executeBy: nowMs + 3_600_000 })
    const [delivered] = await record.deliverAll(node)
    const open = await record.begin(node, delivered ?? { id: '', epoch: 0 })
    await record.send('HSET', record.keys.delivery(open.id), 'execute_by', nowMs)
    expect(await record.functions.begin(node, [open])).toEqual([
      expect.objectContaining({ ok: true, attempt: 1 }),
    ])
  })

  it('waits under a pause with the same grant, and fails under a block', async () => {
    const paused = await deliverOne()
    const item = { id: paused.id, epoch: paused.epoch, grant: 'g' }
    await record.functions.pause('conversation:c1', 'why not', 'me')
    const refusal = await record.itemRefused('PAUSED', () => record.functions.begin(node, [item]))
    expect(refusal.detail).toBe('pause:conversation:c1')
    await record.functions.lift('pause', 'conversation:c1', 'me')
    expect(await record.functions.begin(node, [item])).toEqual([
      expect.objectContaining({ ok: true, attempt: 1 }),
    ])
    await record.functions.pause('conversation:c1', 'again', 'me')
    expect(await record.functions.begin(node, [item])).toEqual([
      expect.objectContaining({ ok: true, attempt: 1 }),
    ])
    await record.functions.lift('pause', 'conversation:c1', 'me')
    const blocked = await deliverOne()
    await record.functions.block('host:a', 'no', 'me')
    const [result] = await record.functions.begin(node, [
      { id: blocked.id, epoch: blocked.epoch, grant: 'h' },
    ])
    expect(result).toMatchObject({ ok: false, code: 'BLOCKED', state: 'failed', detail: 'block:host:a' })
    expect(await record.states([paused.id, blocked.id])).toEqual(['delivered', 'failed'])
  })
})
