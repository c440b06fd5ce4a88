import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { examine } from '../../src/hub/doctor.js'
import { type Hub, openHub } from '../../src/hub/open-hub.js'
import { createNode, type HoldfastNode } from '../../src/node/create-node.js'
import { libraryVersion } from '../../src/record/library.js'
import { readerOf } from '../../src/record/reader.js'
import { freshPath, stopNodes } from '../support/nodes.js'
import { type OpenRecord, openRecord } from '../support/record.js'
import { type OtherRelease, otherRelease, removeReleases } from '../support/releases.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// Hubs and nodes of two releases over one record, as while a cluster of them is brought up to date.

let server: TestServer
let newer: OtherRelease
let older: OtherRelease
let record: OpenRecord
const hubs: Hub[] = []
const nodes: HoldfastNode[] = []
const executed: string[] = []

beforeAll(async () => {
  server = await startTestServer()
  newer = await otherRelease(libraryVersion + 1, (luaDir) => {
    rmSync(join(luaDir, 'functions', 'why.lua'))
    const added =
      "redis.register_function{ function_name = 'hf_added', callback = function() return 'here' end }"
    writeFileSync(join(luaDir, 'functions', 'added.lua'), added)
  })
  older = await otherRelease(libraryVersion - 1)
})
beforeEach(async () => {
  server.cli('FUNCTION', 'FLUSH')
})
afterEach(async () => {
  await Promise.all(nodes.splice(0).map((node) => node.stop()))
  await Promise.all(hubs.splice(0).map((hub) => hub.close()))
  await record.checkInvariants()
  await record.close()
  executed.splice(0)
})
afterAll(async () => {
  await stopNodes()
  removeReleases()
  await server?.stop()
})

function versionOnServer(): number {
  return Number(server.cli('FCALL_RO', 'hf_version', '0'))
}

async function hubOf(release: Pick<OtherRelease, 'openHub'>): Promise<Hub> {
  const hub = await release.openHub({ redis: server.url, hub: record.name })
  hubs.push(hub)
  return hub
}

async function nodeOf(release: Pick<OtherRelease, 'createNode'>, name: string): Promise<HoldfastNode> {
  const node = release.createNode({
    host: 'a',
    node: name,
    hub: record.name,
    redis: server.url,
    mirror: freshPath('db'),
    execute: ({ id }) => {
      executed.push(id)
      return name
    },
  })
  nodes.push(node)
  await node.start()
  return node
}

async function acceptMany(hub: Hub, count: number, from: string): Promise<void> {
  const accepts = Array.from({ length: count }, (_, n) =>
    hub.accept({
      key: `${from}-${n}`,
      conversation: `c${n % 5}`,
      sender: from,
      to: [{ host: 'a' }],
      payload: 'x',
    }),
  )
  await Promise.all(accepts)
}

/** Each was executed once, in one attempt of its first owner. */
async function expectAllOnce(hub: Hub, count: number): Promise<void> {
  await until(async () => (await hub.counts())['done'] === count, {
    timeoutMs: 30_000,
    what: `${count} deliveries done`,
  })
  expect(new Set(executed).size).toBe(count)
  expect(executed.length).toBe(count)
  expect([await hub.pending(), await hub.unknown()]).toEqual([[], []])
  expect((await hub.counts())['takeovers'] ?? 0).toBe(0)
}

it('hubs and nodes of this release work by a newer library, and leave it where it is', async () => {
  record = await openRecord(server)
  const newerHub = await hubOf(newer)
  expect(versionOnServer()).toBe(newer.version)
  const hub = await hubOf({ openHub })
  await nodeOf({ createNode }, 'n1')
  await nodeOf(newer, 'n2')
  await Promise.all([acceptMany(hub, 40, 'this'), acceptMany(newerHub, 40, 'newer')])
  await expectAllOnce(hub, 80)
  expect(versionOnServer()).toBe(newer.version)
  expect(server.cli('FCALL', 'hf_added', '0')).toBe('here')
  const { store, functions, keys } = record
  const findings = await examine({ store, functions, keys, reader: readerOf(store, keys) })
  expect(findings.find(({ name }) => name === 'library')).toMatchObject({
    value: `version ${newer.version}, newer`,
    verdict: 'bad',
  })
})

it('only what the newer library has no function for is refused, as LIBRARY_NEWER', async () => {
  record = await openRecord(server)
  await hubOf(newer)
  const hub = await hubOf({ openHub })
  const { deliveries } = await hub.accept({
    key: 'k',
    conversation: 'c',
    sender: 's',
    to: [{ host: 'a' }],
    payload: 'x',
  })
  const id = deliveries[0]?.id ?? ''
  await expect(hub.why(id)).rejects.toMatchObject({
    code: 'LIBRARY_NEWER',
    message: expect.stringContaining(`version ${newer.version}) has no function hf_why`),
  })
  expect(await hub.delivery(id)).toMatchObject({ state: 'queued' })
  await hub.hold('host:a', { reason: 'looked at', actor: 'kim' })
  expect(versionOnServer()).toBe(newer.version)
})

it('a hub that is newer replaces the library under older hubs and nodes at work, and nothing is lost or run twice', async () => {
  record = await openRecord(server)
  server.cli('FUNCTION', 'FLUSH') // which the record was made with
  const olderHub = await hubOf(older)
  expect(versionOnServer()).toBe(older.version)
  const first = await nodeOf(older, 'n1')
  const accepting = acceptMany(olderHub, 100, 'older')
  await until(() => executed.length >= 10, { what: 'the older node at work' })
  const hub = await hubOf({ openHub })
  expect(versionOnServer()).toBe(libraryVersion)
  await nodeOf({ createNode }, 'n2')
  await Promise.all([accepting, acceptMany(hub, 50, 'this'), acceptMany(olderHub, 50, 'late')])
  await expectAllOnce(hub, 200)
  // Older ones that start anew take what is there.
  await first.stop()
  await nodeOf(older, 'n3')
  await hubOf(older)
  expect(versionOnServer()).toBe(libraryVersion)
  await acceptMany(olderHub, 10, 'last')
  await expectAllOnce(hub, 210)
})
