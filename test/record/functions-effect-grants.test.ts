import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
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
  await record.config('recovery_age_ms', 0)
})
afterEach(() => record.close())

type Answer = Readonly<Record<string, string>>
const hash = sha256('payload')
const call = async (verb: string, ...args: (string | number)[]): Promise<Answer> =>
  hashOf(await record.store.fcall(`hf_${verb}`, record.keys.tag, args))

const claim = (executor: string, grant: string) => call('claim_effect', 'e', 't', hash, executor, grant, '')
const takeOver = (from: Answer, executor: string, grant: string, payloadHash = hash) => {
  const { epoch = '', started_at: startedAt = '' } = from
  return call('take_over_effect', 'e', payloadHash, executor, grant, 'probe', epoch, startedAt, '')
}
const settle = (executor: string, grant: string, epoch: number | string, result = '1') =>
  call('settle_effect', 'e', executor, grant, epoch, 'result', result, '', '')

it('a grant belongs to one executor: another that shows it is not answered as its holder', async () => {
  const first = await claim('one', 'g1')
  expect(await claim('two', 'g1')).toMatchObject({ kind: 'outcome_unknown', executor: 'one' })
  expect(await claim('one', 'g2')).toMatchObject({ kind: 'outcome_unknown', executor: 'one' })
  expect(await takeOver(first, 'two', 'g2')).toMatchObject({ kind: 'claimed', epoch: 2 })
  expect(await takeOver(first, 'two', 'g2')).toMatchObject({ kind: 'claimed', epoch: 2, again: 1 })
  expect(await takeOver(first, 'three', 'g2')).toMatchObject({ kind: 'refused', code: 'STALE_EPOCH' })
  expect(await takeOver(first, 'two', 'g3')).toMatchObject({ kind: 'refused', code: 'STALE_EPOCH' })
})

it('a take-over names the payload of the effect', async () => {
  const first = await claim('one', 'g1')
  await record.refused('PAYLOAD_MISMATCH', () => takeOver(first, 'two', 'g2', sha256('other')))
})

it('one that never held a grant is told NOT_OWNER, or STALE_EPOCH where its epoch is over', async () => {
  await takeOver(await claim('one', 'g1'), 'two', 'g2')
  expect(await settle('three', 'g3', 1)).toMatchObject({ kind: 'refused', code: 'STALE_EPOCH' })
  expect(await settle('three', 'g3', 2)).toMatchObject({ kind: 'refused', code: 'NOT_OWNER' })
  expect(await settle('three', 'g3', 3)).toMatchObject({ kind: 'refused', code: 'NOT_OWNER' })
})

it('what an earlier grant says after the settlement is late, though it says the same; what it says anew too', async () => {
  await takeOver(await claim('one', 'g1'), 'two', 'g2')
  await settle('two', 'g2', 2)
  const late = () => record.send('HGET', record.keys.effect('e'), 'late')
  expect(await settle('one', 'g1', 1)).toMatchObject({ kind: 'refused', code: 'STALE_EPOCH' })
  expect(await late()).toBe('1')
  expect(await settle('two', 'g2', 2)).toMatchObject({ kind: 'settled', again: 1 })
  expect(await late()).toBe('1')
  expect(await settle('two', 'g2', 2, '2')).toMatchObject({ kind: 'refused', code: 'ALREADY_SETTLED' })
  expect(await late()).toBe('2')
})

it('the bodies of a settled effect stay for the retention', async () => {
  await claim('one', 'g1')
  await settle('one', 'g1', 1)
  await record.config('retention_ms', 60_000)
  expect(await record.functions.prune(100)).toMatchObject({ effects: 0 })
  const settledAt = Number(await record.send('HGET', record.keys.effect('e'), 'settled_at')) - 60_001
  await record.send('HSET', record.keys.effect('e'), 'settled_at', settledAt)
  const day = Math.floor(settledAt / 86_400_000)
  await record.send('RPUSH', record.keys.settledEffects(day), 'e')
  await record.send('SADD', record.keys.settledEffectDays, day)
  expect((await record.functions.prune(100)).effects).toBeGreaterThan(0)
})

it('a grant is for one try: a copy of its claim that comes when the effect is free again opens none', async () => {
  const first = await claim('one', 'g1')
  const notSent = ['e', 'one', 'g1', first['epoch'] ?? '', 'not_sent', '', 'busy', ''] as const
  expect(await call('settle_effect', ...notSent)).toMatchObject({ kind: 'settled', status: 'free' })
  const refusal = await record.refused('ALREADY_SETTLED', () => claim('one', 'g1'))
  expect(refusal).toContain('another needs a grant of its own')
  expect(await claim('two', 'g2')).toMatchObject({ kind: 'claimed', epoch: 2 })
})
