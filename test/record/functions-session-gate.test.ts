import { describe, expect, it } from 'vitest'
import type { ClaimedDelivery } from '../../src/contract/steps.js'
import { eachRecord } from '../support/each-record.js'
import type { OpenRecord, TestNode } from '../support/record.js'
import {
  notSent,
  result,
  type SessionTools,
  sessionTools,
  targetMissing,
  terminal,
  the,
} from '../support/sessions.js'

// What a session that is not open does at claim and at begin.

let record: OpenRecord
let sessions: SessionTools
let node: TestNode

eachRecord(async (made) => {
  record = made
  sessions = sessionTools(record)
  node = await sessions.join('a')
  await sessions.open()
})

const forGood = { reason: 'disable', terminal: true } as const
const ids = (claimed: readonly ClaimedDelivery[]) => claimed.map(({ id }) => id)
const beginAt = (item: { id: string; epoch: number }) =>
  record.functions.begin(node, [{ id: item.id, epoch: item.epoch, grant: 'g' }])
const lookNow = () => record.send('HDEL', record.keys.host('a'), 'parked_look_at')
const held = () => record.send('ZCARD', record.keys.held)

/** An attempt of the session, begun while it was open. */
const openAttempt = () => sessions.begin(node, 's', 'the attempt')

/** What brings the session into each state, given an attempt that was begun before. */
const closings: Record<string, (attempt: Awaited<ReturnType<typeof openAttempt>>) => Promise<unknown>> = {
  'closed for good': () => sessions.close('s', forGood),
  closed: () => sessions.close(),
  missing: (attempt) => sessions.report(attempt, targetMissing, node),
}

describe('an open session', () => {
  it('is handed out with its epoch, and begun', async () => {
    await sessions.open()
    const [id] = await sessions.send()
    const delivered = the(await record.deliverAll(node), id)
    expect(delivered).toMatchObject({ session: 's', sessionEpoch: 2 })
    const open = await record.begin(node, delivered)
    expect(await record.fields(open.id)).toMatchObject({ attempt_1_session_epoch: '2' })
  })
})

describe('closed for good', () => {
  it('holds at the claim, reason route_terminal; reopening queues it again', async () => {
    const [id = ''] = await sessions.send()
    await sessions.close('s', forGood)
    expect(await record.functions.why(id)).toMatchObject({ reason: 'fenced', detail: 'session s is closed' })
    expect(await record.claimAll(node)).toEqual([])
    expect(await record.fields(id)).toMatchObject({
      state: 'held',
      held_reason: 'route_terminal',
      epoch: '1',
    })
    expect(await record.functions.why(id)).toMatchObject({
      reason: 'held',
      detail: 'route_terminal route_terminal:session:s',
    })
    expect(await record.send('SMEMBERS', record.keys.holding)).toEqual(['route_terminal:session:s'])
    await record.checkInvariants()
    const before = await record.fields(id)
    expect(await record.claimAll(node)).toEqual([])
    expect(await record.fields(id)).toEqual(before)
    await sessions.open('s', {}, false)
    expect(await record.fields(id)).toMatchObject({ state: 'queued', epoch: '2', requeued_by: 'kim' })
    expect(ids(await record.claimAll(node))).toEqual([id])
    expect(await record.send('EXISTS', record.keys.holding)).toBe(0)
  })

  it('holds what is claimed later, too, and none of it is lost when it reopens: 250, the later ones by claims', async () => {
    await sessions.close('s', forGood)
    const sent = await sessions.send(250)
    await record.claimAll(node)
    expect(await held()).toBe(250)
    await sessions.open()
    expect(await held()).toBe(150)
    await record.checkInvariants()
    const elsewhere = await sessions.join('b')
    expect((await record.claim(elsewhere)).more).toBe(true)
    expect(await held()).toBe(50)
    expect(ids(await record.claimAll(node))).toEqual(sent)
  })

  it('at begin answers HELD, and HELD again; the delivery is held', async () => {
    const [id] = await sessions.send()
    const item = the(await record.deliverAll(node), id)
    await sessions.close('s', forGood)
    expect(await beginAt(item)).toMatchObject([{ ok: false, code: 'HELD', state: 'held' }])
    expect(await record.fields(item.id)).toMatchObject({ held_reason: 'route_terminal', attempts: '0' })
    await record.itemRefused('HELD', () => beginAt(item))
  })

  it('lets a release pass no further than its next claim', async () => {
    const [id = ''] = await sessions.send()
    await sessions.close('s', forGood)
    await record.claimAll(node)
    expect(await record.functions.release(id, 'kim', 'try')).toMatchObject({ state: 'queued' })
    expect(await record.claimAll(node)).toEqual([])
    expect(await record.fields(id)).toMatchObject({ state: 'held', held_reason: 'route_terminal' })
  })

  it('gives way to a block, comes before a pause, and remains when a hold beside it is lifted', async () => {
    await sessions.close('s', forGood)
    await record.functions.pause('hub', 'wait', 'kim')
    const [first = ''] = await sessions.send()
    await record.claimAll(node)
    expect(await record.fields(first)).toMatchObject({ held_reason: 'route_terminal' })
    await record.functions.hold('session:s', 'legal', 'kim')
    const [second = ''] = await sessions.send()
    await record.claimAll(node)
    expect(await record.fields(second)).toMatchObject({ held_reason: 'fence' })
    await record.functions.lift('hold', 'session:s', 'kim')
    await record.claimAll(node)
    expect(await record.fields(second)).toMatchObject({ state: 'held', held_reason: 'route_terminal' })
    await record.functions.block('session:s', 'never', 'kim')
    const [third = ''] = await sessions.send()
    await record.claimAll(node)
    expect(await record.fields(third)).toMatchObject({ state: 'failed', failed_code: 'blocked' })
  })
})

