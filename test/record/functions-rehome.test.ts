import { describe, expect, it } from 'vitest'
import { eachRecord } from '../support/each-record.js'
import type { OpenRecord, TestNode } from '../support/record.js'
import { notSent, result, type SessionTools, scope, sessionTools, the, unknown } from '../support/sessions.js'
import { until } from '../support/until.js'

let record: OpenRecord
let sessions: SessionTools
let node: TestNode
let target: TestNode

eachRecord(async (made) => {
  record = made
  await record.config('heartbeat_ms', 60_000)
  await record.config('stale_after_ms', 60_000)
  sessions = sessionTools(record)
  node = await sessions.join('a')
  target = await sessions.join('b')
  await sessions.open()
})

const idle = async (conversation = 'c1') => {
  const [id] = await sessions.send(1, 's', conversation)
  return the(await record.deliverAll(node), id)
}
const hostOf = async (session: string) => (await sessions.row(session))['host']
const owed = () => record.send('ZRANGE', record.keys.obligations, 0, -1)

describe('rehome is refused', () => {
  const rehome = (id = 's', host = 'b') => record.functions.rehome(id, host, 'kim', 'sold')

  it('EXECUTING while an attempt is open and its node lives, of it or of a child session', async () => {
    await sessions.open('child', { parent: 's' })
    const open = await sessions.begin(node, 'child')
    await record.refused('EXECUTING', rehome)
    await sessions.report(open, unknown, node)
    expect(await record.refused('EXECUTING', rehome)).toContain(open.attempt)
    await sessions.report(open, result, node)
    expect(await sessions.rehome()).toMatchObject({ host: 'b' })
  })

  it('EXECUTING also while nobody is judged, after a stall, and only then', async () => {
    await sessions.begin(node)
    await sessions.silence(node)
    await record.send('ZADD', record.keys.nodes, Date.now() - 5_000, 'b/n1')
    await record.config('heartbeat_ms', 50)
    await expect(rehome()).rejects.toMatchObject({ code: 'EXECUTING' })
    expect(await hostOf('s')).toBe('a')
    expect(await until(() => rehome(), { what: 'the end of the grace' })).toMatchObject({ host: 'b' })
  })

  it.each([
    [
      'when it said that its executor has ended',
      (open: never) => sessions.report(open, unknown, node, { ended: true }),
    ],
    ['when its node left', () => record.functions.leave(node)],
    ['when its node is stale', () => sessions.silence(node)],
    ['when a later process of its node joined', () => sessions.join('a', 'n1', 2)],
  ])('no more %s: the attempt stays where it ran', async (_, end) => {
    const open = await sessions.begin(node)
    await end(open as never)
    expect(await sessions.rehome()).toMatchObject({ host: 'b' })
    expect(await record.fields(open.id)).toMatchObject({
      host: 'a',
      state: 'delivered',
      attempt_status: 'executing',
    })
    expect(await sessions.unknownList()).toEqual([open.attempt])
  })

  it('SCOPE_MISMATCH where no live node is registered for the scope', async () => {
    await sessions.join('c', 'n1', 1, [])
    await sessions.join('c', 'n2', 1, ['/srv/other', `${scope}/deeper`])
    const stale = await sessions.join('c', 'n3')
    await sessions.silence(stale)
    await record.refused('SCOPE_MISMATCH', () => rehome('s', 'c'))
    await sessions.join('c', 'n3', 2, ['/srv/other', scope])
    expect(await sessions.rehome('s', 'c')).toMatchObject({ host: 'c' })
  })

  it.each(['not JSON', '', '{"a":1}', '"x"', '[1,null]'])(
    'SCOPE_MISMATCH where a node’s scopes read %j',
    async (text) => {
      await record.send('HSET', record.keys.node('b', 'n1'), 'scopes', text)
      await record.refused('SCOPE_MISMATCH', rehome)
    },
  )

  it.each([
    ['never joined', () => Promise.resolve()],
    ['left', async () => record.functions.leave(await sessions.join('c'))],
    ['is stale', async () => sessions.silence(await sessions.join('c'))],
    [
      'is retired',
      async () => {
        await sessions.join('c')
        await record.functions.retire('c', 'kim', 'sold')
      },
    ],
  ])('HOST_NOT_LIVE where the only node of the host %s', async (_, prepare) => {
    await prepare()
    await record.refused('HOST_NOT_LIVE', () => rehome('s', 'c'))
  })

  it('SESSION_NOT_FOUND for one never opened, and so is a move', async () => {
    await record.refused('SESSION_NOT_FOUND', () => rehome('other'))
    await record.refused('SESSION_NOT_FOUND', () => record.functions.move('other', 'kim'))
  })

  it('without a reason, an actor or a host that could be one', async () => {
    await record.refused('INVALID_ARGUMENT', () => record.functions.rehome('s', 'b', '', 'r'))
    await record.refused('INVALID_ARGUMENT', () => record.functions.rehome('s', 'b', 'kim', ''))
    await record.refused('INVALID_ARGUMENT', () => rehome('s', 'B'))
    await record.refused('INVALID_ARGUMENT', () => record.functions.move('s', ''))
  })

  it('TOO_MANY_CHILDREN beyond a hundred, wherever they are in the family', async () => {
    for (let child = 1; child <= 100; child += 1)
      await sessions.open(`c${child}`, { parent: child > 50 ? 'c1' : 's' })
    await sessions.open('one more', { parent: 'c50' })
    await record.refused('TOO_MANY_CHILDREN', rehome)
    await sessions.join('c')
    await sessions.rehome('one more', 'c')
    expect(await sessions.rehome()).toMatchObject({ host: 'b' })
    expect(await Promise.all(['c1', 'c50', 'c100', 'one more'].map(hostOf))).toEqual(['b', 'b', 'b', 'c'])
  })
})

