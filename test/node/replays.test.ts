import { writeFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { notSent, type ProbeAnswer } from '../../src/contract/outcomes.js'
import type { Attempt } from '../../src/node/executor.js'
import { killChildren, readMarks, startNodeProcess } from '../support/child.js'
import {
  attemptsOf,
  crashedAttempt,
  crashedReplay,
  doneAttempt,
  leftIn,
  restart,
  unknownReports,
  workFlows,
} from '../support/crashes.js'
import { freshPath, type RunningNode, stopNodes } from '../support/nodes.js'
import { makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// A handler declared idempotent: what an earlier process left open is begun again under the same attempt.

let server: TestServer
let record: TestRecord
let names = 0

beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server?.stop())
beforeEach(async () => {
  names += 1
  record = await makeRecord(server, `replays${names}`, { heartbeat_ms: 100, stale_after_ms: 60_000 })
})
afterEach(async () => {
  await killChildren()
  await stopNodes()
  await record.checkInvariants()
  await record.close()
})

const idempotent = true
const kim = { actor: 'kim', evidence: 'the bank says so', force: true }

/** The node has said why it did not begin an attempt again. */
function refusal({ logs }: RunningNode) {
  return until(() => logs.find(({ log }) => log === 'not begun again'))
}

describe('an attempt is begun again', () => {
  it('under the same id, with the payload byte for byte; it stays one attempt', async () => {
    const payload = Buffer.from([0, 255, 10, 0xf0, 0x9f, 0x98, 0x80])
    const crash = await crashedAttempt(record, { message: { payload } })
    const { node, executed } = await restart(server, record, crash, { idempotent, execute: () => 'again' })
    expect(await doneAttempt(record, crash)).toMatchObject({
      id: crash.attempt,
      result: '"again"',
      incarnation: 2,
      replayedAt: expect.any(Number),
    })
    expect(executed).toMatchObject([{ id: crash.attempt, number: 1, replay: true, epoch: 2, payload }])
    expect(await record.fields(crash.id)).toMatchObject({
      epoch: '2',
      attempts: '1',
      attempt_1_grant: crash.grant,
      takeovers: '0',
    })
    expect(await record.hub.unknown()).toEqual([])
    await node.stop()
    expect(await leftIn(record, crash)).toEqual({ copy: false, grants: 0, reports: 0 })
  })

  it('by the third process when the second is killed in the middle of it', async () => {
    const { deliveries } = await record.accept({ to: [{ host: 'h1' }] })
    const crash = { mirror: freshPath('db'), id: deliveries[0]?.id ?? '' }
    const marks = freshPath('marks')
    writeFileSync(marks, '')
    const options = {
      redis: server.url,
      hub: record.name,
      host: 'h1',
      node: 'a',
      mirror: crash.mirror,
      marks,
    }
    for (const epoch of [1, 2]) {
      const killed = startNodeProcess({ ...options, idempotent, inHandler: 'SIGKILL' })
      expect(await killed.ended).toBe('SIGKILL')
      expect(await record.hub.delivery(crash.id)).toMatchObject({ epoch, takeovers: epoch - 1 })
    }
    const asked: number[] = []
    const probe = ({ epoch }: Attempt): ProbeAnswer => {
      asked.push(epoch)
      return { kind: 'unknown' }
    }
    const { executed } = await restart(server, record, crash, { idempotent, probe })
    expect(await doneAttempt(record, crash)).toMatchObject({ id: `${crash.id}/1`, incarnation: 3 })
    expect(asked).toEqual([2]) // the second process noted its own epoch before it began
    expect(executed).toMatchObject([{ id: `${crash.id}/1`, replay: true, epoch: 3 }])
    expect(await attemptsOf(record, crash)).toHaveLength(1)
    expect(readMarks(marks).map(({ what, attempt }) => [what, attempt])).toEqual([
      ['begin', `${crash.id}/1`],
      ['begin', `${crash.id}/1`],
    ])
  })

  it('also when the second died before it noted its epoch', async () => {
    const crash = await crashedAttempt(record)
    await crashedReplay(record, crash, false)
    const { executed } = await restart(server, record, crash, { idempotent })
    expect(await doneAttempt(record, crash)).toMatchObject({ id: crash.attempt, incarnation: 3 })
    expect(executed).toMatchObject([{ id: crash.attempt, replay: true, epoch: 3 }])
  })

  it('not beyond max_takeovers: it stays unknown, and is said to be', async () => {
    await record.config('max_takeovers', 2)
    const crash = await crashedAttempt(record)
    await crashedReplay(record, crash)
    for (const reports of [1, 2]) {
      const node = await restart(server, record, crash, { idempotent })
      expect(await refusal(node)).toMatchObject({ delivery: crash.id, code: 'TOO_MANY_CRASHES' })
      const told = await unknownReports(record, crash, reports)
      expect(told).toMatchObject({ status: 'executing', endedAt: expect.any(Number) })
      expect(node.executed).toEqual([])
      await node.node.stop()
    }
    expect(await record.hub.unknown()).toMatchObject([{ id: crash.attempt }])
    expect(await record.fields(crash.id)).toMatchObject({ epoch: '2', takeovers: '1' })
    expect(await leftIn(record, crash)).toEqual({ copy: true, grants: 1, reports: 0 })
  })

  it('uncounted when the process before left cleanly', async () => {
    await record.config('max_takeovers', 1)
    const { deliveries } = await record.accept({ to: [{ host: 'h1' }] })
    const crash = { mirror: freshPath('db'), id: deliveries[0]?.id ?? '' }
    const throws = { idempotent, execute: () => Promise.reject(new Error('cut')) }
    for (const reports of [1, 2, 3]) {
      const { node } = await restart(server, record, crash, throws)
      await unknownReports(record, crash, reports)
      await node.stop()
      expect(await node.closed).toEqual({ kind: 'left' })
    }
    const { executed } = await restart(server, record, crash, { idempotent })
    expect(await doneAttempt(record, crash)).toMatchObject({ id: `${crash.id}/1`, incarnation: 4 })
    expect(executed).toMatchObject([{ replay: true, epoch: 4 }])
  })
})

describe('a probe beside it', () => {
  it.each<[ProbeAnswer['kind'], ProbeAnswer, readonly string[]]>([
    ['result', { kind: 'result', value: 1 }, ['asked']],
    ['unknown', { kind: 'unknown' }, ['asked', 'executed 1']],
    ['not_executed', { kind: 'not_executed' }, ['asked', 'executed 2']],
  ])('is asked first: %s', async (_, answer, events) => {
    const crash = await crashedAttempt(record)
    const seen: string[] = []
    await restart(server, record, crash, {
      idempotent,
      probe: () => {
        seen.push('asked')
        return answer
      },
      execute: ({ number }) => void seen.push(`executed ${number}`),
    })
    await doneAttempt(record, crash)
    expect(seen).toEqual(events)
  })
})

describe('what stands in the way', () => {
  it.each(['pause', 'hold', 'block'] as const)(
    'a %s: nothing is repeated until it is lifted',
    async (kind) => {
      const crash = await crashedAttempt(record)
      await record.hub[kind]('conversation:c1', { reason: 'wait', actor: 'kim' })
      let asked = 0
      const { executed } = await restart(server, record, crash, {
        idempotent,
        onPoint: (point) => {
          if (point === 'begin.answered') asked += 1
        },
      })
      await until(() => asked >= 2)
      await workFlows(record)
      expect(executed.map(({ deliveryId }) => deliveryId)).not.toContain(crash.id)
      expect(await record.fields(crash.id)).toMatchObject({ state: 'delivered', epoch: '1' })
      expect(await record.hub.unknown()).toMatchObject([{ id: crash.attempt }])
      await record.hub.lift(kind, 'conversation:c1', 'kim')
      expect(await doneAttempt(record, crash)).toMatchObject({
        id: crash.attempt,
        replayedAt: expect.any(Number),
      })
      expect(executed.at(-1)).toMatchObject({ id: crash.attempt, epoch: 2 })
    },
  )

  it.each([
    ['result', 'no probe'],
    ['terminal', 'no probe'],
    ['result', 'not_executed'],
    ['terminal', 'unknown'],
  ] as const)('an operator’s %s between crash and restart (probe: %s): it wins', async (as, answer) => {
    const crash = await crashedAttempt(record)
    await record.hub.resolveAttempt(crash.attempt, { ...kim, as }, 'kim')
    const probe = answer === 'no probe' ? undefined : () => ({ kind: answer })
    const running = await restart(server, record, crash, { idempotent, probe })
    // A probe's answer comes too late, and is kept as evidence.
    if (probe === undefined) await refusal(running)
    else await until(async () => (await attemptsOf(record, crash))[0]?.lateReports === 1)
    await workFlows(record)
    const { node, executed } = running
    await node.stop()
    expect(executed.map(({ deliveryId }) => deliveryId)).not.toContain(crash.id)
    expect(await attemptsOf(record, crash)).toMatchObject([{ outcome: as, resolvedBy: 'kim' }])
    expect(await leftIn(record, crash)).toEqual({ copy: false, grants: 0, reports: 0 })
  })

  it('an operator’s not_sent: the next attempt runs, once, and nothing is repeated', async () => {
    const crash = await crashedAttempt(record)
    await record.hub.resolveAttempt(crash.attempt, { ...kim, as: 'not_sent' }, 'kim')
    const { executed } = await restart(server, record, crash, { idempotent })
    expect(await doneAttempt(record, crash)).toMatchObject({ id: `${crash.id}/2` })
    await workFlows(record)
    expect(executed.filter(({ deliveryId }) => deliveryId === crash.id)).toMatchObject([
      { id: `${crash.id}/2`, replay: false },
    ])
  })

  it('one that is held meanwhile does not stop its lane', async () => {
    await record.config('max_redrive', 1)
    const crash = await crashedAttempt(record)
    await record.hub.resolveAttempt(crash.attempt, { ...kim, as: 'not_sent' }, 'kim')
    expect(await record.hub.held()).toMatchObject([{ id: crash.id, reason: 'redrive_exhausted' }])
    const node = await restart(server, record, crash, { idempotent })
    await refusal(node)
    await workFlows(record, 'c1')
    expect(node.executed.map(({ deliveryId }) => deliveryId)).not.toContain(crash.id)
    await node.node.stop()
    expect(await leftIn(record, crash)).toEqual({ copy: false, grants: 0, reports: 0 })
  })
})

it('a replay that sent nothing proves nothing of the run before it', async () => {
  const crash = await crashedAttempt(record)
  const first = await restart(server, record, crash, { idempotent, execute: () => notSent('busy', { n: 1 }) })
  expect(await unknownReports(record, crash, 1)).toMatchObject({
    status: 'executing',
    unknownReason: 'busy',
    errorJson: '{"n":1}',
  })
  await first.node.stop()
  const second = await restart(server, record, crash, { idempotent })
  expect(await doneAttempt(record, crash)).toMatchObject({ id: crash.attempt })
  expect(await attemptsOf(record, crash)).toHaveLength(1)
  expect([...first.executed, ...second.executed].map(({ id }) => id)).toEqual([crash.attempt, crash.attempt])
})
