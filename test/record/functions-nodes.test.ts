import { describe, expect, it } from 'vitest'
import { eachRecord } from '../support/each-record.js'
import type { OpenRecord } from '../support/record.js'

let record: OpenRecord

eachRecord((made) => {
  record = made
})

const who = { host: 'a', node: 'n/1', incarnation: 3 }
const beat = { lastLogId: '0-0', progressAgeMs: 40, blocking: { sumMs: 7, longestMs: 7 } }
const join = (incarnation: number, instance: string) =>
  record.functions.join({ ...who, incarnation }, instance, ['/srv'], '1-1')
const nodeRow = async () => JSON.stringify(await record.send('HGETALL', record.keys.node('a', 'n/1')))

describe('join', () => {
  it('lists host and node, and tells the settings a node works by', async () => {
    await record.config('stale_after_ms', 777)
    const reply = await join(3, 'x')
    expect(reply).toMatchObject({
      storeId: `store-${record.name}`,
      generation: 0,
      heartbeatMs: 2000,
      staleAfterMs: 777,
      maxResultBytes: 262_144,
      maxRedrive: 10,
    })
    expect(await record.send('SMEMBERS', record.keys.hosts)).toEqual(['a'])
    expect(await record.send('ZRANGE', record.keys.nodes, 0, -1)).toEqual(['a/n/1'])
    expect(await nodeRow()).toContain('"scopes","[\\"/srv\\"]"')
  })

  it('is a harmless repeat for the same process: its requests and its work go on', async () => {
    await join(3, 'x')
    await record.acceptMany(2)
    const claimed = await record.functions.claim(who, 9, 10)
    await join(3, 'x')
    expect((await record.functions.claim(who, 9, 10)).deliveries).toEqual(claimed.deliveries)
    expect((await record.functions.claim(who, 10, 10)).deliveries).toEqual([])
    expect((await record.functions.mirror(who, claimed.deliveries)).map(({ ok }) => ok)).toEqual([true, true])
  })

  it('is refused to a lower incarnation, to a copy of the mirror, and after leaving', async () => {
    await join(3, 'x')
    await record.refused('SUPERSEDED', () => join(2, 'x'))
    await record.refused('MIRROR_CLONED', () => join(3, 'y'))
    await record.functions.leave(who)
    await record.refused('LEFT', () => join(3, 'x'))
    expect(await join(4, 'z')).toMatchObject({ generation: 0 })
  })

  it('starts the requests of a new process anew', async () => {
    await join(3, 'x')
    await record.functions.claim(who, 50, 1)
    await join(4, 'y')
    expect((await record.functions.claim({ ...who, incarnation: 4 }, 1, 1)).deliveries).toEqual([])
  })

  it.each([
    [{ host: 'A' }],
    [{ host: 'a b' }],
    [{ host: 'a.' }],
    [{ host: 'x'.repeat(64) }],
    [{ node: '' }],
    [{ node: 'tab\t' }],
    [{ incarnation: 0 }],
    [{ incarnation: 1.5 }],
  ])('refuses %j', async (changes) => {
    await record.refused('INVALID_ARGUMENT', () => record.functions.join({ ...who, ...changes }, 'i', [], ''))
  })
})

describe('heartbeat', () => {
  it('says that the process lives, and carries its progress', async () => {
    await join(3, 'x')
    const reply = await record.functions.heartbeat(who, beat)
    expect(reply).toMatchObject({ heartbeatMs: 2000, staleAfterMs: 10_000 })
    const row = await nodeRow()
    expect(row).toContain(`"progress_at","${reply.nowMs - 40}"`)
    expect(row).toContain('"blocking_ms","7"')
    expect(await record.send('ZSCORE', record.keys.nodes, 'a/n/1')).toBe(String(reply.nowMs))
  })

  it('is refused to who has not joined, was superseded or has left', async () => {
    await record.refused('NOT_JOINED', () => record.functions.heartbeat(who, beat))
    await join(3, 'x')
    await record.refused('NOT_JOINED', () => record.functions.heartbeat({ ...who, incarnation: 4 }, beat))
    await record.refused('SUPERSEDED', () => record.functions.heartbeat({ ...who, incarnation: 2 }, beat))
    await record.functions.leave(who)
    await record.refused('LEFT', () => record.functions.heartbeat(who, beat))
  })
})

describe('leave', () => {
  it('takes the node off the list, wakes its host, and is answered the same again', async () => {
    await join(3, 'x')
    await record.functions.leave(who)
    expect(await record.send('ZCARD', record.keys.nodes)).toBe(0)
    expect(await record.send('XLEN', record.keys.bell('a'))).toBe(1)
    const before = await record.dump()
    await record.functions.leave(who)
    expect(await record.dump()).toEqual(before)
  })

  it('is refused to who has not joined or was superseded', async () => {
    await record.refused('NOT_JOINED', () => record.functions.leave(who))
    await join(3, 'x')
    await record.refused('SUPERSEDED', () => record.functions.leave({ ...who, incarnation: 2 }))
    await record.refused('INVALID_ARGUMENT', () => record.functions.leave({ ...who, incarnation: -1 }))
  })
})
