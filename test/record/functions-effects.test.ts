import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { EffectClaim, EffectStatus, EffectTakeOver } from '../../src/contract/effects.js'
import { effectStatuses } from '../../src/contract/effects.js'
import type { Outcome, OutcomeKind } from '../../src/contract/outcomes.js'
import { hashOf, type OpenRecord, openRecord, sha256 } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

let server: TestServer
let record: OpenRecord

beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server?.stop())
beforeEach(async () => {
  record = await openRecord(server)
})
afterEach(async () => {
  await checkEffects()
  await record.close()
})

const hash = sha256('payload')
const result: Outcome = { kind: 'result', result: '{"n":1.10}' }
const terminal: Outcome = { kind: 'terminal', errorCode: 'declined', errorJson: '{"why":1}' }
const notSent: Outcome = { kind: 'not_sent', errorCode: 'busy', errorJson: '{"try":"later"}' }
const unknown: Outcome = { kind: 'outcome_unknown', errorCode: 'timeout', errorJson: '{"after":30}' }
const outcomes: Record<OutcomeKind, Outcome> = {
  result,
  terminal,
  not_sent: notSent,
  outcome_unknown: unknown,
}
const statuses: Record<OutcomeKind, EffectStatus> = {
  result: 'done',
  terminal: 'terminal',
  not_sent: 'free',
  outcome_unknown: 'executing',
}

interface Grant {
  readonly id: string
  readonly executor: string
  readonly grant: string
  readonly epoch: number
  readonly startedAt: number
}

let grants = 0
const nonce = () => {
  grants += 1
  return `grant-${grants}`
}

const ask = (id: string, changes: Partial<EffectClaim> = {}) =>
  record.functions.claimEffect(id, {
    type: 'charge',
    payloadHash: hash,
    executor: 'one',
    grant: nonce(),
    ...changes,
  })

/** A claim that must win. */
async function claim(id = 'e', changes: Partial<EffectClaim> = {}): Promise<Grant> {
  const { executor = 'one', grant = nonce() } = changes
  const answer = await ask(id, { ...changes, executor, grant })
  if (answer.kind !== 'claimed') throw new Error(`not claimed: ${JSON.stringify(answer)}`)
  return { id, executor, grant, epoch: answer.epoch, startedAt: answer.startedAt }
}

const seize = (from: Grant, changes: Partial<EffectTakeOver> = {}) =>
  record.functions.takeOverEffect(from.id, {
    payloadHash: hash,
    executor: 'two',
    grant: nonce(),
    basis: 'probe',
    epoch: from.epoch,
    startedAt: from.startedAt,
    ...changes,
  })

/** A take-over that must win, of a row that is made old enough first. */
async function takeOver(from: Grant, changes: Partial<EffectTakeOver> = {}): Promise<Grant> {
  const { executor = 'two', grant = nonce() } = changes
  const startedAt = await age(from)
  const answer = await seize({ ...from, startedAt }, { ...changes, executor, grant })
  if (answer.kind !== 'claimed') throw new Error(`not taken over: ${JSON.stringify(answer)}`)
  return { id: from.id, executor, grant, epoch: answer.epoch, startedAt: answer.startedAt }
}

const settle = (by: Grant, outcome: Outcome, changes: Partial<Grant> = {}) => {
  const { id, executor, grant, epoch } = { ...by, ...changes }
  return record.functions.settleEffect(id, { executor, grant, epoch, outcome })
}

/** Moves the start back, as if the row were that old. */
async function age({ id, startedAt }: Grant, byMs = 100_000): Promise<number> {
  await record.send('HSET', record.keys.effect(id), 'started_at', startedAt - byMs)
  return startedAt - byMs
}

const rowOf = async (id = 'e') => hashOf(await record.send('HGETALL', record.keys.effect(id)))
const unknownList = () => record.send('ZRANGE', record.keys.unknown, 0, -1)
const counted = async (name: string) => Number((await record.send('HGET', record.keys.counts, name)) ?? 0)

