import { describe, expect, it } from 'vitest'
import type { MessageInput } from '../../src/contract/message.js'
import { eachRecord } from '../support/each-record.js'
import type { Dump, OpenRecord, TestNode } from '../support/record.js'
import { dayMs, passDays } from '../support/retention.js'
import { notSent, result, type SessionTools, sessionTools, the } from '../support/sessions.js'
import { until } from '../support/until.js'

let record: OpenRecord
let sessions: SessionTools
let node: TestNode

eachRecord(async (made) => {
  record = made
  await record.config('heartbeat_ms', 60_000)
  sessions = sessionTools(record)
  node = await sessions.join('a')
  await sessions.open()
})

const none = { messages: 0, deliveries: 0, effects: 0, more: false }
const prune = (limit = 200) => record.functions.prune(limit)
const field = async (key: string, name: string) => record.send('HGET', key, name)
const messageOf = (delivery: string) => delivery.slice(0, delivery.indexOf('.'))
const count = async (name: string) => Number((await field(record.keys.counts, name)) ?? 0)

/** Prunes until there is no more; a call too many would be one that never ends. */
async function pruneAll(limit?: number, most = 60) {
  const sum = { messages: 0, deliveries: 0, effects: 0, calls: 0 }
  for (let more = true; more; ) {
    if (sum.calls === most) throw new Error(`still "more" after ${most} calls`)
    const reply = await prune(limit)
    for (const name of ['messages', 'deliveries', 'effects'] as const) sum[name] += reply[name]
    sum.calls += 1
    more = reply.more
  }
  return sum
}

const pass = (days: number) => passDays(record, days)

/** A message whose deliveries all are settled with a result. */
async function settled(message: Partial<MessageInput> = {}): Promise<string[]> {
  const { deliveries } = await record.accept(message)
  const ids = deliveries.map(({ id }) => id)
  const here = await record.deliverAll(node)
  for (const id of ids) {
    expect(await sessions.report(await record.begin(node, the(here, id)), result, node)).toMatchObject({
      ok: true,
    })
  }
  return ids
}

/** A message to so many sessions that a block has failed, all in a few calls. */
async function failedMany(recipients: number): Promise<string> {
  const names = Array.from({ length: recipients }, (_, at) => `many-${at}`)
  await record.store.pipeline(names.map((name) => ['HSET', record.keys.session(name), 'host', 'a']))
  await record.config('inline_fan_out', recipients)
  const { id } = await record.accept({
    key: 'many',
    conversation: 'many',
    to: names.map((session) => ({ session })),
  })
  await record.functions.block('conversation:many', 'r', 'kim')
  await record.claimAll(node, 1000)
  expect(await field(record.keys.message(id), 'settled')).toBe(String(recipients))
  return id
}

const keysIn = (dump: Dump, part: string) => Object.keys(dump).filter((key) => key.includes(part))

describe('nothing goes', () => {
  it('before the retention is over, however often it is asked', async () => {
    await settled()
    const before = await record.dump()
    expect(await prune()).toEqual(none)
    expect(await prune(1)).toEqual(none)
    await pass(6)
    expect(await prune()).toEqual(none)
    await record.config('retention_ms', 5 * dayMs)
    expect(await prune()).toMatchObject({ messages: 1, deliveries: 1 })
    expect(keysIn(before, ':delivery:')).toHaveLength(1)
  })

  it('of a day that is over, that was settled too late in it', async () => {
    const [id = ''] = await settled()
    await pass(7)
    const key = record.keys.message(messageOf(id))
    await record.send('HSET', key, 'settled_at', Number(await field(key, 'settled_at')) + 60_000)
    expect(await prune()).toEqual(none)
    expect(await prune(1)).toEqual(none)
  })

  it('of a message with one delivery that is not settled, be it executing, idle, held or in doubt', async () => {
    const { deliveries } = await record.accept({ to: [{ host: 'a' }, { session: 's' }, { host: 'b' }] })
    const [first, second] = await record.deliverAll(node)
    await sessions.report(await record.begin(node, first ?? { id: '', epoch: 0 }), result, node)
    const open = await record.begin(node, second ?? { id: '', epoch: 0 })
    await record.functions.cancel(deliveries[2]?.id ?? '', 'kim', 'r')
    await pass(400)
    expect(await prune()).toEqual(none)
    await sessions.report(open, notSent, node)
    await record.functions.holdDelivery(open.id, 'kim', 'look')
    expect(await prune()).toEqual(none)
    // Nor where the list, written by hand, says otherwise.
    await record.send('RPUSH', record.keys.settled(1), messageOf(open.id))
    await record.send('SADD', record.keys.settledDays, 1)
    expect(await pruneAll()).toMatchObject({ messages: 0, deliveries: 0 })
    expect(await record.states(deliveries.map(({ id }) => id))).toEqual(['delivered', 'held', 'failed'])
  })

  it('while nobody is judged, after a stall; and then it goes', async () => {
    await settled()
    await pass(8)
    await record.send('ZADD', record.keys.nodes, Date.now() - 5_000, 'a/n1')
    await record.config('heartbeat_ms', 50)
    expect(await prune()).toEqual(none)
    expect(await record.send('EXISTS', record.keys.settledDays)).toBe(1)
    await until(async () => (await prune()).messages === 1, { what: 'the end of the grace' })
  })

  it('without a log entry for it', async () => {
    await settled()
    const length = await record.send('XLEN', record.keys.log)
    await prune()
    expect(await record.send('XLEN', record.keys.log)).toBe(length)
    await pass(8)
    await prune()
    expect(await record.send('XLEN', record.keys.log)).toBe(Number(length) + 1)
  })

  it.each([0, -1, 1.5])('for the limit %d', async (limit) => {
    await record.refused('INVALID_ARGUMENT', () => prune(limit))
  })
})

