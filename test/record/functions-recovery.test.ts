import { beforeEach, describe, expect, it } from 'vitest'
import type { ClaimedDelivery } from '../../src/contract/steps.js'
import { eachRecord } from '../support/each-record.js'
import type { OpenRecord, TestNode } from '../support/record.js'
import { until } from '../support/until.js'

let record: OpenRecord
let node: TestNode

eachRecord(async (made) => {
  record = made
  node = await record.join('a', 'n1')
})

const beat = { lastLogId: '0-0', progressAgeMs: 0, blocking: { sumMs: 0, longestMs: 0 } }
const briefOf = ({ id, how, state, epoch }: ClaimedDelivery) => `${id} ${how} ${state} ${epoch}`

/** One of each, in the order of their lane: delivered and begun, delivered and idle, mirrored, claimed. */
async function mixture() {
  const ids = await record.acceptMany(4)
  const claimed = await record.claimAll(node)
  await record.functions.mirror(node, claimed.slice(0, 3))
  await record.functions.ack(node, claimed.slice(0, 2))
  const [begun = { id: '', epoch: 0 }, idle = begun, mirrored = begun, fresh = begun] = claimed
  const open = await record.begin(node, begun)
  return { ids, idle, mirrored, fresh, open }
}

/** Beats and claims until this many deliveries have come; every answer in order. */
async function claimUntil(by: TestNode, total: number): Promise<ClaimedDelivery[][]> {
  const answers: ClaimedDelivery[][] = []
  await until(
    async () => {
      await record.functions.heartbeat(by, beat)
      const { deliveries } = await record.claim(by)
      if (deliveries.length > 0) answers.push([...deliveries])
      return answers.flat().length >= total
    },
    { what: `${total} deliveries` },
  )
  return answers
}

