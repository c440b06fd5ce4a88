import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { isHoldfastError } from '../../src/contract/errors.js'
import { initRecord, openHub } from '../../src/hub/open-hub.js'
import { hashOf, makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

let server: TestServer
let record: TestRecord
let name = 0

beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server?.stop())
beforeEach(async () => {
  name += 1
  record = await makeRecord(server, `hub-${name}`)
})
afterEach(async () => {
  await record.checkInvariants()
  await record.close()
})

const to = (count: number) => Array.from({ length: count }, (_, at) => ({ host: `h${at}` }))
const message = { key: 'k', conversation: 'c', sender: 's', to: to(300), payload: 'p' }

describe('accept', () => {
  it('completes the fan-out of 300 recipients and answers them all', async () => {
    const accepted = await record.hub.accept(message)
    expect(accepted).toMatchObject({ fanOut: 'complete', replayed: false })
    expect(accepted.deliveries.map(({ host }) => host)).toEqual(message.to.map(({ host }) => host))
    expect(accepted.deliveries.map(({ id }) => id)).toEqual(
      to(300).map((_, at) => `${accepted.id}.${at + 1}`),
    )
    expect(await record.hub.counts()).toMatchObject({ queued: 300 })
  })

  it('answers a repeat with the first ids and their present states', async () => {
    const accepted = await record.hub.accept(message)
    const node = await record.join('h1', 'n1')
    await record.deliverAll(node)
    const again = await record.hub.accept(message)
    expect(again).toMatchObject({ id: accepted.id, replayed: true, fanOut: 'complete' })
    expect(again.deliveries.map(({ id }) => id)).toEqual(accepted.deliveries.map(({ id }) => id))
    expect(again.deliveries[1]?.state).toBe('delivered')
  })

  it('completes a cut fan-out when the key is repeated', async () => {
    await record.config('inline_fan_out', 2)
    const cut = await record.accept({ ...message, to: to(300) })
    expect(cut.made).toBe(2)
    const again = await record.hub.accept(message)
    expect(again).toMatchObject({ id: cut.id, replayed: true, fanOut: 'complete' })
    expect(again.deliveries).toHaveLength(300)
  })

  it('makes one message of fifty parallel accepts of one key on two hubs', async () => {
    const other = await openHub({ redis: server.url, hub: record.name })
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, at) => (at % 2 === 0 ? record.hub : other).accept(message)),
    )
    await other.close()
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1)
    expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1)
    for (const answer of answers) {
      expect(answer.fanOut).toBe('complete')
      expect(new Set(answer.deliveries.map(({ id }) => id)).size).toBe(300)
    }
  })

  it.each([
    ['an unknown member', { ...message, extra: 1 }],
    ['a bad host', { ...message, to: [{ host: 'A' }] }],
    ['a lone surrogate', { ...message, payload: '\ud800' }],
  ])('refuses %s and stores nothing', async (_, bad) => {
    await record.refused('INVALID_ARGUMENT', () => record.hub.accept(bad as typeof message))
  })

  it('passes refusals of the record on', async () => {
    await record.hub.accept(message)
    await record.refused('IDEMPOTENCY_MISMATCH', () => record.hub.accept({ ...message, payload: 'other' }))
    await record.refused('NO_ROUTE', () =>
      record.hub.accept({ ...message, key: 'k2', to: [{ session: 'never' }] }),
    )
  })
})

