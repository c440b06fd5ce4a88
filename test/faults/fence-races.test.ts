import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
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

const covered = 'c1'
const free = 'c2'
const count = 240

/** One move that the log tells of. */
interface Move {
  readonly logId: string
  readonly from: string
  readonly to: string
  /** Delivery or attempt. */
  readonly id: string
}

async function moves(): Promise<Move[]> {
  const entries = (await record.send('XRANGE', record.keys.log, '-', '+')) as [string, string[]][]
  return entries.flatMap(([logId, fields]) => {
    const found: Move[] = []
    for (let at = 0; at + 5 < fields.length + 1; at += 2) {
      if (fields[at] !== 'ids' || fields[at + 2] !== 'from' || fields[at + 4] !== 'to') continue
      const [from = '', to = ''] = [fields[at + 3], fields[at + 5]]
      for (const id of (fields[at + 1] ?? '').split(' ')) found.push({ logId, from, to, id })
    }
    return found
  })
}

/** Log ids in the order of the log. */
function isAfter(one: string, other: string): boolean {
  const [ms = 0, sequence = 0] = one.split('-').map(Number)
  const [otherMs = 0, otherSequence = 0] = other.split('-').map(Number)
  return ms > otherMs || (ms === otherMs && sequence > otherSequence)
}

interface Racer {
  readonly who: TestNode
  readonly functions: Functions
}

/** Nodes of host a, each with a connection of its own. */
async function racers(total: number): Promise<Racer[]> {
  const found: Racer[] = []
  for (let at = 0; at < total; at += 1) {
    const store = await openStore({ url: server.url, name: `racer-${at}` })
    stores.push(store)
    found.push({ who: await record.join('a', `n${at}`), functions: functionsOf(store, record.keys.tag) })
  }
  return found
}

/** Covered and free ones by turns, queued. */
async function queueBoth(): Promise<Set<string>> {
  const ids = new Set<string>()
  for (let at = 0; at < count; at += 40) {
    for (const id of await record.acceptMany(20, { conversation: covered })) ids.add(id)
    await record.acceptMany(20, { conversation: free })
  }
  return ids
}

/** Sets the fence once `enough` says that the race is on; answers the id of its acknowledgement. */
async function setFence(kind: 'pause' | 'hold' | 'block', enough: () => boolean): Promise<string> {
  await until(enough, { everyMs: 0, what: 'the race under way' })
  return (await record.hub[kind](`conversation:${covered}`, { reason: 'now', actor: 'kim' })).logId
}

describe('faults.md 10: a fence is set while claims race with it', () => {
  it.each(['pause', 'hold', 'block'] as const)(
    '%s: no claim is granted after its acknowledgement',
    async (kind) => {
      record = await makeRecord(server, `race-claim-${kind}`)
      const ids = await queueBoth()
      const claimers = await racers(8)
      let granted = 0
      let ended = 0
      const run = async ({ who, functions }: Racer) => {
        for (let more = true; more; ) {
          who.request += 1
          const reply = await functions.claim(who, who.request, 1)
          granted += reply.deliveries.length
          more = reply.more || reply.deliveries.length > 0
        }
        ended += 1
      }
      const racing = claimers.map(run)
      const fenceId = await setFence(kind, () => granted > count / 6)
      expect(ended).toBe(0)
      await Promise.all(racing)

      const claims = (await moves()).filter(({ to }) => to === 'claimed')
      const [inTime, late] = [
        claims.filter((each) => !isAfter(each.logId, fenceId)),
        claims.filter((each) => isAfter(each.logId, fenceId)),
      ]
      expect(inTime.filter(({ id }) => ids.has(id)).length).toBeGreaterThan(0)
      expect(late.filter(({ id }) => !ids.has(id)).length).toBeGreaterThan(0)
      expect(late.filter(({ id }) => ids.has(id))).toEqual([])
      const states = await record.states([...ids])
      const elsewhere = { pause: 'queued', hold: 'held', block: 'failed' }[kind]
      expect(new Set(states)).toEqual(new Set(['claimed', elsewhere]))
      await record.checkInvariants()
    },
  )

  it.each(['pause', 'hold', 'block'] as const)(
    '%s: no begin is granted after its acknowledgement',
    async (kind) => {
      record = await makeRecord(server, `race-begin-${kind}`)
      const ids = await queueBoth()
      const starters = await racers(8)
      const items = await Promise.all(
        starters.map(async ({ who }) =>
          record.deliverAll({ ...who, request: 0 }, 30).then((all) => [...all]),
        ),
      )
      let granted = 0
      let ended = 0
      const run = async ({ who, functions }: Racer, at: number) => {
        for (const { id, epoch } of items[at] ?? []) {
          const [answer] = await functions.begin(who, [{ id, epoch, grant: `g-${id}` }])
          granted += answer?.ok ? 1 : 0
        }
        ended += 1
      }
      const racing = starters.map(run)
      const fenceId = await setFence(kind, () => granted > count / 6)
      expect(ended).toBeLessThan(starters.length)
      await Promise.all(racing)

      const begins = (await moves()).filter(({ from, to }) => from === 'idle' && to === 'executing')
      const isCovered = ({ id }: Move) => ids.has(id.split('/')[0] ?? '')
      const late = begins.filter((each) => isAfter(each.logId, fenceId))
      expect(begins.filter(isCovered).length).toBeGreaterThan(0)
      expect(late.filter((each) => !isCovered(each)).length).toBeGreaterThan(0)
      expect(late.filter(isCovered)).toEqual([])
      await record.checkInvariants()
    },
  )
})
