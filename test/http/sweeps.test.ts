import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { sweepNames, sweepSetting } from '../../src/contract/sweeps.js'
import type { AuditView, SweepRunView, SweepView } from '../../src/contract/upkeep-views.js'
import { call, startHubServer, type TestHubServer } from '../support/http.js'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

// Sweeps and the audit over HTTP. Who may is in matrix.test.ts; what readiness says of them in readiness.test.ts.

let redis: TestServer
let record: OpenRecord
let server: TestHubServer

beforeAll(async () => {
  redis = await startTestServer()
})
afterAll(() => redis?.stop())
beforeEach(async () => {
  record = await openRecord(redis)
  server = await startHubServer(record)
})
afterEach(async () => {
  await server?.close()
  await record?.close()
})

const run = (name: string) =>
  call<{ runs: SweepRunView[] }>(server.url, { method: 'POST', path: `/v1/sweeps/${name}/run` })

async function sweeps(): Promise<SweepView[]> {
  const { status, json, text } = await call<{ sweeps: SweepView[] }>(server.url, { path: '/v1/sweeps' })
  expect(status, text).toBe(200)
  return json.sweeps
}

async function audit(): Promise<AuditView> {
  const before = await record.dump()
  const { status, json, text } = await call<AuditView>(server.url, { path: '/v1/audit' })
  expect(status, text).toBe(200)
  expect(await record.dump(), 'an audit that is asked for changes nothing').toEqual(before)
  return json
}

describe('sweeps', () => {
  it('are listed by name, those that never ran too', async () => {
    const found = await sweeps()
    expect(found.map(({ name }) => name)).toEqual(sweepNames)
    for (const each of found) {
      expect(each, each.name).toMatchObject({ runs: 0, late: true, notes: [], unfinished: false })
      expect(each.everyMs, each.name).toBeGreaterThan(0)
      expect(each).not.toHaveProperty('ageMs')
    }
    await record.config(sweepSetting('audit'), 0)
    const audits = (await sweeps()).find(({ name }) => name === 'audit')
    expect(audits, 'what is turned off is never late').toMatchObject({ everyMs: 0, late: false })
  })

  it('run when they are asked to, one or all, and say what they did', async () => {
    const { deliveries } = await record.accept({ to: [{ host: 'lonely' }] })
    const one = await run('stale')
    expect(one.status, one.text).toBe(200)
    expect(one.json.runs).toEqual([
      {
        name: 'stale',
        found: 1,
        repaired: 0,
        left: 1,
        notes: ['host lonely: 1 deliveries and no live node'],
        durationMs: expect.any(Number),
      },
    ])
    expect((await sweeps()).find(({ name }) => name === 'stale')).toMatchObject({
      runs: 1,
      late: false,
      found: 1,
      foundTotal: 1,
      repairedTotal: 0,
      ageMs: expect.any(Number),
      by: expect.stringContaining(String(process.pid)),
      notes: ['host lonely: 1 deliveries and no live node'],
    })
    const all = await run('all')
    expect(all.json.runs.map(({ name }) => name)).toEqual(sweepNames)
    expect(all.json.runs.filter(({ error }) => error !== undefined)).toEqual([])
    const found = await sweeps()
    expect(found.every(({ late, runs }) => !late && runs > 0)).toBe(true)
    expect(found.find(({ name }) => name === 'stale')).toMatchObject({ runs: 2, foundTotal: 2 })
    expect(await record.states(deliveries.map(({ id }) => id))).toEqual(['queued'])
    await record.checkInvariants()
  })

  it.each(['never', 'CLAIMS', '%2F'])('named %s are none', async (name) => {
    const before = await record.dump()
    const answer = await call(server.url, { method: 'POST', path: `/v1/sweeps/${name}/run` })
    expect(answer).toMatchObject({ status: 400, json: { code: 'INVALID_ARGUMENT', pointer: 'path:/name' } })
    expect(await record.dump()).toEqual(before)
  })

  it('are shown by /metrics, with what they found in all', async () => {
    await record.accept({ to: [{ host: 'lonely' }] })
    await run('stale')
    await record.functions.noteSweep('held', {
      ...{ found: 3, repaired: 2, left: 1, notes: [], cursor: '', by: 'tests' },
      durationMs: 1500,
      error: 'it fell',
    })
    const { text } = await call(server.url, { path: '/metrics' })
    const value = (name: string) => {
      const line = text.split('\n').find((each) => each.startsWith(`${name} `))
      return line === undefined ? undefined : Number(line.slice(name.length + 1))
    }
    expect(value('holdfast_stranded_hosts')).toBe(1)
    expect(value('holdfast_sweep_age_seconds{sweep="stale"}')).toBeLessThan(30)
    expect(value('holdfast_sweep_found_total{sweep="stale"}')).toBe(1)
    expect(value('holdfast_sweep_repaired_total{sweep="stale"}')).toBe(0)
    expect(value('holdfast_sweep_failures_total{sweep="stale"}')).toBe(0)
    expect(value('holdfast_sweep_age_seconds{sweep="held"}'), 'it never succeeded').toBeUndefined()
    expect(value('holdfast_sweep_duration_seconds{sweep="held"}')).toBe(1.5)
    expect(value('holdfast_sweep_found_total{sweep="held"}')).toBe(3)
    expect(value('holdfast_sweep_repaired_total{sweep="held"}')).toBe(2)
    expect(value('holdfast_sweep_failures_total{sweep="held"}')).toBe(1)
  })
})

