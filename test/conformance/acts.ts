import { expect, it } from 'vitest'
import type { HubCalls } from '../../src/contract/hub.js'
import { done, idsOf, kim, type Make, never, refused, unknown } from './stage.js'

const verbs = ['release', 'reject', 'holdDelivery', 'cancel'] as const satisfies (keyof HubCalls)[]

export function acts(make: Make): void {
  it('release passes the hold that stood, once; other fences apply again', async () => {
    const stage = await make()
    const node = await stage.join()
    await stage.hub.hold('conversation:c1', kim)
    const [id = ''] = await stage.acceptMany(1)
    await node.claimAll()
    const before = await stage.hub.delivery(id)
    const released = await stage.hub.release(id, { actor: 'kim', reason: 'it is fine' })
    expect(released).toEqual({
      id,
      state: 'queued',
      epoch: before.epoch + 1,
      logId: expect.stringMatching(/^\d+-\d+$/),
    })
    expect(await stage.record.fields(id)).toMatchObject({
      requeued_by: 'kim',
      requeued_reason: 'it is fine',
    })
    const [delivered] = await node.deliverAll()
    expect(delivered).toMatchObject({ id, how: 'new' })
    expect(await node.begin({ id, epoch: delivered?.epoch ?? 0, grant: 'g' })).toMatchObject([{ ok: true }])
    expect(await stage.shown((hub) => hub.fences())).toHaveLength(1)
  })

  it('reject fails what is held, with actor and reason', async () => {
    const stage = await make()
    const node = await stage.join()
    await stage.hub.hold('hub', kim)
    const [id = ''] = await stage.acceptMany(1)
    await node.claimAll()
    const reason = 'no: "Grüße" 😀'
    expect(await stage.hub.reject(id, { actor: 'kim', reason })).toMatchObject({ id, state: 'failed' })
    expect(await stage.shown((hub) => hub.delivery(id))).toMatchObject({
      state: 'failed',
      reason: `rejected ${reason}`,
    })
    expect(await stage.record.fields(id)).toMatchObject({ failed_by: 'kim', failed_detail: reason })
    expect((await stage.shown((hub) => hub.message(id.split('.')[0] ?? ''))).settledAt).toBeDefined()
  })

  it.each(['queued', 'claimed', 'mirrored', 'delivered'] as const)(
    'hold and cancel take what is %s from its owner',
    async (state) => {
      const stage = await make()
      const node = await stage.join()
      for (const verb of ['holdDelivery', 'cancel'] as const) {
        let one = { id: '', epoch: 0 }
        if (state === 'queued') one = { id: (await stage.acceptMany(1))[0] ?? '', epoch: 0 }
        else one = await node.takeOne(state)
        const to = verb === 'cancel' ? 'failed' : 'held'
        const acted = await stage.hub[verb](one.id, { actor: 'kim', reason: 'stop it' })
        expect(acted).toMatchObject({ id: one.id, state: to, epoch: one.epoch + 1 })
        const view = await stage.shown((hub) => hub.delivery(one.id))
        expect(view).toMatchObject({ state: to, reason: to === 'held' ? 'stop it' : 'cancelled stop it' })
        expect(view.owner).toBeUndefined()
        expect(await stage.record.fields(one.id)).toMatchObject({ [`${to}_by`]: 'kim' })
        const [answer] = await node.begin({ ...one, grant: 'g' })
        expect(answer).toMatchObject({ ok: false, code: to === 'held' ? 'HELD' : 'STALE_EPOCH' })
      }
      expect(await node.claimAll()).toEqual([])
    },
  )

  it('refuse what runs, what is over, what is in doubt, what is not held, and what is not there', async () => {
    const stage = await make()
    const node = await stage.join()
    const open = await node.open(await node.takeOne('delivered'))
    await refused(stage, 'EXECUTING', () => stage.hub.holdDelivery(open.id, kim))
    await refused(stage, 'EXECUTING', () => stage.hub.cancel(open.id, kim))
    await node.conclude(open, unknown)
    await refused(stage, 'EXECUTING', () => stage.hub.cancel(open.id, kim))
    await node.conclude(open, done)
    await refused(stage, 'ALREADY_SETTLED', () => stage.hub.holdDelivery(open.id, kim))
    await refused(stage, 'ALREADY_SETTLED', () => stage.hub.cancel(open.id, kim))
    const doubtful = await node.takeOne('claimed')
    await node.transport.refuse(node.who, [{ ...doubtful, verdict: 'unknown', reason: 'disk' }])
    await refused(stage, 'WRONG_STATE', () => stage.hub.cancel(doubtful.id, kim))
    for (const { id } of [open, doubtful]) {
      await refused(stage, 'NOT_HELD', () => stage.hub.release(id, kim))
      await refused(stage, 'NOT_HELD', () => stage.hub.reject(id, kim))
    }
    for (const verb of verbs) {
      await refused(stage, 'DELIVERY_NOT_FOUND', () => stage.hub[verb](never, kim))
      for (const id of ['', 'x', '..', '\ud800']) {
        await refused(stage, 'INVALID_ARGUMENT', () => stage.hub[verb](id, kim))
      }
      await refused(stage, 'INVALID_ARGUMENT', () => stage.hub[verb](open.id, { ...kim, reason: '' }))
    }
  })

  it('retire takes a host out: what is idle is held, what runs may be reported', async () => {
    const stage = await make()
    const node = await stage.join()
    const open = await node.open(await node.takeOne('delivered'))
    const idle = await node.takeOne('delivered')
    const [queued = ''] = await stage.acceptMany(1)
    await stage.hub.retire('a', { actor: 'kim', reason: 'sold' })
    await refused(stage, 'HOST_RETIRED', () => node.claim())
    await refused(stage, 'HOST_RETIRED', () => node.begin({ ...idle, grant: 'g' }))
    await node.beat()
    expect((await stage.shown((hub) => hub.held())).map(({ id, reason }) => [id, reason])).toEqual(
      [idle.id, queued].toSorted().map((id) => [id, 'retired']),
    )
    expect(await stage.shown((hub) => hub.unknown())).toMatchObject([{ id: open.attempt, reason: 'retired' }])
    expect((await stage.hub.host('a'))?.retiredAt).toEqual(expect.any(Number))
    await refused(stage, 'HOST_RETIRED', () => stage.hub.release(queued, kim))
    expect(await node.conclude(open, done)).toMatchObject({ ok: true })
    await stage.hub.retire('a', kim)
    await refused(stage, 'HOST_NOT_FOUND', () => stage.hub.retire('never', kim))
    await refused(stage, 'INVALID_ARGUMENT', () => stage.hub.retire('A', kim))
    await refused(stage, 'INVALID_ARGUMENT', () => stage.hub.retire('b', { ...kim, reason: '' }))
  })

  it('on many: counts first, then acts on what the filter names, page by page', async () => {
    const stage = await make()
    const node = await stage.join()
    await stage.hub.hold('conversation:c1', kim)
    const ids = await stage.acceptMany(5)
    const others = await stage.acceptMany(2, { conversation: 'c2' })
    await node.claimAll()
    await stage.hub.holdDelivery(others[0] ?? '', { ...kim, reason: 'fishy' })
    const filter = {
      state: 'held',
      host: 'a',
      conversation: 'c1',
      reason: 'fence hold:conversation:c1',
    } as const
    const before = await stage.record.dump()
    expect(await stage.hub.actOnMany('release', filter, { ...kim, dryRun: true })).toEqual({
      matched: 5,
      done: 0,
      refused: [],
    })
    expect(await stage.record.dump()).toEqual(before)
    let acted = 0
    let cursor: string | undefined
    for (let pages = 0; pages < 10; pages += 1) {
      const page = await stage.hub.actOnMany('reject', filter, { ...kim, cursor, limit: 2 })
      acted += page.done
      expect(page.refused).toEqual([])
      cursor = page.cursor
      if (cursor === undefined) break
    }
    expect([acted, cursor]).toEqual([5, undefined])
    expect(idsOf(await stage.shown((hub) => hub.held()))).toEqual([others[0]])
    expect(await stage.shown((hub) => hub.delivery(ids[0] ?? ''))).toMatchObject({
      reason: 'rejected asked to',
    })
  })

  it('on many: what is refused is named, and stays as it was', async () => {
    const stage = await make()
    const node = await stage.join()
    const open = await node.open(await node.takeOne('delivered'))
    const idle = await node.takeOne('delivered')
    const reply = await stage.hub.actOnMany('hold', { state: 'delivered' }, kim)
    expect(reply).toEqual({
      matched: 2,
      done: 1,
      refused: [{ id: open.id, code: 'EXECUTING', detail: expect.stringContaining('EXECUTING ') }],
    })
    expect(idsOf(await stage.shown((hub) => hub.held()))).toEqual([idle.id])
    const filter = { state: 'held' } as const
    await refused(stage, 'INVALID_ARGUMENT', () =>
      stage.hub.actOnMany('cancel', filter, { ...kim, reason: '' }),
    )
    await refused(stage, 'INVALID_ARGUMENT', () =>
      stage.hub.actOnMany('cancel', filter, { ...kim, cursor: 'none of ours' }),
    )
  })
}
