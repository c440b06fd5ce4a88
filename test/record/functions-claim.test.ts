import { describe, expect, it } from 'vitest'
import type { ClaimedDelivery } from '../../src/contract/steps.js'
import { group } from '../../src/record/keys.js'
import { eachRecord } from '../support/each-record.js'
import { type OpenRecord, sha256, type TestNode } from '../support/record.js'
import { until } from '../support/until.js'

let record: OpenRecord
let node: TestNode

eachRecord(async (made) => {
  record = made
  node = await record.join('a', 'n1')
})

const idsOf = (deliveries: readonly ClaimedDelivery[]) => deliveries.map(({ id }) => id)
const briefOf = ({ id, epoch, how, state }: ClaimedDelivery) => ({ id, epoch, how, state })

describe('claim', () => {
  it('hands out what was queued, in order, with message and payload', async () => {
    const payload = Buffer.from([0, 1, 2, 255])
    const first = await record.accept({ payload, contentType: 'x/y', parent: 'p' })
    const second = await record.accept({ payload: '' })
    const reply = await record.claim(node)
    expect(reply.deliveries).toEqual([
      {
        id: `${first.id}.1`,
        epoch: 1,
        state: 'claimed',
        how: 'new',
        attempts: 0,
        message: {
          id: first.id,
          conversation: 'c1',
          sender: 'tests',
          parent: 'p',
          contentType: 'x/y',
          sha256: sha256(payload),
        },
        payload,
      },
      expect.objectContaining({ id: `${second.id}.1`, payload: Buffer.alloc(0) }),
    ])
    expect(reply).toMatchObject({ more: false, ghosts: [], missing: [] })
    expect(await record.fields(`${first.id}.1`)).toMatchObject({
      state: 'claimed',
      owner: 'n1',
      incarnation: '1',
      epoch: '1',
    })
  })

  it('gives at most count, says "more", and goes on where it stopped', async () => {
    const ids = await record.acceptMany(7)
    const sizes: number[] = []
    const found: string[] = []
    for (let more = true; more; ) {
      const reply = await record.claim(node, 3)
      more = reply.more
      sizes.push(reply.deliveries.length)
      found.push(...idsOf(reply.deliveries))
    }
    expect(found.toSorted()).toEqual(ids.toSorted())
    expect(sizes).toEqual([3, 3, 1])
  })

  it('hands out each delivery once to two nodes of a host', async () => {
    const other = await record.join('a', 'n2')
    const ids = await record.acceptMany(40)
    const [mine, theirs] = await Promise.all([record.claimAll(node, 3), record.claimAll(other, 3)])
    expect(idsOf([...mine, ...theirs]).toSorted()).toEqual(ids.toSorted())
  })

  it('stops at max_claim_bytes; one that is larger alone still comes', async () => {
    await record.config('max_claim_bytes', 1024)
    await record.config('max_payload_bytes', 2000)
    const ids = [
      ...(await record.acceptMany(3, { payload: 'x'.repeat(400) })),
      ...(await record.acceptMany(1, { payload: 'x'.repeat(2000) })),
      ...(await record.acceptMany(1, { payload: 'x' })),
    ]
    const found: string[] = []
    for (let more = true; more; ) {
      const reply = await record.claim(node)
      more = reply.more
      found.push(...idsOf(reply.deliveries))
      const bytes = reply.deliveries.reduce((sum, { payload }) => sum + payload.length, 0)
      expect(bytes <= 1024 || reply.deliveries.length === 1).toBe(true)
    }
    expect(found).toEqual(ids)
  })

  it('answers a repeated request with the same deliveries and epochs, their states current', async () => {
    await record.acceptMany(3)
    const first = await record.functions.claim(node, 5, 2)
    await record.acceptMany(1)
    const before = await record.dump()
    const again = await record.functions.claim(node, 5, 100)
    expect(again.deliveries).toEqual(first.deliveries)
    expect(again.more).toBe(true)
    expect(await record.dump()).toEqual(before)
    await record.functions.mirror(node, first.deliveries)
    const later = await record.functions.claim(node, 5, 2)
    expect(later.deliveries.map(briefOf)).toEqual(
      first.deliveries.map((each) => ({ ...briefOf(each), state: 'mirrored' })),
    )
  })

  it('repeats an empty answer too, and refuses a delayed duplicate', async () => {
    const empty = await record.functions.claim(node, 1, 10)
    expect(empty).toMatchObject({ deliveries: [], more: false })
    await record.acceptMany(1)
    expect((await record.functions.claim(node, 1, 10)).deliveries).toEqual([])
    expect((await record.functions.claim(node, 2, 10)).deliveries).toHaveLength(1)
    await record.refused('STALE_REQUEST', () => record.functions.claim(node, 1, 10))
  })

  it('tells the ends of stream and bell', async () => {
    expect(await record.claim(node)).toMatchObject({ streamId: '0-0', bellId: '0-0' })
    const [id = ''] = await record.acceptMany(1)
    const bell = await record.send('XADD', record.keys.bell('a'), 'MAXLEN', 1, '*', 'why', 'test')
    const { entry } = await record.fields(id)
    expect(await record.claim(node)).toMatchObject({ streamId: entry, bellId: bell })
  })

  it('names the time at which a peer could become stale', async () => {
    const other = await record.join('a', 'n2')
    const { nowMs, nextAtMs } = await record.claim(node)
    expect(nextAtMs).toBeGreaterThan(nowMs)
    expect(nextAtMs).toBeLessThanOrEqual(nowMs + 10_000)
    await record.functions.leave(other)
  })

  it('fails what was to be delivered before now', async () => {
    const { nowMs } = await record.claim(node)
    const [late = ''] = await record.acceptMany(1, { deliverBy: nowMs })
    const [kept = ''] = await record.acceptMany(1, { deliverBy: nowMs + 3_600_000 })
    expect(idsOf(await record.claimAll(node))).toEqual([kept])
    expect(await record.fields(late)).toMatchObject({
      state: 'failed',
      failed_code: 'expired',
      attempts: '0',
    })
  })

  it.each([
    ['a host that is none', { host: 'A', node: 'n1', incarnation: 1 }, 1, 1],
    ['a node without a name', { host: 'a', node: '', incarnation: 1 }, 1, 1],
    ['incarnation 0', { host: 'a', node: 'n1', incarnation: 0 }, 1, 1],
    ['request 0', { host: 'a', node: 'n1', incarnation: 1 }, 0, 1],
    ['count 0', { host: 'a', node: 'n1', incarnation: 1 }, 1, 0],
    ['half a delivery', { host: 'a', node: 'n1', incarnation: 1 }, 1, 1.5],
  ])('refuses %s', async (_, who, request, count) => {
    await record.acceptMany(1)
    await record.refused('INVALID_ARGUMENT', () => record.functions.claim(who, request, count))
  })

  it('refuses who has not joined, was superseded, or has left', async () => {
    await record.acceptMany(1)
    const stranger = { host: 'a', node: 'n9', incarnation: 1 }
    await record.refused('NOT_JOINED', () => record.functions.claim(stranger, 1, 1))
    await record.refused('NOT_JOINED', () => record.functions.claim({ ...node, incarnation: 2 }, 1, 1))
    const later = await record.join('a', 'n1', 2)
    await record.refused('SUPERSEDED', () => record.functions.claim(node, 1, 1))
    await record.functions.leave(later)
    await record.refused('LEFT', () => record.functions.claim(later, 1, 1))
  })
})

