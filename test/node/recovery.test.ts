import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { notSent, type ProbeAnswer, terminal } from '../../src/contract/outcomes.js'
import type { Attempt } from '../../src/node/executor.js'
import {
  attemptsOf,
  type Crash,
  crashedAttempt,
  doneAttempt,
  leftIn,
  restart,
  unknownReports,
  workFlows,
} from '../support/crashes.js'
import { stopNodes } from '../support/nodes.js'
import { makeRecord, settlement, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// What a node does with attempts that an earlier process of it left open, without beginning any of them again.

let server: TestServer
let record: TestRecord
let names = 0

beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server?.stop())
beforeEach(async () => {
  names += 1
  record = await makeRecord(server, `recovery${names}`, { heartbeat_ms: 100, stale_after_ms: 60_000 })
})
afterEach(async () => {
  await stopNodes()
  await record.checkInvariants()
  await record.close()
})

const idsOf = (attempts: readonly Attempt[]) => attempts.map(({ id }) => id)

/** A probe that notes what it is asked. */
function probing(answer: (attempt: Attempt) => ProbeAnswer | Promise<ProbeAnswer>) {
  const asked: Attempt[] = []
  const probe = (attempt: Attempt) => {
    asked.push(attempt)
    return answer(attempt)
  }
  return { asked, probe }
}

describe('what the mirror proves', () => {
  it('a grant without a start mark: not sent; the delivery goes on, and nobody is asked', async () => {
    const crash = await crashedAttempt(record, { at: 'granted' })
    const { asked, probe } = probing(() => ({ kind: 'unknown' }))
    const node = await restart(server, record, crash, { probe, idempotent: true })
    expect(await settlement(record, crash.id)).toBe('done')
    expect(await attemptsOf(record, crash)).toMatchObject([
      { status: 'not_sent', errorCode: 'never_started', incarnation: 1 },
      { status: 'done', incarnation: 2 },
    ])
    expect(node.executed).toMatchObject([{ id: `${crash.id}/2`, replay: false }])
    expect(asked).toEqual([])
  })

  it('an outcome that was stored: it is reported, and nobody is asked', async () => {
    const crash = await crashedAttempt(record, { unsent: { kind: 'result', result: '{"n":1.10}' } })
    const { asked, probe } = probing(() => ({ kind: 'not_executed' }))
    const node = await restart(server, record, crash, { probe, idempotent: true })
    await workFlows(record)
    expect(await attemptsOf(record, crash)).toMatchObject([
      { status: 'done', result: '{"n":1.10}', incarnation: 1 },
    ])
    expect((await attemptsOf(record, crash))[0]).not.toHaveProperty('lateReports')
    expect([asked, idsOf(node.executed)]).toEqual([[], [expect.not.stringContaining(crash.id)]])
  })

  it('a start mark without an end: unknown, for every later process, and never run again', async () => {
    const crash = await crashedAttempt(record)
    for (const unknownReports of [1, 2, 3]) {
      const { node, executed } = await restart(server, record, crash)
      await workFlows(record)
      const [attempt] = await attemptsOf(record, crash)
      expect(attempt).toMatchObject({ status: 'executing', unknownReports, endedAt: expect.any(Number) })
      expect(JSON.parse(attempt?.errorJson ?? '')).toMatchObject({ stillRunning: false, children: [] })
      expect(idsOf(executed)).not.toContain(crash.attempt)
      await node.stop()
    }
    expect(await record.hub.unknown()).toMatchObject([{ id: crash.attempt, reason: 'executor_died' }])
    expect(await record.hub.delivery(crash.id)).toMatchObject({ epoch: 1, state: 'delivered' })
    expect(await leftIn(record, crash)).toEqual({ copy: true, grants: 1, reports: 0 })
  })

  it('an operator’s not_sent, said to a node that lives: it takes the next attempt on', async () => {
    const crash = await crashedAttempt(record)
    const { node } = await restart(server, record, crash)
    await unknownReports(record, crash, 1)
    await node.stop()
    const { executed } = await restart(server, record, crash)
    await unknownReports(record, crash, 2)
    const word = { as: 'not_sent', evidence: 'the bank says so' } as const
    await record.hub.resolveAttempt(crash.attempt, word, 'kim')
    expect(await doneAttempt(record, crash)).toMatchObject({ id: `${crash.id}/2` })
    expect(idsOf(executed)).toEqual([`${crash.id}/2`])
  })
})