/** The call must answer a refusal with this code, and must not have changed one byte of the record. */
async function refusedRow<Reply extends { readonly kind: string }>(code: string, call: () => Promise<Reply>) {
  const before = await record.dump()
  const answer = await call()
  expect(answer).toMatchObject({ kind: 'refused', code })
  expect(await record.dump(), `${code} changed the record`).toEqual(before)
  return answer
}

/** The call must answer well, and must not have changed one byte of the record. */
async function unchanged<Reply>(call: () => Promise<Reply>): Promise<Reply> {
  const before = await record.dump()
  const answer = await call()
  expect(await record.dump(), 'it changed the record').toEqual(before)
  return answer
}

/** Counts, lists and rows say the same. */
async function checkEffects(): Promise<void> {
  const ids = (await record.send('ZRANGE', record.keys.effects, 0, -1)) as string[]
  const rows = await Promise.all(ids.map(async (id) => ({ id, row: await rowOf(id) })))
  for (const status of effectStatuses) {
    const there = rows.filter(({ row }) => row['status'] === status).length
    expect(await counted(`effects_${status}`), `effects_${status}`).toBe(there)
  }
  const executing = rows.filter(({ row }) => row['status'] === 'executing')
  const listed = (await record.send('ZRANGE', record.keys.executing, 0, -1)) as string[]
  expect(listed.toSorted()).toEqual(executing.map(({ id }) => id).toSorted())
  const unresolved = executing.filter(({ row }) => row['unknown_reason'] !== undefined)
  const inList = (await unknownList()) as string[]
  expect(inList.toSorted()).toEqual(unresolved.map(({ id }) => `effect:${id}`).toSorted())
}

describe('rule 1: a claim is insert or lose', () => {
  it('lets exactly one of 50 parallel claims win; the others are told its row', async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, at) => ask('e', { grant: `g${at}`, executor: `x${at % 5}` })),
    )
    expect(answers.filter(({ kind }) => kind === 'claimed')).toHaveLength(1)
    const { executor, started_at: startedAt } = await rowOf()
    for (const answer of answers.filter(({ kind }) => kind !== 'claimed')) {
      expect(answer).toMatchObject({
        kind: 'outcome_unknown',
        executor,
        epoch: 1,
        startedAt: Number(startedAt),
      })
    }
  })

  it('answers the same grant of the same executor the same again, and writes nothing', async () => {
    const first = await claim('e', { grant: 'g' })
    const again = await unchanged(() => ask('e', { grant: 'g' }))
    expect(again).toEqual({ kind: 'claimed', epoch: first.epoch, startedAt: first.startedAt })
  })

  it('tells another executor with the same grant that the outcome is unknown', async () => {
    await claim('e', { grant: 'g' })
    const other = await unchanged(() => ask('e', { grant: 'g', executor: 'two' }))
    expect(other).toMatchObject({ kind: 'outcome_unknown', executor: 'one' })
  })

  it('tells later claims the record, byte for byte', async () => {
    await settle(await claim('r'), result)
    await settle(await claim('t'), terminal)
    expect(await unchanged(() => ask('r'))).toEqual({ kind: 'result', result: '{"n":1.10}', epoch: 1 })
    expect(await unchanged(() => ask('t'))).toEqual({
      kind: 'terminal',
      errorCode: 'declined',
      errorJson: '{"why":1}',
      epoch: 1,
    })
  })

  it.each(['a b', ' ', 'a/b//c', '%2F', '{x}', '}', '*?[]', `"'\\`, 'effect:e', 'x'.repeat(255)])(
    'keeps the id %j apart from every other',
    async (id) => {
      const mine = await claim(id)
      await settle(mine, unknown)
      expect(await unknownList()).toEqual([`effect:${id}`])
      expect(await claim(`${id.slice(0, 254)}~`)).toMatchObject({ epoch: 1 })
      expect(await settle(mine, result)).toMatchObject({ kind: 'settled', outcome: 'result' })
      expect(await ask(id)).toMatchObject({ kind: 'result' })
    },
  )

  it.each([
    ['id', () => ask('')],
    ['id', () => ask('é')],
    ['id', () => ask('x'.repeat(256))],
    ['type', () => ask('e', { type: '' })],
    ['payload_hash', () => ask('e', { payloadHash: hash.toUpperCase() })],
    ['payload_hash', () => ask('e', { payloadHash: hash.slice(1) })],
    ['grant', () => ask('e', { grant: 'a b' })],
    ['executor', () => ask('e', { executor: '' })],
    ['time_limit_ms', () => ask('e', { timeLimitMs: 1.5 })],
  ])('refuses a bad %s (%#)', async (_, call) => {
    await record.refused('INVALID_ARGUMENT', call)
  })
})

