import { afterAll, beforeAll, expect, it } from 'vitest'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// Answers that wait for replicas, on a server that has none. With replicas: test/topology/replicas.test.ts.

let server: TestServer
let record: OpenRecord
beforeAll(async () => {
  server = await startTestServer()
  record = await openRecord(server, { name: 'waiting' })
  await record.config('wait_replicas', 1)
})
afterAll(async () => {
  await record?.close()
  await server?.stop()
})

it('nothing is answered for that no replica has, and everything of it is in the record all the same', async () => {
  await record.config('wait_replicas_ms', 20)
  await expect(record.accept({ key: 'k' })).rejects.toThrow(
    /^NOT_REPLICATED 0 of 1 replicas had it within 20 ms/,
  )
  await expect(record.functions.pause('host:a', 'tests', 'kim')).rejects.toMatchObject({
    code: 'NOT_REPLICATED',
  })
  const node = await record.join('a', 'n')
  await expect(record.claim(node)).rejects.toMatchObject({ code: 'NOT_REPLICATED' })
  expect(await record.send('HGET', record.keys.counts, 'recipients')).toBe('1')
  expect(await record.send('HLEN', record.keys.fences)).toBe(1)
})

it('joins, heartbeats and reads are answered without any', async () => {
  const node = await record.join('a', 'm')
  await record.functions.heartbeat(node, {
    lastLogId: '0-0',
    progressAgeMs: 0,
    blocking: { sumMs: 0, longestMs: 0 },
  })
  expect(await record.functions.tally()).toMatchObject({ queued: 1 })
})

it('a bad value is the default: nothing is waited for', async () => {
  await record.config('wait_replicas', 'all')
  expect(await record.accept({ key: 'free' })).toMatchObject({ replayed: false })
  await record.config('wait_replicas', 1)
})

it('one that is demoted while it waits has not answered either', async () => {
  await record.config('wait_replicas_ms', 4000)
  const accepting = record.accept({ key: 'demoted' }).catch((error: unknown) => error)
  await until(async () => / cmd=wait /.test(server.cli('CLIENT', 'LIST')), { what: 'the call waiting' })
  server.cli('REPLICAOF', '127.0.0.1', '1')
  expect(String(await accepting)).toMatch(
    /^HoldfastError: NOT_REPLICATED whether replicas have it is not known/,
  )
  server.cli('REPLICAOF', 'NO', 'ONE')
})
