import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { NodeIdentity } from '../../src/contract/steps.js'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

let server: TestServer
let record: OpenRecord
const folders: string[] = []

beforeEach(async () => {
  server = await startTestServer()
  record = await openRecord(server, { name: 'attest' })
  await record.config('stale_after_ms', 60_000)
})
afterEach(async () => {
  await record.close()
  await server.stop()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

const attest = (seen = '0-0', policy: 'always' | 'everysec' | 'no' | 'unseen' = 'always') =>
  record.functions.attest('tests', seen, policy)

/** Until there is nothing more to do. */
async function attestWhole(seen?: string, policy?: 'always' | 'everysec' | 'no' | 'unseen') {
  for (;;) {
    const reply = await attest(seen, policy)
    if (!reply.more) return reply
  }
}

const beat = (who: NodeIdentity, lastLogId: string) =>
  record.functions.heartbeat(who, { lastLogId, progressAgeMs: 0, blocking: { sumMs: 0, longestMs: 0 } })

const logEnd = async () => {
  const last = (await record.send('XREVRANGE', record.keys.log, '+', '-', 'COUNT', 1)) as [string][]
  return last[0]?.[0] ?? '0-0'
}

const identity = async (field: string) => await record.send('HGET', record.keys.identity, field)

async function reopen(): Promise<void> {
  await until(async () => (await record.send('PING').catch(() => '')) === 'PONG', {
    what: 'the server again',
  })
}

async function restart(): Promise<void> {
  await server.kill9()
  await server.restart()
  await reopen()
}

/** Keeps a copy of the AOF as it is now, to be put back later. */
function keepCopy(): () => Promise<void> {
  const copy = mkdtempSync(join(tmpdir(), 'holdfast-old-'))
  folders.push(copy)
  cpSync(server.dir, copy, { recursive: true })
  return async () => {
    await server.kill9()
    rmSync(join(server.dir, 'appendonlydir'), { recursive: true, force: true })
    cpSync(join(copy, 'appendonlydir'), join(server.dir, 'appendonlydir'), { recursive: true })
    await server.restart()
    await reopen()
  }
}

describe('a server that started anew', () => {
  it('grants nothing until it is attested, and a heartbeat of the live nodes is enough', async () => {
    const who = await record.join('a', 'n1')
    const [delivered] = await record.acceptMany(1).then(() => record.deliverAll(who))
    await record.acceptMany(1)
    const seen = await logEnd()
    await restart()
    const { id, epoch } = delivered ?? { id: '', epoch: 0 }
    await record.refused('NOT_ATTESTED', () => record.functions.claim(who, 10, 10))
    await record.refused('NOT_ATTESTED', () => record.functions.begin(who, [{ id, epoch, grant: 'g' }]))
    await record.refused('NOT_ATTESTED', () => record.functions.take(who, [{ id, epoch }]))
    const hash = 'a'.repeat(64)
    await record.refused('NOT_ATTESTED', () =>
      record.functions.claimEffect('e', { type: 't', payloadHash: hash, executor: 'x', grant: 'g' }),
    )
    const takeOver = {
      payloadHash: hash,
      executor: 'x',
      grant: 'g',
      basis: 'probe',
      epoch: 1,
      startedAt: 1,
    } as const
    await record.refused('NOT_ATTESTED', () => record.functions.takeOverEffect('e', takeOver))
    expect(await attest()).toMatchObject({ attested: false, more: false, waitedFor: ['a/n1'] })
    await beat(who, seen)
    expect(await attest()).toMatchObject({ attested: true, generation: 0, waitedFor: [] })
    expect((await record.claim({ ...who, request: 10 })).deliveries).toHaveLength(1)
    const { attempt, grant } = await record.begin(who, { id, epoch })
    const outcome = { kind: 'result', result: '1' } as const
    await record.functions.report(who, [{ id: attempt, grant, key: 'k', outcome }])
    expect(await record.states([id])).toEqual(['delivered'])
  })

  it('still takes messages and reports: they give nothing away', async () => {
    const who = await record.join('a', 'n1')
    await record.acceptMany(1)
    const [delivered] = await record.deliverAll(who)
    if (delivered === undefined) throw new Error('nothing was delivered')
    const { attempt, grant } = await record.begin(who, delivered)
    await restart()
    await record.acceptMany(1)
    const outcome = { kind: 'result', result: '1' } as const
    const [reported] = await record.functions.report(who, [{ id: attempt, grant, key: 'k', outcome }])
    expect(reported).toMatchObject({ ok: true, outcome: 'result' })
    expect(await attest()).toMatchObject({ attested: false })
  })

  it('waits for nodes that lived, for stale_after_ms at most; for those that left not at all', async () => {
    const who = await record.join('a', 'n1')
    await record.join('a', 'dead')
    await record.functions.leave(await record.join('a', 'left'))
    await restart()
    await beat(who, '0-0')
    expect(await attest()).toMatchObject({ attested: false, waitedFor: ['a/dead'] })
    await record.config('stale_after_ms', 100)
    await until(async () => (await attest()).attested, { what: 'attested without the dead node' })
    expect(await identity('generation')).toBe('0')
  })

  it('waits for nodes that lived before a long outage, though another speaks first', async () => {
    const who = await record.join('a', 'n1')
    await record.join('a', 'n2')
    await restart()
    for (const name of ['a/n1', 'a/n2'])
      await record.send('ZADD', record.keys.nodes, Date.now() - 3_600_000, name)
    await beat(who, '0-0')
    expect(await attest()).toMatchObject({ attested: false, waitedFor: ['a/n2'] })
  })

  it('counts how long it waits from the first comparison on', async () => {
    await record.join('a', 'n1')
    await restart()
    await attest()
    const since = Number(await identity('attesting_since'))
    await until(async () => (await record.nowMs()) > since)
    await attest()
    expect(Number(await identity('attesting_since'))).toBe(since)
  })

  it('knows of losses from before the last one that was dealt with', async () => {
    await record.acceptMany(1)
    const [ms] = (await logEnd()).split('-')
    const seen = `${ms}-77`
    await record.send('HSET', record.keys.identity, 'rewound_at', Date.now() + 3_600_000)
    expect(await attest(seen)).toMatchObject({ attested: true, generation: 0 })
    await record.send('HSET', record.keys.identity, 'rewound_at', 0)
    expect((await attest(seen)).generation).toBeGreaterThan(0)
  })

  it('is told by each node once what it saw last; what it says later brings nothing into doubt', async () => {
    const who = await record.join('a', 'n1')
    await restart()
    await beat(who, await logEnd())
    await beat(who, '99999999999999-0')
    expect(await attest()).toMatchObject({ attested: true, generation: 0 })
    expect(await record.send('EXISTS', record.keys.doubted)).toBe(0)
  })

  it('refuses an argument that is none, and is attested once only', async () => {
    await record.refused('INVALID_ARGUMENT', () => attest('0-0', 'sometimes' as never))
    const before = await logEnd()
    expect(await attest()).toMatchObject({ attested: true, more: false })
    expect(await logEnd()).toBe(before)
  })
})

describe('a record that is behind what its nodes saw', () => {
  it('sets aside what is unfinished on their hosts, and nothing on hosts that are proven', async () => {
    const [lost, fine] = [await record.join('lost', 'n1'), await record.join('fine', 'n1')]
    const to = (host: string) => ({ to: [{ host }] })
    const [queued = '', ...rest] = await record.acceptMany(3, to('lost'))
    const [kept = ''] = await record.acceptMany(1, to('fine'))
    const executing = (await record.deliverAll(lost, 1)).slice(0, 1)
    const seenByFine = await logEnd()
    const putBack = keepCopy()
    // What follows is lost: the delivery that was begun here would be begun once more.
    const [first] = executing
    if (first === undefined) throw new Error('nothing was delivered')
    const begun = await record.begin(lost, first)
    const seenByLost = await logEnd()
    await putBack()

    await beat(lost, seenByLost)
    expect(await attest()).toMatchObject({ attested: false, waitedFor: ['fine/n1'] })
    await beat(fine, seenByFine)
    const { attested, generation } = await attestWhole()
    expect([attested, generation > 1]).toEqual([true, true])
    expect(await record.states([queued, ...rest])).toEqual(['unknown', 'unknown', 'unknown'])
    expect(await record.fields(queued)).toMatchObject({ unknown_reason: 'history_lost' })
    expect(await record.states([kept])).toEqual(['queued'])
    expect(await identity('rewound_why')).toContain('seen by lost/n1')
    const log = (await record.send('XRANGE', record.keys.log, '-', '+')) as [string, string[]][]
    const [setAside = []] = log.flatMap(([, fields]) => (fields.includes('set_aside') ? [fields] : []))
    expect(setAside.slice(setAside.indexOf('for')).slice(0, 2)).toEqual(['for', 'lost/n1'])
    expect(await record.send('HGET', record.keys.host('lost'), 'set_aside_for')).toBe('n1')

    expect((await record.claim(lost)).deliveries).toEqual([])
    const [claimed] = (await record.claim(fine)).deliveries
    expect(claimed?.epoch).toBeGreaterThanOrEqual(generation * 1_000_000)
    const [again] = await record.functions.begin(lost, [
      { id: first.id, epoch: first.epoch, grant: begun.grant },
    ])
    expect(again).toMatchObject({ ok: false, code: 'STALE_EPOCH', state: 'unknown' })
    const outcome = { kind: 'result', result: '"it ran"' } as const
    const report = { id: begun.attempt, grant: begun.grant, key: 'late', outcome }
    expect(await record.functions.report(lost, [report])).toMatchObject([{ ok: false }])
    expect(await record.fields(first.id)).toMatchObject({
      state: 'unknown',
      reported_by: 'lost/n1',
      reported_outcome: 'result',
      reported_body: '"it ran"',
    })
    await record.functions.resolveDelivery(queued, { as: 'queued', evidence: 'it never left' }, 'kim')
    expect((await record.claim(lost)).deliveries.map(({ id }) => id)).toEqual([queued])
  })

  it('lists an open attempt of such a host as unknown; its own report still settles it', async () => {
    const who = await record.join('a', 'n1')
    await record.acceptMany(1)
    const [delivered] = await record.deliverAll(who)
    if (delivered === undefined) throw new Error('nothing was delivered')
    const { attempt, grant } = await record.begin(who, delivered)
    const putBack = keepCopy()
    await record.acceptMany(1)
    const seen = await logEnd()
    await putBack()
    await beat(who, seen)
    await attestWhole()
    expect(await record.send('ZSCORE', record.keys.unknown, attempt)).not.toBeNull()
    const outcome = { kind: 'result', result: '1' } as const
    const [reported] = await record.functions.report(who, [{ id: attempt, grant, key: 'k', outcome }])
    expect(reported).toMatchObject({ ok: true, outcome: 'result' })
  })

  it('is dealt with once: the same node after the next restart brings its host into no new doubt', async () => {
    const who = await record.join('a', 'n1')
    await record.acceptMany(1)
    const putBack = keepCopy()
    await record.acceptMany(1)
    const seen = await logEnd()
    await putBack()
    await beat(who, seen)
    const { generation } = await attestWhole()
    const later = await record.acceptMany(1)
    await restart()
    await record.functions.join(who, 'i1', [], seen)
    expect(await attestWhole()).toMatchObject({ attested: true, generation })
    expect(await record.states(later)).toEqual(['queued'])
    expect((await record.claim(who)).deliveries.map(({ id }) => id)).toEqual(later)
  })

  it('is found out by a node that speaks only later, and then its host alone waits', async () => {
    const [late, fine] = [await record.join('late', 'n1'), await record.join('fine', 'n1')]
    await record.acceptMany(1, { to: [{ host: 'late' }] })
    const [kept = ''] = await record.acceptMany(1, { to: [{ host: 'fine' }] })
    const early = await logEnd()
    const putBack = keepCopy()
    const ids = await record.acceptMany(2, { to: [{ host: 'late' }] })
    const seen = await logEnd()
    expect(ids).toHaveLength(2)
    await putBack()
    await record.config('stale_after_ms', 100)
    await beat(fine, early)
    await until(async () => (await attest()).attested, { what: 'attested without it' })
    expect(await identity('generation')).toBe('0')

    await beat(late, seen)
    await record.refused('NOT_ATTESTED', () => record.functions.claim(late, 10, 10))
    await beat(fine, early)
    await attestWhole()
    expect(Number(await identity('generation'))).toBeGreaterThan(0)
    expect(await record.send('ZCARD', record.keys.unknown)).toBe(1)
    expect(await record.states([kept])).toEqual(['queued'])
  })

  it('a node that the record has never heard of brings its host into doubt as well', async () => {
    const fine = await record.join('fine', 'n1')
    await record.acceptMany(1, { to: [{ host: 'new' }] })
    const early = await logEnd()
    const putBack = keepCopy()
    const forgotten = await record.join('new', 'n1')
    await record.deliverAll(forgotten)
    const seen = await logEnd()
    await putBack()
    await beat(fine, early)
    expect(await attest('0-0')).toMatchObject({ attested: true })
    await record.refused('NOT_JOINED', () => beat(forgotten, seen))
    await record.functions.join(forgotten, 'i1', [], seen)
    await beat(fine, early)
    await attestWhole()
    expect(await record.send('ZCARD', record.keys.unknown)).toBe(1)
    expect((await record.functions.claim(forgotten, 1, 10)).deliveries).toEqual([])
  })

  it('goes on in slices, each of a bounded number, and hands nothing of the host out meanwhile', async () => {
    const who = await record.join('a', 'n1')
    const ids = await record.acceptMany(450)
    const putBack = keepCopy()
    await record.acceptMany(1)
    const seen = await logEnd()
    await putBack()
    await beat(who, seen)
    let slices = 0
    for (;;) {
      const reply = await attest()
      slices += 1
      if (!reply.more) break
      await record.refused('NOT_ATTESTED', () => record.functions.claim(who, 10, 10))
    }
    expect(slices).toBeGreaterThan(3)
    expect(new Set(await record.states(ids))).toEqual(new Set(['unknown']))
    expect(await record.send('XLEN', record.keys.stream('a'))).toBe(0)
  })

  it('is shown by a hub as well: what it accepted is gone', async () => {
    await record.acceptMany(1)
    const putBack = keepCopy()
    await record.acceptMany(1)
    const seen = await logEnd()
    await putBack()
    const { generation } = await attestWhole(seen)
    expect(generation).toBeGreaterThan(0)
    expect((await attestWhole(seen)).generation, 'known by now').toBe(generation)
  })
})

describe('a server that may have lost something', () => {
  it('everysec: nodes that saw nothing more prove their hosts, the others are set aside', async () => {
    const [speaks] = [await record.join('speaks', 'n1'), await record.join('silent', 'n1')]
    const [kept = ''] = await record.acceptMany(1, { to: [{ host: 'speaks' }] })
    const [gone = ''] = await record.acceptMany(1, { to: [{ host: 'silent' }] })
    const seen = await logEnd()
    await restart()
    await record.config('stale_after_ms', 100)
    await beat(speaks, seen)
    await until(async () => (await attest('0-0', 'everysec')).attested)
    await attestWhole('0-0', 'everysec')
    expect(await identity('rewound_why')).toBe('appendfsync is everysec')
    expect(await record.states([kept, gone])).toEqual(['queued', 'unknown'])
  })

  it('how another server writes says nothing of this one', async () => {
    await restart()
    const configOf = async (id: string) => await record.functions.attest('tests', '0-0', 'always', '', id)
    expect(await configOf('f'.repeat(40))).toMatchObject({ attested: false, more: false })
    const { replicationId } = await configOf('f'.repeat(40))
    expect(await configOf(replicationId)).toMatchObject({ attested: true })
  })

  it('CONFIG forbidden: as the operator has said', async () => {
    await restart()
    await record.config('accept_unseen_config', 1)
    expect(await attest('0-0', 'unseen')).toMatchObject({ attested: true, generation: 0 })
    await restart()
    await record.config('accept_unseen_config', 0)
    expect((await attestWhole('0-0', 'unseen')).generation).toBeGreaterThan(0)
  })

  it('a promoted replica: the generation is raised', async () => {
    const who = await record.join('a', 'n1')
    const ids = await record.acceptMany(1)
    const replica = await startTestServer()
    try {
      await record.close()
      replica.cli('REPLICAOF', '127.0.0.1', String(server.port))
      await until(() => replica.cli('INFO', 'replication').includes('master_link_status:up'))
      await server.kill9()
      replica.cli('REPLICAOF', 'NO', 'ONE')
      record = await openRecord(replica, { name: 'attest', init: false })
      await record.refused('NOT_ATTESTED', () => record.functions.claim(who, 1, 1))
      await beat(who, await logEnd())
      expect((await attestWhole()).generation).toBeGreaterThan(0)
      expect(await identity('rewound_why')).toBe('the server was a replica')
      expect((await record.functions.claim(who, 1, 1)).deliveries.map(({ id }) => id)).toEqual(ids)
      await record.close()
    } finally {
      await replica.stop()
      await server.restart()
      record = await openRecord(server, { name: 'after' })
    }
  })
})

describe('the log', () => {
  it('cut short by hand, an older id proves nothing lost', async () => {
    const who = await record.join('a', 'n1')
    await record.acceptMany(3)
    const seen = await logEnd()
    await record.acceptMany(1)
    await record.send('XTRIM', record.keys.log, 'MAXLEN', 1)
    await restart()
    await beat(who, seen)
    expect(await attest()).toMatchObject({ attested: true, generation: 0 })
    await record.send('XTRIM', record.keys.log, 'MAXLEN', 0)
    await restart()
    await beat(who, seen)
    expect(await attest()).toMatchObject({ attested: true, generation: 0 })
  })

  it('deleted by hand on a server that was attested, nothing is taken for lost', async () => {
    const who = await record.join('a', 'n1')
    await record.acceptMany(1)
    const seen = await logEnd()
    const { replicationId: presentedTo } = await attest(seen)
    await beat(who, seen)
    await record.send('DEL', record.keys.log)
    const again = () => record.functions.attest('tests', seen, 'always', presentedTo)
    expect(await again()).toMatchObject({ attested: true, more: false, generation: 0 })
    expect((await record.claim(who)).deliveries).toHaveLength(1)
    await record.functions.join(who, 'i1', [], seen)
    expect(await again()).toMatchObject({ attested: true, generation: 0 })
  })

  it('a record that was made after a loss takes no node of before for a new loss', async () => {
    const who = await record.join('a', 'n1')
    await record.acceptMany(1)
    const seen = await logEnd()
    await record.send('FLUSHALL')
    // What was seen in the very millisecond in which a record was made may be its own.
    await until(async () => (await record.nowMs()) > Number(seen.split('-')[0]))
    const made = await record.functions.init('second', true)
    await record.functions.join(who, 'i1', [], seen)
    expect(await attestWhole()).toMatchObject({ attested: true, generation: made.generation })
    const ids = await record.acceptMany(1)
    expect((await record.claim(who)).deliveries.map(({ id }) => id)).toEqual(ids)
  })
})

describe('what somebody says to have seen', () => {
  it.each([
    '99999999999999999999-1',
    '1-99999999999999999999',
    '1',
    'x-1',
    '1-1-1',
    '123456789012345678901-0',
  ])('%s is no id of an entry: refused, and nothing is changed', async (seen) => {
    const who = await record.join('a', 'n1')
    await restart()
    await record.refused('INVALID_ARGUMENT', () => beat(who, seen))
    await record.refused('INVALID_ARGUMENT', () => record.functions.join(who, 'i1', [], seen))
    await record.refused('INVALID_ARGUMENT', () => attest(seen))
  })

  it('the highest there can be is one', async () => {
    const who = await record.join('a', 'n1')
    await beat(who, '18446744073709551615-18446744073709551615')
  })
})
