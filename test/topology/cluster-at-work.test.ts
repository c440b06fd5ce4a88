import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { assembleLibrary } from '../../src/record/library.js'
import { makeRecord } from '../support/record.js'
import type { TestServer } from '../support/server.js'
import { until } from '../support/until.js'
import { startCluster, type TestCluster } from './cluster-of.js'
import { startWork, type Work } from './working.js'

let cluster: TestCluster
let work: Work | undefined
const hub = 'moving'

beforeEach(async () => {
  cluster = await startCluster()
})
afterEach(async () => {
  for (const member of cluster.members) member.signal('SIGCONT')
  await work?.close()
  work = undefined
  await cluster.end()
})

async function begin(settings: Record<string, number> = {}): Promise<Work> {
  const record = await makeRecord({ url: cluster.url } as TestServer, hub, {
    stale_after_ms: 3000,
    heartbeat_ms: 300,
    ...settings,
  })
  await record.close()
  work = await startWork({ redis: cluster.url, hub })
  await work.untilMore(100)
  return work
}

const clean = { twice: [], gone: [], forgotten: [], unfinished: [] }

describe('the slot of a hub, moved to another primary while it works', () => {
  it('is not worked on while it is half moved; then everything goes on, nothing lost, unknown or done twice', async () => {
    const at = await begin()
    const { primary } = await cluster.placeOf(hub)
    const target = (await cluster.primaries()).find((each) => each !== primary)
    if (target === undefined) throw new Error('a Cluster of one primary')
    await cluster.moveSlot(hub, target, async () => {
      const before = await calls(target)
      // Who asks now is sent on by the old primary, and does not follow: the new one has half of the keys.
      await until(async () => (await refusedAsAsk(primary)) > 20, { what: 'calls that were sent on' })
      expect(await calls(target)).toBe(before)
    })
    expect((await cluster.placeOf(hub)).primary).toBe(target)
    await at.untilMore(100)
    expect(await at.finish()).toMatchObject({ ...clean, unknown: [] })
  })

  it('there and back, three times', async () => {
    const at = await begin()
    const { primary } = await cluster.placeOf(hub)
    const [other] = (await cluster.primaries()).filter((each) => each !== primary)
    for (let round = 0; round < 3; round += 1) {
      for (const to of [other, primary]) {
        if (to === undefined) throw new Error('a Cluster of one primary')
        await cluster.moveSlot(hub, to)
        await at.untilMore(40)
      }
    }
    expect(await at.finish()).toMatchObject({ ...clean, unknown: [] })
  })
})

describe('a primary that is killed', () => {
  it('is replaced by its replica: with replicas required nothing is lost, and nothing done twice', async () => {
    const at = await begin({ wait_replicas: 1, wait_replicas_ms: 500 })
    const { primary } = await cluster.placeOf(hub)
    await primary.kill9()
    await until(async () => (await cluster.placeOf(hub)).primary !== primary, {
      timeoutMs: 30_000,
      what: 'the replica taking over',
    })
    // It has a replica again before anything can be answered for.
    await primary.start()
    await at.untilMore(100)
    expect(await at.finish()).toMatchObject(clean)
  })
})

describe('the library', () => {
  it('is on every primary, also on those that serve no hub yet, and comes back where it is missing', async () => {
    await begin()
    const { code } = assembleLibrary()
    const isEverywhere = async () => {
      for (const primary of await cluster.primaries()) {
        const [library] = (await primary.call(
          'FUNCTION',
          'LIST',
          'LIBRARYNAME',
          'holdfast',
          'WITHCODE',
        )) as string[][]
        if (library?.includes(code) !== true) return false
      }
      return true
    }
    await until(isEverywhere, { what: 'the library on every primary' })
    const { primary } = await cluster.placeOf(hub)
    const [other] = (await cluster.primaries()).filter((each) => each !== primary)
    await other?.call('FUNCTION', 'DELETE', 'holdfast')
    expect(await isEverywhere()).toBe(false)
    await until(isEverywhere, { timeoutMs: 30_000, what: 'the library being back' })
  })
})

/** Functions that were called on a server. */
async function calls(member: {
  info(section: string): Promise<ReadonlyMap<string, string>>
}): Promise<number> {
  const stats = (await member.info('commandstats')).get('cmdstat_fcall') ?? ''
  return Number(/calls=(\d+)/.exec(stats)?.[1] ?? 0)
}

async function refusedAsAsk(member: {
  info(section: string): Promise<ReadonlyMap<string, string>>
}): Promise<number> {
  const stats = (await member.info('errorstats')).get('errorstat_ASK') ?? ''
  return Number(/count=(\d+)/.exec(stats)?.[1] ?? 0)
}