describe('rule 2: an id stands for one payload', () => {
  const settled: Record<EffectStatus, (grant: Grant) => Promise<unknown>> = {
    executing: async () => undefined,
    done: (grant) => settle(grant, result),
    terminal: (grant) => settle(grant, terminal),
    free: (grant) => settle(grant, notSent),
  }

  it.each(effectStatuses)('refuses another hash or type while it is %s; nothing changes', async (status) => {
    const mine = await claim()
    await settled[status](mine)
    const other = sha256('another payload')
    const text = await record.refused('PAYLOAD_MISMATCH', () => ask('e', { payloadHash: other }))
    expect(text).toContain(hash)
    await record.refused('PAYLOAD_MISMATCH', () => ask('e', { type: 'refund' }))
    await record.refused('PAYLOAD_MISMATCH', () =>
      ask('e', { payloadHash: other, grant: mine.grant, executor: mine.executor }),
    )
    await record.refused('PAYLOAD_MISMATCH', () => seize(mine, { payloadHash: other }))
  })
})

describe('rule 3: a settlement is conditional on the grant', () => {
  it('refuses a grant that never held the row', async () => {
    const mine = await claim()
    const told = await refusedRow('NOT_OWNER', () => settle(mine, result, { grant: 'other' }))
    expect(told).toMatchObject({ status: 'executing', epoch: 1, executor: 'one', startedAt: mine.startedAt })
  })

  it('refuses the grant in another executor’s mouth', async () => {
    const mine = await claim()
    await refusedRow('NOT_OWNER', () => settle(mine, result, { executor: 'two' }))
  })

  it.each([0, 2, 1_000_000])('refuses epoch %i where the row is at 1', async (epoch) => {
    const mine = await claim()
    await refusedRow('STALE_EPOCH', () => settle(mine, result, { epoch }))
  })

  it('refuses whoever lost the claim, and overwrites nothing that is settled', async () => {
    const mine = await claim()
    await ask('e', { executor: 'two', grant: 'lost' })
    const lost = { ...mine, executor: 'two', grant: 'lost' }
    for (const outcome of Object.values(outcomes)) await refusedRow('NOT_OWNER', () => settle(lost, outcome))
    await settle(mine, result)
    for (const outcome of Object.values(outcomes)) await refusedRow('NOT_OWNER', () => settle(lost, outcome))
  })

  it('takes a settlement of an executor that started again: name and grant count', async () => {
    const mine = await claim()
    const other = await openRecordOn(record.name)
    const answer = await other.functions.settleEffect('e', { ...mine, outcome: result })
    expect(answer).toEqual({ kind: 'settled', outcome: 'result', status: 'done', epoch: 1 })
    await other.close()
  })

  it('refuses an effect that was never claimed, and a body that is too large', async () => {
    const mine = await claim()
    await record.refused('EFFECT_NOT_FOUND', () => settle(mine, result, { id: 'other' }))
    await record.refused('EFFECT_NOT_FOUND', () =>
      seize(mine, {}).then(() => seize({ ...mine, id: 'other' })),
    )
    await record.refused('EFFECT_NOT_FOUND', () =>
      record.functions.resolveEffect('other', { as: 'result', evidence: 'seen' }, 'kim'),
    )
    await record.config('max_result_bytes', 256)
    const large = JSON.stringify('x'.repeat(255))
    await record.refused('RESULT_TOO_LARGE', () => settle(mine, { kind: 'result', result: large }))
    await record.refused('RESULT_TOO_LARGE', () =>
      settle(mine, { kind: 'terminal', errorCode: 'x', errorJson: large }),
    )
    expect(await settle(mine, { kind: 'result', result: large.slice(1) })).toMatchObject({ status: 'done' })
  })
})

