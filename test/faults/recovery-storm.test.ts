import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { ClaimedDelivery } from '../../src/contract/steps.js'
import { openStore, type Store } from '../../src/record/connections.js'
import { type Functions, functionsOf } from '../../src/record/functions.js'
import { makeRecord, type TestNode, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

let server: TestServer
let record: TestRecord
const stores: Store[] = []

beforeAll(async () => {
  server = await startTestServer()
})
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()))
  await record.close()
})
afterAll(() => server?.stop())

const beat = { lastLogId: '0-0', progressAgeMs: 0, blocking: { sumMs: 0, longestMs: 0 } }

/** A node with a connection of its own, so that its calls race with those of the others. */
interface Recoverer {
  readonly who: TestNode
  readonly functions: Functions
}

async function recoverers(count: number): Promise<Recoverer[]> {
  const found: Recoverer[] = []
  for (let at = 0; at < count; at += 1) {
    const store = await openStore({ url: server.url, name: `recoverer-${at}` })
    stores.push(store)
    found.push({ who: await record.join('a', `r${at}`), functions: functionsOf(store, record.keys.tag) })
  }
  return found
}

/** All claim at once, and go on until together they have got so many. */
async function storm(by: readonly Recoverer[], total: number): Promise<ClaimedDelivery[]> {
  const taken: ClaimedDelivery[] = []
  const run = async ({ who, functions }: Recoverer) => {
    await until(
      async () => {
        await functions.heartbeat(who, beat)
        who.request += 1
        const { deliveries } = await functions.claim(who, who.request, 7)
        taken.push(...deliveries)
        return taken.length >= total
      },
      { timeoutMs: 40_000, everyMs: 0, what: `${total} taken over` },
    )
  }
  await Promise.all(by.map(run))
  return taken
}

/** Some claimed, some mirrored, some delivered, all of one node. */
async function ownedBy(node: TestNode, count: number): Promise<string[]> {
  const ids = await record.acceptMany(count)
  const claimed = await record.claimAll(node)
  const third = Math.floor(count / 3)
  await record.functions.mirror(node, claimed.slice(0, 2 * third))
  await record.functions.ack(node, claimed.slice(0, third))
  return ids
}

describe('faults.md 7: a thousand stale claims and eight recoverers on a barrier', () => {
  it('after a clean leave: each is taken once, under a higher epoch, uncounted', async () => {
    record = await makeRecord(server, 'storm', { stale_after_ms: 600_000 })
    const gone = await record.join('a', 'gone')
    const ids = await ownedBy(gone, 1000)
    const ready = await recoverers(8)
    await record.functions.leave(gone)
    const taken = await storm(ready, ids.length)

    expect(taken.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
    expect(new Set(taken.map(({ how, epoch }) => `${how} ${epoch}`))).toEqual(new Set(['takeover 2']))
    const rows = await Promise.all(ids.map((id) => record.fields(id)))
    expect(new Set(rows.map(({ takeovers, epoch }) => `${takeovers} ${epoch}`))).toEqual(new Set(['0 2']))
    expect(new Set(rows.map(({ taken_from }) => taken_from))).toEqual(new Set(['gone#1']))
    for (const { who } of ready) expect(await record.claimAll(who)).toEqual([])
    await record.checkInvariants()
  })

  it('after a crash: each is taken once, under a higher epoch, counted once', async () => {
    record = await makeRecord(server, 'storm-crash', { heartbeat_ms: 100, stale_after_ms: 2000 })
    const gone = await record.join('a', 'gone')
    const ids = await ownedBy(gone, 48)
    const taken = await storm(await recoverers(8), ids.length)

    expect(taken.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
    const rows = await Promise.all(ids.map((id) => record.fields(id)))
    expect(new Set(rows.map(({ takeovers, epoch }) => `${takeovers} ${epoch}`))).toEqual(new Set(['1 2']))
    await record.checkInvariants()
  })

  it('a claim that is repeated in the storm gets the same deliveries and epochs', async () => {
    record = await makeRecord(server, 'storm-repeat', { stale_after_ms: 600_000 })
    const gone = await record.join('a', 'gone')
    await ownedBy(gone, 90)
    const ready = await recoverers(8)
    await record.functions.leave(gone)
    const brief = (deliveries: readonly ClaimedDelivery[]) =>
      deliveries.map(({ id, epoch }) => `${id} ${epoch}`)
    const pairs = await Promise.all(
      ready.map(async ({ who, functions }) => {
        const calls = [functions.claim(who, 1, 7), functions.claim(who, 1, 7), functions.claim(who, 1, 7)]
        return (await Promise.all(calls)).map(({ deliveries }) => brief(deliveries))
      }),
    )
    for (const [first, ...repeats] of pairs) for (const repeat of repeats) expect(repeat).toEqual(first)
    const all = pairs.flatMap(([first = []]) => first)
    expect(new Set(all).size).toBe(all.length)
    expect(all.length).toBe(8 * 7)
    await record.checkInvariants()
  })
})
