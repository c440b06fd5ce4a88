import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createEffects, type EffectRequest } from '../../src/client/effects.js'
import { notSent, terminal } from '../../src/contract/outcomes.js'
import { hashPayload } from '../../src/contract/payload-hash.js'
import { commandExecutor } from '../../src/node/executors/command.js'
import { makeFolder, type Running, startCli } from '../cli/run-cli.js'
import { killChildren, readMarks, startNodeProcess } from '../support/child.js'
import {
  attemptsOf,
  crashedAttempt,
  doneAttempt,
  restart,
  unknownReports,
  workFlows,
} from '../support/crashes.js'
import { freshPath, type SomeOptions, startNode, stopNodes } from '../support/nodes.js'
import { hashOf, makeRecord, settlement, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// The rules of contract section 4 on deliveries, and on what is recorded of an outcome: with real processes where
// a rule is about processes. Rules 1 to 6 on effects are in section-4.test.ts.

let server: TestServer
let record: TestRecord
let folder: ReturnType<typeof makeFolder>
let names = 0
const strays: number[] = []
const started: Running[] = []

beforeAll(async () => {
  server = await startTestServer()
  folder = makeFolder()
})
afterAll(async () => {
  folder?.remove()
  await server?.stop()
})
beforeEach(async () => {
  names += 1
  const settings = { heartbeat_ms: 100, stale_after_ms: 60_000, recovery_age_ms: 0 }
  record = await makeRecord(server, `settling${names}`, settings)
})
afterEach(async () => {
  for (const pid of strays.splice(0)) endGroup(pid)
  for (const { child } of started) child.kill('SIGKILL')
  await Promise.all(started.splice(0).map(({ ended }) => ended))
  await killChildren()
  await stopNodes()
  await record.checkInvariants()
  await record.close()
})

function endGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {}
}

async function acceptOne(session?: string): Promise<{ id: string }> {
  const to = session === undefined ? { host: 'h1' } : { session }
  const { deliveries } = await record.accept({ to: [to] })
  return { id: deliveries[0]?.id ?? '' }
}

const charge = (changes: Partial<EffectRequest> = {}): EffectRequest => ({
  id: 'e',
  type: 'charge',
  payload: 'payload',
  ...changes,
})
const here = () => createEffects(record.hub, { executor: 'here', recoveryAgeMs: 0 })
const never = (): never => {
  throw new Error('it was executed')
}
const effectRow = async () => hashOf(await record.send('HGETALL', record.keys.effect('e')))

/** An effect whose executor will never say anything more. */
async function orphan(id = 'e'): Promise<void> {
  const claim = { type: 'charge', payloadHash: hashPayload('payload'), executor: 'gone', grant: 'gone' }
  expect(await record.hub.claimEffect(id, claim)).toMatchObject({ kind: 'claimed', epoch: 1 })
}

