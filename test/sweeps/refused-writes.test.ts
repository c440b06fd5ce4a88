import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { prepareMessage } from '../../src/contract/message.js'
import { openStore, type Store } from '../../src/record/connections.js'
import { type Functions, functionsOf } from '../../src/record/functions.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { openSwept, type SweptRecord } from './stage.js'

// A function that fails in the middle is not undone by the server: what it wrote stays. Whatever write of an accept is
// refused, each recipient of what was accepted gets one delivery.

let server: TestServer
let record: SweptRecord
let limited: Store
let functions: Functions

beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server?.stop())
beforeEach(async () => {
  record = await openSwept(server)
  server.cli('ACL', 'SETUSER', 'limited', 'on', '>word', '~*', '+@all')
  const url = server.url.replace('redis://', 'redis://limited:word@')
  limited = await openStore({ url, tag: record.keys.tag, name: 'limited' })
  functions = functionsOf(limited, record.keys.tag)
  for (const id of ['s1', 's2', 's3']) {
    await record.functions.openSession(id, { host: 'a', scope: '/srv' }, 'kim')
  }
  await record.config('inline_fan_out', 2)
})
afterEach(async () => {
  await limited.close()
  await record.close()
})

const message = prepareMessage({
  key: 'k',
  conversation: 'c1',
  sender: 'tests',
  to: [{ session: 's1' }, { session: 's2' }, { session: 's3' }],
  payload: 'p',
  executeBy: 4_000_000_000_000,
})

async function numbersQueued(): Promise<string[]> {
  const node = await record.join('a', 'n1')
  const claimed = await record.claimAll(node)
  return claimed.map(({ id }) => id.replace(/^.*\./, '')).toSorted()
}

describe('accept, by a user who may not make one of its writes', () => {
  const writes = ['set', 'hset', 'xadd', 'zadd', 'rpush', 'hincrby', 'xgroup']
  it.each(writes)('%s: says so; under the key again, each recipient gets one delivery', async (command) => {
    server.cli('ACL', 'SETUSER', 'limited', `-${command}`)
    await expect(functions.accept(message)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    server.cli('ACL', 'SETUSER', 'limited', `+${command}`)
    await functions.accept(message)
    await record.sweepAll()
    const { recipients, made } = await functions.accept(message)
    expect([recipients, made]).toEqual([3, 3])
    expect(await numbersQueued()).toEqual(['1', '2', '3'])
    expect((await record.parts.hub.audit()).disagreements).toEqual([])
    await record.checkInvariants()
  })

  it('is not told that all is made while it is not', async () => {
    server.cli('ACL', 'SETUSER', 'limited', '-zadd')
    await record.config('inline_fan_out', 3)
    await expect(functions.accept(message)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(await functions.accept(message)).toMatchObject({ replayed: true, recipients: 3, made: 1 })
  })
})

describe('a list of a wrong type', () => {
  it('that a recipient of an accept goes into: refused, and nothing is changed', async () => {
    await record.send('SET', record.keys.sessionDeliveries('s2'), 'x')
    const code = await record.refused('RECORD_DAMAGED', () => functions.accept(message))
    expect(code).toContain(record.keys.sessionDeliveries('s2'))
    await record.send('DEL', record.keys.sessionDeliveries('s2'))
  })

  it('that a recipient of a fan-out goes into: the obligation stays, and is met later', async () => {
    const { id } = await functions.accept(message)
    await record.send('SET', record.keys.sessionDeliveries('s3'), 'x')
    await record.refused('RECORD_DAMAGED', () => functions.fanOut(id, 10))
    await record.send('DEL', record.keys.sessionDeliveries('s3'))
    expect(await functions.fanOut(id, 10)).toMatchObject({ made: 3 })
    expect(await numbersQueued()).toEqual(['1', '2', '3'])
  })
})

it('a fan-out goes on behind what a failed one made, and leaves that alone', async () => {
  await record.config('inline_fan_out', 1)
  const { id } = await functions.accept(message)
  server.cli('ACL', 'SETUSER', 'limited', '-ltrim')
  await expect(functions.fanOut(id, 1)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  server.cli('ACL', 'SETUSER', 'limited', '+ltrim')
  const node = await record.join('a', 'n1')
  const [first, second] = await record.deliverAll(node)
  await record.begin(node, second ?? first ?? { id: '', epoch: 0 })
  const before = await record.fields(`${id}.2`)
  expect(await functions.fanOut(id, 10)).toMatchObject({ made: 3, deliveries: [{ id: `${id}.3` }] })
  expect(await record.fields(`${id}.2`)).toEqual(before)
  await record.sweepAll()
  await record.checkInvariants()
})
