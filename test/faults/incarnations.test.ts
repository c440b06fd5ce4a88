import { copyFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Outcome } from '../../src/contract/outcomes.js'
import { startHubServer } from '../support/http.js'
import { freshPath, startNode, stopNodes } from '../support/nodes.js'
import { startProxy } from '../support/proxy.js'
import { makeRecord, settlement, type TestNode, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

let server: TestServer
const records: TestRecord[] = []

beforeAll(async () => {
  server = await startTestServer()
})

afterEach(stopNodes)

afterAll(async () => {
  for (const record of records) await record.close()
  await server?.stop()
})

async function open(name: string): Promise<TestRecord> {
  const record = await makeRecord(server, name, { heartbeat_ms: 50 })
  records.push(record)
  return record
}

const done: Outcome = { kind: 'result', result: '1' }

async function begin(record: TestRecord, node: TestNode) {
  await record.accept({ to: [{ host: 'h1' }] })
  const [delivered] = await record.deliverAll(node)
  if (delivered === undefined) throw new Error('nothing was claimed')
  return await record.begin(node, delivered)
}

describe('contract 2: who a node is', () => {
  it('a higher incarnation supersedes the earlier one in every call except report', async () => {
    const record = await open('superseded')
    const { functions } = record
    const old = await record.join('h1', 'n1', 1)
    const { id, attempt, grant } = await begin(record, old)
    const present = await record.join('h1', 'n1', 2)
    const item = { id, epoch: 1 }
    const calls: Readonly<Record<string, () => Promise<unknown>>> = {
      join: () => record.join('h1', 'n1', 1),
      heartbeat: () =>
        functions.heartbeat(old, {
          lastLogId: '0-0',
          progressAgeMs: 0,
          blocking: { sumMs: 0, longestMs: 0 },
        }),
      claim: () => record.claim(old),
      mirror: () => functions.mirror(old, [item]),
      ack: () => functions.ack(old, [item]),
      refuse: () => functions.refuse(old, [{ ...item, verdict: 'failed', reason: 'x' }]),
      begin: () => functions.begin(old, [{ ...item, grant }]),
      leave: () => functions.leave(old),
    }
    for (const call of Object.values(calls)) await record.refused('SUPERSEDED', call)
    const [answer] = await functions.report(old, [{ id: attempt, grant, key: 'k', outcome: done }])
    expect(answer).toMatchObject({ ok: true, outcome: 'result' })
    await record.claim(present)
    await record.checkInvariants()
  })

  it('what the earlier process had begun is never given to the later one, which may report it', async () => {
    const record = await open('later-report')
    const old = await record.join('h1', 'n1', 1)
    const { id, attempt, grant } = await begin(record, old)
    const present = await record.join('h1', 'n1', 2)
    expect(await record.claimAll(present)).toEqual([])
    expect(await record.hub.unknown()).toMatchObject([{ id: attempt, reason: 'superseded' }])
    await record.itemRefused('NOT_OWNER', () => record.functions.begin(present, [{ id, epoch: 1, grant }]))
    const [answer] = await record.functions.report(present, [{ id: attempt, grant, key: 'k', outcome: done }])
    expect(answer).toMatchObject({ ok: true, outcome: 'result' })
    expect(await record.hub.unknown()).toEqual([])
    await record.checkInvariants()
  })

  it('not_sent by the earlier process sends the delivery back to the queue, once', async () => {
    const record = await open('old-not-sent')
    const old = await record.join('h1', 'n1', 1)
    const { id, attempt, grant } = await begin(record, old)
    const present = await record.join('h1', 'n1', 2)
    const outcome: Outcome = { kind: 'not_sent', errorCode: 'never_started' }
    await record.functions.report(old, [{ id: attempt, grant, key: 'k', outcome }])
    expect(await record.fields(id)).toMatchObject({ state: 'queued', epoch: '2' })
    expect(await record.fields(id)).not.toHaveProperty('owner')
    const before = await record.dump()
    await record.functions.report(old, [{ id: attempt, grant, key: 'k', outcome }])
    expect(await record.dump()).toEqual(before)
    const [again] = await record.deliverAll(present)
    expect(again).toMatchObject({ id, epoch: 3, how: 'new', attempts: 1 })
    await record.checkInvariants()
  })

  it('an equal incarnation with another instance is MIRROR_CLONED, with the same one harmless', async () => {
    const record = await open('cloned')
    const node = await record.join('h1', 'n1', 1, 'i1')
    const { id } = await begin(record, node)
    await record.refused('MIRROR_CLONED', () => record.join('h1', 'n1', 1, 'i2'))
    const before = await record.fields(id)
    await record.join('h1', 'n1', 1, 'i1')
    expect(await record.fields(id)).toEqual(before)
    expect(await record.send('HGET', record.keys.node('h1', 'n1'), 'request')).toBe(String(node.request))
    expect(await record.claimAll(node)).toEqual([])
    await record.refused('NOT_JOINED', () => record.claim({ ...node, incarnation: 2 }))
    await record.refused('NOT_JOINED', () => record.claim({ ...node, node: 'n2' }))
  })

  it('the process that is superseded ends by itself, and says why', async () => {
    const record = await open('ends')
    const { node } = await startNode({ redis: server.url, hub: record.name, host: 'h1', node: 'n1' })
    await record.join('h1', 'n1', 7)
    expect(await node.closed).toMatchObject({ kind: 'failed', error: { code: 'SUPERSEDED' } })
  })

  it('a copy of a mirror does not start, and the original works on', async () => {
    const record = await open('copied')
    const mirror = freshPath('db')
    const common = { redis: server.url, hub: record.name, host: 'h1', node: 'n1' }
    const first = await startNode({ ...common, mirror })
    await expect(startNode({ ...common, mirror })).rejects.toMatchObject({ code: 'MIRROR_LOCKED' })
    await first.node.stop()
    const [copy, old] = [freshPath('db'), freshPath('db')]
    copyFileSync(mirror, copy)
    copyFileSync(mirror, old)
    const second = await startNode({ ...common, mirror })
    await expect(startNode({ ...common, mirror: copy })).rejects.toMatchObject({ code: 'MIRROR_CLONED' })
    await second.node.stop()
    const third = await startNode({ ...common, mirror })
    await expect(startNode({ ...common, mirror: old })).rejects.toMatchObject({ code: 'SUPERSEDED' })
    const { deliveries } = await record.accept({ to: [{ host: 'h1' }] })
    expect(await settlement(record, deliveries[0]?.id ?? '')).toBe('done')
    expect(third.executed).toHaveLength(1)
  })

  it.each(['http', 'redis'] as const)(
    'an earlier mirror is refused however often it is started again (%s)',
    async (transport) => {
      const record = await open(`again-${transport}`)
      const hub = await startHubServer(record)
      try {
        const reach = transport === 'http' ? { http: { url: hub.url } } : { redis: server.url }
        const common = { ...reach, hub: record.name, host: 'h1', node: 'n1' }
        const [mirror, old] = [freshPath('db'), freshPath('db')]
        const first = await startNode({ ...common, mirror })
        await first.node.stop()
        copyFileSync(mirror, old)
        const second = await startNode({ ...common, mirror })
        await second.node.stop()
        const third = await startNode({ ...common, mirror })
        for (let starts = 0; starts < 4; starts += 1)
          await expect(startNode({ ...common, mirror: old })).rejects.toMatchObject({ code: 'SUPERSEDED' })
        await third.node.stop()
        // What the right one's mirror holds is still the way in.
        const fourth = await startNode({ ...common, mirror })
        const { deliveries } = await record.accept({ to: [{ host: 'h1' }] })
        expect(await settlement(record, deliveries[0]?.id ?? '')).toBe('done')
        expect(fourth.executed).toHaveLength(1)
        await fourth.node.stop()
      } finally {
        await hub.close()
      }
    },
  )

  it('a copy stays MIRROR_CLONED however often it is started again', async () => {
    const record = await open('cloned-again')
    const [mirror, copy] = [freshPath('db'), freshPath('db')]
    const common = { redis: server.url, hub: record.name, host: 'h1', node: 'n1' }
    const first = await startNode({ ...common, mirror })
    await first.node.stop()
    copyFileSync(mirror, copy)
    const second = await startNode({ ...common, mirror })
    for (let starts = 0; starts < 3; starts += 1)
      await expect(startNode({ ...common, mirror: copy })).rejects.toMatchObject({ code: 'MIRROR_CLONED' })
    await second.node.stop()
  })

  it('a start whose join was answered to nobody is no refused one: the next start is let in', async () => {
    const record = await open('lost-join')
    const proxy = await startProxy(server.port)
    try {
      const mirror = freshPath('db')
      const common = { hub: record.name, host: 'h1', node: 'n1', mirror }
      const cut = proxy.cutAfterReply(/FCALL hf_join/i)
      const first = await startNode({ ...common, redis: proxy.url })
      await cut
      expect(first.logs).toContainEqual(expect.objectContaining({ log: 'joining again' }))
      await first.node.stop()
      const second = await startNode({ ...common, redis: server.url })
      await second.node.stop()
    } finally {
      await proxy.close()
    }
  })
})

describe('contract 3: a claim carries a request', () => {
  it('a repeated request gets the same deliveries and epochs, states current; a lower one is stale', async () => {
    const record = await open('requests')
    const { functions } = record
    const node = await record.join('h1', 'n1')
    await record.acceptMany(5, { to: [{ host: 'h1' }] })
    const first = await functions.claim(node, 1, 3)
    expect(first.deliveries).toHaveLength(3)
    const before = await record.dump()
    const again = await functions.claim(node, 1, 3)
    expect(again.deliveries).toEqual(first.deliveries)
    expect(again.more).toBe(true)
    expect((await functions.claim(node, 1, 100)).deliveries).toEqual(first.deliveries)
    expect(await record.dump()).toEqual(before)

    await functions.mirror(node, [{ id: first.deliveries[0]?.id ?? '', epoch: 1 }])
    const later = await functions.claim(node, 1, 3)
    expect(later.deliveries.map(({ state }) => state)).toEqual(['mirrored', 'claimed', 'claimed'])
    const second = await functions.claim(node, 5, 100)
    expect(second.deliveries).toHaveLength(2)
    for (const request of [1, 4])
      await record.refused('STALE_REQUEST', () => functions.claim(node, request, 3))
    expect((await functions.claim(node, 5, 100)).deliveries).toEqual(second.deliveries)
    await record.checkInvariants()
  })

  it('an empty answer is repeated as well: a delayed duplicate strands nothing', async () => {
    const record = await open('empty-request')
    const node = await record.join('h1', 'n1')
    expect((await record.functions.claim(node, 1, 10)).deliveries).toEqual([])
    await record.accept({ to: [{ host: 'h1' }] })
    expect((await record.functions.claim(node, 1, 10)).deliveries).toEqual([])
    expect((await record.functions.claim(node, 2, 10)).deliveries).toHaveLength(1)
    await record.checkInvariants()
  })

  it('the same request at once from one node hands out nothing twice', async () => {
    const record = await open('request-race')
    const node = await record.join('h1', 'n1')
    await record.acceptMany(20, { to: [{ host: 'h1' }] })
    const replies = await Promise.all(Array.from({ length: 10 }, () => record.functions.claim(node, 1, 4)))
    for (const reply of replies) expect(reply.deliveries).toEqual(replies[0]?.deliveries)
    expect(await record.hub.pending()).toHaveLength(4)
    await record.checkInvariants()
  })

  it('a later incarnation counts its requests anew and resumes what was claimed', async () => {
    const record = await open('requests-anew')
    const old = await record.join('h1', 'n1', 1)
    await record.acceptMany(2, { to: [{ host: 'h1' }] })
    const first = await record.functions.claim(old, 9, 10)
    const present = await record.join('h1', 'n1', 2)
    const resumed = await record.claimAll(present)
    expect(present.request).toBeLessThan(9)
    expect(resumed.map(({ id, epoch, how }) => [id, epoch, how])).toEqual(
      first.deliveries.map(({ id }) => [id, 2, 'resume']),
    )
    await record.checkInvariants()
  })
})
