import { afterAll, beforeAll, expect, test } from 'vitest'
import type { HubCalls } from '../../src/contract/hub.js'
import { hubNames, hubOf } from '../../src/contract/hub-set.js'
import { initRecord } from '../../src/hub/open-hub.js'
import { openHubSet } from '../../src/hub/open-hub-set.js'
import { createNode } from '../../src/node/create-node.js'
import { keysOf } from '../../src/record/keys.js'
import { makeFolder } from '../cli/run-cli.js'
import { startCluster, type TestCluster } from './cluster-of.js'

// A set of eight hubs on one Redis Cluster of three primaries.

const hubs = hubNames('hf-0..hf-7')
const host = 'worker'
const perHub = 20
const conversations = Array.from({ length: hubs.length * perHub }, (_, at) => `c${at}`)

let cluster: TestCluster
let set: HubCalls
const folder = makeFolder()
beforeAll(async () => {
  cluster = await startCluster()
  for (const hub of hubs) await initRecord({ redis: cluster.url, hub })
  set = await openHubSet({ redis: cluster.url, hubs })
})
afterAll(async () => {
  await set?.close()
  await cluster?.end()
  folder.remove()
})

test('the hubs lie on every primary of the Cluster', async () => {
  const places = new Set<number>()
  for (const hub of hubs) places.add((await cluster.placeOf(hub)).primary.port)
  expect([...places].sort()).toEqual((await cluster.primaries()).map(({ port }) => port).sort())
})

test('messages go to all hubs; each is executed once, by a node of its hub', async () => {
  const ran = new Map<string, string[]>()
  const nodes = hubs.map((hub) =>
    createNode({
      redis: cluster.url,
      hub,
      host,
      mirror: `${folder.path}/${hub}.db`,
      execute: async (attempt) => {
        const { conversation } = attempt.message
        ran.set(conversation, [...(ran.get(conversation) ?? []), hub])
        return null
      },
    }),
  )
  await Promise.all(nodes.map((node) => node.start()))
  const accepted = await Promise.all(
    conversations.map((conversation) =>
      set.accept({ key: conversation, conversation, sender: 't', to: [{ host }], payload: 'x' }),
    ),
  )
  const views = await Promise.all(accepted.map(({ id }) => set.waitFor(id, 60_000)))
  await Promise.all(nodes.map((node) => node.stop()))
  for (const view of views) expect(view.deliveries[0]?.attempts).toMatchObject([{ status: 'done' }])
  expect(Object.fromEntries(ran)).toEqual(
    Object.fromEntries(conversations.map((each) => [each, [hubOf(each, hubs)]])),
  )
  expect(new Set([...ran.values()].flat())).toEqual(new Set(hubs))
  const audit = await set.audit()
  expect(audit).toMatchObject({ disagreements: [], conservation: { recipients: conversations.length } })
  expect(await set.counts()).toMatchObject({ delivered: conversations.length })
})

test('a wide fence stands on every primary; one that a primary lost is shown, and finished by repeating', async () => {
  const pause = () => set.pause(`host:${host}`, { reason: 'stop', actor: 'kim' })
  await pause()
  for (const hub of hubs) {
    const { primary } = await cluster.placeOf(hub)
    expect(await primary.call('HKEYS', keysOf(hub).fences)).toEqual([`pause:host:${host}`])
  }
  const { primary } = await cluster.placeOf('hf-5')
  await primary.call('HDEL', keysOf('hf-5').fences, `pause:host:${host}`)
  expect(await set.fences()).toMatchObject([{ fence: `pause:host:${host}`, missing: ['hf-5'] }])
  await pause()
  expect((await set.fences())[0]).not.toHaveProperty('missing')
  await set.lift('pause', `host:${host}`, 'kim')
  expect(await set.fences()).toEqual([])
})
