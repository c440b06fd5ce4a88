import { afterAll, beforeAll, expect, it } from 'vitest'
import { startSweeps } from '../../src/sweeps/index.js'
import { makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// `holdfast/sweeps`: a program that has a hub within it, and no server of ours, runs the sweeps itself.

let server: TestServer
let record: TestRecord

beforeAll(async () => {
  server = await startTestServer()
  record = await makeRecord(server, 'embedded')
})
afterAll(async () => {
  await record?.close()
  await server?.stop()
})

it('what falls due is dealt with while they run, and no more once they are stopped', async () => {
  const told: string[] = []
  const log = {
    info: (_: object, message: string) => void told.push(message),
    warn: (particulars: object) => void told.push(JSON.stringify(particulars)),
  }
  await record.config('sweep_deadlines_ms', 100)
  const sweeps = await startSweeps({ redis: server.url, hub: 'embedded', log })
  const { deliveries } = await record.accept({ to: [{ host: 'never' }], deliverBy: Date.now() + 500 })
  const id = deliveries[0]?.id ?? ''
  await until(async () => (await record.hub.delivery(id))?.state === 'failed', { timeoutMs: 20_000 })
  expect(new Set(told)).toEqual(new Set(['swept']))

  await sweeps.stop()
  await until(async () => !String(await record.send('CLIENT', 'LIST')).includes('holdfast-sweep'), {
    what: 'the connections of the sweeps gone',
  })
})

it('there is no record of that name: nothing is started', async () => {
  await expect(startSweeps({ redis: server.url, hub: 'nowhere' })).rejects.toMatchObject({
    code: 'STORE_UNKNOWN',
  })
})
