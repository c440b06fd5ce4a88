import { describe, expect, it } from 'vitest'
import { prepareMessage } from '../../src/contract/message.js'
import type { Outcome } from '../../src/contract/outcomes.js'
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
const notSent: Outcome = { kind: 'not_sent', errorCode: 'busy' }
const unknownList = () => record.send('ZRANGE', record.keys.unknown, 0, -1)
const held = async () => (await record.send('ZRANGE', record.keys.held, 0, -1)) as string[]

/** Retires host a to the end; answers how many calls it took. */
async function retire(host = 'a'): Promise<number> {
  for (let calls = 1; ; calls += 1) {
    if (!(await record.functions.retire(host, 'kim', 'sold')).more) return calls
  }
}

async function report(item: { attempt: string; grant: string }, outcome: Outcome, by = node) {
  const key = `${item.grant}.${outcome.kind}`
  const [answer] = await record.functions.report(by, [{ id: item.attempt, grant: item.grant, key, outcome }])
  return answer
}

async function beginOne(conversation = 'c1') {
  const [id = ''] = await record.acceptMany(1, { conversation })
  const item = (await record.deliverAll(node)).find((each) => each.id === id)
  return record.begin(node, item ?? { id, epoch: 0 })
}

describe('retire', () => {
  it('holds what is queued, parked, claimed, mirrored, and delivered and idle: 450 in slices', async () => {
    const ids: Record<string, string[]> = {}
    ids['delivered'] = (await deliver(90)).map(({ id }) => id)
    ids['mirrored'] = await record.acceptMany(90, { conversation: 'c2' })
    const mirrored = await record.claimAll(node)
    await record.functions.mirror(node, mirrored)
    ids['claimed'] = await record.acceptMany(90, { conversation: 'c3' })
    await record.claimAll(node)
    await record.functions.pause('conversation:c4', 'wait', 'kim')
    ids['parked'] = await record.acceptMany(90, { conversation: 'c4' })
    await record.claimAll(node)
    ids['queued'] = await record.acceptMany(90, { conversation: 'c5' })
    const elsewhere = await record.acceptMany(1, { to: [{ host: 'b' }] })

    expect((await record.functions.retire('a', 'kim', 'sold')).more).toBe(true)
    const slice = (await held()).length
    expect(slice).toBeGreaterThan(0)
    expect(slice).toBeLessThan(450)
    await retire()
    const all = Object.values(ids).flat()
    expect((await held()).toSorted()).toEqual(all.toSorted())
    for (const state of Object.keys(ids)) {
      const row = await record.fields(ids[state]?.[0] ?? '')
      expect(row, state).toMatchObject({ state: 'held', held_reason: 'retired', held_by: 'kim' })
      expect(row, state).not.toHaveProperty('owner')
    }
    expect(await record.states(elsewhere)).toEqual(['queued'])
    expect(await record.send('XLEN', record.keys.stream('a'))).toBe(0)
    expect(await record.fields((ids['claimed'] ?? [])[0] ?? '')).toMatchObject({ epoch: '2' })
    await record.checkInvariants()
    const before = await held()
    expect(await retire()).toBe(1)
    expect(await held()).toEqual(before)
  })

  async function deliver(count: number): Promise<ClaimedDelivery[]> {
    await record.acceptMany(count)
    return record.deliverAll(node)
  }

  it('lists open attempts as unknown, retired; they may still be reported, each way', async () => {
    const outcomes: Outcome[] = [
      { kind: 'result', result: '1' },
      { kind: 'terminal', errorCode: 'gone' },
      { kind: 'outcome_unknown', errorCode: 'timeout' },
    ]
    const open = []
    for (const { kind } of outcomes) open.push(await beginOne(kind))
    await retire()
    expect(await unknownList()).toEqual(open.map(({ attempt }) => attempt).toSorted())
    expect(await held()).toEqual([])
    expect(await record.fields(open[0]?.id ?? '')).toMatchObject({
      state: 'delivered',
      attempt_1_unknown_reason: 'retired',
    })
    await record.checkInvariants()
    for (const [at, outcome] of outcomes.entries()) {
      const item = open[at]
      if (item) expect(await report(item, outcome)).toMatchObject({ ok: true, outcome: outcome.kind })
    }
    expect(await unknownList()).toEqual([open[2]?.attempt])
    expect((await record.fields(open[0]?.id ?? ''))['attempt_status']).toBe('done')
  })

  it('holds a delivery whose attempt its live owner then proves to be not sent', async () => {
    const open = await beginOne()
    await retire()
    expect(await report(open, notSent)).toMatchObject({ ok: true, outcome: 'not_sent' })
    expect(await record.fields(open.id)).toMatchObject({ state: 'held', held_reason: 'retired' })
    expect(await unknownList()).toEqual([])
  })

  it('holds it as well when a later process of the node proves it', async () => {
    const open = await beginOne()
    await retire()
    const later = await record.join('a', 'n1', 2)
    expect(await report(open, notSent, later)).toMatchObject({ ok: true, outcome: 'not_sent' })
    expect(await record.fields(open.id)).toMatchObject({ state: 'held', held_reason: 'retired' })
    expect(await record.send('XLEN', record.keys.stream('a'))).toBe(0)
  })

  it('keeps held what a hold parked there, when that is lifted or lapses', async () => {
    await record.functions.hold('hub', 'legal', 'kim')
    const [lifted = ''] = await record.acceptMany(1)
    await record.claimAll(node)
    await retire()
    await record.functions.lift('hold', 'hub', 'kim')
    await record.claimAll(await record.join('b', 'n1'))
    expect(await record.fields(lifted)).toMatchObject({ state: 'held', held_reason: 'retired' })
    await record.functions.hold('conversation:c1', 'legal', 'kim')
    await record.refused('HOST_RETIRED', () => record.functions.release(lifted, 'kim', 'r'))
    await record.functions.cancel(lifted, 'kim', 'r')
  })

  it('stops every step of its nodes but the report, from the first call on', async () => {
    await record.acceptMany(3)
    const [claimed, mirrored, delivered] = await record.claimAll(node)
    if (!claimed || !mirrored || !delivered) throw new Error('three were accepted')
    await record.functions.mirror(node, [mirrored, delivered])
    await record.functions.ack(node, [delivered])
    await record.functions.retire('a', 'kim', 'sold')
    const { functions } = record
    const refusal = { ...claimed, verdict: 'failed', reason: 'disk' } as const
    await record.refused('HOST_RETIRED', () => functions.claim(node, node.request + 1, 10))
    await record.refused('HOST_RETIRED', () => functions.claim(node, node.request, 10))
    await record.refused('HOST_RETIRED', () => functions.mirror(node, [claimed]))
    await record.refused('HOST_RETIRED', () => functions.ack(node, [mirrored]))
    await record.refused('HOST_RETIRED', () => functions.refuse(node, [refusal]))
    await record.refused('HOST_RETIRED', () => functions.begin(node, [{ ...delivered, grant: 'g' }]))
    await record.refused('HOST_RETIRED', () => functions.leave(node))
  })

  it('leaves its nodes their heartbeats: an executor that speaks still lives', async () => {
    const open = await beginOne()
    await record.config('stale_after_ms', 200)
    await retire()
    const resolve = (force = false) =>
      record.functions.resolveAttempt(open.attempt, { as: 'not_sent', evidence: 'looked', force }, 'kim')
    const since = await record.nowMs()
    await until(async () => {
      await record.functions.heartbeat(node, beat)
      return (await record.nowMs()) > since + 600
    })
    await record.refused('EXECUTING', () => resolve())
    await until(async () => (await record.nowMs()) > since + 1200)
    expect(await until(() => resolve())).toMatchObject({ state: 'held' })
  })

  it('goes on by a sweep where nobody repeats it', async () => {
    const ids = await record.acceptMany(450)
    expect((await record.functions.retire('a', 'kim', 'sold')).more).toBe(true)
    expect((await held()).length).toBeLessThan(450)
    for (let cursor = 'begin'; cursor !== ''; ) {
      const slice = await record.functions.sweepHost('stale', 'a', cursor === 'begin' ? '' : cursor)
      expect(slice.notes.join()).toContain('retiring was cut')
      cursor = slice.cursor
    }
    expect((await held()).toSorted()).toEqual(ids.toSorted())
    expect((await record.functions.sweepHost('stale', 'a', '')).found).toBe(0)
    await record.checkInvariants()
  })

  it('makes accept refuse the whole message, with nothing stored', async () => {
    await retire()
    const refusal = await record.refused('HOST_RETIRED', () =>
      record.accept({ to: [{ host: 'b' }, { host: 'a' }] }),
    )
    expect(refusal).toContain('host a')
  })

  it('makes accept refuse it also for a recipient beyond the inline fan-out', async () => {
    await retire()
    await record.config('inline_fan_out', 1)
    await record.refused('HOST_RETIRED', () => record.accept({ to: [{ host: 'b' }, { host: 'a' }] }))
  })

  it('answers a repeated accept as the first time', async () => {
    const message = { key: 'before' }
    const first = await record.accept(message)
    await retire()
    const prepared = { conversation: 'c1', sender: 'tests', to: [{ host: 'a' }], payload: 'payload 1' }
    const again = await record.functions.accept(prepareMessage({ ...prepared, ...message }))
    expect(again).toMatchObject({ id: first.id, replayed: true })
  })

  it('leaves a fan-out under way whole: what is made there is held', async () => {
    await record.config('inline_fan_out', 1)
    const to = ['b', 'a', 'c'].map((host) => ({ host }))
    const { id } = await record.accept({ to })
    await retire()
    const reply = await record.functions.fanOut(id, 10)
    expect(reply.deliveries.map(({ host, state }) => `${host} ${state}`)).toEqual(['a held', 'c queued'])
    expect(await record.fields(`${id}.2`)).toMatchObject({ held_reason: 'retired', held_by: 'fan_out' })
  })

  it('is refused for a host never seen, a bad name, and without actor or reason', async () => {
    const { functions } = record
    await record.refused('HOST_NOT_FOUND', () => functions.retire('never', 'kim', 'r'))
    await record.refused('INVALID_ARGUMENT', () => functions.retire('A', 'kim', 'r'))
    await record.refused('INVALID_ARGUMENT', () => functions.retire('a', '', 'r'))
    await record.refused('INVALID_ARGUMENT', () => functions.retire('a', 'kim', ''))
  })

  it('keeps who retired it first, and why', async () => {
    await record.functions.retire('a', 'kim', 'sold')
    await record.functions.retire('a', 'lee', 'again')
    const row = await record.send('HMGET', record.keys.host('a'), 'retired_by', 'retired_reason')
    expect(row).toEqual(['kim', 'sold'])
  })

  it('says why: held, retired', async () => {
    const [id = ''] = await record.acceptMany(1)
    await retire()
    expect(await record.functions.why(id)).toMatchObject({ reason: 'held', detail: 'retired' })
  })

  it('leaves an entry whose row is missing as evidence', async () => {
    const [id = '', whole = ''] = await record.acceptMany(2)
    record.damaged(id, whole)
    await record.send('DEL', record.keys.delivery(id))
    await record.send('HINCRBY', record.keys.counts, 'queued', -1)
    await retire()
    expect(await record.states([whole])).toEqual(['held'])
    const entries = (await record.send('XRANGE', record.keys.stream('a'), '-', '+')) as [string, string[]][]
    expect(entries.map(([, fields]) => fields[1])).toEqual([id])
  })
})