/** A second connection to the record. */
const openRecordOn = (name: string) => openRecord(server, { name, init: false })

describe('rule 4: a take-over is compare-and-set, on a basis', () => {
  it.each([
    ['epoch', { epoch: 2 }],
    ['start', { startedAt: 1 }],
  ])('refuses another %s than the row’s, and tells the row', async (_, changes) => {
    const mine = await claim()
    const startedAt = await age(mine)
    const told = await refusedRow('STALE_EPOCH', () => seize({ ...mine, startedAt }, changes))
    expect(told).toMatchObject({ status: 'executing', epoch: 1, startedAt, executor: 'one' })
  })

  it.each(['', 'age', 'PROBE'])('refuses the basis %j', async (basis) => {
    const mine = await claim()
    const startedAt = await age(mine)
    await refusedRow('NOT_RECOVERABLE', () => seize({ ...mine, startedAt }, { basis: basis as 'probe' }))
  })

  it.each(['result', 'terminal', 'not_sent'] as const)('refuses a row settled as %s', async (kind) => {
    const mine = await claim()
    await settle(mine, outcomes[kind])
    const told = await refusedRow('STALE_EPOCH', () => seize(mine))
    expect(told).toMatchObject({ status: statuses[kind], epoch: 1 })
  })

  it('lets one of 8 parallel recoverers proceed; the others are told the new row', async () => {
    const mine = await claim()
    const startedAt = await age(mine)
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, at) => seize({ ...mine, startedAt }, { executor: `x${at}` })),
    )
    const [won, ...more] = answers.filter(({ kind }) => kind === 'claimed')
    expect(more).toEqual([])
    expect(won).toMatchObject({ epoch: 2 })
    const row = await rowOf()
    for (const answer of answers.filter((each) => each !== won)) {
      expect(answer).toMatchObject({
        kind: 'refused',
        code: 'STALE_EPOCH',
        status: 'executing',
        epoch: 2,
        executor: row['executor'],
        startedAt: Number(row['started_at']),
      })
    }
    expect(row).toMatchObject({ takeovers: '1', taken_from: 'one#1', unresolved: mine.grant, basis: 'probe' })
    expect(await counted('effect_takeovers_probe')).toBe(1)
  })

  it('answers the recoverer’s repeated call the same, and writes nothing', async () => {
    const mine = await claim()
    const startedAt = await age(mine)
    const call = () => seize({ ...mine, startedAt }, { grant: 'g2' })
    const first = await call()
    expect(first).toMatchObject({ kind: 'claimed', epoch: 2 })
    expect(await unchanged(call)).toEqual(first)
  })

  it('leaves the former owner without the row', async () => {
    const mine = await claim()
    const theirs = await takeOver(mine)
    expect(await ask('e', { grant: mine.grant })).toMatchObject({ kind: 'outcome_unknown', executor: 'two' })
    expect(await settle(mine, result)).toMatchObject({ kind: 'refused', code: 'STALE_EPOCH', epoch: 2 })
    expect(await settle(theirs, terminal)).toMatchObject({ kind: 'settled', status: 'terminal', epoch: 2 })
  })
})