describe('when the retention is over', () => {
  it('a message goes with payload, key and deliveries, and every index is as if it had never been', async () => {
    await record.accept({ key: 'stays', conversation: 'other', to: [{ host: 'b' }] })
    const before = Object.keys(await record.dump())
    const to = [{ host: 'a' }, { session: 's' }] as const
    const [id = '', second = ''] = await settled({ key: 'goes', to: [...to] })
    await sessions.report({ id, epoch: 1, attempt: `${id}/1`, grant: 'x' }, notSent, node)
    const [cancelled] = (await record.accept({ key: 'goes too' })).deliveries
    await record.functions.cancel(cancelled?.id ?? '', 'kim', 'r')
    expect([await count('delivered'), await count('failed')]).toEqual([2, 1])
    await pass(8)
    expect(await pruneAll()).toMatchObject({ messages: 2, deliveries: 3 })
    const after = await record.dump()
    const left = Object.keys(after).filter((key) => !before.includes(key))
    expect(left.filter((key) => key !== ':stream:a')).toEqual([])
    expect(keysIn(after, messageOf(id)).concat(keysIn(after, messageOf(second)))).toEqual([])
    expect([await count('delivered'), await count('failed'), await count('queued')]).toEqual([0, 0, 1])
    expect([await count('pruned'), await count('done')]).toEqual([3, 2])
  })

  it('one without recipients goes, and a list that names one twice, or what is gone, is cleared', async () => {
    const { id } = await record.accept({ to: [] })
    await record.send(
      'RPUSH',
      record.keys.settled(Math.floor(Date.now() / dayMs)),
      id,
      '1764430000000-000000',
    )
    await pass(8)
    await record.send('SADD', record.keys.settledDays, 3, 'no day')
    expect(await pruneAll()).toMatchObject({ messages: 1, deliveries: 0 })
    expect(await record.send('SMEMBERS', record.keys.settledDays)).toEqual(['no day'])
  })

  it('all days that are over go, the oldest first, whatever the limit', async () => {
    for (const days of [3, 2, 1]) {
      await settled({ to: [{ host: 'a' }, { session: 's' }] })
      await settled()
      await pass(days)
    }
    await settled()
    await pass(5)
    const days = Number(await record.send('SCARD', record.keys.settledDays))
    expect(days).toBe(4)
    await record.config('retention_ms', 6 * dayMs - 60_000)
    const first = await prune(1)
    expect(first).toMatchObject({ more: true })
    expect(first.deliveries).toBeLessThanOrEqual(1)
    expect(await pruneAll(1)).toBeDefined()
    expect([await count('pruned'), await count('delivered')]).toEqual([9, 1])
    expect(await record.send('SCARD', record.keys.settledDays)).toBe(1)
  })

  it('the old key sent again is a new message; a key that is another’s by now stays', async () => {
    const old = messageOf((await settled({ key: 'k' }))[0] ?? '')
    await record.send('DEL', record.keys.idempotency('k'))
    const { id, replayed } = await record.accept({ key: 'k' })
    expect(replayed).toBe(false)
    await pass(8)
    expect(await pruneAll()).toMatchObject({ messages: 1 })
    expect(await record.send('EXISTS', record.keys.message(old))).toBe(0)
    expect(await record.send('GET', record.keys.idempotency('k'))).toMatch(new RegExp(`^${id} `))
    const [gone = ''] = await settled({ key: 'other' })
    await pass(8)
    await pruneAll()
    const again = await record.accept({ key: 'other' })
    expect([again.replayed, again.id === messageOf(gone)]).toEqual([false, false])
  })

  it('an old delivery is DELIVERY_NOT_FOUND in every step, and nothing of it comes back', async () => {
    const { deliveries } = await record.accept()
    const id = deliveries[0]?.id ?? ''
    const { request } = node
    const item = the(await record.deliverAll(node), id)
    const open = await record.begin(node, item)
    await sessions.report(open, result, node)
    await pass(8)
    await pruneAll()
    const { functions } = record
    const refusal = { verdict: 'failed', reason: 'r' } as const
    const steps = {
      mirror: () => functions.mirror(node, [item]),
      ack: () => functions.ack(node, [item]),
      refuse: () => functions.refuse(node, [{ ...item, ...refusal }]),
      begin: () => functions.begin(node, [{ ...item, grant: 'new' }]),
      'begin again': () => functions.begin(node, [{ ...item, grant: open.grant, idempotent: true }]),
      report: async () => [await sessions.report(open, result, node)],
      'report by delivery': async () => [await sessions.report({ ...open, attempt: id }, result, node)],
    }
    for (const step of Object.values(steps)) await record.itemRefused('DELIVERY_NOT_FOUND', step)
    const said = { evidence: 'x' }
    const acts = {
      why: () => functions.why(id),
      release: () => functions.release(id, 'kim', 'r'),
      reject: () => functions.reject(id, 'kim', 'r'),
      hold: () => functions.holdDelivery(id, 'kim', 'r'),
      cancel: () => functions.cancel(id, 'kim', 'r'),
      'resolve attempt': () => functions.resolveAttempt(open.attempt, { as: 'result', ...said }, 'kim'),
      'resolve delivery': () => functions.resolveDelivery(id, { as: 'queued', ...said }, 'kim'),
    }
    for (const act of Object.values(acts)) await record.refused('DELIVERY_NOT_FOUND', act)
    await record.refused('MESSAGE_NOT_FOUND', () => functions.fanOut(messageOf(id), 10))
    await record.send(
      'HSET',
      record.keys.node('a', 'n1'),
      'request',
      request + 1,
      'request_answer',
      `${id}:1:new`,
    )
    expect(await functions.claim(node, request + 1, 10)).toMatchObject({ again: true, deliveries: [] })
  })
})

