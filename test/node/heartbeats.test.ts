import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { startNode, stopNodes } from '../support/nodes.js'
import { makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

let server: TestServer
let record: TestRecord | undefined

beforeAll(async () => {
  server = await startTestServer()
})
afterEach(async () => {
  await stopNodes()
  await record?.close()
})
afterAll(() => server?.stop())

/** A node on a record with these settings, and when it was heard last, as the record has it. */
async function beating(settings: Record<string, number>) {
  const made = await makeRecord(server, `heartbeats-${Object.values(settings).join('-')}`, settings)
  record = made
  await startNode({ host: 'a', node: 'n1', redis: server.url, hub: made.name })
  const heardAt = async () => Number(await made.send('HGET', made.keys.node('a', 'n1'), 'heartbeat_at'))
  const nextBeat = async () => {
    const before = await heardAt()
    await until(async () => (await heardAt()) > before)
    return (await heardAt()) - before
  }
  return { record: made, nextBeat }
}

it('a node beats within a third of stale_after_ms, whatever heartbeat_ms says', async () => {
  const { nextBeat } = await beating({ heartbeat_ms: 60_000, stale_after_ms: 900 })
  for (let beats = 0; beats < 3; beats += 1) await nextBeat()
})

it('a node follows both when they change', async () => {
  const { record, nextBeat } = await beating({ heartbeat_ms: 60_000, stale_after_ms: 3000 })
  await record.hub.configure({ stale_after_ms: 150 }, 'kim')
  await nextBeat()
  for (let beats = 0; beats < 3; beats += 1) await nextBeat()
  await record.hub.configure({ heartbeat_ms: 300, stale_after_ms: 60_000 }, 'kim')
  await nextBeat()
  expect(await nextBeat()).toBeGreaterThanOrEqual(290)
})