describe('closed until it reopens', () => {
  it('parks in place, later ones behind; they go on in order when it reopens, and the bell rings', async () => {
    const sent = await sessions.send(3)
    await sessions.close()
    expect(await record.functions.why(sent[0] ?? '')).toMatchObject({
      reason: 'fenced',
      detail: 'session s is closed: its deliveries wait until it opens again',
    })
    const { bellId } = await record.claim(node)
    sent.push(...(await sessions.send(2)))
    expect(await record.claimAll(node)).toEqual([])
    expect(await record.fields(sent[0] ?? '')).toMatchObject({
      state: 'queued',
      epoch: '0',
      parked_by: 'closed:session:s',
    })
    await record.checkInvariants()
    await sessions.open('s', {}, false)
    const rung = (await record.send('XREVRANGE', record.keys.bell('a'), '+', '-', 'COUNT', 1)) as [string][]
    expect(rung[0]?.[0]).not.toBe(bellId)
    sent.push(...(await sessions.send(1)))
    expect(ids(await record.claimAll(node))).toEqual(sent)
  })

  it('at begin answers PAUSED, nothing moves, and the same grant is granted after it reopens', async () => {
    const [id] = await sessions.send()
    const item = the(await record.deliverAll(node), id)
    await sessions.close()
    await record.itemRefused('PAUSED', () => beginAt(item))
    await sessions.open()
    expect(await beginAt(item)).toMatchObject([{ ok: true, attempt: 1 }])
  })

  it('stops first claims and begins only: what is under way is resumed, mirrored, acknowledged, reported', async () => {
    const open = await openAttempt()
    const [id] = await sessions.send()
    the(await record.claimAll(node), id)
    await sessions.close()
    const later = await sessions.join('a', 'n1', 2)
    const resumed = the(await record.claimAll(later), id)
    expect((await record.functions.mirror(later, [resumed]))[0]).toMatchObject({ ok: true })
    expect((await record.functions.ack(later, [resumed]))[0]).toMatchObject({ ok: true })
    expect(await sessions.report(open, result, node)).toMatchObject({ ok: true })
  })

  it('then for good: what was parked is held at the next look', async () => {
    const sent = await sessions.send(3)
    await sessions.close()
    await record.claimAll(node)
    await sessions.open()
    await sessions.close('s', forGood)
    await record.claimAll(node)
    expect(await record.states(sent)).toEqual(['held', 'held', 'held'])
  })

  it('does not stop a deadline: what was parked past deliverBy fails, expired', async () => {
    const [id = ''] = await sessions.send()
    await record.send('HSET', record.keys.delivery(id), 'deliver_by', Date.now() + 60_000)
    await sessions.close()
    await record.claimAll(node)
    await record.send('HSET', record.keys.delivery(id), 'deliver_by', 1)
    await sessions.open()
    expect(await record.claimAll(node)).toEqual([])
    expect(await record.fields(id)).toMatchObject({ state: 'failed', failed_code: 'expired' })
  })
})

describe('missing', () => {
  it('fails at the claim, target_session_missing, and settles the message', async () => {
    const open = await openAttempt()
    const [id = ''] = await sessions.send()
    await sessions.report(open, targetMissing, node)
    expect(await record.functions.why(id)).toMatchObject({ reason: 'fenced', detail: 'session s is missing' })
    expect(await record.claimAll(node)).toEqual([])
    expect(await record.fields(id)).toMatchObject({ state: 'failed', failed_code: 'target_session_missing' })
    expect(await record.functions.why(id)).toMatchObject({
      reason: 'failed',
      detail: 'target_session_missing missing:session:s',
    })
  })

  it('at begin answers BLOCKED, and BLOCKED again; the delivery failed', async () => {
    const open = await openAttempt()
    const [id] = await sessions.send()
    const item = the(await record.deliverAll(node), id)
    await sessions.report(open, targetMissing, node)
    expect(await beginAt(item)).toMatchObject([{ ok: false, code: 'BLOCKED', state: 'failed' }])
    expect(await record.fields(item.id)).toMatchObject({
      failed_code: 'target_session_missing',
      attempts: '0',
    })
    await record.itemRefused('BLOCKED', () => beginAt(item))
  })

  it('fails what an earlier close parked or held, at the next look; a reopening operator keeps the rest', async () => {
    const open = await openAttempt()
    const [parked = ''] = await sessions.send()
    await sessions.close()
    await record.claimAll(node)
    await sessions.report(open, targetMissing, node)
    expect(await sessions.row()).toMatchObject({ state: 'missing' })
    await lookNow()
    await record.claimAll(node)
    expect(await record.fields(parked)).toMatchObject({
      state: 'failed',
      failed_code: 'target_session_missing',
    })
    const [spared = ''] = await sessions.send()
    await sessions.open()
    expect(ids(await record.claimAll(node))).toEqual([spared])
  })
})

