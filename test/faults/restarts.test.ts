import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import {
  type Child,
  killChildren,
  type NodeProcessOptions,
  readMarks,
  startNodeProcess,
} from '../support/child.js'
import { freshPath, startNode, stopNodes } from '../support/nodes.js'
import { makeRecord, settlement, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

let server: TestServer
const records: TestRecord[] = []
const strays: number[] = []

beforeAll(async () => {
  server = await startTestServer()
})

afterEach(async () => {
  for (const pid of strays.splice(0)) process.kill(pid, 'SIGKILL')
  await killChildren()
  await stopNodes()
  for (const record of records.splice(0)) await record.close()
})

afterAll(async () => {
  await server?.stop()
})

async function open(name: string, staleAfterMs = 60_000): Promise<TestRecord> {
  const record = await makeRecord(server, name, { heartbeat_ms: 100, stale_after_ms: staleAfterMs })
  records.push(record)
  return record
}

interface Setting {
  readonly record: TestRecord
  readonly id: string
  readonly options: NodeProcessOptions
}

async function setting(name: string, staleAfterMs?: number): Promise<Setting> {
  const record = await open(name, staleAfterMs)
  const { deliveries } = await record.accept({ to: [{ host: 'h1' }] })
  const marks = freshPath('marks')
  writeFileSync(marks, '')
  const options = { redis: server.url, hub: name, host: 'h1', node: 'a', mirror: freshPath('db'), marks }
  return { record, id: deliveries[0]?.id ?? '', options }
}

async function killed(child: Child): Promise<void> {
  await child.line('hit')
  expect(await child.ended).toBe('SIGKILL')
}

/** A later delivery of the host went through: whoever claims has had its chance at the earlier ones. */
async function workFlows(record: TestRecord): Promise<void> {
  const { deliveries } = await record.accept({ conversation: 'later', to: [{ host: 'h1' }] })
  expect(await settlement(record, deliveries[0]?.id ?? '')).toBe('done')
}

describe('faults.md 26: a node is killed between the end of its handler and the report', () => {
  it('the attempt is unknown for good: no later process and no other node runs it again', async () => {
    const { record, id, options } = await setting('finished-unreported', 500)
    await killed(startNodeProcess({ ...options, at: { point: 'execute.left', signal: 'SIGKILL' } }))
    const second = startNodeProcess(options)
    expect(await settlement(record, id)).toBe('unknown')
    await second.kill()
    await startNode({ redis: server.url, hub: record.name, host: 'h1', node: 'b' })
    await workFlows(record)
    const third = startNodeProcess(options)
    await third.line('started')
    await workFlows(record)

    expect(await record.hub.unknown()).toMatchObject([
      { id: `${id}/1`, reason: 'executor_died', node: 'h1/a' },
    ])
    expect(await record.hub.delivery(id)).toMatchObject({
      epoch: 1,
      owner: 'a',
      attempts: [{ status: 'executing' }],
    })
    expect(readMarks(options.marks).filter(({ delivery }) => delivery === id)).toHaveLength(2)
    await record.checkInvariants()
  })
})

describe('faults.md 29: a node is killed while its command runs on', () => {
  it('the successor reports unknown with stillRunning, and does not run it again', async () => {
    const { record, id, options } = await setting('stray')
    const [runs, gate] = [freshPath('runs'), freshPath('gate')]
    const exec = `echo $$ >> ${runs}; [ -e ${gate} ] || exec sleep 600`
    const first = startNodeProcess({ ...options, exec })
    const pid = await until(() => Number(readFileSync(runs, 'utf8').trim()) || undefined)
    strays.push(pid)
    await first.kill()
    process.kill(pid, 0) // it runs on

    const second = startNodeProcess({ ...options, exec })
    expect(await settlement(record, id)).toBe('unknown')
    const [attempt] = (await record.hub.delivery(id)).attempts
    expect(attempt).toMatchObject({ status: 'executing', errorCode: 'executor_died' })
    expect(JSON.parse(attempt?.errorJson ?? '{}')).toMatchObject({
      stillRunning: true,
      children: [{ pid, group: pid }],
    })
    expect(await record.hub.unknown()).toMatchObject([{ id: `${id}/1`, reason: 'executor_died' }])
    await second.kill()
    writeFileSync(gate, '')
    const third = startNodeProcess({ ...options, exec })
    await third.line('started')
    await workFlows(record)
    expect(readFileSync(runs, 'utf8').trim().split('\n')).toHaveLength(2)
    process.kill(pid, 0)
    expect(await record.hub.delivery(id)).toMatchObject({ epoch: 1, attempts: [{ status: 'executing' }] })
    await record.checkInvariants()
  })

  it('where the command has ended meanwhile it is unknown all the same, and not running', async () => {
    const { record, id, options } = await setting('ended-stray')
    const runs = freshPath('runs')
    const exec = `echo $$ >> ${runs}; exec sleep 600`
    const first = startNodeProcess({ ...options, exec })
    const pid = await until(() => Number(readFileSync(runs, 'utf8').trim()) || undefined)
    await first.kill()
    process.kill(pid, 'SIGKILL')
    await until(() => !exists(pid), { timeoutMs: 30_000, what: 'the command gone' })
    startNodeProcess({ ...options, exec })
    expect(await settlement(record, id)).toBe('unknown')
    const [attempt] = (await record.hub.delivery(id)).attempts
    expect(JSON.parse(attempt?.errorJson ?? '{}')).toMatchObject({ stillRunning: false })
    expect(readFileSync(runs, 'utf8').trim()).toBe(String(pid))
  })
})

/** True while the process lives; one that only waits to be looked at is gone. */
function exists(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.slice(stat.lastIndexOf(')') + 2)[0] !== 'Z'
  } catch {
    return false
  }
}

