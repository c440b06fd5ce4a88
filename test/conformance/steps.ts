import { describe, expect, it } from 'vitest'
import type { RefuseItem } from '../../src/contract/steps.js'
import { done, item, itemRefused, kim, type Make, never, notSent, refused, sameAgain } from './stage.js'

export function steps(make: Make): void {
  describe.each(['mirror', 'ack'] as const)('%s', (verb) => {
    const [from, to] =
      verb === 'mirror' ? (['claimed', 'mirrored'] as const) : (['mirrored', 'delivered'] as const)

    it(`takes ${from} to ${to}, and answers the same again`, async () => {
      const stage = await make()
      const node = await stage.join()
      const one = await node.takeOne(from)
      expect(await sameAgain(stage, () => node[verb](one))).toEqual([{ ...one, ok: true, state: to }])
      expect(await stage.shown((hub) => hub.delivery(one.id))).toMatchObject({ state: to, owner: 'n1' })
    })

    it('answers a mixed batch item by item, in order', async () => {
      const stage = await make()
      const [node, other] = [await stage.join(), await stage.join({ node: 'n2' })]
      const [good, stale, failed] = [
        await node.takeOne(from),
        await node.takeOne(from),
        await node.takeOne(from),
      ]
      const foreign = await other.takeOne(from)
      await node.transport.refuse(node.who, [{ ...failed, verdict: 'failed', reason: 'no_room' }])
      const { id } = stale
      expect(
        await node[verb](good, { id: never, epoch: 1 }, { id, epoch: 9 }, foreign, failed, stale),
      ).toEqual([
        { ...good, ok: true, state: to },
        { id: never, ok: false, code: 'DELIVERY_NOT_FOUND' },
        { id, ok: false, code: 'STALE_EPOCH', epoch: 1, state: from, owner: 'n1' },
        { ...foreign, ok: false, code: 'NOT_OWNER', state: from, owner: 'n2' },
        { ...failed, ok: false, code: 'WRONG_STATE', state: 'failed', owner: 'n1' },
        { ...stale, ok: true, state: to },
      ])
    })

    it('changes nothing by a refusal', async () => {
      const stage = await make()
      const [node, other] = [await stage.join(), await stage.join({ node: 'n2' })]
      const one = await node.takeOne(from)
      await itemRefused(stage, 'STALE_EPOCH', () => node[verb]({ id: one.id, epoch: 0 }))
      await itemRefused(stage, 'NOT_OWNER', () => other[verb](one))
      await itemRefused(stage, 'DELIVERY_NOT_FOUND', () => node[verb]({ id: never, epoch: 1 }))
      await refused(stage, 'INVALID_ARGUMENT', () => node[verb]())
      await refused(stage, 'INVALID_ARGUMENT', () => node[verb](one, { id: 'x', epoch: 1 }))
      await refused(stage, 'INVALID_ARGUMENT', () => node[verb](one, { id: one.id, epoch: -1 }))
      const tooMany = Array.from({ length: 1001 }, () => one)
      await refused(stage, 'INVALID_ARGUMENT', () => node[verb](...tooMany))
    })
  })

  it('ack refuses what is only claimed', async () => {
    const stage = await make()
    const node = await stage.join()
    const one = await node.takeOne('claimed')
    expect(await itemRefused(stage, 'WRONG_STATE', () => node.ack(one))).toEqual({
      ...one,
      ok: false,
      code: 'WRONG_STATE',
      state: 'claimed',
      owner: 'n1',
    })
  })

  describe('take', () => {
    it.each(['claimed', 'mirrored', 'delivered'] as const)(
      'hands off what is %s, and begins it under its grant; answered the same again',
      async (state) => {
        const stage = await make()
        const node = await stage.join()
        const [bare, granted] = [await node.takeOne(state), await node.takeOne(state)]
        expect(await sameAgain(stage, () => node.take(bare, { ...granted, grant: 'g' }))).toEqual({
          results: [
            { ...bare, ok: true, state: 'delivered' },
            { ...granted, ok: true, state: 'delivered' },
          ],
          begun: [{ ...granted, ok: true, state: 'delivered', attempt: 1 }],
        })
        expect(await stage.shown((hub) => hub.delivery(granted.id))).toMatchObject({
          state: 'delivered',
          attempts: [{ id: `${granted.id}/1`, status: 'executing' }],
        })
        expect((await stage.shown((hub) => hub.delivery(bare.id))).attempts).toEqual([])
        await node.conclude({ ...granted, grant: 'g', attempt: `${granted.id}/1` }, done)
      },
    )

    it('answers a mixed batch item by item, and begins those that were handed off', async () => {
      const stage = await make()
      const [node, other] = [await stage.join(), await stage.join({ node: 'n2' })]
      const [good, stale, failed] = [
        await node.takeOne('claimed'),
        await node.takeOne('mirrored'),
        await node.takeOne('claimed'),
      ]
      const foreign = await other.takeOne('claimed')
      await node.transport.refuse(node.who, [{ ...failed, verdict: 'failed', reason: 'no_room' }])
      const asked = [{ id: never, epoch: 1 }, { id: stale.id, epoch: 9 }, foreign, failed, good]
      const { results, begun } = await node.take(...asked.map((each) => ({ ...each, grant: `g ${each.id}` })))
      expect(results).toEqual([
        { id: never, ok: false, code: 'DELIVERY_NOT_FOUND' },
        { id: stale.id, ok: false, code: 'STALE_EPOCH', epoch: 1, state: 'mirrored', owner: 'n1' },
        { ...foreign, ok: false, code: 'NOT_OWNER', state: 'claimed', owner: 'n2' },
        { ...failed, ok: false, code: 'WRONG_STATE', state: 'failed', owner: 'n1' },
        { ...good, ok: true, state: 'delivered' },
      ])
      expect(begun).toEqual([{ ...good, ok: true, state: 'delivered', attempt: 1 }])
    })

    it('hands off what may not be begun: another grant, a pause, a hold, a block, its time', async () => {
      const stage = await make()
      const node = await stage.join()
      const claimed = (conversation: string) => node.takeOne('claimed', { conversation })
      const [open, paused, held, blocked] = [
        await claimed('open'),
        await claimed('paused'),
        await claimed('held'),
        await claimed('blocked'),
      ]
      const { nowMs } = await node.claim()
      const late = await node.takeOne('claimed', { executeBy: nowMs })
      await node.take({ ...open, grant: 'first' })
      await stage.hub.pause('conversation:paused', kim)
      await stage.hub.hold('conversation:held', kim)
      await stage.hub.block('conversation:blocked', kim)
      const items = [open, paused, held, blocked, late].map((each) => ({ ...each, grant: 'g' }))
      const { results, begun } = await node.take(...items)
      expect(results).toEqual(items.map((each) => ({ ...item(each), ok: true, state: 'delivered' })))
      expect(begun).toEqual([
        { ...open, ok: false, code: 'GRANT_OPEN', state: 'delivered', owner: 'n1' },
        {
          ...paused,
          ok: false,
          code: 'PAUSED',
          state: 'delivered',
          owner: 'n1',
          detail: 'pause:conversation:paused',
        },
        { id: held.id, ok: false, code: 'HELD', epoch: 2, state: 'held', detail: 'hold:conversation:held' },
        {
          ...blocked,
          ok: false,
          code: 'BLOCKED',
          state: 'failed',
          owner: 'n1',
          detail: 'block:conversation:blocked',
        },
        { ...late, ok: false, code: 'EXPIRED', state: 'failed', owner: 'n1', detail: 'execute_by' },
      ])
      await stage.hub.lift('pause', 'conversation:paused', 'kim')
      expect((await node.take({ ...paused, grant: 'g' })).begun).toMatchObject([{ ok: true, attempt: 1 }])
    })

    it('is refused as a whole, with nothing changed', async () => {
      const stage = await make()
      const node = await stage.join()
      const one = await node.takeOne('claimed')
      await refused(stage, 'INVALID_ARGUMENT', () => node.take())
      await refused(stage, 'INVALID_ARGUMENT', () => node.take(one, { id: 'x', epoch: 1, grant: 'g' }))
      await refused(stage, 'INVALID_ARGUMENT', () => node.take(one, { ...one, epoch: -1, grant: 'g' }))
      const later = await stage.join({ incarnation: 2 })
      await refused(stage, 'SUPERSEDED', () => node.take({ ...one, grant: 'g' }))
      await later.leave()
      await refused(stage, 'LEFT', () => later.take({ ...one, grant: 'g' }))
    })
  })

  it('takes a thousand items in one call', async () => {
    const stage = await make({ max_payload_bytes: 1024, inline_fan_out: 1000 })
    const node = await stage.join()
    await stage.record.acceptMany(1000)
    const claimed = await node.claimAll(1000)
    expect(claimed).toHaveLength(1000)
    const begins = claimed.map(({ id, epoch }) => ({ id, epoch, grant: `g ${id}`.padEnd(255, '.') }))
    const answers = [await node.mirror(...claimed), await node.ack(...claimed), await node.begin(...begins)]
    for (const answer of answers) {
      expect(answer.map(({ id }) => id)).toEqual(claimed.map(({ id }) => id))
      expect(answer.every(({ ok }) => ok)).toBe(true)
    }
  })

  describe('refuse', () => {
    it.each([
      ['claimed', 'failed'],
      ['claimed', 'unknown'],
      ['mirrored', 'failed'],
      ['mirrored', 'unknown'],
    ] as const)(
      'of what is %s as %s leaves it so, and is answered the same again',
      async (state, verdict) => {
        const stage = await make()
        const node = await stage.join()
        const one = await node.takeOne(state)
        const refuse = () => node.transport.refuse(node.who, [{ ...one, verdict, reason: 'no_room' }])
        expect(await sameAgain(stage, refuse)).toEqual([{ ...one, ok: true, state: verdict }])
        const view = await stage.shown((hub) => hub.delivery(one.id))
        expect(view.reason).toMatch(/^no_room/)
        expect(await stage.shown((hub) => hub.why(one.id))).toMatchObject({ reason: verdict })
      },
    )

    it.each(['claimed', 'mirrored', 'delivered'] as const)(
      'as payload_corrupt of what is %s holds it under a new epoch',
      async (state) => {
        const stage = await make()
        const node = await stage.join()
        const one = await node.takeOne(state)
        const corrupt: RefuseItem = { ...one, verdict: 'failed', reason: 'payload_corrupt' }
        const refuse = () => node.transport.refuse(node.who, [corrupt])
        expect(await sameAgain(stage, refuse)).toEqual([{ id: one.id, ok: true, epoch: 2, state: 'held' }])
        expect(await stage.shown((hub) => hub.held())).toMatchObject([
          { id: one.id, reason: 'payload_corrupt', host: 'a', conversation: 'c1', attempts: 0 },
        ])
      },
    )

    it('answers a mixed batch in order, and refuses what the step does not exist for', async () => {
      const stage = await make()
      const node = await stage.join()
      const [delivered, begun] = [await node.takeOne('delivered'), await node.takeOne('delivered')]
      const claimed = await node.takeOne('claimed')
      await node.open(begun)
      const verdict = { verdict: 'failed', reason: 'no_room' } as const
      const items = [
        { ...delivered, ...verdict },
        { id: never, epoch: 1, ...verdict },
      ]
      const answers = await node.transport.refuse(node.who, [
        ...items,
        { ...claimed, ...verdict },
        { ...begun, verdict: 'failed', reason: 'payload_corrupt' },
        { ...claimed, ...verdict, epoch: 7 },
      ])
      expect(answers.map((answer) => (answer.ok ? answer.state : answer.code))).toEqual([
        'WRONG_STATE',
        'DELIVERY_NOT_FOUND',
        'failed',
        'WRONG_STATE',
        'STALE_EPOCH',
      ])
      for (const bad of [{ reason: '' }, { verdict: 'done' as 'failed' }]) {
        await refused(stage, 'INVALID_ARGUMENT', () =>
          node.transport.refuse(node.who, [{ ...delivered, ...verdict, ...bad }]),
        )
      }
    })
  })

  describe('begin', () => {
    it('opens attempt 1 under the grant, answers the same grant the same, and no other', async () => {
      const stage = await make()
      const node = await stage.join()
      const one = { ...(await node.takeOne('delivered')), grant: 'g1' }
      expect(await sameAgain(stage, () => node.begin(one))).toEqual([
        { id: one.id, ok: true, epoch: 1, state: 'delivered', attempt: 1 },
      ])
      const open = await itemRefused(stage, 'GRANT_OPEN', () => node.begin({ ...one, grant: 'g2' }))
      expect(open).toEqual({ ...item(one), ok: false, code: 'GRANT_OPEN', state: 'delivered', owner: 'n1' })
      await node.conclude({ ...one, attempt: `${one.id}/1` }, done)
      for (const grant of ['g1', 'g2']) {
        await itemRefused(stage, 'ALREADY_SETTLED', () => node.begin({ ...one, grant }))
      }
    })

    it('answers a mixed batch in order, as many grants as there are', async () => {
      const stage = await make()
      const [node, other] = [await stage.join(), await stage.join({ node: 'n2' })]
      const [good, mirrored] = [await node.takeOne('delivered'), await node.takeOne('mirrored')]
      const foreign = await other.takeOne('delivered')
      const answers = await node.begin(
        { id: never, epoch: 1, grant: 'g0' },
        { ...mirrored, grant: 'g1' },
        { ...good, grant: 'g2' },
        { ...foreign, grant: 'g3' },
        { ...good, grant: 'g4' },
        { ...good, epoch: 5, grant: 'g2' },
        { ...good, grant: 'g2' },
      )
      expect(answers.map((answer) => (answer.ok ? answer.attempt : answer.code))).toEqual([
        'DELIVERY_NOT_FOUND',
        'WRONG_STATE',
        1,
        'NOT_OWNER',
        'GRANT_OPEN',
        'STALE_EPOCH',
        1,
      ])
      await refused(stage, 'INVALID_ARGUMENT', () => node.begin({ ...good, grant: '' }))
    })

    it('waits under a pause with the same grant, and is not asked again once it is granted', async () => {
      const stage = await make()
      const node = await stage.join()
      const one = { ...(await node.takeOne('delivered')), grant: 'g' }
      await stage.hub.pause('conversation:c1', kim)
      const paused = await itemRefused(stage, 'PAUSED', () => node.begin(one))
      expect(paused).toMatchObject({ detail: 'pause:conversation:c1', state: 'delivered' })
      await stage.hub.lift('pause', 'conversation:c1', 'kim')
      expect(await node.begin(one)).toMatchObject([{ ok: true, attempt: 1 }])
      await stage.hub.pause('conversation:c1', kim)
      expect(await node.begin(one)).toMatchObject([{ ok: true, attempt: 1 }])
    })

    it('holds under a hold, and fails under a block or past its time, answered the same again', async () => {
      const stage = await make()
      const node = await stage.join()
      const [held, blocked] = [
        await node.takeOne('delivered', { conversation: 'held' }),
        await node.takeOne('delivered', { conversation: 'blocked' }),
      ]
      const { nowMs } = await node.claim()
      const late = await node.takeOne('delivered', { executeBy: nowMs })
      await stage.hub.hold('conversation:held', kim)
      await stage.hub.block('conversation:blocked', kim)
      const begin = () => node.begin(...[held, blocked, late].map((each) => ({ ...each, grant: 'g' })))
      const answers = await begin()
      expect(answers).toMatchObject([
        { ok: false, code: 'HELD', state: 'held', epoch: 2, detail: 'hold:conversation:held' },
        { ok: false, code: 'BLOCKED', state: 'failed', detail: 'block:conversation:blocked' },
        { ok: false, code: 'EXPIRED', state: 'failed', detail: 'execute_by' },
      ])
      const again = await begin()
      expect(again.map((answer) => (answer.ok ? '' : answer.code))).toEqual(['HELD', 'BLOCKED', 'EXPIRED'])
      const reasons = await Promise.all(
        [held, blocked, late].map(({ id }) => stage.shown((hub) => hub.delivery(id))),
      )
      expect(reasons.map(({ reason, attempts }) => [reason, attempts.length])).toEqual([
        ['fence hold:conversation:held', 0],
        ['blocked block:conversation:blocked', 0],
        ['expired execute_by', 0],
      ])
    })

    it('goes on with attempt 2 after not_sent, until max_redrive', async () => {
      const stage = await make({ max_redrive: 2 })
      const node = await stage.join()
      const one = await node.takeOne('delivered')
      const first = await node.open(one)
      expect(await node.conclude(first, notSent)).toMatchObject({ ok: true, state: 'delivered' })
      await itemRefused(stage, 'ALREADY_SETTLED', () => node.begin({ ...one, grant: first.grant }))
      const second = await node.open(one)
      expect(second.attempt).toBe(`${one.id}/2`)
      expect(await node.conclude(second, notSent)).toMatchObject({ ok: true, state: 'held', attempt: 2 })
      expect(await stage.shown((hub) => hub.why(one.id))).toMatchObject({
        reason: 'held',
        detail: 'redrive_exhausted',
      })
    })
  })
}