describe('rehome', () => {
  it('to where it lives already changes nothing of it', async () => {
    const [id = ''] = await sessions.send()
    const before = await sessions.row()
    expect(await sessions.rehome('s', 'a')).toMatchObject({ host: 'a', epoch: 1 })
    expect([await sessions.row(), await record.states([id]), await owed()]).toEqual([before, ['queued'], []])
  })

  it('of an empty session owes nothing afterwards, and keeps state, budget and crashes', async () => {
    await sessions.open('s', { restartBudget: 3 })
    await sessions.close('s', { reason: 'crash', terminal: undefined })
    const moved = await sessions.rehome()
    expect(moved).toMatchObject({
      host: 'b',
      epoch: 3,
      state: 'closed',
      terminal: false,
      crashes: 1,
      restartBudget: 3,
    })
    expect(await owed()).toEqual([])
    expect(await sessions.row()).toMatchObject({ rehomed_by: 'kim', rehomed_from: 'a' })
    expect(await sessions.row()).not.toHaveProperty('moving_from')
    await record.refused('SESSION_ELSEWHERE', () => sessions.open())
    expect(await sessions.open('s', { host: 'b' }, false)).toMatchObject({ state: 'open', epoch: 4 })
  })

  it('takes along what is queued, parked, claimed, mirrored, and delivered and idle, in its order', async () => {
    const tried = await idle()
    const open = await record.begin(node, tried)
    await sessions.report(open, notSent, node)
    const delivered = await idle()
    const [mirrored = '', claimed = ''] = await sessions.send(2)
    await record.functions.mirror(node, [the(await record.claimAll(node), mirrored)])
    await record.functions.pause('conversation:parked', 'wait', 'kim')
    await record.functions.pause('host:a', 'wait', 'kim')
    const [parked = ''] = await sessions.send(1, 's', 'parked')
    const [behind = ''] = await sessions.send(1, 's', 'c2')
    await record.claimAll(node)
    const [queued = ''] = await sessions.send(1, 's', 'c3')
    const all = [tried.id, delivered.id, mirrored, claimed, parked, behind, queued]
    const before = await Promise.all(all.map((id) => record.fields(id)))
    await sessions.rehome()
    for (const [at, id] of all.entries()) {
      const row = await record.fields(id)
      expect(row, id).toMatchObject({
        state: 'queued',
        host: 'b',
        rehomed_from: 'a',
        epoch: String(Number(before[at]?.['epoch']) + 1),
        attempts: before[at]?.['attempts'],
      })
      for (const gone of ['owner', 'incarnation', 'parked_by', 'parked_at'])
        expect(row, id).not.toHaveProperty(gone)
    }
    await record.checkInvariants()
    expect(await record.send('XLEN', record.keys.stream('a'))).toBe(0)
    const there = await record.deliverAll(target)
    expect(there.map(({ id }) => id)).toEqual([tried.id, delivered.id, mirrored, claimed, behind, queued])
    expect(await record.fields(parked)).toMatchObject({ parked_by: 'pause:conversation:parked', host: 'b' })
    expect((await record.begin(target, the(there, tried.id))).attempt).toBe(`${tried.id}/2`)
  })

  it('makes the group of a host that was never sent anything, with the first that is queued there', async () => {
    const groups = async () => String(await record.send('XINFO', 'GROUPS', record.keys.stream('b')))
    const [kept = ''] = await sessions.send()
    await record.functions.holdDelivery(kept, 'kim', 'looked at')
    await sessions.rehome()
    expect(await record.fields(kept)).toMatchObject({ state: 'held', host: 'b' })
    expect(await record.send('EXISTS', record.keys.stream('b'))).toBe(0)
    await record.functions.release(kept, 'kim', 'all right')
    expect(await groups()).toContain('name,nodes')

    await sessions.rehome('s', 'a')
    await record.send('DEL', record.keys.stream('b'))
    await record.send('HDEL', record.keys.host('b'), 'group_made_at')
    await sessions.rehome('s', 'b')
    expect(await groups()).toContain('name,nodes')
    expect((await record.deliverAll(target)).map(({ id }) => id)).toEqual([kept])
  })

  it('queues what its old host kept, and leaves what is held for other reasons held, at the new host', async () => {
    const [byHand = ''] = await sessions.send()
    await record.functions.holdDelivery(byHand, 'kim', 'look at it')
    await record.functions.hold('conversation:h', 'legal', 'kim')
    const [byConversation = ''] = await sessions.send(1, 's', 'h')
    await sessions.close('s', { reason: 'disable', terminal: true })
    const [byRoute = ''] = await sessions.send(1, 's', 'c2')
    await record.claimAll(node)
    const [retired = ''] = await sessions.send()
    await record.functions.retire('a', 'kim', 'sold')
    const rows = () => Promise.all([byHand, byConversation, byRoute, retired].map((id) => record.fields(id)))
    const reasons = (await rows()).map((row) => row['held_reason'])
    expect(reasons).toEqual(['look at it', 'fence', 'route_terminal', 'retired'])
    await sessions.rehome()
    const [first, second, third, fourth] = await rows()
    expect(first).toMatchObject({ state: 'held', host: 'b', held_reason: 'look at it', epoch: '2' })
    expect(second).toMatchObject({ state: 'held', host: 'b', held_fence: 'hold:conversation:h' })
    expect(third).toMatchObject({ state: 'held', host: 'b', held_fence: 'route_terminal:session:s' })
    expect(fourth).toMatchObject({ state: 'queued', host: 'b' })
    await record.checkInvariants()
    await sessions.open('s', { host: 'b' })
    await record.functions.lift('hold', 'conversation:h', 'kim')
    await record.functions.release(byHand, 'kim', 'checked')
    const there = await record.claimAll(target)
    expect(there.map(({ id }) => id)).toEqual([retired, byRoute, byConversation, byHand])
  })

  it('queues what a hold of the old host parked, and it passes no hold of the new one', async () => {
    await record.functions.hold('host:a', 'legal', 'kim')
    await record.functions.hold('host:b', 'legal', 'kim')
    const [id = ''] = await sessions.send()
    await record.claimAll(node)
    expect(await record.fields(id)).toMatchObject({ held_fence: 'hold:host:a' })
    await sessions.rehome()
    expect(await record.fields(id)).toMatchObject({ state: 'queued', host: 'b' })
    expect(await record.send('EXISTS', record.keys.holding)).toBe(0)
    await record.claimAll(target)
    expect(await record.fields(id)).toMatchObject({ state: 'held', held_fence: 'hold:host:b', host: 'b' })
  })

  it('leaves where they are what is finished, failed or in doubt, and an open attempt, listed rehomed', async () => {
    const done = await sessions.begin(node)
    await sessions.report(done, result, node)
    const [failed = ''] = await sessions.send()
    await record.functions.cancel(failed, 'kim', 'withdrawn')
    const [doubtful = ''] = await sessions.send()
    const claimed = the(await record.claimAll(node), doubtful)
    await record.functions.refuse(node, [{ ...claimed, verdict: 'unknown', reason: 'disk' }])
    const open = await sessions.begin(node)
    await sessions.silence(node)
    const all = [done.id, failed, doubtful, open.id]
    const before = await Promise.all(all.map((id) => record.fields(id)))
    await sessions.rehome()
    const after = await Promise.all(all.map((id) => record.fields(id)))
    expect(after.slice(0, 3)).toEqual(before.slice(0, 3))
    expect(after[3]).toMatchObject({
      host: 'a',
      attempt_status: 'executing',
      attempt_1_unknown_reason: 'rehomed',
    })
    expect(await sessions.unknownList()).toContain(open.attempt)
    expect(await record.functions.why(open.id)).toMatchObject({
      reason: 'unknown',
      detail: `${open.attempt}: rehomed`,
    })
    expect(
      await record.functions.resolveDelivery(
        doubtful,
        { as: 'queued', evidence: 'the disk is whole' },
        'kim',
      ),
    ).toMatchObject({ state: 'queued' })
    expect(await record.fields(doubtful)).toMatchObject({ host: 'b' })
  })

  it('sends an attempt that stayed, and was not sent, to the new host; its result settles it where it ran', async () => {
    const [first, second] = [await sessions.begin(node), await sessions.begin(node)]
    await sessions.silence(node)
    await sessions.rehome()
    expect(await sessions.report(first, notSent, node)).toMatchObject({ ok: true, state: 'queued' })
    expect(await record.fields(first.id)).toMatchObject({ host: 'b' })
    expect(await sessions.report(second, result, node)).toMatchObject({ ok: true })
    expect(await record.fields(second.id)).toMatchObject({ host: 'a', attempt_status: 'done' })
    const there = await record.deliverAll(target)
    expect(there).toMatchObject([{ id: first.id, attempts: 1 }])
  })
})