describe('rule 5: age alone licenses nothing', () => {
  it('tells a claim on an executing effect what there is to know', async () => {
    const mine = await claim()
    const startedAt = await age(mine, 5000)
    const answer = await unchanged(() => ask('e', { executor: 'two' }))
    expect(answer).toEqual({
      kind: 'outcome_unknown',
      epoch: 1,
      startedAt,
      executor: 'one',
      ageMs: expect.any(Number),
    })
    expect('ageMs' in answer && answer.ageMs).toBeGreaterThanOrEqual(5000)
    expect('ageMs' in answer && answer.ageMs).toBeLessThan(15_000)
  })

  it.each([
    ['recovery_age_ms', 60_000, undefined],
    ['the time limit of its claim', 0, 60_000],
  ])('is too young before %s', async (_, recoveryAgeMs, timeLimitMs) => {
    await record.config('recovery_age_ms', recoveryAgeMs)
    const mine = await claim('e', { timeLimitMs })
    for (const byMs of [0, 50_000]) {
      const startedAt = await age(mine, byMs)
      const told = await refusedRow('TOO_YOUNG', () => seize({ ...mine, startedAt }))
      expect(told).toMatchObject({ detail: expect.stringContaining('60000 ms'), startedAt })
    }
    const startedAt = await age(mine, 60_000)
    expect(await seize({ ...mine, startedAt })).toMatchObject({ kind: 'claimed', epoch: 2 })
  })

  it('counts anew from a take-over, with the time limit of that', async () => {
    await record.config('recovery_age_ms', 0)
    const second = await takeOver(await claim(), { timeLimitMs: 70_000 })
    await refusedRow('TOO_YOUNG', () => seize(second))
    expect(await takeOver(second, { executor: 'three' })).toMatchObject({ epoch: 3 })
    expect(await rowOf()).toMatchObject({ takeovers: '2', taken_from: 'two#2', time_limit_ms: '0' })
  })

  it('lists an effect that nobody settles as overdue, once somebody asks', async () => {
    const mine = await claim()
    await age(mine, 1_000_000)
    expect(await ask('e', { executor: 'two' })).toMatchObject({ kind: 'outcome_unknown' })
    expect(await unknownList()).toEqual(['effect:e'])
    expect(await rowOf()).toMatchObject({ status: 'executing', unknown_reason: 'overdue' })
    await unchanged(() => ask('e', { executor: 'two' }))
  })
})

describe('rule 7: not_sent frees only if no earlier grant is unresolved', () => {
  it('frees the row of the first grant: hash and epoch stay', async () => {
    const mine = await claim()
    expect(await settle(mine, notSent)).toEqual({
      kind: 'settled',
      outcome: 'not_sent',
      status: 'free',
      epoch: 1,
    })
    expect(await rowOf()).toMatchObject({ status: 'free', payload_hash: hash, epoch: '1' })
    expect(await claim()).toMatchObject({ epoch: 2 })
  })

  it('stays executing and listed after an idempotent take-over', async () => {
    const theirs = await takeOver(await claim(), { basis: 'idempotent' })
    expect(await settle(theirs, notSent)).toEqual({
      kind: 'settled',
      outcome: 'outcome_unknown',
      status: 'executing',
      epoch: 2,
    })
    expect(await unknownList()).toEqual(['effect:e'])
    expect(await ask('e')).toMatchObject({ kind: 'outcome_unknown', executor: 'two' })
  })

  it('frees after a probe take-over: it was asked after the old grant had ended', async () => {
    const theirs = await takeOver(await claim())
    expect(await settle(theirs, notSent)).toMatchObject({ outcome: 'not_sent', status: 'free' })
    expect(await claim()).toMatchObject({ epoch: 3 })
  })

  it('frees once the earlier grant itself has said not_sent', async () => {
    const mine = await claim()
    const theirs = await takeOver(mine, { basis: 'idempotent' })
    await settle(theirs, notSent)
    expect(await settle(mine, notSent)).toMatchObject({ kind: 'refused', code: 'STALE_EPOCH' })
    expect(await rowOf()).toMatchObject({ status: 'executing', unresolved: '', late: '1' })
    expect(await settle(theirs, notSent)).toMatchObject({ outcome: 'not_sent', status: 'free' })
  })

  it('waits for every earlier grant, not for one of them', async () => {
    const first = await claim()
    const second = await takeOver(first, { basis: 'idempotent' })
    const third = await takeOver(second, { basis: 'idempotent', executor: 'three' })
    expect(await rowOf()).toMatchObject({ unresolved: `${first.grant} ${second.grant}` })
    await settle(second, notSent)
    expect(await settle(third, notSent)).toMatchObject({ outcome: 'outcome_unknown' })
    await settle(first, notSent)
    expect(await settle(third, notSent)).toMatchObject({ outcome: 'not_sent' })
  })

  it.each([result, terminal, unknown])('an earlier grant’s late $kind resolves nothing', async (outcome) => {
    const mine = await claim()
    const theirs = await takeOver(mine, { basis: 'idempotent' })
    await settle(mine, outcome)
    expect(await settle(theirs, notSent)).toMatchObject({ outcome: 'outcome_unknown' })
  })

  it('never uses an epoch again, over many frees and claims', async () => {
    const epochs: number[] = []
    for (let round = 0; round < 5; round += 1) {
      const mine = await claim('e', { executor: `x${round}` })
      epochs.push(mine.epoch)
      await settle(mine, notSent)
      await refusedRow('NOT_OWNER', () => settle(mine, result, { grant: 'other' }))
    }
    expect(epochs).toEqual([1, 2, 3, 4, 5])
  })

  it('tells nothing of an earlier try once the row is open again, or settled', async () => {
    await settle(await claim(), notSent)
    const second = await claim()
    const row = await rowOf()
    for (const field of ['outcome', 'settled_at', 'error_json']) expect(row[field], field).toBeUndefined()
    await settle(second, { kind: 'terminal', errorCode: 'declined' })
    expect(await ask('e')).toEqual({ kind: 'terminal', errorCode: 'declined', epoch: 2 })
  })
})

