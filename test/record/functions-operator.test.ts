import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { keysUnder, type OpenRecord, openRecord, type TestNode } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

// What an operator does with nothing but redis-cli.

let server: TestServer
let record: OpenRecord
let node: TestNode
let tag: string

beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server?.stop())
beforeEach(async () => {
  record = await openRecord(server)
  node = await record.join('a', 'n1')
  tag = record.keys.tag
})
afterEach(async () => {
  await record.checkInvariants()
  await record.close()
})

const read: Record<string, (key: string) => string[]> = {
  string: (key) => ['GET', key],
  hash: (key) => ['HGETALL', key],
  list: (key) => ['LRANGE', key, '0', '-1'],
  set: (key) => ['SMEMBERS', key],
  zset: (key) => ['ZRANGE', key, '0', '-1', 'WITHSCORES'],
  stream: (key) => ['XRANGE', key, '-', '+'],
}

it('reads every kind of key as plain text', async () => {
  await record.config('inline_fan_out', 1)
  await record.accept({ to: [{ host: 'a' }, { host: 'b' }] })
  await record.acceptMany(3)
  const delivered = await record.deliverAll(node)
  await record.begin(node, delivered[0] ?? { id: '', epoch: 0 })
  await record.acceptMany(1, { conversation: 'c2' })
  server.cli('HSET', `${tag}:fences`, 'pause:conversation:c2', 'customer asked')
  await record.claimAll(node)
  const types = new Set<string>()
  for (const key of await keysUnder(record.store, tag)) {
    const type = server.cli('TYPE', key)
    types.add(type)
    const text = server.cli(...(read[type]?.(key) ?? []))
    expect(text, key).not.toBe('')
    expect(text, key).toMatch(/^[\x20-\x7e\n]*$/)
  }
  expect([...types].sort()).toEqual(['hash', 'list', 'set', 'stream', 'string', 'zset'])
  expect(server.cli('HGET', `${tag}:delivery:${delivered[0]?.id}`, 'attempt_status')).toBe('executing')
})

it('sees in XPENDING what is claimed and mirrored', async () => {
  await record.acceptMany(5)
  const claimed = await record.claimAll(node)
  await record.functions.mirror(node, claimed.slice(0, 3))
  await record.functions.ack(node, claimed.slice(0, 1))
  const [total, , , consumer, pending] = server.cli('XPENDING', `${tag}:stream:a`, 'nodes').split('\n')
  expect([total, consumer, pending]).toEqual(['4', 'n1', '4'])
  const counts = server.cli('HMGET', `${tag}:counts`, 'claimed', 'mirrored').split('\n').map(Number)
  expect(counts).toEqual([2, 2])
})

it('pauses with a bare HSET and goes on with a bare HDEL', async () => {
  server.cli('HSET', `${tag}:fences`, 'pause:conversation:c1', 'customer asked')
  const [id = ''] = await record.acceptMany(1)
  expect(await record.claimAll(node)).toEqual([])
  expect(server.cli('HGET', `${tag}:delivery:${id}`, 'parked_by')).toBe('pause:conversation:c1')
  server.cli('HDEL', `${tag}:fences`, 'pause:conversation:c1')
  expect(await record.claimAll(node)).toHaveLength(1)
})

it('pauses, blocks and lifts with FCALL, and asks why with FCALL_RO', async () => {
  const [id = ''] = await record.acceptMany(1)
  expect(server.cli('FCALL', 'hf_pause', '1', tag, 'conversation:c1', 'customer asked', 'kim')).toContain(
    'pause:conversation:c1',
  )
  expect(await record.claimAll(node)).toEqual([])
  const why = server.cli('FCALL_RO', 'hf_why', '1', tag, id)
  expect(why).toContain('fenced')
  expect(why).toContain('customer asked')
  const lifted = server.cli('FCALL', 'hf_lift', '1', tag, 'pause', 'conversation:c1', 'kim').split('\n')
  expect(lifted).toContain('pause:conversation:c1')
  expect(server.cli('FCALL', 'hf_lift', '1', tag, 'pause', 'conversation:c1', 'kim')).toMatch(
    /^FENCE_NOT_FOUND /,
  )
  expect(server.cli('FCALL', 'hf_pause', '1', tag, 'everything', 'r', 'kim')).toMatch(/^INVALID_ARGUMENT /)
  expect(await record.claimAll(node)).toHaveLength(1)
  expect(server.cli('FCALL', 'hf_block', '1', tag, 'hub', 'r', 'kim')).toContain('block:hub')
})

it('answers a refusal, not a fault, to a call without arguments', async () => {
  for (const verb of [
    'pause',
    'block',
    'lift',
    'why',
    'accept',
    'claim',
    'join',
    'leave',
    'heartbeat',
    'fan_out',
    'report',
    'ack',
    'init',
  ]) {
    await record.refused('INVALID_ARGUMENT', () => record.store.fcall(`hf_${verb}`, tag, []))
  }
})
