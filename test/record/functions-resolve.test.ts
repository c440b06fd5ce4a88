import { describe, expect, it } from 'vitest'
import type { Resolution } from '../../src/contract/hub.js'
import { readDelivery } from '../../src/hub/views.js'
import { readerOf } from '../../src/record/reader.js'
import { eachRecord } from '../support/each-record.js'
import type { OpenRecord, TestNode } from '../support/record.js'
import {
  notSent,
  result,
  type SessionTools,
  sessionTools,
  terminal,
  the,
  unknown,
} from '../support/sessions.js'
import { until } from '../support/until.js'

let record: OpenRecord
let sessions: SessionTools
let node: TestNode

eachRecord(async (made) => {
  record = made
  await record.config('heartbeat_ms', 60_000)
  await record.config('stale_after_ms', 60_000)
  sessions = sessionTools(record)
  node = await sessions.join('a')
  await sessions.open()
})

const said = { evidence: 'the bank statement' } as const
const resolve = (attempt: string, as: Resolution['as'], more: Partial<Resolution> = {}) =>
  record.functions.resolveAttempt(attempt, { as, ...said, ...more }, 'kim')
const begin = () => sessions.begin(node)
const viewOf = (id: string) => readDelivery(readerOf(record.store, record.keys), record.keys, id)

/** An open attempt whose process is gone: a later one of its node has joined. */
async function orphan() {
  const open = await begin()
  const later = await sessions.join('a', 'n1', 2)
  await record.claimAll(later)
  expect(await sessions.unknownList()).toEqual([open.attempt])
  return { ...open, later }
}

describe('resolving an attempt', () => {
  it('as a result settles it for good: text, evidence and actor are kept', async () => {
    const open = await orphan()
    expect(await resolve(open.attempt, 'result', { result: '{"paid":1.10}' })).toEqual({
      id: open.attempt,
      state: 'delivered',
      epoch: 1,
      outcome: 'result',
      logId: expect.stringMatching(/^\d+-\d+$/),
    })
    const { attempts, settledAt } = await viewOf(open.id)
    expect(settledAt).toBeGreaterThan(0)
    expect(attempts).toMatchObject([
      { status: 'done', outcome: 'result', result: '{"paid":1.10}', resolvedBy: 'kim', ...said },
    ])
    expect(await sessions.unknownList()).toEqual([])
    expect(await record.fields(open.id)).toMatchObject({
      attempt_1_resolved_at: expect.stringMatching(/^\d+$/),
    })
  })

  it('as terminal ends it, and does not call its session missing', async () => {
    const open = await orphan()
    expect(await resolve(open.attempt, 'terminal')).toMatchObject({ outcome: 'terminal', state: 'delivered' })
    expect((await viewOf(open.id)).attempts).toMatchObject([
      { status: 'terminal', outcome: 'terminal', errorCode: 'resolved', resolvedBy: 'kim', ...said },
    ])
    expect(await sessions.row()).toMatchObject({ state: 'open' })
    expect(await record.claimAll(open.later)).toEqual([])
  })

  it('as not_sent queues it again at home, under a new epoch, for attempt 2', async () => {
    const open = await orphan()
    expect(await resolve(open.attempt, 'not_sent')).toMatchObject({
      state: 'queued',
      epoch: 2,
      outcome: 'not_sent',
    })
    const row = await record.fields(open.id)
    expect(row).toMatchObject({ state: 'queued', epoch: '2', attempt_status: 'not_sent', requeued_by: 'kim' })
    expect(row).not.toHaveProperty('owner')
    const again = the(await record.deliverAll(open.later), open.id)
    expect((await record.begin(open.later, again)).attempt).toBe(`${open.id}/2`)
  })

  it.each([
    ['its tries are used up', () => record.config('max_redrive', 1), 'redrive_exhausted'],
    ['its host is retired', () => record.functions.retire('a', 'kim', 'sold'), 'retired'],
  ])('as not_sent holds it when %s', async (_, prepare, reason) => {
    const open = await orphan()
    await prepare()
    await record.functions.leave(open.later).catch(() => undefined)
    expect(await resolve(open.attempt, 'not_sent')).toMatchObject({ state: 'held' })
    expect(await record.fields(open.id)).toMatchObject({ held_reason: reason, held_by: 'kim' })
  })

  it('resets the count of crashes', async () => {
    const open = await orphan()
    await record.send('HSET', record.keys.delivery(open.id), 'takeovers', 3)
    await resolve(open.attempt, 'not_sent')
    expect(await record.fields(open.id)).toMatchObject({ takeovers: '0' })
  })
})