describe('rule 6: nothing is repeated while the process tree of the old executor lives', () => {
  /** A node of the command line whose command notes its attempt, and stays unless there is a gate. */
  function startCommandNode(...more: string[]): Running {
    const exec = [
      '[ "$HOLDFAST_CONVERSATION" = later ] && exit 0',
      'echo "$HOLDFAST_ATTEMPT $HOLDFAST_REPLAY" >> runs',
      '[ -e gate ] && exit 0',
      'echo $$ > pid.new; mv pid.new pid; exec sleep 600',
    ].join('; ')
    const where = [
      '--host',
      'h1',
      '--redis',
      server.url,
      '--hub',
      record.name,
      '--mirror',
      `${record.name}.db`,
    ]
    const running = startCli(['node', '--exec', exec, ...where, ...more], { cwd: folder.path })
    started.push(running)
    return running
  }

  const inFolder = (name: string) => join(folder.path, name)
  const textOf = (name: string) => readFileSync(inFolder(name), 'utf8')

  /** Kills the node and leaves its command running; answers the command's process. */
  async function orphanCommand(node: Running): Promise<number> {
    const pid = await until(() => Number(textOf('pid')) || undefined, {
      timeoutMs: 20_000,
      what: 'the command',
    })
    strays.push(pid)
    node.child.kill('SIGKILL')
    expect((await node.ended).signal).toBe('SIGKILL')
    return pid
  }

  it('--probe is asked only after the command that outlived its node has ended', async () => {
    const crash = await acceptOne()
    const probe = '[ "$HOLDFAST_PROBE" = 1 ] && echo "$HOLDFAST_ATTEMPT" | tee -a asked'
    const pid = await orphanCommand(startCommandNode('--probe', probe))
    startCommandNode('--probe', probe)
    const reported = await unknownReports(record, crash, 1)
    expect(JSON.parse(reported.errorJson ?? '')).toMatchObject({ stillRunning: true, children: [{ pid }] })
    expect(reported).not.toHaveProperty('endedAt')
    await workFlows(record)
    expect(existsSync(inFolder('asked'))).toBe(false)
    endGroup(pid)
    const attempt = await doneAttempt(record, crash)
    expect(attempt).toMatchObject({ id: `${crash.id}/1`, incarnation: 1 })
    expect(attempt.result).toBe(JSON.stringify({ exitCode: 0, stdout: `${crash.id}/1\n` }))
    expect([textOf('runs'), textOf('asked')]).toEqual([`${crash.id}/1 \n`, `${crash.id}/1\n`])
  })

  it('--idempotent runs it again only then, under the same id', async () => {
    const crash = await acceptOne()
    writeFileSync(inFolder('runs'), '')
    writeFileSync(inFolder('pid'), '')
    const pid = await orphanCommand(startCommandNode('--idempotent'))
    writeFileSync(inFolder('gate'), '')
    startCommandNode('--idempotent')
    await unknownReports(record, crash, 1)
    await workFlows(record)
    expect(textOf('runs')).toBe(`${crash.id}/1 \n`)
    endGroup(pid)
    expect(await doneAttempt(record, crash)).toMatchObject({ replayedAt: expect.any(Number), incarnation: 2 })
    expect(textOf('runs')).toBe(`${crash.id}/1 \n${crash.id}/1 1\n`)
    expect(await attemptsOf(record, crash)).toHaveLength(1)
  })
})

describe('rule 7: not_sent frees only if no earlier grant is unresolved', () => {
  it('after a declared replay it is unknown again; after a probe it is free', async () => {
    await orphan()
    const busy = () => notSent('busy')
    const declared = await here().run(charge({ idempotent: true, timeLimitMs: 200 }), busy)
    expect(declared).toMatchObject({ kind: 'outcome_unknown', epoch: 2 })
    expect(await effectRow()).toMatchObject({ status: 'executing', unresolved: 'gone' })
    const probing = charge({ probe: () => ({ kind: 'not_executed' }) })
    const effects = here()
    await until(async () => (await effects.run(probing, busy)).kind === 'not_sent')
    expect(await effectRow()).toMatchObject({ status: 'free', epoch: '3', unresolved: '' })
  })
})

describe('rule 8: an ambiguous failure is never recorded as an outcome', () => {
  const command = (text: string) => ({ executor: commandExecutor({ command: text }), execute: undefined })
  const throwing = (error: unknown) => ({ execute: () => Promise.reject(error) })

  it.each<[string, SomeOptions]>([
    ['a command that fails', command('echo done; exit 3')],
    ['a command that is killed', command('kill -9 $$')],
    ['an error', throwing(new Error('socket hang up'))],
    ['notSent() that is thrown', throwing(notSent('busy'))],
    ['terminal() that is thrown', throwing(terminal('declined'))],
  ])('%s', async (_, options) => {
    const crash = await acceptOne()
    await restart(server, record, { mirror: freshPath('db') }, options)
    const attempt = await unknownReports(record, crash, 1)
    expect(attempt).toMatchObject({ status: 'executing', endedAt: expect.any(Number) })
    expect(attempt).not.toHaveProperty('outcome')
    expect(await record.hub.unknown()).toMatchObject([{ id: `${crash.id}/1` }])
  })
})

