import { Queue, Worker } from 'bullmq'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { isHoldfastError } from '../../src/contract/errors.js'
import { makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// "Beside others" of README.md says what BullMQ and Holdfast do: this runs it, on one server.

let server: TestServer
let record: TestRecord
const closing: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  server = await startTestServer()
  record = await makeRecord(server, 'beside')
})
afterAll(async () => {
  for (const close of closing.reverse()) await close()
  await record.close()
  await server.stop()
})

const connection = () => ({ port: server.port, host: '127.0.0.1' })

function queueOf(name: string): Queue {
  const queue = new Queue(name, { connection: connection() })
  closing.push(() => queue.close())
  return queue
}

it('BullMQ ignores another payload under a job id; Holdfast refuses it under a key', async () => {
  const queue = queueOf('keys')
  await queue.add('charge', { total: 10 }, { jobId: 'order-17' })
  const again = await queue.add('charge', { total: 99 }, { jobId: 'order-17' })
  expect(again.id).toBe('order-17')
  expect((await queue.getJob('order-17'))?.data).toEqual({ total: 10 })
  expect(await queue.getWaitingCount()).toBe(1)
  // Remembered as long as the job is kept.
  await queue.remove('order-17')
  await queue.add('charge', { total: 99 }, { jobId: 'order-17' })
  expect((await queue.getJob('order-17'))?.data).toEqual({ total: 99 })

  await record.accept({ key: 'order-17', payload: '{"total":10}' })
  const changed = record.hub.accept({
    key: 'order-17',
    conversation: 'c1',
    sender: 'tests',
    to: [{ host: 'a' }],
    payload: '{"total":99}',
  })
  await expect(changed).rejects.toSatisfy((error) => isHoldfastError(error, 'IDEMPOTENCY_MISMATCH'))
})

const options = () => ({ connection: connection(), lockDuration: 300, stalledInterval: 300 })

/** As a process that was killed leaves a job: taken, its lock not renewed, never finished. */
async function takenByTheDead(name: string): Promise<string | undefined> {
  const dead = new Worker(name, null, { ...options(), skipLockRenewal: true })
  closing.push(() => dead.close(true))
  return (await dead.getNextJob('token-of-the-dead'))?.id
}

it('BullMQ fails what stalled more often than maxStalledCount', async () => {
  const queue = queueOf('stalled-once')
  await queue.add('charge', {}, { jobId: 'order-19' })
  expect(await takenByTheDead('stalled-once')).toBe('order-19')
  const heir = new Worker('stalled-once', async () => undefined, { ...options(), maxStalledCount: 0 })
  closing.push(() => heir.close())
  const job = () => queue.getJob('order-19')
  await until(async () => (await job())?.isFailed(), { timeoutMs: 30_000, what: 'BullMQ failing the job' })
  expect((await job())?.failedReason).toBe('job stalled more than allowable limit')
})

it('BullMQ runs again what a worker left in the middle; Holdfast lists it as unknown', async () => {
  const queue = queueOf('stalled')
  const runs: string[] = []
  await queue.add('charge', {}, { jobId: 'order-18' })
  expect(await takenByTheDead('stalled')).toBe('order-18')
  const heir = new Worker('stalled', async ({ id = '' }) => void runs.push(id), options())
  closing.push(() => heir.close())
  await until(() => runs.length === 1, { timeoutMs: 30_000, what: 'BullMQ running the job again' })

  const { deliveries } = await record.accept({ to: [{ host: 'b' }] })
  const id = deliveries[0]?.id ?? ''
  const node = await record.join('b', 'n1')
  const [claimed] = await record.deliverAll(node)
  if (claimed === undefined) throw new Error('nothing was claimed')
  await record.begin(node, claimed)
  const next = await record.join('b', 'n1', 2)
  expect(await record.claimAll(next)).toEqual([])
  await until(async () => (await record.hub.unknown()).some((entry) => entry.id === `${id}/1`), {
    timeoutMs: 30_000,
    what: 'Holdfast listing the attempt',
  })
})
