import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import PgBoss from 'pg-boss'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startPostgres, whyNoPostgres } from '../../bench/postgres-server.mjs'
import type { Server } from '../../bench/server.mjs'
import { until } from '../support/until.js'
import { killedInTheMiddle } from './killed.js'

// "Beside others" of README.md says what pg-boss does: this runs it.

let server: Server
let boss: PgBoss
const errors: Error[] = []

beforeAll(async () => {
  const why = whyNoPostgres(tmpdir())
  if (why !== undefined) throw new Error(`${why}: run node scripts/ensure-server.mjs postgres`)
  server = await startPostgres(tmpdir())
  // It looks for what expired once a second; unless set, every two minutes.
  boss = new PgBoss({ connectionString: server.url, schedule: false, maintenanceIntervalSeconds: 1 })
  boss.on('error', (error) => errors.push(error))
  await boss.start()
})
afterAll(async () => {
  await boss?.stop({ graceful: false })
  await server?.stop()
  expect(errors).toEqual([])
})

async function dataIn(queue: string): Promise<object[]> {
  const jobs = await boss.fetch<object>(queue, { batchSize: 10 })
  return jobs.map(({ data }) => data)
}

it('a job that a killed worker was at is retried after it expired, where retries are left', async () => {
  await boss.createQueue('dying')
  const id = await boss.send('dying', {}, { expireInSeconds: 2, retryLimit: 1 })
  const startedAt = performance.now()
  expect(await killedInTheMiddle('pgboss-worker.mjs', server.url, 'dying')).toBe(id)

  const [again] = await until(
    async () => {
      const jobs = await boss.fetch('dying', { includeMetadata: true })
      return jobs.length > 0 ? jobs : null
    },
    { timeoutMs: 30_000, what: 'pg-boss giving the job out again' },
  )
  expect(performance.now() - startedAt).toBeGreaterThan(2000)
  expect(again).toMatchObject({ id, retryCount: 1 })
})

it('a job that a killed worker was at has failed when it expired, where no retry is left', async () => {
  await boss.createQueue('last')
  const id = (await boss.send('last', {}, { expireInSeconds: 1, retryLimit: 0 })) ?? ''
  expect(await killedInTheMiddle('pgboss-worker.mjs', server.url, 'last')).toBe(id)
  const failed = await until(
    async () => {
      const job = await boss.getJobById('last', id)
      return job?.state === 'failed' ? job : null
    },
    { timeoutMs: 30_000, what: 'the job failed' },
  )
  expect(failed.output).toEqual({ value: { message: 'job failed by timeout in active state' } })
  expect(await boss.fetch('last')).toEqual([])
})

it('a job has two retries and expires after 15 minutes unless set', async () => {
  await boss.createQueue('unset')
  const id = (await boss.send('unset', {})) ?? ''
  expect(await boss.getJobById('unset', id)).toMatchObject({ retryLimit: 2, expireIn: { minutes: 15 } })
})

it('another payload under the id of a job makes no second job', async () => {
  await boss.createQueue('keys')
  const id = randomUUID()
  expect(await boss.send('keys', { total: 10 }, { id })).toBe(id)
  expect(await boss.send('keys', { total: 99 }, { id })).toBeNull()
  expect(await dataIn('keys')).toEqual([{ total: 10 }])
  expect(await boss.send('keys', { total: 99 }, { id })).toBeNull() // it is being worked on
  expect(await dataIn('keys')).toEqual([])
})

it.each(['short', 'stately'] as const)(
  'a singleton key holds back a second job of a %s queue, until the first is taken',
  async (policy) => {
    await boss.createQueue(policy, { name: policy, policy })
    const key = { singletonKey: 'order-17' }
    expect(await boss.send(policy, { total: 10 }, key)).not.toBeNull()
    expect(await boss.send(policy, { total: 99 }, key)).toBeNull()
    expect(await dataIn(policy)).toEqual([{ total: 10 }])
    expect(await boss.send(policy, { total: 99 }, key)).not.toBeNull()
  },
)

it.each(['standard', 'singleton'] as const)(
  'a singleton key holds back no second job of a %s queue',
  async (policy) => {
    await boss.createQueue(policy, { name: policy, policy })
    const key = { singletonKey: 'order-17' }
    expect(await boss.send(policy, { total: 10 }, key)).not.toBeNull()
    expect(await boss.send(policy, { total: 99 }, key)).not.toBeNull()
    expect(await boss.getQueueSize(policy)).toBe(2)
  },
)

it('an id is remembered while the job is there: 12 hours after its end unless set', async () => {
  await boss.createQueue('kept')
  const id = randomUUID()
  await boss.send('kept', { total: 10 }, { id })
  await boss.fetch('kept')
  await boss.complete('kept', id)
  const againHoursAfterItsEnd = async (hours: number) => {
    const sql = `update pgboss.job set completed_on = now() - $2 * interval '1 hour' where id = $1`
    await boss.getDb().executeSql(sql, [id, hours])
    await boss.archive()
    return boss.send('kept', { total: 99 }, { id })
  }
  expect(await againHoursAfterItsEnd(0)).toBeNull()
  expect(await againHoursAfterItsEnd(11.9)).toBeNull()
  expect(await againHoursAfterItsEnd(12.1)).toBe(id)
  expect(await dataIn('kept')).toEqual([{ total: 99 }])
})