describe('rule 9: what comes too late is evidence', () => {
  it('a stopped executor’s result, after an operator has spoken', async () => {
    const crash = await acceptOne()
    const marks = freshPath('marks')
    writeFileSync(marks, '')
    const where = { redis: server.url, hub: record.name, host: 'h1', node: 'a' }
    const node = startNodeProcess({ ...where, mirror: freshPath('db'), marks, inHandler: 'SIGSTOP' })
    await node.line('executing')
    const word = { as: 'terminal', evidence: 'the bank says so', force: true } as const
    await record.hub.resolveAttempt(`${crash.id}/1`, word, 'kim')
    await node.goOn()
    expect(await node.line('log', 'report not applied')).toMatchObject({ code: 'ALREADY_SETTLED' })
    expect(await record.fields(crash.id)).toMatchObject({
      attempt_1_status: 'terminal',
      attempt_1_resolved_by: 'kim',
      attempt_1_late: '1',
      attempt_1_late_1: expect.stringMatching(/^result /),
      attempt_1_late_1_body: '{"bytes":9}',
    })
    expect(readMarks(marks).map(({ what }) => what)).toEqual(['begin', 'end'])
  })

  it('one report, over two processes, is one: the second is answered as the first', async () => {
    const crash = await crashedAttempt(record, { unsent: { kind: 'result', result: '1' } })
    const node = { host: 'h1', node: 'a', incarnation: 1 }
    const key = `${crash.grant}.outcome`
    const report = {
      id: crash.attempt,
      grant: crash.grant,
      key,
      outcome: { kind: 'result', result: '1' },
    } as const
    expect(await record.functions.report(node, [report])).toMatchObject([{ ok: true }])
    const again = await restart(server, record, crash)
    await workFlows(record)
    const [attempt] = await attemptsOf(record, crash)
    expect(attempt).toMatchObject({ status: 'done', result: '1' })
    expect(attempt).not.toHaveProperty('lateReports')
    await again.node.stop()
    const other = { ...report, outcome: { kind: 'result', result: '2' } } as const
    await record.itemRefused('IDEMPOTENCY_MISMATCH', () => record.functions.report(node, [other]))
  })
})

describe('rule 10: a target that is missing', () => {
  it('closes its session to everything until an operator opens it again', async () => {
    const scope = '/srv/agents'
    let answer: unknown = terminal('target_session_missing')
    const { executed } = await startNode({
      ...{ redis: server.url, hub: record.name, host: 'h1', scopes: [scope] },
      execute: () => answer,
    })
    const open = () => record.functions.openSession('s', { host: 'h1', scope, asOperator: true }, 'kim')
    await open()
    const first = await acceptOne('s')
    expect(await settlement(record, first.id)).toBe('terminal')
    const second = await acceptOne('s')
    expect(await settlement(record, second.id)).toBe('failed')
    expect(await record.fields(second.id)).toMatchObject({
      failed_code: 'target_session_missing',
      attempts: '0',
    })
    expect(executed.map(({ deliveryId }) => deliveryId)).toEqual([first.id])
    await open()
    answer = 'back'
    const third = await acceptOne('s')
    expect(await settlement(record, third.id)).toBe('done')
  })
})

describe('rule 11: the record is the truth', () => {
  it('a process that lost its map of flights is told what happened, or that nobody knows', async () => {
    expect(await here().run(charge(), () => 'paid')).toMatchObject({ value: 'paid', replayed: false })
    expect(await here().run(charge(), never)).toMatchObject({ value: 'paid', replayed: true })
    const open = charge({ id: 'open' })
    await expect(here().run(open, () => Promise.reject(new Error('cut')))).rejects.toThrow('cut')
    expect(await here().run(open, never)).toMatchObject({ kind: 'outcome_unknown', executor: 'here' })
  })
})