describe('the old host that comes back', () => {
  it('is handed nothing of it and refused every step, which changes nothing', async () => {
    const delivered = await idle()
    const [mirrored = '', claimed = ''] = await sessions.send(2)
    const taken = await record.claimAll(node)
    await record.functions.mirror(node, [the(taken, mirrored)])
    const { epoch } = await sessions.rehome()
    const grant = { ...delivered, grant: 'g' }
    const refusal = { verdict: 'failed', reason: 'no room' } as const
    await record.itemRefused('NOT_OWNER', () => record.functions.mirror(node, [the(taken, claimed)]))
    await record.itemRefused('NOT_OWNER', () => record.functions.ack(node, [the(taken, mirrored)]))
    await record.itemRefused('NOT_OWNER', () => record.functions.begin(node, [grant]))
    await record.itemRefused('NOT_OWNER', () =>
      record.functions.begin(node, [{ ...grant, idempotent: true }]),
    )
    await record.itemRefused('NOT_OWNER', () =>
      record.functions.refuse(node, [{ ...the(taken, claimed), ...refusal }]),
    )
    await record.refused('STALE_EPOCH', () => sessions.close('s', { epoch: epoch - 1 }))
    await record.refused('SESSION_ELSEWHERE', () => sessions.open('s', {}, false))
    expect(await record.claimAll(node)).toEqual([])
    const later = await sessions.join('a', 'n1', 2)
    expect(await record.claimAll(later)).toEqual([])
    expect(await record.claimAll(target)).toHaveLength(3)
  })
})