describe('a message with 2,500 recipients', () => {
  it('goes in slices, the last deliveries first; half gone it is no answer to its key', async () => {
    const id = await failedMany(2_500)
    await pass(8)
    let gone = 0
    for (let more = true, slices = 1; more; slices += 1) {
      const reply = await prune(700)
      more = reply.more
      gone += reply.deliveries
      expect(reply.deliveries).toBeLessThanOrEqual(700)
      expect([await count('failed'), await count('pruned')]).toEqual([2_500 - gone, gone])
      if (gone === 2_500) continue
      const edge = [`${id}.1`, `${id}.${2_500 - gone}`, `${id}.${2_500 - gone + 1}`]
      expect(await record.states(edge)).toEqual(['failed', 'failed', 'gone'])
      if (slices === 1) await record.checkInvariants()
      const again = await record.accept({ key: 'many', conversation: 'new', payload: 'new' })
      expect(again.replayed).toBe(slices > 1)
      expect(again.id).not.toBe(id)
    }
    expect(gone).toBe(2_500)
    expect(keysIn(await record.dump(), id)).toEqual([])
  })

  it('is pruned once by five callers at once', async () => {
    const id = await failedMany(500)
    await settled()
    await pass(8)
    const sums = await Promise.all([1, 2, 3, 4, 5].map(() => pruneAll(50)))
    const total = (name: 'messages' | 'deliveries') => sums.reduce((sum, each) => sum + each[name], 0)
    expect([total('messages'), total('deliveries'), await count('pruned')]).toEqual([2, 501, 501])
    expect(keysIn(await record.dump(), id)).toEqual([])
    expect(await prune()).toEqual(none)
  })
})