describe('rule 12: every pass is charged', () => {
  it('of an attempt: over three processes that ask in vain', async () => {
    const crash = await crashedAttempt(record)
    for (const passes of [1, 2, 3]) {
      const probe = () => Promise.reject(new Error(`no route ${passes}`))
      const { node } = await restart(server, record, crash, { probe })
      await unknownReports(record, crash, passes)
      await node.stop()
    }
    const row = await record.fields(crash.id)
    expect(row).toMatchObject({
      host: 'h1',
      attempt_1_node: 'h1/a',
      attempt_1_unknown_reports: '3',
      attempt_1_unknown_reason: 'probe_failed',
      attempt_1_unknown_json: expect.stringContaining('no route 3'),
    })
    expect(Number(row['attempt_1_unknown_reported_at'])).toBeGreaterThanOrEqual(
      Number(row['attempt_1_unknown_at']),
    )
  })

  it('of an effect: over three take-overs in vain', async () => {
    await orphan()
    const effects = here()
    for (const passes of ['1', '2', '3']) {
      const probe = () => Promise.reject(new Error(`no route ${passes}`))
      await until(async () => {
        await effects.run(charge({ probe, timeLimitMs: 1 }), never)
        return (await effectRow())['takeovers'] === passes
      })
    }
    expect(await effectRow()).toMatchObject({
      effect_type: 'charge',
      payload_hash: hashPayload('payload'),
      status: 'executing',
      unknown_reason: 'probe_failed',
      unknown_json: expect.stringContaining('no route 3'),
      unknown_at: expect.stringMatching(/^\d+$/),
    })
  })
})

describe('rule 13: pruning removes nothing without an outcome', () => {
  it('a message waits for its last delivery; an effect keeps its id, hash and status', async () => {
    await record.config('retention_ms', 1000)
    const crash = await crashedAttempt(record, { message: { to: [{ host: 'h1' }, { host: 'h2' }] } })
    await record.hub.cancel(crash.id.replace(/1$/, '2'), { actor: 'kim', reason: 'not needed' })
    const done = await acceptOne()
    const node = await restart(server, record, { mirror: crash.mirror })
    expect(await settlement(record, done.id)).toBe('done')
    await node.node.stop()
    await here().run(charge(), () => 'paid')
    await orphan('other')
    const pruned = { messages: 0, deliveries: 0, effects: 0 }
    await until(async () => {
      const reply = await record.functions.prune(100)
      for (const each of ['messages', 'deliveries', 'effects'] as const) pruned[each] += reply[each]
      return pruned.messages > 0 && pruned.effects > 0
    })
    expect(pruned).toEqual({ messages: 1, deliveries: 1, effects: 1 })
    await expect(record.hub.delivery(done.id)).rejects.toMatchObject({ code: 'DELIVERY_NOT_FOUND' })
    expect(await attemptsOf(record, crash)).toMatchObject([{ status: 'executing' }])
    expect(await record.hub.unknown()).toMatchObject([{ id: crash.attempt }])

    expect(await effectRow()).toMatchObject({ status: 'done', payload_hash: hashPayload('payload') })
    expect(await effectRow()).not.toHaveProperty('result')
    expect(await here().run(charge(), never)).toMatchObject({
      kind: 'result',
      value: { omitted: expect.stringContaining('the result was pruned at') },
      replayed: true,
    })
    expect(await here().run(charge({ id: 'other' }), never)).toMatchObject({ kind: 'outcome_unknown' })

    const word = { as: 'result', evidence: 'seen', force: true } as const
    await record.hub.resolveAttempt(crash.attempt, word, 'kim')
    await until(async () => (await record.functions.prune(100)).deliveries === 2)
    await expect(record.hub.delivery(crash.id)).rejects.toMatchObject({ code: 'DELIVERY_NOT_FOUND' })
  })
})