describe('a family', () => {
  it('goes as far as host and scope are equal, with what each of them has', async () => {
    await sessions.open('child', { parent: 's' })
    await sessions.open('grandchild', { parent: 'child' })
    await sessions.open('other scope', { parent: 's', scope: '/srv/other' })
    await sessions.open('below other scope', { parent: 'other scope' })
    await sessions.open('elsewhere', { parent: 's', host: 'b' })
    await sessions.open('stranger')
    const names = ['s', 'child', 'grandchild', 'other scope', 'below other scope', 'elsewhere', 'stranger']
    const sent = await Promise.all(names.map((name) => sessions.send(2, name)))
    const epochs = async () => Promise.all(names.map(async (name) => (await sessions.row(name))['epoch']))
    expect(await epochs()).toEqual(['1', '1', '1', '1', '1', '1', '1'])
    await sessions.rehome()
    expect(await Promise.all(names.map(hostOf))).toEqual(['b', 'b', 'b', 'a', 'a', 'b', 'a'])
    expect(await epochs()).toEqual(['2', '2', '2', '1', '1', '1', '1'])
    const hosts = await Promise.all(sent.map(async ([id = '']) => (await record.fields(id))['host']))
    expect(hosts).toEqual(['b', 'b', 'b', 'a', 'a', 'b', 'a'])
    expect(await owed()).toEqual([])
  })

  it('of two that are each other’s parent goes once', async () => {
    await sessions.open('one', { parent: 'two' })
    await sessions.open('two', { parent: 'one' })
    await sessions.rehome('one')
    expect(await Promise.all(['one', 'two'].map(hostOf))).toEqual(['b', 'b'])
    expect((await sessions.row('two'))['epoch']).toBe('2')
  })

  it('whose member is moving already goes on to where the last rehome says', async () => {
    await sessions.open('child', { parent: 's' })
    const sent = await sessions.send(150, 'child')
    await sessions.join('c')
    expect((await record.functions.rehome('child', 'b', 'kim', 'r')).more).toBe(true)
    await sessions.rehome('child', 'c')
    await sessions.rehome('s', 'b')
    expect(await Promise.all(['s', 'child'].map(hostOf))).toEqual(['b', 'c'])
    expect((await record.claimAll(await sessions.join('c', 'n2'))).map(({ id }) => id).toSorted()).toEqual(
      sent.toSorted(),
    )
  })
})