describe('who says that a target is missing', () => {
  it.each(['reopened', 'rehomed'])(
    'a report of an attempt begun before it was %s says nothing',
    async (how) => {
      const open = await openAttempt()
      if (how === 'reopened') {
        await sessions.open()
      } else {
        await sessions.join('b')
        await sessions.silence(node)
        await sessions.rehome()
      }
      expect(await sessions.report(open, targetMissing, node)).toMatchObject({
        ok: true,
        outcome: 'terminal',
      })
      expect(await sessions.row()).toMatchObject({ state: 'open' })
    },
  )

  it.each([
    ['another terminal', terminal],
    ['a not_sent of that code', { ...notSent, errorCode: 'target_session_missing' }],
    ['an unknown of that code', { kind: 'outcome_unknown', errorCode: 'target_session_missing' }],
    ['a result', result],
  ] as const)('%s does not', async (_, outcome) => {
    const open = await openAttempt()
    await sessions.report(open, outcome, node)
    expect(await sessions.row()).toMatchObject({ state: 'open' })
  })

  it('a late report does not, and neither does one on a delivery to the host', async () => {
    const open = await openAttempt()
    await sessions.report(open, result, node)
    expect(await sessions.report(open, targetMissing, node)).toMatchObject({ code: 'ALREADY_SETTLED' })
    const [id] = await record.acceptMany(1)
    const toHost = await record.begin(node, the(await record.deliverAll(node), id))
    expect(await sessions.report(toHost, targetMissing, node)).toMatchObject({ ok: true })
    expect(await sessions.row()).toMatchObject({ state: 'open' })
  })

  it('a report of an attempt begun since does: its attempt and time are kept, once', async () => {
    const [first, second] = [await openAttempt(), await openAttempt()]
    await sessions.report(first, targetMissing, node)
    const row = await sessions.row()
    expect(row).toMatchObject({ state: 'missing', missing_attempt: first.attempt })
    await sessions.report(second, targetMissing, node)
    expect(await sessions.row()).toEqual(row)
  })
})

describe.each([
  ['deleted', (key: string) => record.send('DEL', key)],
  ['trimmed to nothing', (key: string) => record.send('XTRIM', key, 'MAXLEN', 0)],
])('with the close event lost, the log %s', (_, lose) => {
  it.each([
    ['closed for good', 'held', 'HELD', 'held'],
    ['closed', 'queued', 'PAUSED', 'delivered'],
    ['missing', 'failed', 'BLOCKED', 'failed'],
  ])('%s decides the same at claim and at begin', async (how, claimed, code, begun) => {
    const attempt = await openAttempt()
    const [delivered = ''] = await sessions.send(1, 's', 'c1')
    const item = the(await record.deliverAll(node), delivered)
    const [queued = ''] = await sessions.send(1, 's', 'c2')
    await closings[how]?.(attempt)
    await lose(record.keys.log)
    expect(await record.claimAll(node)).toEqual([])
    expect(await beginAt(item)).toMatchObject([{ ok: false, code }])
    expect(await record.states([queued, delivered])).toEqual([claimed, begun])
    expect((await record.fields(queued))['parked_by']).toBe(
      claimed === 'queued' ? 'closed:session:s' : undefined,
    )
  })
})

describe('one recipient of a message is stopped', () => {
  it.each([...Object.keys(closings), 'fenced by pause', 'fenced by hold', 'fenced by block'])(
    '%s: its other recipients are not held up',
    async (how) => {
      await sessions.open('other')
      const elsewhere = await sessions.join('b')
      const attempt = await openAttempt()
      const kind = /^fenced by (.*)$/.exec(how)?.[1] as 'pause' | 'hold' | 'block' | undefined
      if (kind === undefined) await closings[how]?.(attempt)
      else await record.functions[kind]('session:s', 'r', 'kim')
      const to = [{ session: 's' }, { session: 'other' }, { host: 'a' }, { host: 'b' }] as const
      const { id } = await record.accept({ to: [...to] })
      const here = await record.deliverAll(node)
      expect(ids(here)).toEqual([`${id}.2`, `${id}.3`])
      expect(ids(await record.deliverAll(elsewhere))).toEqual([`${id}.4`])
      for (const each of here) await record.begin(node, each)
    },
  )
})