describe('resume under a new incarnation', () => {
  it('hands out what the earlier process had, each in its state, one at a time, counted', async () => {
    const { ids, open } = await mixture()
    const later = await record.join('a', 'n1', 2)
    const answers: ClaimedDelivery[][] = []
    for (let more = true; more; ) {
      const reply = await record.claim(later)
      more = reply.more
      if (reply.deliveries.length > 0) answers.push([...reply.deliveries])
    }
    expect(answers.map((each) => each.map(briefOf))).toEqual([
      [`${ids[1]} resume delivered 2`],
      [`${ids[2]} resume mirrored 2`],
      [`${ids[3]} resume claimed 2`],
    ])
    expect(answers[0]?.[0]?.payload.length).toBeGreaterThan(0)
    expect((await record.fields(ids[1] ?? ''))['takeovers']).toBe('1')
    expect(await record.send('ZRANGE', record.keys.unknown, 0, -1)).toEqual([open.attempt])
    expect(await record.fields(open.id)).toMatchObject({
      attempt_1_unknown_reason: 'superseded',
      attempt_status: 'executing',
      epoch: '1',
    })
    expect((await record.claim(later)).deliveries).toEqual([])
  })

  it('refuses the earlier process in every step, changing nothing', async () => {
    const { fresh, mirrored, idle } = await mixture()
    const later = await record.join('a', 'n1', 2)
    await record.claimAll(later)
    await record.refused('SUPERSEDED', () => record.functions.mirror(node, [fresh]))
    await record.refused('SUPERSEDED', () => record.functions.ack(node, [mirrored]))
    await record.refused('SUPERSEDED', () => record.functions.heartbeat(node, beat))
    await record.refused('SUPERSEDED', () => record.functions.begin(node, [{ ...idle, grant: 'late' }]))
    await record.itemRefused('STALE_EPOCH', () => record.functions.mirror(later, [fresh]))
  })

  it('is not counted after a clean leave, and comes in one answer', async () => {
    const { ids } = await mixture()
    await record.functions.leave(node)
    const later = await record.join('a', 'n1', 2)
    const reply = await record.claim(later)
    expect(reply.deliveries.map(({ id }) => id)).toEqual(ids.slice(1))
    expect((await record.fields(ids[1] ?? ''))['takeovers']).toBe('0')
  })

  it('goes through more than one look of the pending list and of what awaits', async () => {
    const ids = await record.acceptMany(450)
    const claimed = await record.claimAll(node)
    const delivered = claimed.slice(0, 220)
    await record.functions.mirror(node, delivered)
    await record.functions.ack(node, delivered)
    await record.functions.leave(node)
    const later = await record.join('a', 'n1', 2)
    const resumed = await record.claimAll(later, 60)
    expect(resumed.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
    expect(resumed.every(({ how, epoch }) => how === 'resume' && epoch === 2)).toBe(true)
  })

  it('survives crash after crash in the middle of it', async () => {
    const ids = await record.acceptMany(5)
    await record.claimAll(node)
    for (let incarnation = 2; incarnation < 5; incarnation += 1) {
      const later = await record.join('a', 'n1', incarnation)
      expect((await record.claim(later)).deliveries).toHaveLength(1)
    }
    const last = await record.join('a', 'n1', 5)
    const resumed = await record.claimAll(last)
    expect(resumed.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
  })
})

describe('poison', () => {
  it('is held at max_takeovers after being handed out alone; its neighbours are delivered', async () => {
    await record.config('max_takeovers', 3)
    const ids = await record.acceptMany(3)
    await record.claimAll(node)
    let [held, incarnation] = ['', 2]
    for (; held === '' && incarnation < 9; incarnation += 1) {
      const process = await record.join('a', 'n1', incarnation)
      const reply = await record.claim(process)
      expect(reply.deliveries.length).toBeLessThanOrEqual(1)
      held = String(await record.send('ZRANGE', record.keys.held, 0, 0))
    }
    expect(held).toBe(ids[0])
    expect(await record.fields(held)).toMatchObject({ held_reason: 'poison', takeovers: '3', epoch: '4' })
    const last = await record.join('a', 'n1', incarnation)
    expect((await record.claimAll(last)).map(({ id }) => id)).toEqual(ids.slice(1))
  })

  it('is not what a settled attempt leads to: it resets the count', async () => {
    await record.config('max_takeovers', 3)
    const [id = ''] = await record.acceptMany(1)
    await record.deliverAll(node)
    let process = node
    for (let incarnation = 2; incarnation < 4; incarnation += 1) {
      process = await record.join('a', 'n1', incarnation)
      await record.claimAll(process)
    }
    expect((await record.fields(id))['takeovers']).toBe('2')
    const { epoch } = await record.functions.why(id)
    const open = await record.begin(process, { id, epoch })
    const outcome = { kind: 'not_sent', errorCode: 'busy' } as const
    await record.functions.report(process, [{ id: open.attempt, grant: open.grant, key: 'k', outcome }])
    expect(await record.fields(id)).toMatchObject({ takeovers: '0', state: 'delivered' })
  })

  it.each(['claimed', 'mirrored', 'delivered'] as const)('holds what was %s', async (state) => {
    await record.config('max_takeovers', 1)
    const [id = ''] = await record.acceptMany(1)
    const claimed = await record.claimAll(node)
    if (state !== 'claimed') await record.functions.mirror(node, claimed)
    if (state === 'delivered') await record.functions.ack(node, claimed)
    const later = await record.join('a', 'n1', 2)
    expect(await record.claimAll(later)).toEqual([])
    expect(await record.fields(id)).toMatchObject({ state: 'held', held_reason: 'poison' })
  })
})

describe('takeover by another node of the host', () => {
  beforeEach(async () => {
    await record.config('heartbeat_ms', 50)
    await record.config('stale_after_ms', 100)
  })

  it('comes after staleness, counted, each alone; the open attempt is listed, never taken', async () => {
    const { ids, open } = await mixture()
    const other = await record.join('a', 'n2')
    const answers = await claimUntil(other, 3)
    expect(answers.map((each) => each.map(briefOf)).toSorted()).toEqual([
      [`${ids[1]} takeover delivered 2`],
      [`${ids[2]} takeover mirrored 2`],
      [`${ids[3]} takeover claimed 2`],
    ])
    expect(await record.fields(ids[1] ?? '')).toMatchObject({
      owner: 'n2',
      takeovers: '1',
      taken_from: 'n1#1',
    })
    expect(await record.send('ZRANGE', record.keys.unknown, 0, -1)).toEqual([open.attempt])
    expect(await record.fields(open.id)).toMatchObject({ owner: 'n1', attempt_1_unknown_reason: 'stale' })
  })

  it('refuses the former owner when it wakes, step by step, and takes its own report', async () => {
    const { fresh, mirrored, idle, open } = await mixture()
    const other = await record.join('a', 'n2')
    await claimUntil(other, 3)
    const { functions } = record
    await functions.heartbeat(node, beat)
    await record.itemRefused('STALE_EPOCH', () => functions.mirror(node, [fresh]))
    await record.itemRefused('STALE_EPOCH', () => functions.ack(node, [mirrored]))
    await record.itemRefused('STALE_EPOCH', () => functions.begin(node, [{ ...idle, grant: 'late' }]))
    const outcome = { kind: 'result', result: '1' } as const
    const reports = [{ id: open.attempt, grant: open.grant, key: 'k', outcome }]
    expect(await functions.report(node, reports)).toEqual([expect.objectContaining({ ok: true })])
    expect(await record.send('ZCARD', record.keys.unknown)).toBe(0)
  })

  it('never happens to a node that beats, however long it holds what it has', async () => {
    await record.acceptMany(2)
    await record.claimAll(node)
    const other = await record.join('a', 'n2')
    const startedAt = performance.now()
    await until(async () => {
      await record.functions.heartbeat(node, beat)
      await record.functions.heartbeat(other, beat)
      expect((await record.claim(other)).deliveries).toEqual([])
      return performance.now() - startedAt > 400
    })
  })

  it('does not judge after a time in which no node at all was heard', async () => {
    await record.acceptMany(1)
    await record.claimAll(node)
    const other = await record.join('a', 'n2')
    const { nowMs } = await record.claim(other)
    await until(async () => (await record.nowMs()) > nowMs + 1500)
    expect((await record.claim(other)).deliveries).toEqual([])
    await record.functions.heartbeat(node, beat)
    await record.functions.heartbeat(other, beat)
    expect((await record.claim(other)).deliveries).toEqual([])
  })

  it('is at once, uncounted and in one answer after a clean leave, even of a host with the default staleness', async () => {
    await record.config('stale_after_ms', 10_000)
    const other = await record.join('a', 'n2')
    await record.claim(other)
    const { ids, open } = await mixture()
    await record.functions.leave(node)
    const reply = await record.claim(other)
    expect(reply.deliveries.map(briefOf).toSorted()).toEqual([
      `${ids[1]} takeover delivered 2`,
      `${ids[2]} takeover mirrored 2`,
      `${ids[3]} takeover claimed 2`,
    ])
    expect(await record.fields(ids[1] ?? '')).toMatchObject({ takeovers: '0', owner: 'n2' })
    expect(await record.fields(open.id)).toMatchObject({ attempt_1_unknown_reason: 'left' })
  })

  it('gives each of a hundred stale deliveries to one of two recoverers', async () => {
    await record.config('max_takeovers', 2)
    const ids = await record.acceptMany(100)
    await record.claimAll(node)
    const others = [await record.join('a', 'n2'), await record.join('a', 'n3')]
    const found: ClaimedDelivery[] = []
    await until(async () => {
      const replies = await Promise.all(
        others.map(async (each) => {
          await record.functions.heartbeat(each, beat)
          return record.claim(each)
        }),
      )
      found.push(...replies.flatMap(({ deliveries }) => deliveries))
      return found.length >= 100
    })
    expect(found.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
    expect(found.every(({ epoch }) => epoch === 2)).toBe(true)
  })

  it('does not reach to another host', async () => {
    await record.acceptMany(1)
    await record.claimAll(node)
    const other = await record.join('b', 'n2')
    await record.functions.leave(node)
    expect((await record.claim(other)).deliveries).toEqual([])
  })
})