describe('is refused EXECUTING', () => {
  it('while the process that began it lives, whoever lists it as unknown, unless forced', async () => {
    const open = await begin()
    await record.refused('EXECUTING', () => resolve(open.attempt, 'result'))
    await sessions.report(open, unknown, node)
    await record.refused('EXECUTING', () => resolve(open.attempt, 'result'))
    expect(await resolve(open.attempt, 'not_sent', { force: true })).toMatchObject({
      state: 'queued',
      epoch: 2,
    })
    expect(await sessions.report(open, result, node)).toMatchObject({ ok: false, code: 'ALREADY_SETTLED' })
    await record.itemRefused('STALE_EPOCH', () => record.functions.begin(node, [{ ...open, grant: 'other' }]))
  })

  it.each([
    [
      'it said itself that its executor has ended',
      (open: never) => sessions.report(open, unknown, node, { ended: true }),
    ],
    ['it left', () => record.functions.leave(node)],
    ['it is silent for too long', () => sessions.silence(node)],
    ['a later process of its node has joined', () => sessions.join('a', 'n1', 2)],
  ])('no more when %s', async (_, end) => {
    const open = await begin()
    await sessions.join('a', 'n2')
    await end(open as never)
    expect(await resolve(open.attempt, 'result')).toMatchObject({ outcome: 'result' })
  })

  it('again after it was begun again by a later process', async () => {
    const open = await begin()
    await sessions.report(open, unknown, node, { ended: true })
    const later = await sessions.join('a', 'n1', 2)
    const again = { id: open.id, epoch: open.epoch, grant: open.grant, idempotent: true }
    expect(await record.functions.begin(later, [again])).toMatchObject([{ ok: true, replayed: true }])
    await record.refused('EXECUTING', () => resolve(open.attempt, 'result'))
  })

  it('right after a silence of every node, and allowed a bit later, when nobody spoke after it either', async () => {
    const open = await begin()
    await record.config('heartbeat_ms', 50)
    await sessions.silence(node)
    await expect(resolve(open.attempt, 'result')).rejects.toMatchObject({ code: 'EXECUTING' })
    expect(await record.fields(open.id)).toMatchObject({ attempt_status: 'executing' })
    const resolved = await until(() => resolve(open.attempt, 'result'), { what: 'the end of the grace' })
    expect(resolved).toMatchObject({ outcome: 'result' })
  })

  it('not by a silence, when it left cleanly before', async () => {
    const open = await begin()
    await record.functions.leave(node)
    await record.config('heartbeat_ms', 50)
    await record.send('ZADD', record.keys.nodes, Date.now() - 5_000, 'b/n1')
    expect(await resolve(open.attempt, 'result')).toMatchObject({ outcome: 'result' })
  })

  it('still, when its node speaks again within the grace', async () => {
    const open = await begin()
    await record.config('heartbeat_ms', 200)
    await sessions.silence(node)
    await expect(resolve(open.attempt, 'result')).rejects.toMatchObject({ code: 'EXECUTING' })
    const beat = { lastLogId: '0-0', progressAgeMs: 0, blocking: { sumMs: 0, longestMs: 0 } }
    await record.functions.heartbeat(node, beat)
    await until(async () => {
      const judgeAfter = Number(await record.send('HGET', record.keys.liveness, 'judge_after'))
      return (await record.nowMs()) > judgeAfter
    })
    await record.functions.heartbeat(node, beat)
    await record.refused('EXECUTING', () => resolve(open.attempt, 'result'))
  })
})

describe('what is not open', () => {
  it.each([true, false])('is refused with its own code and nothing changes (force: %s)', async (force) => {
    const open = await begin()
    await sessions.report(open, notSent, node)
    const second = await record.begin(node, open, 'second')
    const refused = (code: string, attempt: string) =>
      record.refused(code, () => resolve(attempt, 'result', { force }))
    await refused('ALREADY_SETTLED', open.attempt)
    await refused('ATTEMPT_NOT_FOUND', `${open.id}/3`)
    await refused('ATTEMPT_NOT_FOUND', `${open.id}/0`)
    await refused('DELIVERY_NOT_FOUND', '1764430000000-000000.1/1')
    for (const outcome of [result, terminal]) {
      const each = outcome === result ? second : await begin()
      await sessions.report(each, outcome, node)
      await refused('ALREADY_SETTLED', each.attempt)
    }
    const [never = ''] = await sessions.send()
    await refused('ATTEMPT_NOT_FOUND', `${never}/1`)
  })

  it('or not said properly is INVALID_ARGUMENT', async () => {
    const { attempt, id } = await orphan()
    const refused = (call: () => Promise<unknown>) => record.refused('INVALID_ARGUMENT', call)
    await refused(() => resolve(id, 'result'))
    await refused(() => resolve('', 'result'))
    await refused(() => resolve(`${attempt}x`, 'result'))
    await refused(() => resolve(attempt, 'outcome_unknown' as 'result'))
    await refused(() => resolve(attempt, 'result', { evidence: '' }))
    await refused(() => resolve(attempt, 'result', { evidence: 'x'.repeat(1025) }))
    await refused(() => record.functions.resolveAttempt(attempt, { as: 'result', ...said }, ''))
  })

  it('because someone else resolved it in the same moment: one of them wins', async () => {
    const open = await orphan()
    const answers = await Promise.allSettled([
      resolve(open.attempt, 'result'),
      resolve(open.attempt, 'not_sent'),
      resolve(open.attempt, 'terminal'),
    ])
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected'])
    for (const each of answers.slice(1)) expect(each).toMatchObject({ reason: { code: 'ALREADY_SETTLED' } })
    expect(await record.fields(open.id)).toMatchObject({ attempt_1_status: 'done' })
  })
})