describe('rule 9: duplicates and what comes too late', () => {
  it.each(['result', 'terminal', 'not_sent', 'outcome_unknown'] as const)(
    'answers a repeated %s the same, and writes nothing',
    async (kind) => {
      const mine = await claim()
      const first = await settle(mine, outcomes[kind])
      expect(await unchanged(() => settle(mine, outcomes[kind]))).toEqual(first)
    },
  )

  it('refuses other content as ALREADY_SETTLED; it is counted and kept', async () => {
    const mine = await claim()
    await settle(mine, result)
    const second: Outcome = { kind: 'result', result: '{"n":2}' }
    expect(await settle(mine, second)).toMatchObject({
      kind: 'refused',
      code: 'ALREADY_SETTLED',
      status: 'done',
    })
    expect(await settle(mine, terminal)).toMatchObject({ kind: 'refused', code: 'ALREADY_SETTLED' })
    expect(await rowOf()).toMatchObject({
      status: 'done',
      result: '{"n":1.10}',
      late: '2',
      late_1: expect.stringMatching(new RegExp(`^result .*${mine.grant} `)),
      late_1_body: '{"n":2}',
      late_2: expect.stringMatching(/^terminal declined /),
      late_2_body: '{"why":1}',
    })
    expect(await counted('late_reports')).toBe(2)
  })

  it('keeps the first five late reports and counts them all', async () => {
    const mine = await claim()
    await settle(mine, result)
    for (let n = 0; n < 7; n += 1) await settle(mine, { kind: 'result', result: `"${n}"` })
    const row = await rowOf()
    expect(row).toMatchObject({ late: '7', late_5_body: '"4"', result: '{"n":1.10}' })
    expect(row['late_6']).toBeUndefined()
  })

  it('keeps what a superseded grant says, and overwrites nothing', async () => {
    const mine = await claim()
    const theirs = await takeOver(mine)
    expect(await settle(mine, result)).toMatchObject({
      kind: 'refused',
      code: 'STALE_EPOCH',
      executor: 'two',
    })
    expect(await rowOf()).toMatchObject({ status: 'executing', executor: 'two', late_1_body: '{"n":1.10}' })
    await settle(theirs, terminal)
    await settle(mine, result)
    expect(await rowOf()).toMatchObject({ status: 'terminal', late: '2' })
  })

  it('keeps what an earlier grant says after the row was freed and claimed again', async () => {
    const first = await claim()
    const second = await takeOver(first)
    await settle(second, notSent)
    expect(await settle(first, result)).toMatchObject({
      kind: 'refused',
      code: 'STALE_EPOCH',
      status: 'free',
    })
    await claim('e', { executor: 'three' })
    await refusedRow('STALE_EPOCH', () => settle(second, notSent))
    await settle(second, terminal)
    expect(await rowOf()).toMatchObject({
      status: 'executing',
      executor: 'three',
      late: '2',
      late_1_body: '{"n":1.10}',
      late_2_body: '{"why":1}',
    })
  })

  it('takes unknown first and the result later', async () => {
    const mine = await claim()
    expect(await settle(mine, unknown)).toMatchObject({ outcome: 'outcome_unknown', status: 'executing' })
    expect(await unknownList()).toEqual(['effect:e'])
    expect(await rowOf()).toMatchObject({ unknown_reason: 'timeout', unknown_json: '{"after":30}' })
    expect(await settle(mine, result)).toMatchObject({ outcome: 'result', status: 'done' })
    expect(await unknownList()).toEqual([])
    expect(await ask('e')).toMatchObject({ kind: 'result' })
  })

  it('takes an unknown effect off the list when somebody takes it over', async () => {
    const mine = await claim()
    await settle(mine, unknown)
    await takeOver(mine)
    expect(await unknownList()).toEqual([])
  })
})

