import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSampling } from '../../src/http/history.js'
import { readerOf } from '../../src/record/reader.js'
import { call, startHubServer, type TestHubServer } from '../support/http.js'
import { makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// What the counts were lately, as a server samples them.

let server: TestServer
let record: TestRecord

beforeAll(async () => {
  server = await startTestServer()
  record = await makeRecord(server, 'history')
})
afterAll(async () => {
  await record?.close()
  await server?.stop()
})

test('a sample is taken at once, then every so often; the oldest go when there is no room', async () => {
  await record.acceptMany(4)
  const node = await record.join('a', 'n1')
  await record.claim(node)
  const sampling = startSampling({
    reader: readerOf(record.store, record.keys),
    keys: record.keys,
    everyMs: 5,
    keep: 3,
  })
  const first = await until(() => sampling.history().samples[0], { what: 'a sample' })
  expect(first).toMatchObject({ recipients: 4, done: 0, open: 0, held: 0, unknown: 0 })
  expect((first?.queued ?? 0) + (first?.inFlight ?? 0)).toBe(4)
  await until(() => (sampling.history().samples[0]?.at ?? 0) > (first?.at ?? 0), { what: 'a later oldest' })
  sampling.stop()
  const { everyMs, samples } = sampling.history()
  expect({ everyMs, kept: samples.length }).toEqual({ everyMs: 5, kept: 3 })
  expect(samples.map(({ at }) => at)).toEqual(samples.map(({ at }) => at).toSorted((a, b) => a - b))
})

test('a server shows what it sampled, and goes on where the record cannot be read', async () => {
  const hub: TestHubServer = await startHubServer(record)
  const history = async () =>
    (await call<{ everyMs: number; samples: { recipients: number }[] }>(hub.url, { path: '/v1/history' }))
      .json
  await until(async () => (await history()).samples.length > 0, { what: 'a sample' })
  expect(await history()).toMatchObject({ everyMs: 5000, samples: [{ recipients: 4 }] })
  await hub.close()
  const { keys } = record
  const reader = readerOf(record.store, keys)
  let isAway = true
  const flaky = {
    ...reader,
    all: async (commands: Parameters<typeof reader.all>[0]) => {
      if (isAway) throw new Error('away')
      return await reader.all(commands)
    },
  }
  const sampling = startSampling({ reader: flaky, keys, everyMs: 5 })
  isAway = false
  await until(() => sampling.history().samples.length > 0, { what: 'a sample after a failure' })
  sampling.stop()
})