describe('the audit', () => {
  it('accounts for every recipient, and finds nothing where nothing is wrong', async () => {
    const node = await record.join('a', 'n1')
    await record.acceptMany(2)
    await record.deliverAll(node)
    await record.accept({ to: [{ host: 'a' }, { host: 'b' }] })
    expect(await audit()).toEqual({
      conservation: {
        recipients: 4,
        byState: { queued: 2, claimed: 0, mirrored: 0, delivered: 2, held: 0, failed: 0, unknown: 0 },
        owed: 0,
        pruned: 0,
      },
      deliveries: 4,
      messages: 3,
      disagreements: [],
      more: false,
    })
  })

  it('names counts that were changed by hand; a run of it puts them right', async () => {
    await record.acceptMany(3)
    await record.send('HINCRBY', record.keys.counts, 'queued', 2)
    const { disagreements, conservation } = await audit()
    expect(conservation).toMatchObject({ recipients: 3, byState: { queued: 5 } })
    expect(disagreements).toContainEqual({
      code: 'totals_disagree',
      about: 'conservation',
      what: '3 recipients accepted, but 5 by state, 0 owed, 0 pruned',
      look: `redis-cli HGETALL '${record.keys.counts}'`,
      repaired: false,
    })
    expect(disagreements).toContainEqual(
      expect.objectContaining({ about: 'counts', what: 'queued: 5 by the counts, 3 rows' }),
    )
    const { json } = await run('audit')
    expect(json.runs).toMatchObject([{ name: 'audit', found: disagreements.length, left: 0 }])
    expect((await audit()).disagreements).toEqual([])
    await record.checkInvariants()
  })

  it('names the delivery that a deleted list does not list; the sweeps bring the list back', async () => {
    const [id = ''] = await record.acceptMany(1)
    await record.functions.holdDelivery(id, 'kim', 'look')
    await record.send('DEL', record.keys.held)
    const { disagreements } = await audit()
    expect(disagreements).toContainEqual({
      code: 'unlisted',
      about: id,
      what: 'the held queue does not list it',
      look: `redis-cli HGETALL '${record.keys.delivery(id)}'`,
      repaired: false,
    })
    await run('all')
    expect((await audit()).disagreements).toEqual([])
    expect(await record.send('ZRANGE', record.keys.held, 0, -1)).toEqual([id])
    await record.checkInvariants()
  })
})

describe('a line to look with', () => {
  it('shows the row that is meant, whatever its name is', async () => {
    const { keys, functions } = record
    const payloadHash = 'a'.repeat(64)
    await functions.claimEffect("a/b c'd", { type: 't', payloadHash, executor: 'e', grant: 'g' })
    await record.send('DEL', keys.effects)
    await record.send('HSET', `${keys.tag}:effect:odd`, 'no', 'row')
    await record.send('ZADD', keys.held, 1, '1764430000000-000000.1')
    const { disagreements } = await audit()
    expect(disagreements.map(({ what, look }) => [what, look]).sort()).toEqual(
      [
        ['held deliveries: 0 by the counts, 1 there', `redis-cli HGETALL '${keys.counts}'`],
        ['in the held queue, but without a row', `redis-cli ZRANGE '${keys.held}' 0 -1 WITHSCORES`],
        ['its row lacks what decides', `redis-cli HGETALL '${keys.tag}:effect:odd'`],
        ['the effects do not list it', `redis-cli HGETALL '${keys.tag}:effect:a%2Fb%20c%27d'`],
      ].sort(),
    )
  })
})