describe('accepts at the same time', () => {
  const small = (key: string, changes: Partial<typeof message> = {}) => ({
    ...message,
    key,
    to: to(2),
    ...changes,
  })

  async function acceptEntries(): Promise<Record<string, string>[]> {
    const entries = (await record.send('XRANGE', record.keys.log, '-', '+')) as [string, string[]][]
    return entries.map(([, fields]) => hashOf(fields)).filter(({ verb }) => verb === 'accept')
  }

  it('share calls, a bounded number of messages in each, and are answered each its own', async () => {
    const keys = Array.from({ length: 300 }, (_, at) => `k${at}`)
    const answers = await Promise.all(keys.map((key) => record.hub.accept(small(key, { payload: key }))))
    expect(new Set(answers.map(({ id }) => id)).size).toBe(300)
    for (const [at, { id, deliveries, fanOut, replayed }] of answers.entries()) {
      expect([fanOut, replayed]).toEqual(['complete', false])
      expect(deliveries.map((each) => each.id)).toEqual([`${id}.1`, `${id}.2`])
      expect(await record.send('GET', record.keys.payload(id))).toBe(keys[at])
    }
    const entries = await acceptEntries()
    const sizes = entries.map(({ messages }) => Number(messages ?? 1))
    expect(sizes.reduce((total, size) => total + size, 0)).toBe(300)
    expect(entries.length).toBeLessThan(60)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(64)
  })

  it('that are heavy go in smaller company: by recipients, and by bytes', async () => {
    await Promise.all(to(40).map(({ host }) => record.hub.accept(small(host, { to: to(100) }))))
    expect(Math.max(...(await acceptEntries()).map(({ messages }) => Number(messages ?? 1)))).toBeLessThan(3)
    await record.send('DEL', record.keys.log)
    const payload = 'x'.repeat(200_000)
    await Promise.all(to(20).map(({ host }) => record.hub.accept(small(`bytes ${host}`, { payload }))))
    expect(Math.max(...(await acceptEntries()).map(({ messages }) => Number(messages ?? 1)))).toBeLessThan(6)
  })

  it('are refused each for itself, by the error of its own', async () => {
    await record.hub.accept(small('known'))
    await record.config('max_payload_bytes', 100)
    await record.config('max_recipients', 3)
    const wanted: Record<string, Partial<typeof message>> = {
      IDEMPOTENCY_MISMATCH: { key: 'known', payload: 'other' },
      PAYLOAD_TOO_LARGE: { payload: 'x'.repeat(101) },
      TOO_MANY_RECIPIENTS: { to: to(4) },
      NO_ROUTE: { to: [{ session: 'never' }] as never },
      INVALID_ARGUMENT: { sender: 'é' },
    }
    const asked = Array.from({ length: 50 }, (_, at) => {
      const [code, changes] = Object.entries(wanted)[at % 10] ?? []
      return { code: code ?? 'accepted', call: () => record.hub.accept(small(`k${at}`, changes)) }
    })
    const answers = await Promise.all(
      asked.map(({ call }) =>
        call().then(
          () => 'accepted',
          (error: unknown) => (isHoldfastError(error) ? error.code : String(error)),
        ),
      ),
    )
    expect(answers).toEqual(asked.map(({ code }) => code))
    expect(await record.hub.counts()).toMatchObject({ queued: 2 * 26 })
  })

  it('on two hubs with the same fifty keys make fifty messages', async () => {
    const other = await openHub({ redis: server.url, hub: record.name })
    const keys = Array.from({ length: 50 }, (_, at) => `k${at}`)
    const post = (hub: typeof other, order: readonly string[]) =>
      Promise.all(order.map(async (key) => ({ key, ...(await hub.accept(small(key))) })))
    const answers = (await Promise.all([post(record.hub, keys), post(other, keys.toReversed())])).flat()
    await other.close()
    for (const key of keys) {
      const mine = answers.filter((answer) => answer.key === key)
      expect(new Set(mine.map(({ id }) => id)).size, key).toBe(1)
      expect(mine.map(({ replayed }) => replayed).toSorted(), key).toEqual([false, true])
      expect(mine.map(({ deliveries }) => deliveries.map(({ host }) => host))).toEqual([
        ['h0', 'h1'],
        ['h0', 'h1'],
      ])
    }
    expect(new Set(answers.map(({ id }) => id)).size).toBe(50)
    expect(await record.hub.counts()).toMatchObject({ queued: 100 })
  })

  it('complete their fan-outs beyond what a call makes at once', async () => {
    await record.config('inline_fan_out', 3)
    const answers = await Promise.all(
      to(20).map(({ host }, at) => record.hub.accept(small(host, { to: to(1 + 10 * at) }))),
    )
    expect(answers.map(({ fanOut }) => fanOut)).not.toContain('pending')
    expect(answers.map(({ deliveries }) => deliveries.length)).toEqual(to(20).map((_, at) => 1 + 10 * at))
    expect(await record.send('ZCARD', record.keys.obligations)).toBe(0)
  })
})

describe('without a record', () => {
  it('opening answers STORE_UNKNOWN and makes nothing', async () => {
    const caught = await openHub({ redis: server.url, hub: 'nowhere' }).catch((error: unknown) => error)
    expect(isHoldfastError(caught, 'STORE_UNKNOWN')).toBe(true)
    expect(server.cli('EXISTS', '{nowhere}:identity')).toBe('0')
  })

  it('every call of an open hub answers STORE_UNKNOWN once the record is gone', async () => {
    await initRecord({ redis: server.url, hub: 'gone' })
    const hub = await openHub({ redis: server.url, hub: 'gone' })
    server.cli('DEL', '{gone}:identity')
    const id = '1764430000000-000000'
    const calls: Record<string, () => Promise<unknown>> = {
      accept: () => hub.accept(message),
      repair: () => hub.repair(),
      message: () => hub.message(id),
      delivery: () => hub.delivery(`${id}.1`),
      deliveries: () => hub.deliveries(),
      why: () => hub.why(`${id}.1`),
      pending: () => hub.pending(),
      unknown: () => hub.unknown(),
      hosts: () => hub.hosts(),
      counts: () => hub.counts(),
      fences: () => hub.fences(),
      pause: () => hub.pause('hub', { reason: 'r', actor: 'a' }),
      block: () => hub.block('hub', { reason: 'r', actor: 'a' }),
      lift: () => hub.lift('pause', 'hub', 'a'),
    }
    for (const [verb, call] of Object.entries(calls)) {
      const caught = await call().catch((error: unknown) => error)
      expect(isHoldfastError(caught, 'STORE_UNKNOWN'), `${verb}: ${String(caught)}`).toBe(true)
    }
    await hub.close()
    expect(server.cli('KEYS', '{gone}:*')).toBe('')
  })
})
