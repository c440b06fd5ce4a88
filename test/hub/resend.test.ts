import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

let server: TestServer
let record: TestRecord
let records = 0

beforeAll(async () => {
  server = await startTestServer()
})
beforeEach(async () => {
  records += 1
  record = await makeRecord(server, `resend-${records}`)
})
afterEach(async () => {
  await record.checkInvariants()
  await record.close()
})
afterAll(() => server?.stop())

const bytes = Buffer.from([0, 255, 254, 10, 13, 128])

async function acceptFirst(count = 2) {
  return record.hub.accept({
    key: 'first',
    conversation: 'c1',
    sender: 's1',
    parent: 'p1',
    contentType: 'application/octet-stream',
    to: Array.from({ length: count }, (_, at) => ({ host: `h${at}` })),
    payload: bytes,
  })
}

describe('resend', () => {
  it('makes another message of the same content to the same recipients, linked to the first', async () => {
    const first = await acceptFirst()
    const again = await record.hub.resend(first.id, { key: 'second' })
    expect(again).toMatchObject({ replayed: false, fanOut: 'complete' })
    expect(again.id).not.toBe(first.id)
    const [one, two] = [await record.hub.message(first.id), await record.hub.message(again.id)]
    expect(two).toMatchObject({
      resendOf: first.id,
      conversation: 'c1',
      sender: 's1',
      parent: 'p1',
      contentType: 'application/octet-stream',
      sha256: one.sha256,
      bytes: bytes.length,
      key: 'second',
    })
    expect(two.deliveries.map(({ host }) => host)).toEqual(['h0', 'h1'])
    expect(one).not.toHaveProperty('resendOf')
    const node = await record.join('h0', 'n1')
    const claimed = await record.claimAll(node)
    expect(claimed.map(({ payload }) => payload.equals(bytes))).toEqual([true, true])
  })

  it('goes to others when they are named', async () => {
    const first = await acceptFirst()
    const again = await record.hub.resend(first.id, { key: 'second', to: [{ host: 'other' }] })
    expect(again.deliveries.map(({ host }) => host)).toEqual(['other'])
  })

  it('is idempotent by its own key, and a mismatch for the key of another', async () => {
    const first = await acceptFirst()
    const again = await record.hub.resend(first.id, { key: 'second' })
    expect(await record.hub.resend(first.id, { key: 'second' })).toMatchObject({
      id: again.id,
      replayed: true,
    })
    await record.refused('IDEMPOTENCY_MISMATCH', () =>
      record.hub.resend(first.id, { key: 'second', to: [{ host: 'x' }] }),
    )
  })

  it('under the key of the first is the first again, not a second', async () => {
    const first = await acceptFirst()
    expect(await record.hub.resend(first.id, { key: 'first' })).toMatchObject({
      id: first.id,
      replayed: true,
    })
  })

  it('reaches all recipients of a message whose fan-out was cut', async () => {
    await record.config('inline_fan_out', 1)
    const to = ['a', 'b', 'c'].map((host) => ({ host }))
    const cut = await record.accept({ to, key: 'cut' })
    expect(cut.made).toBe(1)
    const again = await record.hub.resend(cut.id, { key: 'again' })
    expect(again.deliveries.map(({ host }) => host)).toEqual(['a', 'b', 'c'])
  })

  it('of a resend links to that one', async () => {
    const first = await acceptFirst()
    const second = await record.hub.resend(first.id, { key: '2' })
    const third = await record.hub.resend(second.id, { key: '3' })
    expect((await record.hub.message(third.id)).resendOf).toBe(second.id)
  })

  it('is refused for what is not there, or whose payload is gone', async () => {
    await record.refused('MESSAGE_NOT_FOUND', () => record.hub.resend('1764430000000-000000', { key: 'k' }))
    await record.refused('INVALID_ARGUMENT', () => record.hub.resend('x', { key: 'k' }))
    const first = await acceptFirst()
    await record.send('DEL', record.keys.payload(first.id))
    await record.refused('MESSAGE_NOT_FOUND', () => record.hub.resend(first.id, { key: 'k' }))
  })
})
