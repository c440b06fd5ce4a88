import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type OpenRecord, openRecord, type TestNode } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

let server: TestServer
let record: OpenRecord
let node: TestNode

beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server?.stop())
beforeEach(async () => {
  record = await openRecord(server)
  node = await record.join('a', 'n1')
})
afterEach(() => record.close())

const hourMs = 3_600_000
const spoil = (key: string) => record.send('SET', key, 'not an index')

describe('a key of a wrong type', () => {
  it.each([
    ['the counts', () => record.keys.counts, {}],
    ['the stream', () => record.keys.stream('a'), {}],
    ['the hosts', () => record.keys.hosts, { to: [{ host: 'never-seen' }] }],
    ['the deadlines', () => record.keys.deadlines, { executeBy: Date.now() + hourMs }],
    ['the obligations', () => record.keys.obligations, { to: [{ host: 'a' }, { host: 'b' }] }],
    ['the days of what is settled', () => record.keys.settledDays, { to: [] }],
  ])('refuses a message that would be written to it: %s', async (_, key, message) => {
    await record.config('inline_fan_out', 1)
    await record.send('DEL', key())
    await spoil(key())
    await record.refused('RECORD_DAMAGED', () => record.accept(message))
  })

  it('refuses a fence where the log is none, and sets nothing', async () => {
    await record.send('DEL', record.keys.log)
    await spoil(record.keys.log)
    await record.refused('RECORD_DAMAGED', () => record.functions.block('hub', 'stop', 'kim'))
  })
})

describe('what a message still owes', () => {
  async function owing(...hosts: string[]): Promise<string> {
    await record.config('inline_fan_out', 1)
    return (await record.accept({ to: ['a', ...hosts].map((host) => ({ host })) })).id
  }

  it('refuses a recipient that is none', async () => {
    const id = await owing('b', 'c')
    await record.send('LSET', record.keys.recipients(id), 1, 'node:c')
    await record.refused('INVALID_ARGUMENT', () => record.functions.fanOut(id, 10))
  })

  it('is made for all of a chunk or for none: one host that may not be queued for any more refuses it', async () => {
    await record.join('b', 'n1')
    const id = await owing('b', 'never-joined')
    await record.config('open_hosts', 0)
    await record.refused('NO_ROUTE', () => record.functions.fanOut(id, 10))
    await record.config('open_hosts', 1)
    expect(await record.functions.fanOut(id, 10)).toMatchObject({ made: 3 })
  })
})

it('a host is first seen once', async () => {
  await record.acceptMany(1)
  await record.send('HSET', record.keys.host('a'), 'first_seen_at', 1)
  await record.acceptMany(1)
  await record.join('a', 'n2')
  expect(await record.send('HGET', record.keys.host('a'), 'first_seen_at')).toBe('1')
})

it('a message whose payload is too large for the setting is refused also when it comes alone', async () => {
  await record.config('max_payload_bytes', 10)
  const args = ['k', 'f', 'c1', 'me', '', '', 'digest', '', '', '', 'x'.repeat(11), 'host:a']
  await record.refused('PAYLOAD_TOO_LARGE', () => record.store.fcall('hf_accept', record.keys.tag, args))
})

describe('what is reported of a begin that the record lost', () => {
  async function lostOne(): Promise<string> {
    await record.acceptMany(1)
    const [claimed] = await record.claimAll(node)
    const { id = '', epoch = 0 } = claimed ?? {}
    await record.functions.refuse(node, [{ id, epoch, verdict: 'unknown', reason: 'history_lost' }])
    return id
  }
  const report = (id: string, result: string, key = 'k') =>
    record.functions.report(node, [{ id, grant: 'g', key, outcome: { kind: 'result', result } }])

  it('is kept the first time, its body only where it is not too large', async () => {
    await record.config('max_result_bytes', 256)
    const [small, large] = [await lostOne(), await lostOne()]
    expect(await report(small, 'first')).toEqual([expect.objectContaining({ ok: false, code: 'NOT_BEGUN' })])
    await report(small, 'second', 'k2')
    await report(large, 'x'.repeat(257))
    expect(await record.fields(small)).toMatchObject({ reported_by: 'a/n1', reported_body: 'first' })
    expect(await record.fields(large)).toMatchObject({ reported_by: 'a/n1', reported_body: '' })
  })

  it('is kept of such a delivery alone', async () => {
    const [queued = ''] = await record.acceptMany(1)
    await report(queued, 'first')
    expect(await record.fields(queued)).not.toHaveProperty('reported_by')
    const resolved = await lostOne()
    await record.functions.resolveDelivery(resolved, { as: 'queued', evidence: 'nothing ran' }, 'kim')
    await report(resolved, 'first')
    expect(await record.fields(resolved)).not.toHaveProperty('reported_by')
  })
})

it('a refusal that is repeated under an epoch to come is none that was answered', async () => {
  await record.acceptMany(1)
  const [claimed] = await record.claimAll(node)
  const item = {
    id: claimed?.id ?? '',
    epoch: claimed?.epoch ?? 0,
    verdict: 'failed',
    reason: 'payload_corrupt',
  } as const
  const [held] = await record.functions.refuse(node, [item])
  expect(held).toMatchObject({ ok: true, state: 'held', epoch: 2 })
  await record.itemRefused('NOT_OWNER', () => record.functions.refuse(node, [{ ...item, epoch: 2 }]))
})

describe('a row that was changed by hand', () => {
  async function executing() {
    await record.acceptMany(1)
    const [delivered] = await record.deliverAll(node)
    return await record.begin(node, delivered ?? { id: '', epoch: 0 })
  }

  it('so that it names a later process of the node: an earlier one begins nothing again', async () => {
    const { id, epoch, grant } = await executing()
    await record.send('HSET', record.keys.delivery(id), 'incarnation', 9)
    await record.itemRefused('NOT_OWNER', () =>
      record.functions.begin(node, [{ id, epoch, grant, idempotent: true }]),
    )
  })

  it('so that another node owns it: what its executor did not send goes back to the queue', async () => {
    const { id, attempt, grant } = await executing()
    await record.send('HSET', record.keys.delivery(id), 'owner', 'n2')
    const outcome = { kind: 'not_sent', errorCode: 'busy', errorJson: '' } as const
    await record.functions.report(node, [{ id: attempt, grant, key: 'k', outcome }])
    expect(await record.states([id])).toEqual(['queued'])
  })

  it('so that it is delivered and parked: no lane is asked for it', async () => {
    const { id } = await executing()
    await record.send('HSET', record.keys.delivery(id), 'parked_by', 'lane')
    const [found] = await record.functions.reconcile([id], { repair: false, lanes: true })
    expect(found?.problems).toEqual([])
  })
})
