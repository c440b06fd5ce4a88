import { describe, expect, it } from 'vitest'
import type { Outcome } from '../../src/contract/outcomes.js'
import type { StepItem } from '../../src/contract/steps.js'
import { eachRecord } from '../support/each-record.js'
import type { OpenRecord, TestNode } from '../support/record.js'

let record: OpenRecord
let node: TestNode

eachRecord(async (made) => {
  record = made
  node = await record.join('a', 'n1')
})

const result: Outcome = { kind: 'result', result: '{"n":1.10}' }
const terminal: Outcome = { kind: 'terminal', errorCode: 'gone', errorJson: '{"why":1}' }
const notSent: Outcome = { kind: 'not_sent', errorCode: 'busy' }
const unknown: Outcome = { kind: 'outcome_unknown', errorCode: 'timeout' }

let keys = 0

async function beginOne(): Promise<{ id: string; epoch: number; attempt: string; grant: string }> {
  await record.acceptMany(1)
  const [delivered] = await record.deliverAll(node)
  return record.begin(node, delivered ?? { id: '', epoch: 0 })
}

async function report(
  open: { attempt: string; grant: string },
  outcome: Outcome,
  changes: { key?: string; id?: string; by?: TestNode; grant?: string } = {},
) {
  keys += 1
  const { key = `report-${keys}`, id = open.attempt, by = node, grant = open.grant } = changes
  const [answer] = await record.functions.report(by, [{ id, grant, key, outcome }])
  if (answer === undefined) throw new Error('no answer')
  return answer
}

const refusedReport = (code: string, ...args: Parameters<typeof report>) =>
  record.itemRefused(code, async () => [await report(...args)])

const unknownList = () => record.send('ZRANGE', record.keys.unknown, 0, -1)

