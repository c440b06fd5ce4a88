import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { group } from '../../src/record/keys.js'
import { makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

// What a page costs, by the commands that the server counted, over lists that no page could walk.

const queued = 100_000
let server: TestServer
let record: TestRecord
let claimed: string[]

/** So many queued deliveries of host `a`, then three claimed ones, by the server itself. */
const filling = `
  local tag, first, last, state = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
  local entries = {}
  for number = first, last do
    local id = '1700000000000-00000000.' .. number
    redis.call('HSET', tag .. ':delivery:' .. id, 'state', state, 'host', 'a', 'conversation', 'c1', 'epoch', 1,
      'attempts', 0, 'queued_at', 1)
    entries[#entries + 1] = redis.call('XADD', tag .. ':stream:a', '*', 'delivery', id)
  end
  return { entries[1], entries[#entries] }`

beforeAll(async () => {
  server = await startTestServer()
  record = await makeRecord(server, 'bounded')
  const { send, keys } = record
  await record.accept({ to: [{ host: 'a' }] })
  for (let first = 1; first < queued; first += 20_000) {
    await send('EVAL', filling, 0, keys.tag, first, first + 19_999, 'queued')
  }
  claimed = []
  for (let number = queued + 1; number <= queued + 3; number += 1) {
    const [entry] = (await send('EVAL', filling, 0, keys.tag, number, number, 'claimed')) as [string]
    await send('XCLAIM', keys.stream('a'), group, 'n1', 0, entry, 'FORCE')
    claimed.push(`1700000000000-00000000.${number}`)
  }
}, 120_000)
afterAll(async () => {
  await record?.close()
  await server?.stop()
})

/** What the server was asked meanwhile: calls by the name of the command. */
async function costOf(act: () => Promise<unknown>): Promise<Map<string, number>> {
  await record.send('CONFIG', 'RESETSTAT')
  await act()
  const text = String(await record.send('INFO', 'commandstats'))
  return new Map(
    [...text.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].map(([, name = '', calls]) => [name, Number(calls)]),
  )
}

describe('deliveries', () => {
  it('a page over 100,000 queued ones of which none is wanted reads about a thousand rows', async () => {
    for (const filter of [
      { conversation: 'other' },
      { session: 's', state: 'queued' },
      { state: 'queued', reason: 'x' },
    ] as const) {
      let page: Awaited<ReturnType<typeof record.hub.deliveries>> | undefined
      const cost = await costOf(async () => {
        page = await record.hub.deliveries({ host: 'a', ...filter })
      })
      expect(page?.deliveries).toEqual([])
      expect(page?.cursor).toMatch(/^stream a \d+-\d+$/)
      expect(cost.get('hgetall')).toBe(1000)
      expect(cost.get('xrange')).toBe(5)
    }
  })

  it('the cursor of an empty page leads on', async () => {
    const { cursor } = await record.hub.deliveries({ host: 'a', conversation: 'other' })
    const next = await record.hub.deliveries({ host: 'a', conversation: 'c1', limit: 1, cursor })
    // After the one that was accepted and 999 of the others.
    expect(next.deliveries.map(({ id }) => id)).toEqual(['1700000000000-00000000.1000'])
  })

  it('claimed ones behind 100,000 queued ones are found without these', async () => {
    let found: string[] = []
    const cost = await costOf(async () => {
      found = (await record.hub.deliveries({ state: 'claimed' })).deliveries.map(({ id }) => id)
    })
    expect(found).toEqual(claimed)
    expect(cost.get('hgetall')).toBe(3)
    expect(cost.get('xrange')).toBe(3)
    expect((await record.hub.deliveries({ state: 'mirrored' })).deliveries).toEqual([])
  })

  it('an act on many looks at a page of rows as well', async () => {
    const filter = { state: 'queued', conversation: 'other' } as const
    const options = { actor: 'kim', reason: 'r', dryRun: true }
    const cost = await costOf(() => record.hub.actOnMany('hold', filter, options))
    expect(cost.get('hgetall')).toBe(1000)
    const some = await record.hub.actOnMany(
      'hold',
      { ...filter, conversation: 'c1' },
      { ...options, limit: 7 },
    )
    expect(some).toMatchObject({ matched: 7, done: 0, cursor: expect.any(String) })
  })

  it('hosts where nothing is are passed by, 500 on a page', async () => {
    const { send, keys } = record
    const names = Array.from({ length: 1200 }, (_, at) => `empty-${String(at).padStart(4, '0')}`)
    await send('SADD', keys.hosts, ...names)
    const cursors: (string | undefined)[] = []
    for (let cursor: string | undefined = 'stream empty-0000 -'; cursor !== undefined; ) {
      let page: Awaited<ReturnType<typeof record.hub.deliveries>> | undefined
      const cost = await costOf(async () => {
        page = await record.hub.deliveries({ state: 'queued', cursor })
      })
      expect(cost.get('xlen')).toBeLessThanOrEqual(500)
      expect(cost.has('xrange')).toBe(false)
      cursor = page?.cursor
      cursors.push(cursor)
    }
    expect(cursors).toEqual(['stream empty-0500 -', 'stream empty-1000 -', undefined])
    const hosts = await costOf(() => record.hub.hostPage({ limit: 1000 }))
    // Round trips, by the look at the identity that each of them begins with.
    expect(hosts.get('hget')).toBeLessThan(12)
    await send('SREM', keys.hosts, ...names)
  })
})

describe('messages', () => {
  it('a page looks at 2000 entries of the log, and at 1000 rows', async () => {
    const { send, keys } = record
    const add = `for _ = 1, 5000 do redis.call('XADD', KEYS[1], '*', 'verb', ARGV[1], 'actor', ARGV[2], 'key', 'k') end`
    await send('EVAL', add, 1, keys.log, 'accept', 'tests')
    const costOfPage = (filter: object) => costOf(() => record.hub.messagePage(filter))
    const byRows = await costOfPage({ conversation: 'other' })
    expect(byRows.get('hgetall')).toBeGreaterThanOrEqual(1000)
    expect(byRows.get('hgetall')).toBeLessThanOrEqual(1200)
    const bySender = await costOfPage({ sender: 'somebody else' })
    expect(bySender.has('hgetall')).toBe(false)
    expect(bySender.get('xrevrange')).toBeLessThan(10)
    const seen: string[] = []
    let pages = 0
    for (let cursor: string | undefined; pages < 20; ) {
      const page = await record.hub.messagePage({ conversation: 'c1', cursor })
      seen.push(...page.entries.map(({ conversation }) => conversation))
      pages += 1
      cursor = page.cursor
      if (cursor === undefined) break
    }
    expect({ seen, pages }).toEqual({ seen: ['c1'], pages: 6 })
  })
})
