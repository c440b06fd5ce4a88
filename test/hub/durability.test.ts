import { once } from 'node:events'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { initRecord, openHub } from '../../src/hub/open-hub.js'
import { openHubSet } from '../../src/hub/open-hub-set.js'
import { makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

// A server that may lose what it is given answers like any other: whoever opens a hub on it is told.

let server: TestServer
let record: TestRecord

beforeAll(async () => {
  server = await startTestServer()
  record = await makeRecord(server, 'hf')
  await makeRecord(server, 'hf-1').then((other) => other.close())
})
afterAll(async () => {
  await record?.close()
  await server?.stop()
})

async function toldBy(open: (onTrouble: (trouble: string) => void) => Promise<unknown>): Promise<string[]> {
  const told: string[] = []
  const opened = await open((trouble) => void told.push(trouble))
  if (typeof opened === 'object' && opened !== null && 'close' in opened) {
    await (opened as { close(): Promise<void> }).close()
  }
  return told
}

const everysec = ['appendfsync is "everysec"']

it('a server that is set as it has to be is no trouble', async () => {
  expect(await toldBy((onTrouble) => openHub({ redis: server.url, onTrouble }))).toEqual([])
})

it('another is told of by a hub, by a set of hubs once, and where a record is made', async () => {
  await record.send('CONFIG', 'SET', 'appendfsync', 'everysec')
  const redis = server.url
  expect(await toldBy((onTrouble) => openHub({ redis, onTrouble }))).toEqual(everysec)
  expect(await toldBy((onTrouble) => openHubSet({ redis, hubs: ['hf', 'hf-1'], onTrouble }))).toEqual(
    everysec,
  )
  expect(await toldBy((onTrouble) => initRecord({ redis, onTrouble }))).toEqual(everysec)
})

it('nobody asked to be told: it is a warning of the process', async () => {
  const warned = once(process, 'warning') as Promise<[Error]>
  const hub = await openHub({ redis: server.url })
  const [warning] = await warned
  await hub.close()
  expect(warning).toMatchObject({
    name: 'HoldfastWarning',
    message: 'the Redis server may lose what it is given: appendfsync is "everysec"',
  })
})

it('who said that such a loss is lived with is not told again', async () => {
  await record.config('accept_everysec', 1)
  expect(await toldBy((onTrouble) => openHub({ redis: server.url, onTrouble }))).toEqual([])
})