describe('report', () => {
  it('records a result, byte for byte, and settles delivery and message', async () => {
    const open = await beginOne()
    const answer = await report(open, result)
    expect(answer).toEqual({
      id: open.id,
      ok: true,
      epoch: 1,
      state: 'delivered',
      attempt: 1,
      outcome: 'result',
    })
    expect(await record.fields(open.id)).toMatchObject({
      attempt_status: 'done',
      attempt_1_status: 'done',
      attempt_1_outcome: 'result',
      attempt_1_result: '{"n":1.10}',
    })
    expect(await record.functions.why(open.id)).toMatchObject({ reason: 'done' })
  })

  it('records a terminal with its code and body; nothing may begin any more', async () => {
    const open = await beginOne()
    expect(await report(open, terminal)).toMatchObject({ ok: true, outcome: 'terminal' })
    expect(await record.fields(open.id)).toMatchObject({
      attempt_status: 'terminal',
      attempt_1_error_code: 'gone',
      attempt_1_error_json: '{"why":1}',
    })
    await record.itemRefused('ALREADY_SETTLED', () =>
      record.functions.begin(node, [{ id: open.id, epoch: open.epoch, grant: 'other' }]),
    )
  })

  it('lists an unknown outcome and leaves the attempt open until someone knows', async () => {
    const open = await beginOne()
    expect(await report(open, unknown)).toMatchObject({ ok: true, outcome: 'outcome_unknown' })
    expect(await unknownList()).toEqual([open.attempt])
    expect(await record.fields(open.id)).toMatchObject({ attempt_status: 'executing' })
    expect(await record.functions.why(open.id)).toMatchObject({ reason: 'unknown' })
    await record.itemRefused('GRANT_OPEN', () =>
      record.functions.begin(node, [{ id: open.id, epoch: open.epoch, grant: 'other' }]),
    )
    await record.checkInvariants()
    expect(await report(open, result)).toMatchObject({ ok: true, outcome: 'result' })
    expect(await unknownList()).toEqual([])
  })

  it('after not_sent the live owner goes on with attempt 2', async () => {
    const open = await beginOne()
    expect(await report(open, notSent)).toMatchObject({ ok: true, state: 'delivered', outcome: 'not_sent' })
    await record.itemRefused('ALREADY_SETTLED', () => record.functions.begin(node, [open]))
    const second = await record.begin(node, open, 'a second grant')
    expect(second.attempt).toBe(`${open.id}/2`)
    expect(await report(second, result)).toMatchObject({ ok: true, attempt: 2 })
    expect(await record.fields(open.id)).toMatchObject({
      attempt_1_status: 'not_sent',
      attempt_2_status: 'done',
    })
  })

  it('after not_sent reported by a later process it is queued again under a higher epoch', async () => {
    const open = await beginOne()
    const later = await record.join('a', 'n1', 2)
    const answer = await report(open, notSent, { by: later })
    expect(answer).toMatchObject({ ok: true, state: 'queued', outcome: 'not_sent', epoch: 2 })
    expect(await record.fields(open.id)).toMatchObject({ state: 'queued', epoch: '2', attempts: '1' })
    expect((await record.fields(open.id))['owner']).toBeUndefined()
    const [claimed] = await record.deliverAll(later)
    expect(claimed).toMatchObject({ id: open.id, epoch: 3, how: 'new', attempts: 1 })
    expect((await record.begin(later, claimed as StepItem, 'g2')).attempt).toBe(`${open.id}/2`)
  })

  it('takes what a superseded process knows of its own grant, and queues its not_sent again', async () => {
    const [one, two] = [await beginOne(), await beginOne()]
    await record.join('a', 'n1', 2)
    expect(await report(one, result)).toMatchObject({ ok: true, outcome: 'result' })
    expect(await report(two, notSent)).toMatchObject({ ok: true, state: 'queued' })
  })

  it('takes reports of a node that has left, and queues its not_sent again', async () => {
    const [one, two] = [await beginOne(), await beginOne()]
    await record.functions.leave(node)
    expect(await report(one, result)).toMatchObject({ ok: true })
    expect(await report(two, notSent)).toMatchObject({ ok: true, state: 'queued' })
  })

  it('holds a delivery whose max_redrive attempts all were not sent', async () => {
    await record.config('max_redrive', 2)
    const first = await beginOne()
    await report(first, notSent)
    const second = await record.begin(node, first, 'second')
    expect(await report(second, notSent)).toMatchObject({ ok: true, state: 'held' })
    expect(await record.fields(first.id)).toMatchObject({ held_reason: 'redrive_exhausted', epoch: '2' })
    expect(await record.functions.why(first.id)).toMatchObject({
      reason: 'held',
      detail: 'redrive_exhausted',
    })
    await record.itemRefused('HELD', () =>
      record.functions.begin(node, [{ id: first.id, epoch: 2, grant: 'third' }]),
    )
  })

  it.each([result, terminal, notSent, unknown])(
    'answers a duplicate of $kind as recorded, changing nothing, and refuses other content',
    async (outcome) => {
      const open = await beginOne()
      await report(open, outcome, { key: 'same' })
      const before = await record.dump()
      const again = await report(open, outcome, { key: 'same' })
      expect(again).toMatchObject({ ok: true, outcome: outcome.kind, replayed: true })
      expect(await record.dump()).toEqual(before)
      const others: Outcome[] = [
        { kind: 'result', result: 'other' },
        { kind: 'terminal', errorCode: 'other' },
        { kind: 'not_sent', errorCode: 'other' },
        { kind: 'outcome_unknown', errorCode: 'other' },
      ]
      for (const other of others) {
        await refusedReport('IDEMPOTENCY_MISMATCH', open, other, { key: 'same' })
      }
    },
  )

  it('takes unknown first and the result later as two reports, each answered as recorded', async () => {
    const open = await beginOne()
    await report(open, unknown, { key: 'u' })
    await report(open, result, { key: 'r' })
    const before = await record.dump()
    expect(await report(open, unknown, { key: 'u' })).toMatchObject({ ok: true, replayed: true })
    expect(await report(open, result, { key: 'r' })).toMatchObject({ ok: true, replayed: true })
    expect(await record.dump()).toEqual(before)
  })

  it('counts and keeps a late report, once, and overwrites nothing', async () => {
    const open = await beginOne()
    await report(open, result, { key: 'r' })
    const settled = await record.fields(open.id)
    const late = await report(open, terminal, { key: 'late' })
    expect(late).toMatchObject({ ok: false, code: 'ALREADY_SETTLED', detail: 'result' })
    const after = await record.fields(open.id)
    expect(after).toMatchObject(settled)
    expect(after).toMatchObject({ attempt_1_late: '1', attempt_1_late_1_body: '{"why":1}' })
    await refusedReport('ALREADY_SETTLED', open, terminal, { key: 'late' })
    for (let more = 0; more < 8; more += 1) await report(open, notSent)
    expect(await record.fields(open.id)).toMatchObject({ attempt_1_late: '9', attempt_status: 'done' })
    expect((await record.fields(open.id))['attempt_1_late_6']).toBeUndefined()
    expect(await record.send('HGET', record.keys.counts, 'late_reports')).toBe('9')
  })

  it('refuses a report of another grant, another node, and of what is not there', async () => {
    const open = await beginOne()
    const other = await record.join('a', 'n2')
    await refusedReport('NOT_OWNER', open, result, { grant: 'stolen' })
    await refusedReport('NOT_OWNER', open, result, { by: other })
    await refusedReport('ATTEMPT_NOT_FOUND', open, result, { id: `${open.id}/2` })
    await refusedReport('ATTEMPT_NOT_FOUND', open, result, { id: `${open.id}/0` })
    await refusedReport('DELIVERY_NOT_FOUND', open, result, { id: '1764430000000-000000.1/1' })
  })

  it('finds an attempt by delivery and grant; an unknown grant was never begun', async () => {
    const open = await beginOne()
    await refusedReport('NOT_BEGUN', open, notSent, { id: open.id, grant: 'never asked for' })
    expect(await report(open, result, { id: open.id })).toMatchObject({ ok: true, attempt: 1 })
    await record.acceptMany(1)
    const [idle] = await record.deliverAll(node)
    await refusedReport('NOT_BEGUN', { attempt: '', grant: 'g' }, notSent, { id: idle?.id ?? '' })
  })

  it.each([
    { kind: 'result', result: 'x'.repeat(257) },
    { kind: 'terminal', errorCode: 'c', errorJson: 'x'.repeat(257) },
    { kind: 'outcome_unknown', errorCode: 'c', errorJson: 'x'.repeat(257) },
  ] satisfies Outcome[])('refuses a body over max_result_bytes: $kind', async (outcome) => {
    await record.config('max_result_bytes', 256)
    const open = await beginOne()
    await refusedReport('RESULT_TOO_LARGE', open, outcome)
    expect(await report(open, { kind: 'result', result: 'x'.repeat(256) })).toMatchObject({ ok: true })
  })

  it('refuses malformed reports, and nodes that never joined', async () => {
    const open = await beginOne()
    const call = (...item: string[]) =>
      record.store.fcall('hf_report', record.keys.tag, ['a', 'n1', 1, ...item])
    for (const item of [
      [open.attempt, open.grant, 'k', 'finished', '1', '', ''],
      [open.attempt, '', 'k', 'result', '1', '', ''],
      [open.attempt, open.grant, '', 'result', '1', '', ''],
      [open.attempt, open.grant, 'two words', 'result', '1', '', ''],
      [open.attempt, open.grant, 'k', 'terminal', '', '', ''],
      ['x', open.grant, 'k', 'result', '1', '', ''],
      [open.attempt, open.grant, 'k', 'result', '1', ''],
    ]) {
      await record.refused('INVALID_ARGUMENT', () => call(...item))
    }
    const stranger = { host: 'a', node: 'n9', incarnation: 1, request: 0 }
    await record.refused('NOT_JOINED', () => report(open, result, { by: stranger }))
    await record.refused('NOT_JOINED', () => report(open, result, { by: { ...node, incarnation: 2 } }))
  })

  it('takes a batch item by item', async () => {
    const [one, two] = [await beginOne(), await beginOne()]
    const answers = await record.functions.report(node, [
      { id: one.attempt, grant: one.grant, key: 'k1', outcome: result },
      { id: two.attempt, grant: 'stolen', key: 'k2', outcome: result },
      { id: two.attempt, grant: two.grant, key: 'k3', outcome: terminal },
      { id: one.attempt, grant: one.grant, key: 'k1', outcome: result },
    ])
    expect(answers.map((each) => (each.ok ? (each.replayed ?? false) : each.code))).toEqual([
      false,
      'NOT_OWNER',
      false,
      true,
    ])
  })
})