describe('an operator resolves what nobody else can know', () => {
  const resolve = (as: 'result' | 'terminal' | 'not_sent', more: { force?: boolean; result?: string } = {}) =>
    record.functions.resolveEffect('e', { as, evidence: 'the bank says so', ...more }, 'kim')

  it.each(['result', 'terminal', 'not_sent'] as const)('as %s, kept with actor and evidence', async (as) => {
    await settle(await claim(), unknown)
    expect(await resolve(as)).toEqual({ kind: 'settled', outcome: as, status: statuses[as], epoch: 1 })
    expect(await rowOf()).toMatchObject({
      status: statuses[as],
      outcome: as,
      resolved_by: 'kim',
      evidence: 'the bank says so',
    })
    expect(await unknownList()).toEqual([])
  })

  it('with a result that later claims are told', async () => {
    await settle(await claim(), unknown)
    await resolve('result', { result: '{"id":7}' })
    expect(await ask('e')).toEqual({ kind: 'result', result: '{"id":7}', epoch: 1 })
  })

  it('not while its executor may live, unless forced', async () => {
    const mine = await claim()
    await record.refused('EXECUTING', () => resolve('result'))
    expect(await resolve('terminal', { force: true })).toMatchObject({ status: 'terminal' })
    expect(await settle(mine, result)).toMatchObject({ kind: 'refused', code: 'ALREADY_SETTLED' })
    expect(await rowOf()).toMatchObject({ status: 'terminal', late_1_body: '{"n":1.10}' })
  })

  it('not twice, and nothing that is settled', async () => {
    await settle(await claim(), unknown)
    await resolve('not_sent')
    for (const as of ['result', 'not_sent'] as const) {
      await record.refused('ALREADY_SETTLED', () => resolve(as, { force: true }))
    }
  })

  it('not without evidence, nor as something else', async () => {
    await settle(await claim(), unknown)
    await record.refused('INVALID_ARGUMENT', () =>
      record.functions.resolveEffect('e', { as: 'result', evidence: '' }, 'kim'),
    )
    await record.refused('INVALID_ARGUMENT', () => resolve('outcome_unknown' as 'result'))
  })

  it('frees the row although earlier grants are unresolved', async () => {
    const theirs = await takeOver(await claim(), { basis: 'idempotent' })
    await settle(theirs, notSent)
    expect(await resolve('not_sent')).toMatchObject({ status: 'free' })
    expect(await settle(await claim(), notSent)).toMatchObject({ outcome: 'not_sent', status: 'free' })
  })
})

describe('four outcomes never collapse', () => {
  const kinds = ['result', 'terminal', 'not_sent', 'outcome_unknown'] as const
  const ways = ['first', 'duplicate', 'after a take-over'] as const
  const table = kinds.flatMap((kind) => ways.map((way) => [kind, way] as const))

  it.each(table)('%s, %s', async (kind, way) => {
    const first = await claim()
    const mine = way === 'after a take-over' ? await takeOver(first) : first
    if (way === 'duplicate') await settle(mine, outcomes[kind])
    const answer = await settle(mine, outcomes[kind])
    expect(answer).toEqual({ kind: 'settled', outcome: kind, status: statuses[kind], epoch: mine.epoch })
    expect((await rowOf())['status']).toBe(statuses[kind])
    expect(await unknownList()).toEqual(kind === 'outcome_unknown' ? ['effect:e'] : [])
    const told = await ask('e', { executor: 'three' })
    expect(told.kind).toBe(kind === 'not_sent' ? 'claimed' : kind)
  })
})
