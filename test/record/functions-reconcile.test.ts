import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type OpenRecord, openRecord, sha256, type TestNode } from '../support/record.js'
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

/** Compares without repairing: what was found, and nothing may have changed. */
async function audited<Found>(call: () => Promise<Found>): Promise<string> {
  const before = await record.dump()
  const found = await call()
  expect(await record.dump()).toEqual(before)
  return JSON.stringify(found)
}

const audit = (id: string) => audited(() => record.functions.reconcile([id], { repair: false, lanes: true }))

async function parkOne(): Promise<string> {
  const [id = ''] = await record.acceptMany(1)
  await record.functions.pause('conversation:c1', 'later', 'kim')
  await record.claim(node)
  return id
}

async function spoil(key: string): Promise<void> {
  await record.send('DEL', key)
  await record.send('SET', key, 'not an index')
}

describe('a comparison that repairs nothing', () => {
  it.each([
    ['the stream', () => record.keys.stream('a')],
    ['the lane', () => record.keys.lane('a', 'c1/')],
    ['the parked lanes', () => record.keys.parked('a')],
    ['the hosts', () => record.keys.hosts],
    ['the host', () => record.keys.host('a')],
  ])('tells of a parked delivery that %s is of a wrong type, and goes on', async (_, key) => {
    const id = await parkOne()
    await spoil(key())
    expect(await audit(id)).toContain(`${key()} is a string`)
  })

  it('tells that the group is gone, and makes none', async () => {
    const [id = ''] = await record.acceptMany(1)
    await record.send('XGROUP', 'DESTROY', record.keys.stream('a'), 'nodes')
    expect(await audit(id)).toContain('the group of')
  })

  it('tells that an entry is gone or left over, and neither makes nor clears one', async () => {
    const [queued = ''] = await record.acceptMany(1)
    await record.send('DEL', record.keys.stream('a'))
    expect(await audit(queued)).toContain('its entry is gone from the stream')
    const [failed = ''] = await record.acceptMany(1)
    await record.functions.cancel(failed, 'kim', 'not needed')
    const { entry = '' } = await record.fields(failed)
    await record.send('DEL', record.keys.stream('a'))
    await record.send('XADD', record.keys.stream('a'), entry, 'delivery', failed)
    expect(await audit(failed)).toContain('its entry is still in the stream')
  })

  it.each(['epoch', 'host', 'state'])(
    'tells of a row without its %s that it lacks what decides',
    async (field) => {
      const [id = ''] = await record.acceptMany(1)
      await record.send('HDEL', record.keys.delivery(id), field)
      expect(await audit(id)).toContain('its row lacks what decides')
    },
  )

  it('tells of a session whose children are of a wrong type, and goes on', async () => {
    const opening = { host: 'a', scope: '/srv' }
    await record.functions.openSession('parent', opening, 'kim')
    await record.functions.openSession('child', { ...opening, parent: 'parent' }, 'kim')
    await spoil(record.keys.children('parent'))
    const found = await audited(() =>
      record.functions.reconcileLists('sessions', { repair: false }, ['child']),
    )
    expect(JSON.parse(found).found).toMatchObject([{ code: 'wrong_type', about: 'session parent' }])
  })

  it('says nothing of a node whose host is of a wrong type: that is told elsewhere', async () => {
    await spoil(record.keys.host('a'))
    const found = await audited(() => record.functions.reconcileLists('nodes', { repair: false }, ['a/n1']))
    expect(JSON.parse(found).found).toEqual([])
  })

  it('tells of a message that the obligations are of a wrong type, and goes on', async () => {
    await record.config('inline_fan_out', 1)
    const { id } = await record.accept({ to: [{ host: 'a' }, { host: 'b' }] })
    await spoil(record.keys.obligations)
    const found = await audited(() => record.functions.reconcileMessages([id], { repair: false }))
    expect(found).toContain(`${record.keys.obligations} is a string`)
  })

  it('tells of a settled message that the list of its day is of a wrong type, and goes on', async () => {
    const [id = ''] = await record.acceptMany(1)
    await record.functions.cancel(id, 'kim', 'not needed')
    const message = id.split('.')[0] ?? ''
    const settledAt = Number(await record.send('HGET', record.keys.message(message), 'settled_at'))
    const list = record.keys.settled(Math.floor(settledAt / 86_400_000))
    await spoil(list)
    const found = await audited(() => record.functions.reconcileMessages([message], { repair: false }))
    expect(found).toContain(`${list} is a string`)
  })
})

it('a message that retention has half taken away owes nothing', async () => {
  await record.config('inline_fan_out', 1)
  const { id } = await record.accept({ to: [{ host: 'a' }, { host: 'b' }] })
  await record.send('HSET', record.keys.message(id), 'pruned_from', 1)
  await record.send('ZREM', record.keys.obligations, id)
  expect(await record.functions.reconcileMessages([id], { repair: true })).toEqual([])
  expect(await record.send('ZSCORE', record.keys.obligations, id)).toBeNull()
})

it('an open effect stays in the unknown list', async () => {
  await record.functions.claimEffect('e1', {
    type: 't',
    payloadHash: sha256('x'),
    executor: 'me',
    grant: 'g',
  })
  await record.functions.settleEffect('e1', {
    executor: 'me',
    grant: 'g',
    epoch: 1,
    outcome: { kind: 'outcome_unknown', errorCode: 'timeout', errorJson: '' },
  })
  const { found } = await record.functions.reconcileLists('unknown', { repair: true }, [''])
  expect(found).toEqual([])
  expect(await record.send('ZSCORE', record.keys.unknown, 'effect:e1')).not.toBeNull()
})

it('an unknown effect is told by its own id, whatever that looks like', async () => {
  const grant = { type: 't', payloadHash: 'a'.repeat(64), executor: 'e1' }
  for (const id of ['x%41', 'xA']) await record.functions.claimEffect(id, { ...grant, grant: `g-${id}` })
  const settled = { executor: 'e1', epoch: 1 }
  await record.functions.settleEffect('x%41', {
    ...settled,
    grant: 'g-x%41',
    outcome: { kind: 'outcome_unknown', errorCode: 'timeout' },
  })
  await record.functions.settleEffect('xA', {
    ...settled,
    grant: 'g-xA',
    outcome: { kind: 'result', result: '1' },
  })
  expect((await record.functions.reconcileLists('unknown', { repair: true }, [''])).found).toEqual([])
  expect(await record.send('ZRANGE', record.keys.unknown, 0, -1)).toEqual(['effect:x%41'])
})
