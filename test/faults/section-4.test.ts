import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createEffects, type EffectAttempt, type EffectRequest } from '../../src/client/effects.js'
import { hashPayload } from '../../src/contract/payload-hash.js'
import { type Child, killChildren, type Line, type RunEffect, startEffectsProcess } from '../support/child.js'
import { freshPath, stopNodes } from '../support/nodes.js'
import { hashOf, makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// The rules of contract section 4 on effects, with real processes: they are killed and stopped between claim and
// settlement, and raced from a barrier. What one caller is told is in test/record and test/client.

let server: TestServer
let record: TestRecord
let marks: string
/** The effect of the test. */
let id = ''
let ids = 0
const idle: Child[] = []

beforeAll(async () => {
  server = await startTestServer()
  record = await makeRecord(server, 'rules', { recovery_age_ms: 0 })
  marks = freshPath('marks')
  writeFileSync(marks, '')
})
afterAll(async () => {
  await killChildren()
  await stopNodes()
  await record?.checkInvariants()
  await record?.close()
  await server?.stop()
})
beforeEach(() => {
  ids += 1
  id = `case-${ids}.`
})

/** Processes that run effects: used again, unless they were killed. */
async function executors(count: number): Promise<Child[]> {
  const found = idle.splice(0, count)
  while (found.length < count) {
    processes += 1
    found.push(startEffectsProcess({ redis: server.url, hub: record.name, executor: `p${processes}`, marks }))
  }
  await Promise.all(found.map((each) => each.line('started')))
  return found
}
let processes = 0

type Command = Omit<RunEffect, 'run' | 'at'>
type At = NonNullable<RunEffect['at']>

/** Runs the effect in another process. */
async function elsewhere(command: Command = {}): Promise<Line> {
  const [child] = await executors(1)
  if (child === undefined) throw new Error('no process')
  const answer = await child.ask({ ...command, run: id })
  idle.push(child)
  return answer
}

/** Runs the effect in a process that is killed there. */
async function killed(point: At['point'], command: Command = {}): Promise<void> {
  const [child] = await executors(1)
  const answer = child?.ask({ ...command, run: id, at: { point, signal: 'SIGKILL' } })
  await expect(answer).rejects.toThrow('ended before')
  expect(await child?.ended).toBe('SIGKILL')
}

/** Runs the effect in a process that is stopped there; the answer lets it go on. */
async function stopped(point: At['point'], command: Command = {}): Promise<() => Promise<Line>> {
  const [child] = await executors(1)
  if (child === undefined) throw new Error('no process')
  const before = child.lines.length
  const answer = child.ask({ ...command, run: id, at: { point, signal: 'SIGSTOP' } })
  await until(() => child.lines.slice(before).some((line) => line['hit'] === point))
  return async () => {
    await child.goOn()
    const line = await answer
    idle.push(child)
    return line
  }
}

const here = (recoveryAgeMs = 0) => createEffects(record.hub, { executor: 'here', recoveryAgeMs })
const charge = (changes: Partial<EffectRequest> = {}): EffectRequest => ({
  id,
  type: 'charge',
  payload: 'payload',
  ...changes,
})
const probe = (kind: 'not_executed' | 'unknown') => () => ({ kind })
const never = (): never => {
  throw new Error('it was executed')
}
const rowOf = async (of = id) => hashOf(await record.send('HGETALL', record.keys.effect(of)))
/** Which effects of this name were executed in processes, as often as they were. */
const marked = (name = id) =>
  readFileSync(marks, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith(name))

/** As if the row were that much older: what a jump of Redis's clock does. */
const age = (byMs = 1_000_000_000) => record.send('HINCRBY', record.keys.effect(id), 'started_at', -byMs)

/** Runs it here until it is done: it may be too young to be taken over at first. */
function doneHere(changes: Partial<EffectRequest>, execute: (effect: EffectAttempt) => unknown) {
  const effects = here()
  return until(async () => {
    const outcome = await effects.run(charge(changes), execute)
    return outcome.kind === 'result' ? outcome : undefined
  })
}

const rounds = 1000

/** Every round is a barrier: the same effect is asked of all processes at once. Some rounds are under way at a time. */
async function race(racers: readonly Child[], commandOf: (round: number) => RunEffect): Promise<Line[][]> {
  const answers: Line[][] = []
  const lane = async (first: number) => {
    for (let round = first; round < rounds; round += 6) {
      const command = commandOf(round)
      answers[round] = await Promise.all(racers.map((each) => each.ask(command)))
    }
  }
  await Promise.all(Array.from({ length: 6 }, (_, first) => lane(first)))
  idle.push(...racers)
  return answers
}

function expectOneMarkEach(name: string): void {
  const found = marked(name)
  expect(found).toHaveLength(rounds)
  expect(new Set(found).size).toBe(rounds)
}

describe('rule 1: a claim is insert or lose', () => {
  it(`over ${rounds} rounds of four processes, each effect is executed once, by one of them`, async () => {
    const four = await executors(4)
    const answers = await race(four, (round) => ({ run: `new ${round}` }))
    for (const round of answers) {
      expect(round.filter(({ executed }) => executed === 1)).toHaveLength(1)
      for (const { outcome } of round) {
        expect(outcome).toMatchObject({ kind: expect.stringMatching(/^(result|outcome_unknown)$/) })
      }
    }
    expectOneMarkEach('new ')
    expect((await record.hub.effectPage({ executing: true })).entries).toEqual([])
  })

  it('exactly one of eight grants opens an attempt', async () => {
    const node = await record.join('h1', 'a')
    await record.acceptMany(20, { to: [{ host: 'h1' }] })
    for (const { id, epoch } of await record.deliverAll(node)) {
      const grants = Array.from({ length: 8 }, (_, at) => `grant-${at}`)
      const begin = async (grant: string) => (await record.functions.begin(node, [{ id, epoch, grant }]))[0]
      const answers = await Promise.all(grants.map(begin))
      expect(answers.filter((answer) => answer?.ok)).toHaveLength(1)
      expect(answers.filter((answer) => answer?.ok === false && answer.code === 'GRANT_OPEN')).toHaveLength(7)
    }
  })
})

describe('rule 2: an id stands for one payload', () => {
  it('also where its executor was killed: nothing runs under another, and nothing changes', async () => {
    await killed('marked')
    const before = await record.dump()
    const other = charge({ payload: 'other', idempotent: true })
    await expect(here().run(other, never)).rejects.toMatchObject({ code: 'PAYLOAD_MISMATCH' })
    expect(await elsewhere({ payload: 7, probeSays: 'not_executed' })).toMatchObject({
      threw: 'PAYLOAD_MISMATCH',
      executed: 0,
    })
    expect(await record.dump()).toEqual(before)
  })
})

describe('rule 3: whoever lost the claim cannot settle', () => {
  it('an executor that is stopped after its last byte, and taken over, is evidence only', async () => {
    const wake = await stopped('marked', { timeLimitMs: 200 })
    const settled = await doneHere({ probe: () => ({ kind: 'result', value: 'probed' }) }, never)
    expect(settled).toMatchObject({ value: 'probed' })
    expect(await wake()).toMatchObject({ executed: 1, outcome: { kind: 'outcome_unknown', epoch: 2 } })
    expect(await rowOf()).toMatchObject({
      status: 'done',
      result: '"probed"',
      executor: 'here',
      late: '1',
      late_1: expect.stringMatching(/^result /),
      late_1_body: expect.stringMatching(/^"p\d+"$/),
    })
    expect(marked()).toEqual([id])
  })
})

describe('rule 4: of several recoverers one proceeds', () => {
  it(`over ${rounds} rounds of four processes, each stale effect is taken over once`, async () => {
    const claim = { type: 'charge', payloadHash: hashPayload('payload'), executor: 'gone' }
    const stale = Array.from({ length: rounds }, (_, round) => `stale ${round}`)
    const claims = await Promise.all(
      stale.map((each, at) => record.hub.claimEffect(each, { ...claim, grant: `gone-${at}` })),
    )
    const four = await executors(4)
    const answers = await race(four, (round) => {
      const seen = claims[round]
      if (seen?.kind !== 'claimed') throw new Error('the stale effect was not made')
      const takeOver = { epoch: seen.epoch, startedAt: seen.startedAt }
      const ways: Command[] = [{ idempotent: true }, { probeSays: 'not_executed' }, { takeOver }]
      return { run: `stale ${round}`, ...ways[round % 3] }
    })
    for (const round of answers) {
      expect(round.filter(({ executed }) => executed === 1)).toHaveLength(1)
      const lost = round.filter(({ executed }) => executed === 0).map(({ outcome }) => outcome)
      const [won] = round.flatMap(({ executed, outcome }) => (executed === 1 ? [outcome] : []))
      const { value: winner } = won as { value: string }
      for (const outcome of lost) {
        const { kind } = outcome as { kind: string }
        // Whoever came after the settlement is told its result; the others are told the new row.
        expect(outcome).toMatchObject(kind === 'result' ? { value: winner } : { epoch: 2, executor: winner })
      }
    }
    expectOneMarkEach('stale ')
    const rows = await Promise.all(stale.map((each) => rowOf(each)))
    expect(rows.filter((row) => row['takeovers'] === '1' && row['epoch'] === '2')).toHaveLength(rounds)
  })
})

describe('rule 5: age alone licenses nothing', () => {
  it('a killed executor: others are told so, and nothing runs again, however old it gets', async () => {
    await killed('marked')
    for (let round = 0; round < 2; round += 1) {
      const told = { kind: 'outcome_unknown', epoch: 1, executor: expect.stringMatching(/^p/) }
      expect(await here().run(charge(), never)).toMatchObject(told)
      expect(await elsewhere()).toMatchObject({ executed: 0, outcome: told })
      await age()
    }
    expect(marked()).toEqual([id])
    expect(await rowOf()).toMatchObject({ status: 'executing', unknown_reason: 'overdue', epoch: '1' })
  })

  it('with a basis not before its time limit, then once', async () => {
    await killed('owned', { timeLimitMs: 600_000 })
    expect(await here().run(charge({ probe: probe('not_executed') }), never)).toMatchObject({ epoch: 1 })
    await age(600_000)
    const outcome = await here().run(charge({ probe: probe('not_executed') }), ({ epoch }) => epoch)
    expect(outcome).toMatchObject({ kind: 'result', value: 2, replayed: false })
    expect(await here().run(charge({ idempotent: true }), never)).toMatchObject({ replayed: true })
  })

  it('a jump of the clock of Redis licenses nothing: each process has watched for itself', async () => {
    await killed('owned', { timeLimitMs: 1000 })
    await age()
    expect(await here(60_000).run(charge({ idempotent: true }), never)).toMatchObject({ epoch: 1 })
    const answer = await elsewhere({ probeSays: 'not_executed', recoveryAgeMs: 60_000 })
    expect(answer).toMatchObject({ executed: 0, outcome: { kind: 'outcome_unknown', epoch: 1 } })
    expect(await rowOf()).toMatchObject({ executor: expect.stringMatching(/^p/), epoch: '1' })
  })
})

describe('rule 6: take over first, then probe', () => {
  it('a recoverer that is killed while it asks is taken over in turn; it happened once', async () => {
    await killed('marked')
    await age()
    await killed('probing', { probeSays: 'not_executed', timeLimitMs: 1 })
    expect(await rowOf()).toMatchObject({ status: 'executing', epoch: '2', takeovers: '1' })
    const asked: number[] = []
    const ask = ({ epoch }: EffectAttempt) => {
      asked.push(epoch)
      return { kind: 'result', value: 'paid' } as const
    }
    expect(await doneHere({ probe: ask }, never)).toMatchObject({ value: 'paid' })
    expect(asked).toEqual([3])
    expect(marked()).toEqual([id])
  })

  it.each<[string, Omit<RunEffect, 'run'>, number]>([
    ['an executor', {}, 2],
    ['a recoverer by probe', { probeSays: 'not_executed' }, 3],
    ['a recoverer by declaration', { idempotent: true }, 3],
  ])(
    '%s that is stopped past its age, and taken over, never writes its first byte',
    async (_, how, epoch) => {
      if (epoch === 3) await killed('owned', { timeLimitMs: 1 })
      const wake = await stopped('owned', { timeLimitMs: 300, ...how })
      const executed: number[] = []
      await doneHere({ probe: probe('not_executed') }, (effect) => executed.push(effect.epoch))
      expect(await wake()).toMatchObject({ executed: 0, outcome: { kind: 'outcome_unknown' } })
      expect([marked(), executed]).toEqual([[], [epoch]])
      expect(await rowOf()).toMatchObject({ status: 'done', executor: 'here', epoch: `${epoch}` })
    },
  )

  it('an executor that is stopped past its age, and not taken over, gives up as not sent', async () => {
    const wake = await stopped('owned', { timeLimitMs: 300 })
    await sleep(350) // the stall itself
    const outcome = { kind: 'not_sent', errorCode: 'grant_too_old' }
    expect(await wake()).toMatchObject({ executed: 0, outcome })
    expect(marked()).toEqual([])
    expect(await rowOf()).toMatchObject({ status: 'free', error_code: 'grant_too_old' })
    expect(await here().run(charge(), ({ epoch }) => epoch)).toMatchObject({ value: 2, replayed: false })
  })
})