describe('a report after it', () => {
  it.each(['result', 'terminal', 'not_sent'] as const)(
    'was resolved as %s is ALREADY_SETTLED, counted and kept',
    async (as) => {
      const open = await orphan()
      await resolve(open.attempt, as)
      const before = await record.fields(open.id)
      const late = await sessions.report(open, result, node, { key: 'late' })
      expect(late).toMatchObject({ ok: false, code: 'ALREADY_SETTLED' })
      const after = await record.fields(open.id)
      expect(after).toMatchObject({
        ...before,
        attempt_1_late: '1',
        attempt_1_late_1: expect.stringMatching(/^result {2}\d+$/),
        attempt_1_late_1_body: '{"n":1.10}',
      })
      expect(await record.send('HGET', record.keys.counts, 'late_reports')).toBe('1')
      await record.itemRefused('ALREADY_SETTLED', async () => [
        await sessions.report(open, result, node, { key: 'late' }),
      ])
      await record.itemRefused('IDEMPOTENCY_MISMATCH', async () => [
        await sessions.report(open, terminal, node, { key: 'late' }),
      ])
      expect((await viewOf(open.id)).attempts).toMatchObject([{ outcome: as, lateReports: 1 }])
    },
  )

  it('touches nothing of the try that followed', async () => {
    const open = await orphan()
    await resolve(open.attempt, 'not_sent')
    const second = await record.begin(open.later, the(await record.deliverAll(open.later), open.id))
    await sessions.report(open, result, node)
    expect(await record.fields(open.id)).toMatchObject({
      attempt_status: 'executing',
      attempt_2_status: 'executing',
    })
    expect(await sessions.report(second, result, open.later)).toMatchObject({ ok: true, attempt: 2 })
  })
})

describe('resolving a delivery', () => {
  const resolveDelivery = (id: string, as: 'queued' | 'failed') =>
    record.functions.resolveDelivery(id, { as, ...said }, 'kim')

  async function doubtful() {
    const [id = ''] = await sessions.send()
    const claimed = the(await record.claimAll(node), id)
    await record.functions.refuse(node, [{ ...claimed, verdict: 'unknown', reason: 'disk' }])
    return id
  }

  it('as queued hands it out again, under a new epoch; evidence and actor are kept', async () => {
    const id = await doubtful()
    expect(await resolveDelivery(id, 'queued')).toMatchObject({ id, state: 'queued', epoch: 2 })
    expect(await record.fields(id)).toMatchObject({
      resolved_by: 'kim',
      ...said,
      requeued_reason: 'resolved',
    })
    expect(await record.claimAll(node)).toMatchObject([{ id, epoch: 3, how: 'new' }])
  })

  it('as queued holds it where its host is retired', async () => {
    const id = await doubtful()
    await record.functions.retire('a', 'kim', 'sold')
    expect(await resolveDelivery(id, 'queued')).toMatchObject({ state: 'held' })
  })

  it('as failed settles it and its message', async () => {
    const id = await doubtful()
    expect(await resolveDelivery(id, 'failed')).toMatchObject({ id, state: 'failed' })
    expect(await record.fields(id)).toMatchObject({ failed_code: 'resolved', resolved_by: 'kim', ...said })
    expect(await record.functions.why(id)).toMatchObject({
      reason: 'failed',
      detail: `resolved ${said.evidence}`,
    })
  })

  it('is NOT_UNKNOWN from every other state, and changes nothing', async () => {
    const [queued = '', held = '', failed = ''] = await sessions.send(3)
    await record.functions.holdDelivery(held, 'kim', 'look')
    await record.functions.cancel(failed, 'kim', 'no')
    const open = await orphan()
    for (const id of [queued, held, failed, open.id]) {
      await record.refused('NOT_UNKNOWN', () => resolveDelivery(id, 'queued'))
      await record.refused('NOT_UNKNOWN', () => resolveDelivery(id, 'failed'))
    }
  })

  it('is refused for what is not there, twice, and when it is not said properly', async () => {
    const id = await doubtful()
    await record.refused('DELIVERY_NOT_FOUND', () => resolveDelivery('1764430000000-000000.1', 'queued'))
    await record.refused('INVALID_ARGUMENT', () => resolveDelivery(`${id}/1`, 'queued'))
    await record.refused('INVALID_ARGUMENT', () => resolveDelivery(id, 'held' as 'failed'))
    await resolveDelivery(id, 'failed')
    await record.refused('NOT_UNKNOWN', () => resolveDelivery(id, 'failed'))
    await record.refused('NOT_UNKNOWN', () => resolveDelivery(id, 'queued'))
  })
})
