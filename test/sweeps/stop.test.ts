import { afterEach, beforeEach, it } from 'vitest'
import { type Sweeps, startSweeps } from '../../src/sweeps/index.js'
import { makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// A connection that carries the schedule waits for its server for ever; the end of the sweeps does not.

let server: TestServer
let record: TestRecord
let sweeps: Sweeps
let warned: string[]

beforeEach(async () => {
  server = await startTestServer()
  record = await makeRecord(server, 'ending', { sweep_held_ms: 100 })
  warned = []
  const log = {
    info: () => undefined,
    warn: (particulars: object) => void warned.push(JSON.stringify(particulars)),
  }
  sweeps = await startSweeps({ redis: server.url, hub: 'ending', log })
  const runs = async () => Number(await record.send('HGET', record.keys.sweep('held'), 'runs'))
  await until(async () => (await runs()) >= 3, { timeoutMs: 20_000, what: 'the schedule at work' })
})

afterEach(async () => {
  await record.close()
  await server.stop()
})

it('stops while the server is away', { timeout: 60_000 }, async () => {
  await server.kill9()
  await until(() => warned.some((each) => each.includes('ECONNREFUSED')), {
    timeoutMs: 20_000,
    what: 'a connection that was refused',
  })
  await sweeps.stop()
})

it('stops in whatever moment of a reconnection', { timeout: 120_000 }, async () => {
  await server.kill9()
  const restarted = server.restart()
  await sweeps.stop()
  await restarted
})