describe('a message that is counted as settled and holds a delivery without an outcome', () => {
  it.each([
    ['executing', ['attempt_status', 'executing']],
    ['not sent', ['attempt_status', 'not_sent']],
    ['queued', ['state', 'queued', 'attempt_status', '']],
    ['in doubt', ['state', 'unknown', 'attempt_status', '']],
  ])('keeps it, %s, for good, and the calls come to an end', async (_, damage) => {
    const ids = await settled({ to: [{ host: 'a' }, { session: 's' }] })
    const [first = '', second = ''] = ids
    const before = await record.fields(first)
    record.damaged(...ids)
    await record.send('HSET', record.keys.delivery(first), ...damage)
    const tampered = await record.fields(first)
    await record.config('retention_ms', 1000)
    await pass(8)
    expect(await pruneAll()).toMatchObject({ messages: 0, deliveries: 0 })
    expect(await pruneAll(1)).toMatchObject({ messages: 0 })
    expect(await record.fields(first)).toEqual(tampered)
    expect(await record.send('EXISTS', record.keys.message(messageOf(first)))).toBe(1)
    await record.send('HSET', record.keys.delivery(first), ...Object.entries(before).flat())
    await record.send('HDEL', record.keys.message(messageOf(first)), 'prune_looked_at')
    await pass(8)
    expect(await pruneAll()).toMatchObject({ messages: 1 })
    expect(await record.states([first, second])).toEqual(['gone', 'gone'])
  })

  it('keeps no other message back', async () => {
    const [stuck = ''] = await settled()
    const [free = ''] = await settled()
    record.damaged(stuck)
    await record.send('HSET', record.keys.delivery(stuck), 'attempt_status', 'executing')
    await pass(8)
    expect(await pruneAll()).toMatchObject({ messages: 1, deliveries: 1 })
    expect(await record.states([stuck, free])).toEqual(['delivered', 'gone'])
    await record.send('HSET', record.keys.delivery(stuck), 'attempt_status', 'done')
  })
})

describe('effects', () => {
  const by = { executor: 'x', grant: 'g' }
  const payloadHash = 'a'.repeat(64)
  const claim = (id: string, grant = 'g') =>
    record.functions.claimEffect(id, { executor: 'x', grant, type: 't', payloadHash })

  it('keep id, hash and status for good and lose their bodies; what executes stays as it is', async () => {
    const bodies = {
      result: 'done',
      terminal: 'terminal',
      not_sent: 'free',
      outcome_unknown: 'executing',
    } as const
    for (const kind of Object.keys(bodies) as (keyof typeof bodies)[]) {
      await claim(kind)
      const errorJson = '{"body":1}'
      const outcome = kind === 'result' ? result : ({ kind, errorCode: 'code', errorJson } as const)
      await record.functions.settleEffect(kind, { ...by, epoch: 1, outcome })
    }
    await record.functions.settleEffect('result', {
      ...by,
      epoch: 1,
      outcome: { kind: 'result', result: '"late"' },
    })
    const rowOf = async (id: string) => {
      const words = (await record.send('HGETALL', record.keys.effect(id))) as string[]
      return Object.fromEntries(words.flatMap((word, at) => (at % 2 ? [] : [[word, words[at + 1] ?? '']])))
    }
    await pass(8)
    // Nor where the list, written by hand, says otherwise.
    await record.send('RPUSH', record.keys.settledEffects(1), 'not_sent', 'outcome_unknown', 'never claimed')
    await record.send('SADD', record.keys.settledEffectDays, 1)
    await record.send('HSET', record.keys.effect('outcome_unknown'), 'settled_at', 1)
    const before = Object.fromEntries(
      await Promise.all(Object.keys(bodies).map(async (id) => [id, await rowOf(id)])),
    )
    expect(await pruneAll()).toMatchObject({ effects: 2, messages: 0 })
    expect(await rowOf('not_sent')).toEqual(before['not_sent'])
    expect(await rowOf('outcome_unknown')).toEqual(before['outcome_unknown'])
    for (const id of ['result', 'terminal']) {
      const { result: _, error_json, unknown_json, late_1_body, ...rest } = before[id] ?? {}
      expect(await rowOf(id)).toEqual({ ...rest, bodies_pruned_at: expect.stringMatching(/^\d+$/) })
    }
    const pruned = await claim('result', 'other')
    expect(pruned).toEqual({ kind: 'result', result: expect.any(String), epoch: 1 })
    expect(JSON.parse(pruned.kind === 'result' ? pruned.result : '')).toEqual({
      omitted: expect.stringMatching(/^the result was pruned at 2\d{3}-\S+Z, after retention_ms$/),
    })
    expect(await record.send('SMEMBERS', record.keys.settledEffectDays)).toEqual([])
    expect(await prune()).toEqual(none)
    const other = { ...by, type: 't', payloadHash: 'b'.repeat(64) }
    await record.refused('PAYLOAD_MISMATCH', () => record.functions.claimEffect('result', other))
  })

  it('share the slice of a call with messages, and are not kept waiting by one that is not due', async () => {
    for (const id of ['e1', 'e2', 'e3']) {
      await claim(id)
      await record.functions.settleEffect(id, { ...by, epoch: 1, outcome: result })
    }
    await settled()
    await pass(8)
    const sum = await pruneAll(1)
    expect(sum).toMatchObject({ effects: 3, messages: 1 })
    await settled()
    expect(await prune(1)).toEqual(none)
  })
})
