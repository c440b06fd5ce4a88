import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { makeRecord } from '../support/record.js'
import type { TestServer } from '../support/server.js'
import { until } from '../support/until.js'
import type { Member } from './processes.js'
import { startSentinels, type TestSentinels } from './sentinel-of.js'
import { startWork, type Work } from './working.js'

let group: TestSentinels
let work: Work | undefined

beforeEach(async () => {
  group = await startSentinels(2)
})
afterEach(async () => {
  for (const server of group.servers) server.signal('SIGCONT')
  await work?.close()
  work = undefined
  await group.end()
})

async function begin(settings: Record<string, number>): Promise<Work> {
  const record = await makeRecord({ url: group.url } as TestServer, 'failover', {
    stale_after_ms: 3000,
    heartbeat_ms: 300,
    ...settings,
  })
  await record.close()
  work = await startWork({ redis: group.url, hub: 'failover' })
  await work.untilMore(100)
  return work
}

const clean = { twice: [], gone: [], forgotten: [], unfinished: [] }

describe('a planned switch by the Sentinels', () => {
  it('loses nothing, executes nothing twice, and makes nothing unknown', async () => {
    const at = await begin({})
    const old = await group.primary()
    const next = await group.failOver()
    expect(next).not.toBe(old)
    await at.untilMore(100)
    await group.whenInStep()
    await group.failOver()
    await at.untilMore(100)
    expect(await at.finish()).toMatchObject({ ...clean, unknown: [] })
  })
})

describe('an unplanned one, where both replicas must have it before it is answered', () => {
  it('loses nothing of what was answered, and executes nothing twice, when the primary is killed', async () => {
    const at = await begin({ wait_replicas: 2, wait_replicas_ms: 500 })
    const old = await group.primary()
    await old.kill9()
    await group.whenReplaced(old)
    // Answers wait for it as well: it comes back as a replica.
    await old.start()
    await at.untilMore(100)
    expect(await at.finish()).toMatchObject(clean)
  })

  it('and when both replicas lagged behind it', async () => {
    const at = await begin({ wait_replicas: 2, wait_replicas_ms: 500 })
    const [old, replicas] = [await group.primary(), await group.replicas()]
    await group.cutReplicas()
    const before = at.acknowledged.size
    await until(async () => (await refusals(old)) > 0, { what: 'a call that is not answered for' })
    await old.kill9()
    for (const replica of replicas) replica.signal('SIGCONT')
    await group.whenReplaced(old)
    await old.start()
    await at.untilMore(100)
    expect(before).toBeGreaterThan(0)
    expect(await at.finish()).toMatchObject(clean)
  })

  it('and when the old primary comes back to those that were connected to it, not knowing that it was replaced', async () => {
    const at = await begin({ wait_replicas: 2, wait_replicas_ms: 500 })
    const old = await group.primary()
    old.signal('SIGSTOP')
    await group.whenReplaced(old)
    old.signal('SIGCONT')
    await at.untilMore(100)
    await group.whenInStep()
    expect(await at.finish()).toMatchObject(clean)
  })
})

describe('an unplanned one, without', () => {
  it('what was lost or became unknown is named, id by id, and nothing is executed twice', async () => {
    const at = await begin({})
    const [old, replicas] = [await group.primary(), await group.replicas()]
    await group.cutReplicas()
    const before = at.acknowledged.size
    await at.untilMore(100)
    const inWindow = at.acknowledged.size - before
    await old.kill9()
    for (const replica of replicas) replica.signal('SIGCONT')
    await group.whenReplaced(old)
    await at.untilMore(100)
    const verdict = await at.finish()
    expect(verdict).toMatchObject({ twice: [], forgotten: [], unfinished: [] })
    expect(verdict.gone.length).toBeGreaterThan(0)
    expect(verdict.gone.length).toBeLessThanOrEqual(inWindow + 100)
    const gone = [...new Set(verdict.gone.map((id) => id.split('.')[0] ?? ''))]
    expect([...at.named].sort()).toEqual(gone.sort())
    expect(await namedInLog()).toEqual(gone.sort())
  })
})

/** Messages that the log of the record names as lost. */
async function namedInLog(): Promise<string[]> {
  const entries = (await (await group.primary()).call('XRANGE', '{failover}:log', '-', '+')) as [
    string,
    string[],
  ][]
  const lost = entries.filter(([, fields]) => fields[fields.indexOf('verb') + 1] === 'lost')
  return lost.flatMap(([, fields]) => (fields[fields.indexOf('messages') + 1] ?? '').split(' ')).sort()
}

/** Calls on this server that waited for replicas. */
async function refusals(server: Member): Promise<number> {
  const stats = (await server.info('commandstats')).get('cmdstat_wait') ?? ''
  return Number(/calls=(\d+)/.exec(stats)?.[1] ?? 0)
}
