import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openClient } from '../../src/client/open-client.js'
import type { HubCalls } from '../../src/contract/hub.js'
import { openHub } from '../../src/hub/open-hub.js'
import { createNode } from '../../src/node/create-node.js'
import { makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

// What is called after it was closed fails at once, and nothing of it is repeated.

let server: TestServer
let record: TestRecord
beforeAll(async () => {
  server = await startTestServer()
  record = await makeRecord(server, 'closed')
})
afterAll(async () => {
  await record?.close()
  await server?.stop()
})

const closed = { code: 'CLOSED', next: expect.stringContaining('open another one') }
const message = { key: 'k', conversation: 'c', sender: 's', to: [{ host: 'a' }], payload: 'x' }

/** None of these waits: the deadline is beyond the time that a test may take. */
const deadlineMs = 600_000

async function refusesAll(hub: HubCalls): Promise<void> {
  await expect(hub.accept(message)).rejects.toMatchObject(closed)
  await expect(hub.counts()).rejects.toMatchObject(closed)
  await expect(hub.pause('hub', { reason: 'stop', actor: 'kim' })).rejects.toMatchObject(closed)
  await expect(hub.message('m')).rejects.toMatchObject(closed)
  await hub.close()
  expect((await hub.events()[Symbol.asyncIterator]().next()).done).toBe(true)
}

test('every call of a hub that was closed is refused as CLOSED, also one taken from it before', async () => {
  const hub = await openHub({ redis: server.url, hub: record.name, deadlineMs })
  const { counts } = hub
  expect(await counts()).toBeDefined()
  await hub.close()
  await refusesAll(hub)
  await expect(counts()).rejects.toMatchObject(closed)
})

test('every call of a client that was closed is refused as CLOSED, whether or not a hub is there', async () => {
  const client = openClient({ url: 'http://127.0.0.1:1', deadlineMs })
  const waiting = client.counts()
  await client.close()
  await expect(waiting).rejects.toMatchObject({ name: 'HoldfastError' })
  await refusesAll(client)
})

test('a node that was stopped is not started', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-closed-'))
  const options = { host: 'a', hub: record.name, redis: server.url, execute: async () => 1 }
  const node = createNode({ ...options, mirror: join(folder, 'a.db') })
  await node.stop()
  await expect(node.start()).rejects.toMatchObject({
    code: 'CLOSED',
    next: expect.stringContaining('another node'),
  })
  const ran = createNode({ ...options, mirror: join(folder, 'b.db') })
  await ran.start()
  await ran.stop()
  await expect(ran.start()).rejects.toMatchObject({ code: 'CLOSED' })
  rmSync(folder, { recursive: true, force: true })
})