describe('a probe', () => {
  it('is asked with the attempt as it was: id, epoch, payload byte for byte', async () => {
    const payload = Buffer.from([0, 255, 10, 0xf0, 0x9f, 0x98, 0x80])
    const crash = await crashedAttempt(record, { message: { payload, sender: 'billing' } })
    const { asked, probe } = probing(() => ({ kind: 'result', value: 1 }))
    await restart(server, record, crash, { probe })
    expect(await settlement(record, crash.id)).toBe('done')
    expect(asked).toMatchObject([
      {
        id: crash.attempt,
        number: 1,
        replay: true,
        epoch: 1,
        target: { host: 'h1' },
        message: { sender: 'billing' },
        payload,
      },
    ])
  })

  it.each<[string, ProbeAnswer, object]>([
    ['result', { kind: 'result', value: { paid: 5 } }, { status: 'done', result: '{"paid":5}' }],
    ['terminal', terminal('declined', 1), { status: 'terminal', errorCode: 'declined', errorJson: '1' }],
  ])('that answers %s settles the attempt under its own grant', async (status, answer, attempt) => {
    const crash = await crashedAttempt(record)
    const node = await restart(server, record, crash, { probe: () => answer })
    expect(await settlement(record, crash.id)).toBe(status === 'result' ? 'done' : status)
    expect(await attemptsOf(record, crash)).toMatchObject([{ ...attempt, id: crash.attempt, incarnation: 1 }])
    expect(await record.fields(crash.id)).toMatchObject({
      epoch: '1',
      attempts: '1',
      attempt_1_grant: crash.grant,
      attempt_1_report_key: `${crash.grant}.outcome`,
    })
    expect(await record.hub.unknown()).toEqual([])
    await node.node.stop()
    expect(node.executed).toEqual([])
    expect(await leftIn(record, crash)).toEqual({ copy: false, grants: 0, reports: 0 })
  })

  it('that answers not_executed licenses the next attempt', async () => {
    const crash = await crashedAttempt(record)
    const { asked, probe } = probing(() => ({ kind: 'not_executed' }))
    const node = await restart(server, record, crash, { probe })
    expect(await settlement(record, crash.id)).toBe('done')
    expect(await attemptsOf(record, crash)).toMatchObject([
      { status: 'not_sent', errorCode: 'probe_not_executed' },
      { status: 'done' },
    ])
    expect(asked).toHaveLength(1)
    expect(node.executed).toMatchObject([{ id: `${crash.id}/2`, number: 2, replay: false }])
  })

  it('that answers unknown is counted on the row, and asked again', async () => {
    const crash = await crashedAttempt(record)
    const answers: ProbeAnswer[] = [{ kind: 'unknown' }, { kind: 'result', value: 7 }]
    const { asked, probe } = probing(() => answers.shift() ?? { kind: 'unknown' })
    const node = await restart(server, record, crash, { probe })
    const first = await unknownReports(record, crash, 1)
    expect(first).toMatchObject({
      status: 'executing',
      unknownReason: 'probe_unknown',
      endedAt: expect.any(Number),
    })
    expect(await record.hub.unknown()).toMatchObject([{ id: crash.attempt, reason: 'probe_unknown' }])
    expect(await doneAttempt(record, crash)).toMatchObject({ status: 'done', result: '7', unknownReports: 1 })
    expect(asked).toHaveLength(2)
    expect(node.executed).toEqual([])
  })

  it.each<[string, () => ProbeAnswer | Promise<ProbeAnswer>, aborted?: boolean]>([
    ['throws', () => Promise.reject(new Error('no route'))],
    ['answers something else', () => notSent('busy') as unknown as ProbeAnswer],
    ['hangs', () => new Promise(() => undefined), true],
  ])('that %s is one that cannot tell', async (_, answer, aborted = false) => {
    const crash = await crashedAttempt(record)
    const { asked, probe } = probing(answer)
    const node = await restart(server, record, crash, { probe, probeTimeLimitMs: 100 })
    await unknownReports(record, crash, 1)
    expect(await attemptsOf(record, crash)).toMatchObject([
      { status: 'executing', unknownReason: expect.stringMatching(/^probe_/) },
    ])
    expect(asked[0]?.signal.aborted).toBe(aborted)
    await workFlows(record)
    expect(idsOf(node.executed)).not.toContain(crash.attempt)
  })

  it('of the caller’s own that rejects is one that cannot tell', async () => {
    const crash = await crashedAttempt(record)
    await restart(server, record, crash, { probe: { ask: () => Promise.reject(new Error('broken')) } })
    expect(await unknownReports(record, crash, 1)).toMatchObject({
      status: 'executing',
      unknownReason: 'probe_failed',
    })
  })

  it('that hangs does not keep the node from leaving', async () => {
    const crash = await crashedAttempt(record)
    const { asked, probe } = probing(() => new Promise(() => undefined))
    const { node } = await restart(server, record, crash, { probe })
    await until(() => asked.length === 1)
    await node.stop()
    expect(await node.closed).toEqual({ kind: 'left' })
    expect(asked[0]?.signal.aborted).toBe(true)
    expect(await leftIn(record, crash)).toEqual({ copy: true, grants: 1, reports: 0 })
  })

  it('that cannot tell of one attempt keeps no other waiting; no more are asked at a time than lanes run', async () => {
    const message = (at: number) => ({ conversation: `c${at}` })
    const first = await crashedAttempt(record, { message: message(0) })
    const more: Crash[] = []
    for (let at = 1; at < 6; at += 1)
      more.push(await crashedAttempt(record, { message: message(at) }, first.mirror))
    let [open, most] = [0, 0]
    const { probe } = probing(async (attempt) => {
      open += 1
      most = Math.max(most, open)
      await new Promise((resolve) => setImmediate(resolve))
      open -= 1
      return attempt.id === more.at(-1)?.attempt ? { kind: 'result', value: 1 } : { kind: 'unknown' }
    })
    await restart(server, record, first, { probe, concurrency: 2 })
    expect(await settlement(record, more.at(-1)?.id ?? '')).toBe('done')
    expect(most).toBe(2)
    await Promise.all([first, ...more.slice(0, -1)].map((crash) => unknownReports(record, crash, 1)))
  })
})
