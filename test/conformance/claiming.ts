import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { ClaimedDelivery } from '../../src/contract/steps.js'
import { sha256 } from '../support/record.js'
import { until } from '../support/until.js'
import { idsOf, type Make, refused } from './stage.js'

/** As contract section 7 has it: no digit, escape, blank or order may change. */
const jsonSample =
  '{"z":1,"a":12345678901234567890,"n":1.10,"e":1E2,"neg":-0,"s":"\\u00e9\\/\\ud83d\\ude00","list":[ 1 , 2 ]}'

const payloads: Readonly<Record<string, string | Buffer>> = {
  'JSON with every liberty': jsonSample,
  'bytes that are no text': Buffer.from([0, 255, 254, 128, 10, 13, 0]),
  nothing: '',
  emoji: '👩‍👩‍👧‍👦 Grüße \u0000 \u2028 \ufeff',
  'a megabyte': randomBytes(1_048_576),
}

export function claiming(make: Make): void {
  describe('payloads', () => {
    it.each(Object.keys(payloads))('%s reaches the node byte for byte', async (name) => {
      const stage = await make()
      const payload = payloads[name] ?? ''
      const bytes = Buffer.from(payload)
      const typed = name.startsWith('JSON') ? { contentType: 'application/json' } : {}
      const node = await stage.join()
      await stage.accept({ payload, ...typed })
      const [claimed] = await node.claimAll()
      expect(claimed?.payload.equals(bytes)).toBe(true)
      expect(claimed?.message.sha256).toBe(sha256(bytes))
      expect(claimed?.message.contentType).toBe(typed.contentType)
    })
  })

  it('hands out what was queued, in order, with the whole message', async () => {
    const stage = await make()
    const node = await stage.join()
    const first = await stage.accept({
      payload: Buffer.from([0, 1, 255]),
      contentType: 'x/y; charset="a"',
      parent: 'p/1',
      conversation: 'c /%2F?#"\\',
      sender: 'me & you',
    })
    const second = await stage.accept({ payload: '' })
    const reply = await node.claim()
    expect(reply).toMatchObject({ more: false, ghosts: [], missing: [] })
    expect(reply.logId).toMatch(/^\d+-\d+$/)
    expect(Math.abs(reply.nowMs - Date.now())).toBeLessThan(5000)
    expect(reply.deliveries).toEqual([
      {
        id: `${first.id}.1`,
        epoch: 1,
        state: 'claimed',
        how: 'new',
        attempts: 0,
        message: {
          id: first.id,
          conversation: 'c /%2F?#"\\',
          sender: 'me & you',
          parent: 'p/1',
          contentType: 'x/y; charset="a"',
          sha256: sha256(Buffer.from([0, 1, 255])),
        },
        payload: Buffer.from([0, 1, 255]),
      },
      {
        id: `${second.id}.1`,
        epoch: 1,
        state: 'claimed',
        how: 'new',
        attempts: 0,
        message: { id: second.id, conversation: 'c1', sender: 'tests', sha256: sha256('') },
        payload: Buffer.alloc(0),
      },
    ] satisfies ClaimedDelivery[])
    expect(await stage.shown((hub) => hub.delivery(`${first.id}.1`))).toMatchObject({
      state: 'claimed',
      owner: 'n1',
      incarnation: 1,
      epoch: 1,
    })
  })

  it('gives at most count, says "more", and goes on where it stopped', async () => {
    const stage = await make()
    const node = await stage.join()
    const ids = await stage.acceptMany(7)
    const replies = [await node.claim(3), await node.claim(3), await node.claim(3)]
    expect(replies.map(({ deliveries }) => idsOf(deliveries))).toEqual([
      ids.slice(0, 3),
      ids.slice(3, 6),
      ids.slice(6),
    ])
    expect(replies.map(({ more }) => more)).toEqual([true, true, false])
  })

  it('hands out each delivery once to two nodes that claim at the same time', async () => {
    const stage = await make()
    const nodes = [await stage.join(), await stage.join({ node: 'n2' })]
    const ids = await stage.acceptMany(30)
    const found = await Promise.all(nodes.map((node) => node.claimAll(3)))
    expect(idsOf(found.flat()).toSorted()).toEqual(ids.toSorted())
  })

  it('does not hand out what is queued for another host', async () => {
    const stage = await make()
    const [here, there] = [await stage.join(), await stage.join({ host: 'b' })]
    const [id = ''] = await stage.acceptMany(1, { to: [{ host: 'b' }] })
    expect(await here.claimAll()).toEqual([])
    expect(idsOf(await there.claimAll())).toEqual([id])
  })

  it('stops at max_claim_bytes; one that is larger alone still comes', async () => {
    const stage = await make({ max_claim_bytes: 1024, max_payload_bytes: 2000 })
    const node = await stage.join()
    const sizes = [400, 400, 400, 2000, 1]
    for (const size of sizes) await stage.accept({ payload: 'x'.repeat(size) })
    const found: number[] = []
    for (let more = true; more; ) {
      const reply = await node.claim()
      more = reply.more
      const lengths = reply.deliveries.map(({ payload }) => payload.length)
      expect(lengths.length === 1 || lengths.reduce((sum, length) => sum + length, 0) <= 1024).toBe(true)
      found.push(...lengths)
    }
    expect(found).toEqual(sizes)
  })

  it('answers a repeated request with the same deliveries and epochs, their states current', async () => {
    const stage = await make()
    const node = await stage.join()
    await stage.acceptMany(5)
    const first = await node.claim(3, { request: 4 })
    const before = await stage.record.dump()
    for (const count of [3, 100]) {
      const again = await node.claim(count, { request: 4 })
      expect(again.deliveries).toEqual(first.deliveries)
      expect(again.more).toBe(true)
    }
    expect(await stage.record.dump()).toEqual(before)
    await node.mirror(...first.deliveries.slice(0, 1))
    const later = await node.claim(3, { request: 4 })
    expect(later.deliveries.map(({ state }) => state)).toEqual(['mirrored', 'claimed', 'claimed'])
    expect((await node.claim(10, { request: 7 })).deliveries).toHaveLength(2)
    for (const request of [1, 4, 6]) {
      await refused(stage, 'STALE_REQUEST', () => node.claim(10, { request }))
    }
  })

  it('repeats an empty answer as well', async () => {
    const stage = await make()
    const node = await stage.join()
    expect((await node.claim(10, { request: 1 })).deliveries).toEqual([])
    const ids = await stage.acceptMany(1)
    expect((await node.claim(10, { request: 1 })).deliveries).toEqual([])
    expect(idsOf((await node.claim(10, { request: 2 })).deliveries)).toEqual(ids)
  })

  it('the same request many times at once hands out nothing twice', async () => {
    const stage = await make()
    const node = await stage.join()
    await stage.acceptMany(12)
    const replies = await Promise.all(Array.from({ length: 8 }, () => node.claim(4, { request: 1 })))
    for (const reply of replies) expect(reply.deliveries).toEqual(replies[0]?.deliveries)
    expect(await stage.hub.pending('a')).toHaveLength(4)
  })

  it('fails what was to be delivered before now, and keeps the rest', async () => {
    const stage = await make()
    const node = await stage.join()
    const { nowMs } = await node.claim()
    const [late = ''] = await stage.acceptMany(1, { deliverBy: nowMs })
    const [kept = ''] = await stage.acceptMany(1, { deliverBy: new Date(nowMs + 3_600_000) })
    expect(idsOf(await node.claimAll())).toEqual([kept])
    expect(await stage.shown((hub) => hub.delivery(late))).toMatchObject({
      state: 'failed',
      reason: 'expired deliver_by',
      attempts: [],
    })
  })

  it('names the time at which a peer could become stale', async () => {
    const stage = await make({ stale_after_ms: 7000 })
    const node = await stage.join()
    await stage.join({ node: 'n2' })
    const { nowMs, nextAtMs } = await node.claim()
    expect(nextAtMs).toBeGreaterThan(nowMs)
    expect(nextAtMs).toBeLessThanOrEqual(nowMs + 7000)
  })

  it('tells once of entries that are gone and of rows that are missing, and serves the rest', async () => {
    const stage = await make()
    const { record } = stage
    const [gone = '', missing = '', kept = ''] = await stage.acceptMany(3)
    const node = await stage.join()
    await record.send('DEL', record.keys.delivery(missing))
    await record.send('HINCRBY', record.keys.counts, 'queued', -1)
    record.damaged(gone, missing)
    const first = await node.claim()
    expect(first.missing).toEqual([missing])
    expect(idsOf(first.deliveries)).toEqual([gone, kept])
    const { entry = '' } = await record.fields(gone)
    await record.send('XDEL', record.keys.stream('a'), entry)
    const later = await stage.join({ incarnation: 2 })
    const ghosts: string[] = []
    const resumed: string[] = []
    await until(async () => {
      const reply = await later.claim()
      ghosts.push(...reply.ghosts)
      resumed.push(...idsOf(reply.deliveries))
      return !reply.more
    })
    expect([ghosts, resumed]).toEqual([[entry], [kept]])
    expect(await later.claim()).toMatchObject({ ghosts: [], missing: [], deliveries: [] })
  })

  it('refuses requests and counts that are none', async () => {
    const stage = await make()
    const node = await stage.join()
    await stage.acceptMany(1)
    for (const [request, count] of [
      [0, 1],
      [1.5, 1],
      [1, 0],
      [1, 1.5],
    ] as const) {
      await refused(stage, 'INVALID_ARGUMENT', () => node.claim(count, { request }))
    }
  })
}