describe('faults.md 30: a known outcome whose node died before it was reported', () => {
  it('goes out under the next incarnation and settles; it is never listed as unknown', async () => {
    const { record, id, options } = await setting('known')
    await killed(startNodeProcess({ ...options, at: { point: 'outcome.stored', signal: 'SIGKILL' } }))
    startNodeProcess(options)
    expect(await settlement(record, id)).toBe('done')
    const [attempt] = (await record.hub.delivery(id)).attempts
    expect(attempt).toMatchObject({ id: `${id}/1`, status: 'done', incarnation: 1 })
    expect(JSON.parse(attempt?.result ?? '')).toHaveProperty('bytes')
    expect(attempt).not.toHaveProperty('unknownAt')
    const row = await record.fields(id)
    expect(row['attempt_1_report_key']).toBe(`${row['attempt_1_grant']}.outcome`)
    expect(readMarks(options.marks)).toHaveLength(2)
    await record.checkInvariants()
  })

  it('settles as well when others had listed it as unknown meanwhile, and leaves the list', async () => {
    const { record, id, options } = await setting('known-listed', 500)
    await killed(startNodeProcess({ ...options, at: { point: 'outcome.stored', signal: 'SIGKILL' } }))
    const b = await startNode({ redis: server.url, hub: record.name, host: 'h1', node: 'b' })
    await until(async () => (await record.hub.unknown()).some(({ reason }) => reason === 'stale'))
    startNodeProcess(options)
    expect(await until(() => doneIn(record, id))).toMatchObject({ unknownReason: 'stale' })
    expect(await record.hub.unknown()).toEqual([])
    expect(b.executed).toEqual([])
    expect(readMarks(options.marks)).toHaveLength(2)
    await record.checkInvariants()
  })

  it('a proof that nothing ran goes out too: the delivery is queued again and done once', async () => {
    const { record, id, options } = await setting('known-not-sent')
    const kill = { point: 'outcome.stored', signal: 'SIGKILL' } as const
    await killed(startNodeProcess({ ...options, notSentTimes: 1, at: kill }))
    startNodeProcess(options)
    expect(await settlement(record, id)).toBe('done')
    const { attempts, epoch } = await record.hub.delivery(id)
    expect(attempts.map(({ status }) => status)).toEqual(['not_sent', 'done'])
    expect(attempts[0]).toMatchObject({ errorCode: 'not yet', incarnation: 1 })
    expect(epoch).toBe(3)
    expect(readMarks(options.marks)).toHaveLength(2)
    await record.checkInvariants()
  })
})

async function doneIn(record: TestRecord, id: string) {
  return (await record.hub.delivery(id)).attempts.find((attempt) => attempt.status === 'done')
}