describe('a damaged record', () => {
  it('reports a delivery whose row is gone, keeps its entry as evidence, and serves the rest', async () => {
    const [gone = '', kept = ''] = await record.acceptMany(2)
    await record.send('DEL', record.keys.delivery(gone))
    await record.send('HINCRBY', record.keys.counts, 'queued', -1)
    record.damaged(gone)
    const reply = await record.claim(node)
    expect(reply.missing).toEqual([gone])
    expect(idsOf(reply.deliveries)).toEqual([kept])
    expect(JSON.stringify(await record.send('XRANGE', record.keys.stream('a'), '-', '+'))).toContain(gone)
    expect((await record.claim(node)).missing).toEqual([])
    const log = JSON.stringify(await record.send('XRANGE', record.keys.log, '-', '+'))
    expect(log).toContain(`"missing","${gone}"`)
  })

  it('reports a message whose row is gone, and serves the rest', async () => {
    const gone = await record.accept()
    const [kept = ''] = await record.acceptMany(1)
    await record.send('DEL', record.keys.message(gone.id))
    record.damaged(`${gone.id}.1`)
    const reply = await record.claim(node)
    expect(reply.missing).toEqual([gone.id])
    expect(idsOf(reply.deliveries)).toEqual([kept])
    expect(await record.states([`${gone.id}.1`])).toEqual(['queued'])
  })

  it('hands out a delivery whose payload is gone as one that fails its digest', async () => {
    const { id } = await record.accept()
    await record.send('DEL', record.keys.payload(id))
    const [claimed] = await record.claimAll(node)
    expect(claimed?.payload).toHaveLength(0)
    expect(claimed?.message.sha256).not.toBe(sha256(''))
  })

  it('reports a ghost once, and resumes the others', async () => {
    const ids = await record.acceptMany(3)
    await record.claimAll(node)
    const ghost = (await record.fields(ids[1] ?? ''))['entry'] ?? ''
    await record.send('XDEL', record.keys.stream('a'), ghost)
    record.damaged(ids[1] ?? '')
    const later = await record.join('a', 'n1', 2)
    const ghosts: string[] = []
    const resumed: ClaimedDelivery[] = []
    for (let more = true; more; ) {
      const reply = await record.claim(later)
      more = reply.more
      ghosts.push(...reply.ghosts)
      resumed.push(...reply.deliveries)
    }
    expect(ghosts).toEqual([ghost])
    expect(resumed.map(briefOf)).toEqual(
      [ids[0], ids[2]].map((id) => ({ id, epoch: 2, how: 'resume', state: 'claimed' })),
    )
    for (let claims = 0; claims < 20; claims += 1) {
      expect(await record.claim(later)).toMatchObject({ ghosts: [], deliveries: [], more: false })
    }
    const again = await record.join('a', 'n1', 3)
    for (let more = true; more; ) {
      const reply = await record.claim(again)
      more = reply.more
      expect(reply.ghosts).toEqual([])
    }
  })

  it('hands out again what a stranger read', async () => {
    const ids = await record.acceptMany(5)
    const stream = record.keys.stream('a')
    await record.send('XREADGROUP', 'GROUP', group, 'thief', 'COUNT', 3, 'STREAMS', stream, '>')
    const found: string[] = []
    await until(async () => {
      found.push(...idsOf(await record.claimAll(node, 2)))
      return found.length === 5
    })
    expect(found.toSorted()).toEqual(ids.toSorted())
  })

  it('hands out again what a stranger read in the same millisecond', async () => {
    const ids = await record.acceptMany(2)
    const stream = record.keys.stream('a')
    const replies = await record.store.pipeline([
      ['MULTI'],
      ['XREADGROUP', 'GROUP', group, 'thief', 'COUNT', 2, 'STREAMS', stream, '>'],
      ['FCALL', 'hf_claim', 1, record.keys.tag, 'a', 'n1', 1, 1, 10],
      ['EXEC'],
    ])
    node.request = 1
    expect(JSON.stringify(replies.at(-1))).toContain(`["id","${ids[0]}"`)
    expect(await record.states(ids)).toEqual(['claimed', 'claimed'])
  })

  it.each([1, 100])(
    'makes a group that was destroyed again, at 0, and hands out nothing twice (%i a claim)',
    async (count) => {
      const taken = await record.acceptMany(4)
      const claimed = await record.claimAll(node)
      await record.functions.mirror(node, claimed.slice(0, 2))
      await record.functions.pause('conversation:p', 'r', 'me')
      const [parked = ''] = await record.acceptMany(1, { conversation: 'p' })
      expect(await record.claimAll(node)).toEqual([])
      const fresh = await record.acceptMany(3)
      await record.send('XGROUP', 'DESTROY', record.keys.stream('a'), group)

      expect(idsOf(await record.claimAll(node, count)).toSorted()).toEqual(fresh.toSorted())
      expect(await record.states([...taken, parked])).toEqual([
        'mirrored',
        'mirrored',
        'claimed',
        'claimed',
        'queued',
      ])
      await record.checkInvariants()
      expect((await record.functions.ack(node, claimed.slice(0, 2))).map(({ ok }) => ok)).toEqual([
        true,
        true,
      ])
    },
  )

  it('makes the group again when it was destroyed while something was parked that may go on now', async () => {
    await record.functions.pause('conversation:p', 'r', 'me')
    const [parked = ''] = await record.acceptMany(1, { conversation: 'p' })
    await record.claimAll(node)
    await record.functions.lift('pause', 'conversation:p', 'me')
    await record.send('XGROUP', 'DESTROY', record.keys.stream('a'), group)
    expect(idsOf(await record.claimAll(node))).toEqual([parked])
  })

  it('clears leftover entries whose delivery has moved on, and foreign ones', async () => {
    const [delivered] = await record.acceptMany(1).then(() => record.deliverAll(node))
    const stream = record.keys.stream('a')
    await record.send('XADD', stream, '*', 'delivery', delivered?.id ?? '')
    await record.send('XADD', stream, '*', 'anything', 'foreign')
    record.damaged('foreign')
    const [kept = ''] = await record.acceptMany(1)
    const reply = await record.claim(node)
    expect(idsOf(reply.deliveries)).toEqual([kept])
    expect(reply.missing).toEqual(['foreign'])
    expect(await record.send('XLEN', stream)).toBe(2)
  })

  it('requeues a parked delivery whose entry was deleted by hand', async () => {
    await record.functions.pause('hub', 'r', 'me')
    const ids = await record.acceptMany(2)
    await record.claimAll(node)
    await record.send('XDEL', record.keys.stream('a'), (await record.fields(ids[0] ?? ''))['entry'] ?? '')
    await record.functions.lift('pause', 'hub', 'me')
    expect(idsOf(await record.claimAll(node)).toSorted()).toEqual(ids.toSorted())
  })
})
