import { expect, it } from 'vitest'
import { eachRecord } from '../support/each-record.js'
import type { OpenRecord, TestNode } from '../support/record.js'

let record: OpenRecord
let node: TestNode

eachRecord(async (made) => {
  record = made
  node = await record.join('a', 'n1')
})

const hourMs = 3_600_000
const heartbeatMs = 2000

/** A claim that looks at the other nodes of the host now; answers the server's time. */
async function lookAtPeers(): Promise<number> {
  await record.send('HSET', record.keys.host('a'), 'peers_look_at', 0)
  return (await record.claim(node)).nowMs
}

const heartbeatOf = async (id: string) =>
  Number(await record.send('HGET', record.keys.node('a', id), 'heartbeat_at'))

it('a heartbeat from before a backward jump of the clock counts from now', async () => {
  await record.join('a', 'n2')
  const now = await lookAtPeers()
  await record.send('HSET', record.keys.node('a', 'n2'), 'heartbeat_at', now + hourMs)
  const looked = await lookAtPeers()
  expect(await heartbeatOf('n2')).toBeLessThanOrEqual(looked)
})

/** A node of the host left, and owns one delivery. */
async function leaveOne(): Promise<string> {
  const other = await record.join('a', 'n2')
  const [id = ''] = await record.acceptMany(1)
  await record.claimAll(other)
  await record.functions.leave(other)
  return id
}

it('peers are looked at when the row of the host says so, not before', async () => {
  const now = await lookAtPeers()
  const id = await leaveOne()
  await record.send('HSET', record.keys.host('a'), 'peers_look_at', now + 5000)
  const { deliveries, nextAtMs } = await record.claim(node)
  expect(deliveries).toEqual([])
  expect(nextAtMs).toBe(now + 5000)
  await record.send('HSET', record.keys.host('a'), 'peers_look_at', 0)
  expect((await record.claim(node)).deliveries.map((each) => each.id)).toEqual([id])
})

it('a time of looking that a backward jump of the clock put far ahead is looked past', async () => {
  const now = await lookAtPeers()
  const id = await leaveOne()
  await record.send('HSET', record.keys.host('a'), 'peers_look_at', now + hourMs)
  expect((await record.claim(node)).deliveries.map((each) => each.id)).toEqual([id])
})

it('a leave of an earlier process is refused, also after the present one has left', async () => {
  const later = await record.join('a', 'n1', 2)
  await record.functions.leave(later)
  await record.refused('SUPERSEDED', () => record.functions.leave(node))
  await record.refused('NOT_JOINED', () => record.functions.leave({ ...node, incarnation: 3 }))
  await record.functions.leave(later)
})

it('a time of judging that a backward jump of the clock put far ahead is shortened', async () => {
  await record.join('a', 'n2')
  const now = await lookAtPeers()
  await record.send('HSET', record.keys.node('a', 'n2'), 'heartbeat_at', now - hourMs)
  await record.send('HSET', record.keys.liveness, 'judge_after', now + hourMs)
  const looked = await lookAtPeers()
  const judgeAfter = Number(await record.send('HGET', record.keys.liveness, 'judge_after'))
  expect(judgeAfter).toBeGreaterThan(now)
  expect(judgeAfter).toBeLessThanOrEqual(looked + 1.5 * heartbeatMs)
})

it('a hub whose nodes were all heard in the future judges nobody for a while', async () => {
  const now = await lookAtPeers()
  await record.send('ZADD', record.keys.nodes, now + hourMs, 'a/n1')
  await record.functions.heartbeat(node, {
    lastLogId: '0-0',
    progressAgeMs: 0,
    blocking: { sumMs: 0, longestMs: 0 },
  })
  expect(Number(await record.send('HGET', record.keys.liveness, 'judge_after'))).toBeGreaterThan(now)
})

it('a stall longer than stale_after_ms is one also where heartbeat_ms is set above that', async () => {
  await record.config('stale_after_ms', 1500)
  await record.config('heartbeat_ms', 60_000)
  const other = await record.join('a', 'n2')
  const [id = ''] = await record.acceptMany(1)
  await record.claimAll(other)
  const silentSince = (await lookAtPeers()) - 2000
  for (const name of ['n1', 'n2']) {
    await record.send('HSET', record.keys.node('a', name), 'heartbeat_at', silentSince)
    await record.send('ZADD', record.keys.nodes, silentSince, `a/${name}`)
  }
  await record.send('HSET', record.keys.host('a'), 'peers_look_at', 0)
  expect((await record.claim(node)).deliveries, 'what n2 has').toEqual([])
  expect(Number(await record.send('HGET', record.keys.liveness, 'last_heard_at'))).toBe(silentSince)
  const judgeAfter = Number(await record.send('HGET', record.keys.liveness, 'judge_after'))
  expect(judgeAfter - silentSince, 'a pace and a half after it').toBeLessThan(2000 + 1500)
  // Nobody speaks after it either: n2 is judged.
  await record.send('HSET', record.keys.liveness, 'judge_after', silentSince)
  await record.send('HSET', record.keys.host('a'), 'peers_look_at', 0)
  expect((await record.claim(node)).deliveries.map((each) => each.id)).toEqual([id])
})
