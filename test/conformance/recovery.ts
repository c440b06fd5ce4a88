import { expect, it } from 'vitest'
import type { ClaimedDelivery } from '../../src/contract/steps.js'
import { until } from '../support/until.js'
import { done, idsOf, itemRefused, type Make, type Speaker, type Stage } from './stage.js'

const briefOf = ({ id, how, state, epoch }: ClaimedDelivery) => `${id} ${how} ${state} ${epoch}`

/** One of each, in the order of their lane: delivered and begun, delivered and idle, mirrored, claimed. */
async function mixture(stage: Stage, node: Speaker) {
  const ids = await stage.acceptMany(4)
  const claimed = await node.claimAll()
  await node.mirror(...claimed.slice(0, 3))
  await node.ack(...claimed.slice(0, 2))
  const fresh = { id: '', epoch: 0 }
  return { ids, claimed, open: await node.open(claimed[0] ?? fresh) }
}

/** Claims until this many have come, beating meanwhile; every answer in order. */
async function takeOver(node: Speaker, total: number): Promise<ClaimedDelivery[][]> {
  const answers: ClaimedDelivery[][] = []
  await until(
    async () => {
      await node.beat()
      const { deliveries } = await node.claim()
      if (deliveries.length > 0) answers.push([...deliveries])
      return answers.flat().length >= total
    },
    { what: `${total} deliveries taken over` },
  )
  return answers
}

export function recovery(make: Make): void {
  it('a later incarnation resumes what the earlier had, each in its state, one at a time', async () => {
    const stage = await make()
    const node = await stage.join()
    const { ids, claimed, open } = await mixture(stage, node)
    const later = await stage.join({ incarnation: 2 })
    const answers: ClaimedDelivery[][] = []
    for (let more = true; more; ) {
      const reply = await later.claim()
      more = reply.more
      if (reply.deliveries.length > 0) answers.push([...reply.deliveries])
    }
    expect(answers.map((each) => each.map(briefOf))).toEqual([
      [`${ids[1]} resume delivered 2`],
      [`${ids[2]} resume mirrored 2`],
      [`${ids[3]} resume claimed 2`],
    ])
    expect(answers.flat().map(({ payload }) => payload)).toEqual(
      claimed.slice(1).map(({ payload }) => payload),
    )
    expect(await stage.shown((hub) => hub.delivery(ids[1] ?? ''))).toMatchObject({
      takeovers: 1,
      incarnation: 2,
    })
    expect(await stage.shown((hub) => hub.unknown())).toMatchObject([
      { id: open.attempt, reason: 'superseded' },
    ])
    await itemRefused(stage, 'STALE_EPOCH', () => later.mirror({ id: ids[3] ?? '', epoch: 1 }))
    await itemRefused(stage, 'NOT_OWNER', () => later.begin({ ...open, epoch: 1 }))
    expect(await later.conclude(open, done)).toMatchObject({ ok: true })
    expect(await stage.shown((hub) => hub.unknown())).toEqual([])
  })

  it('after a clean leave the next process resumes uncounted, all at once', async () => {
    const stage = await make()
    const node = await stage.join()
    const { ids } = await mixture(stage, node)
    await node.leave()
    const later = await stage.join({ incarnation: 2 })
    const { deliveries } = await later.claim()
    expect(idsOf(deliveries)).toEqual(ids.slice(1))
    expect((await stage.hub.delivery(ids[1] ?? '')).takeovers).toBe(0)
  })

  it('another node takes over from a stale one, counted, each alone; never what was begun', async () => {
    const stage = await make({ heartbeat_ms: 100, stale_after_ms: 250 })
    const node = await stage.join()
    const { ids, claimed, open } = await mixture(stage, node)
    const heir = await stage.join({ node: 'n2' })
    const answers = await takeOver(heir, 3)
    expect(answers.map((each) => each.map(briefOf))).toEqual([
      [`${ids[1]} takeover delivered 2`],
      [`${ids[2]} takeover mirrored 2`],
      [`${ids[3]} takeover claimed 2`],
    ])
    for (const id of ids.slice(1)) {
      expect(await stage.shown((hub) => hub.delivery(id))).toMatchObject({ owner: 'n2', takeovers: 1 })
    }
    expect(await stage.shown((hub) => hub.unknown())).toMatchObject([{ id: open.attempt, reason: 'stale' }])
    await node.beat()
    const [, idle, mirrored, fresh] = claimed
    for (const call of [
      () => node.mirror(...(fresh ? [fresh] : [])),
      () => node.ack(...(mirrored ? [mirrored] : [])),
      () => node.begin({ id: idle?.id ?? '', epoch: 1, grant: 'late' }),
    ]) {
      const answer = await itemRefused(stage, 'STALE_EPOCH', call)
      expect(answer).toMatchObject({ epoch: 2, owner: 'n2' })
    }
    expect(await node.conclude(open, done)).toMatchObject({ ok: true, outcome: 'result' })
  })

  it('a node that beats keeps what it has, however long', async () => {
    const stage = await make({ heartbeat_ms: 100, stale_after_ms: 250 })
    const [node, other] = [await stage.join(), await stage.join({ node: 'n2' })]
    await stage.acceptMany(2)
    await node.claimAll()
    const from = performance.now()
    await until(async () => {
      await Promise.all([node.beat(), other.beat()])
      expect((await other.claim()).deliveries).toEqual([])
      return performance.now() - from > 600
    })
  })

  it('what crashes its owner too often is held as poison; its neighbours go on', async () => {
    const stage = await make({ max_takeovers: 2 })
    const ids = await stage.acceptMany(2)
    await (await stage.join()).claimAll()
    const second = await stage.join({ incarnation: 2 })
    expect(idsOf((await second.claim()).deliveries)).toEqual(ids.slice(0, 1))
    const third = await stage.join({ incarnation: 3 })
    expect(idsOf(await third.claimAll())).toEqual(ids.slice(1))
    expect(await stage.shown((hub) => hub.held())).toMatchObject([{ id: ids[0], reason: 'poison' }])
  })

  it('what was begun before a leave is listed, and its report still counts', async () => {
    const stage = await make({ stale_after_ms: 600_000 })
    const [node, other] = [await stage.join(), await stage.join({ node: 'n2' })]
    const open = await node.open(await node.takeOne('delivered'))
    await node.leave()
    expect(await other.claimAll()).toEqual([])
    expect(await stage.shown((hub) => hub.unknown())).toMatchObject([{ id: open.attempt, reason: 'left' }])
    expect(await node.conclude(open, done)).toMatchObject({ ok: true, outcome: 'result' })
    expect(await stage.shown((hub) => hub.unknown())).toEqual([])
  })
}
