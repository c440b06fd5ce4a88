import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { notSent } from '../../src/contract/outcomes.js'
import type { Attempt } from '../../src/node/executor.js'
import { identify } from '../../src/node/process-identity.js'
import {
  attemptsOf,
  crashedAttempt,
  doneAttempt,
  leftIn,
  restart,
  unknownReports,
  workFlows,
} from '../support/crashes.js'
import { freshPath, startNode, stopNodes } from '../support/nodes.js'
import { makeRecord, settlement, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

// Executors that outlive their process, their handler's time limit, or their own failure.

let server: TestServer
let record: TestRecord
let names = 0
const children: ChildProcess[] = []

beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server?.stop())
beforeEach(async () => {
  names += 1
  record = await makeRecord(server, `executors${names}`, { heartbeat_ms: 100, stale_after_ms: 60_000 })
})
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  await stopNodes()
  await record.checkInvariants()
  await record.close()
})

async function acceptOne(): Promise<{ id: string }> {
  const { deliveries } = await record.accept({ to: [{ host: 'h1' }] })
  return { id: deliveries[0]?.id ?? '' }
}

describe('while a child of the old executor lives', () => {
  function startChild() {
    const child = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' })
    children.push(child)
    const identity = child.pid === undefined ? undefined : identify(child.pid)
    if (identity === undefined) throw new Error('sleep did not start')
    return { child, identity }
  }

  it.each(['probe', 'idempotent'] as const)(
    '%s: nobody is asked and nothing is repeated until it has ended',
    async (basis) => {
      const { child, identity } = startChild()
      const crash = await crashedAttempt(record, { children: [identity] })
      const events: string[] = []
      const note = (event: string) => void events.push(event)
      const node = await restart(server, record, crash, {
        ...(basis === 'idempotent'
          ? { idempotent: true }
          : {
              probe: () => {
                note('asked')
                return { kind: 'result', value: 1 }
              },
            }),
        execute: ({ id }) => note(id === crash.attempt ? 'executed' : 'another'),
      })
      const reported = await unknownReports(record, crash, 1)
      expect(reported).toMatchObject({ status: 'executing', unknownReason: 'executor_died' })
      expect(reported).not.toHaveProperty('endedAt')
      expect(JSON.parse(reported.errorJson ?? '')).toMatchObject({
        stillRunning: true,
        children: [{ pid: child.pid }],
      })
      await workFlows(record)
      note('ended')
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
      expect(await doneAttempt(record, crash)).toMatchObject({ id: crash.attempt })
      expect(events).toEqual(['another', 'ended', basis === 'probe' ? 'asked' : 'executed'])
      await node.node.stop()
    },
  )

  it('without either: unknown and still running, which the next process looks at anew', async () => {
    const { child, identity } = startChild()
    const crash = await crashedAttempt(record, { children: [identity] })
    const first = await restart(server, record, crash)
    expect(await unknownReports(record, crash, 1)).not.toHaveProperty('endedAt')
    await first.node.stop()
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
    await restart(server, record, crash)
    expect(await unknownReports(record, crash, 2)).toMatchObject({
      endedAt: expect.any(Number),
      unknownReason: 'executor_died',
    })
  })
})

describe('a handler', () => {
  it('that threw has ended, and is asked about by the next process too', async () => {
    const mirror = freshPath('db')
    const first = await restart(
      server,
      record,
      { mirror },
      { execute: () => Promise.reject(new TypeError('socket hang up')) },
    )
    const crash = { ...(await acceptOne()), mirror }
    expect(await unknownReports(record, crash, 1)).toMatchObject({
      unknownReason: 'TypeError',
      endedAt: expect.any(Number),
    })
    await first.node.stop()
    expect(await leftIn(record, crash)).toEqual({ copy: true, grants: 1, reports: 0 })
    let asked = 0
    const probe = () => {
      asked += 1
      return { kind: 'result', value: 'paid' } as const
    }
    const second = await restart(server, record, { mirror }, { probe })
    expect(await doneAttempt(record, crash)).toMatchObject({
      result: '"paid"',
      incarnation: 1,
      unknownReports: 1,
    })
    expect([asked, second.executed.length]).toEqual([1, 0])
  })

  interface Late {
    readonly answer: () => unknown
    readonly attempts: readonly object[]
    readonly executed: number
  }
  it.each<[string, Late]>([
    ['a result', { answer: () => 7, attempts: [{ status: 'done', result: '7' }], executed: 1 }],
    [
      'not sent: it is tried again by this process',
      {
        answer: () => notSent('busy'),
        attempts: [{ status: 'not_sent', errorCode: 'busy' }, { status: 'done' }],
        executed: 2,
      },
    ],
  ])('past its time limit is unknown and not ended; its late outcome settles: %s', async (_, late) => {
    let release: () => void = () => undefined
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    const node = await restart(
      server,
      record,
      { mirror: freshPath('db') },
      {
        timeLimitMs: 30,
        graceMs: 30,
        execute: async ({ number }) => {
          if (number > 1) return 'second'
          await gate
          return late.answer()
        },
      },
    )
    const crash = await acceptOne()
    const reported = await unknownReports(record, crash, 1)
    expect(reported).toMatchObject({ status: 'executing', unknownReason: 'timed_out' })
    expect(reported).not.toHaveProperty('endedAt')
    release()
    await doneAttempt(record, crash)
    expect(await attemptsOf(record, crash)).toMatchObject(late.attempts)
    expect(await record.hub.unknown()).toEqual([])
    expect(node.executed).toHaveLength(late.executed)
  })

  it('past its time limit that throws later has ended, and stays unknown', async () => {
    let fail: () => void = () => undefined
    const gate = new Promise<void>((_, reject) => {
      fail = () => reject(new TypeError('reset'))
    })
    await restart(
      server,
      record,
      { mirror: freshPath('db') },
      { timeLimitMs: 30, graceMs: 30, execute: () => gate },
    )
    const crash = await acceptOne()
    await unknownReports(record, crash, 1)
    fail()
    const told = await unknownReports(record, crash, 2)
    expect(told).toMatchObject({
      status: 'executing',
      unknownReason: 'TypeError',
      endedAt: expect.any(Number),
    })
  })
})

describe('an executor of one’s own', () => {
  const fails = () => {
    throw new TypeError('no wire')
  }
  it.each([
    ['throws', fails],
    ['rejects', async () => fails()],
    ['rejects past its time limit', async ({ signal }: Attempt) => once(signal, 'abort').then(fails)],
  ])('that %s leaves an unknown outcome, and the node goes on', async (_, run) => {
    const { id } = await acceptOne()
    const limits = { timeLimitMs: 200, concurrency: 1 }
    const { node } = await startNode({
      ...limits,
      redis: server.url,
      hub: record.name,
      host: 'h1',
      executor: { run: (attempt) => (attempt.deliveryId === id ? run(attempt) : doneAtOnce) },
    })
    const attempt = await unknownReports(record, { id }, 1)
    expect(attempt).toMatchObject({ errorCode: 'executor_failed', endedAt: expect.any(Number) })
    expect(JSON.parse(attempt.errorJson ?? '')).toEqual({ name: 'TypeError', message: 'no wire' })
    expect(await record.hub.unknown()).toMatchObject([{ id: `${id}/1` }])
    const next = await acceptOne()
    expect(await settlement(record, next.id)).toBe('done')
    await node.stop()
  })
})

const doneAtOnce = Promise.resolve({ kind: 'result' as const, result: '1' })
