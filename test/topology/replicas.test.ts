import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { openHub } from '../../src/hub/open-hub.js'
import { createNode, type HoldfastNode } from '../../src/node/create-node.js'
import { makeRecord, type OpenRecord } from '../support/record.js'
import type { TestServer } from '../support/server.js'
import { until } from '../support/until.js'
import { startSentinels, type TestSentinels } from './sentinel-of.js'

let group: TestSentinels
const mirrors = mkdtempSync(join(tmpdir(), 'holdfast-mirrors-'))
const nodes: HoldfastNode[] = []
let records = 0

beforeAll(async () => {
  group = await startSentinels(1)
})
afterEach(async () => {
  for (const replica of await group.replicas()) replica.signal('SIGCONT')
  await Promise.all(nodes.splice(0).map((node) => node.stop()))
})
afterAll(async () => {
  await group.end()
  rmSync(mirrors, { recursive: true, force: true })
})

async function record(settings: Record<string, number>) {
  records += 1
  return await makeRecord({ url: group.url } as TestServer, `replicas-${records}`, settings)
}

const freeze = async () => {
  await group.whenInStep()
  for (const replica of await group.replicas()) replica.signal('SIGSTOP')
}
const thaw = async () => {
  for (const replica of await group.replicas()) replica.signal('SIGCONT')
  await group.whenInStep()
}
const message = (key: string) => ({
  key,
  conversation: 'c',
  sender: 'tests',
  to: [{ host: 'a' }],
  payload: key,
})

/** A node of host `a` that notes what it executed. */
async function startNode({ name }: OpenRecord, executed: string[]): Promise<HoldfastNode> {
  const node = createNode({
    redis: group.url,
    hub: name,
    host: 'a',
    mirror: join(mirrors, `${name}.db`),
    execute: ({ payload }) => {
      executed.push(payload.toString())
      return null
    },
  })
  nodes.push(node)
  await node.start()
  return node
}

describe('where a replica must have it first', () => {
  it('nothing is accepted that the replica lacks; the same key is answered once it has it', async () => {
    const on = await record({ wait_replicas: 1, wait_replicas_ms: 100 })
    const hub = await openHub({ redis: group.url, hub: on.name, deadlineMs: 1000 })
    await hub.accept(message('before'))
    await freeze()
    const refused = await hub.accept(message('k')).catch((error: unknown) => error)
    expect(refused).toMatchObject({ code: 'NOT_REPLICATED' })
    expect(String(refused)).toContain('0 of 1 replicas had it within 100 ms')
    // Nothing is written by a repeat: it is not answered all the same.
    await expect(hub.accept(message('k'))).rejects.toMatchObject({ code: 'NOT_REPLICATED' })
    await thaw()
    expect(await hub.accept(message('k'))).toMatchObject({ replayed: true })
    await hub.close()
    await on.close()
  })

  it('nothing is claimed or begun that the replica lacks, and each is executed once when it has it', async () => {
    const on = await record({ wait_replicas_ms: 100 })
    const executed: string[] = []
    await startNode(on, executed)
    await on.hub.accept(message('first'))
    await until(() => executed.length === 1)
    await on.config('wait_replicas', 1)
    await freeze()
    const hub = await openHub({ redis: group.url, hub: on.name, deadlineMs: 300 })
    await expect(hub.accept(message('second'))).rejects.toMatchObject({ code: 'NOT_REPLICATED' })
    await hub.close()
    await until(async () => (await on.hub.counts())['claimed'] === 1, {
      what: 'the second delivery being claimed in the record',
    })
    expect(executed).toEqual(['first'])
    await thaw()
    await until(() => executed.length === 2)
    expect(executed).toEqual(['first', 'second'])
    await until(async () => (await on.hub.counts()).finished === 2)
    await on.close()
  })

  it('a fence stands on the replica before it is answered', async () => {
    const on = await record({ wait_replicas: 1, wait_replicas_ms: 100 })
    await freeze()
    const pause = () => on.hub.pause('host:a', { reason: 'tests', actor: 'kim' })
    await expect(pause()).rejects.toMatchObject({ code: 'NOT_REPLICATED' })
    await thaw()
    expect(await pause()).toMatchObject({ fence: 'pause:host:a' })
    await on.close()
  })

  it('more replicas than there are: nothing is answered, and the error says how many there were', async () => {
    const on = await record({ wait_replicas: 2, wait_replicas_ms: 100 })
    const hub = await openHub({ redis: group.url, hub: on.name, deadlineMs: 300 })
    await expect(hub.accept(message('k'))).rejects.toThrow(/NOT_REPLICATED.*1 of 2 replicas/)
    await hub.close()
    await on.close()
  })
})
