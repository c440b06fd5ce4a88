import { expect, it } from 'vitest'
import { idsOf, kim, type Make, refused } from './stage.js'

export function fences(make: Make): void {
  it('are set with reason, actor and end, replaced, shown and lifted', async () => {
    const stage = await make()
    const until = Date.now() + 3_600_000
    const reason = 'she said "wait" — 待って 😀'
    const scope = 'conversation:a/b %2F ?#"\\'
    const first = await stage.hub.pause(scope, { reason, actor: 'kim', until: new Date(until) })
    expect(first).toEqual({ fence: `pause:${scope}`, logId: expect.stringMatching(/^\d+-\d+$/) })
    expect(await stage.shown((hub) => hub.fences())).toEqual([
      { fence: `pause:${scope}`, known: true, reason, actor: 'kim', at: expect.any(Number), until },
    ])
    const second = await stage.hub.pause(scope, { reason: 'again', actor: 'kim', until: until + 1 })
    expect(JSON.parse(second.replaced ?? '')).toMatchObject({ reason, actor: 'kim', until })
    await stage.hub.hold('host:a', kim)
    await stage.hub.block('session:s', kim)
    await stage.hub.pause('hub', kim)
    expect((await stage.shown((hub) => hub.fences())).map(({ fence, reason: why }) => [fence, why])).toEqual([
      ['block:session:s', 'asked to'],
      ['hold:host:a', 'asked to'],
      [`pause:${scope}`, 'again'],
      ['pause:hub', 'asked to'],
    ])
    const lifted = await stage.hub.lift('pause', scope, 'kim')
    expect(lifted).toMatchObject({ fence: `pause:${scope}`, hostsRung: 0, left: 0 })
    expect(JSON.parse(lifted.reason)).toMatchObject({ reason: 'again', actor: 'kim' })
    await refused(stage, 'FENCE_NOT_FOUND', () => stage.hub.lift('pause', scope, 'kim'))
  })

  it('shows what was written by hand, and what no rule reads', async () => {
    const stage = await make()
    const fields = ['pause:host:a', 'by hand', 'block:hub', '{"reason":"r"}', 'pauze:hub', 'x']
    await stage.record.send('HSET', stage.record.keys.fences, ...fields)
    expect(await stage.shown((hub) => hub.fences())).toEqual([
      { fence: 'block:hub', known: true, reason: 'r' },
      { fence: 'pause:host:a', known: true, reason: 'by hand' },
      { fence: 'pauze:hub', known: false, reason: 'x' },
    ])
  })

  it('a pause parks a lane in its order; what was un-parked is served first', async () => {
    const stage = await make()
    const node = await stage.join()
    const [early = ''] = await stage.acceptMany(1)
    const [claimed] = await node.claimAll()
    await stage.hub.pause('conversation:c1', kim)
    const parked = await stage.acceptMany(2)
    const [free = ''] = await stage.acceptMany(1, { conversation: 'c2' })
    expect(idsOf(await node.claimAll())).toEqual([free])
    expect(claimed?.id).toBe(early)
    expect((await stage.shown((hub) => hub.delivery(parked[0] ?? ''))).parkedBy).toBe('pause:conversation:c1')
    expect(await stage.shown((hub) => hub.why(parked[0] ?? ''))).toMatchObject({ reason: 'fenced' })
    expect(await stage.hub.lift('pause', 'conversation:c1', 'kim')).toMatchObject({ hostsRung: 1 })
    const later = await stage.acceptMany(1)
    const served = await node.claimAll()
    expect(served.map(({ id, how }) => [id, how])).toEqual([
      [parked[0], 'parked'],
      [parked[1], 'parked'],
      [later[0], 'new'],
    ])
  })

  it('a hold keeps what it covers, and gives it back when it is lifted', async () => {
    const stage = await make()
    const node = await stage.join()
    await stage.hub.hold('conversation:c1', kim)
    const ids = await stage.acceptMany(2)
    expect(await node.claimAll()).toEqual([])
    const held = await stage.shown((hub) => hub.held())
    expect(held).toEqual(
      ids.map((id) => ({
        id,
        sinceMs: expect.any(Number),
        reason: 'fence hold:conversation:c1',
        host: 'a',
        conversation: 'c1',
        attempts: 0,
      })),
    )
    expect(await stage.hub.lift('hold', 'conversation:c1', 'kim')).toMatchObject({ left: 0 })
    const back = await node.claimAll()
    expect(back.map(({ id, epoch, how }) => [id, epoch, how])).toEqual(ids.map((id) => [id, 3, 'new']))
  })

  it('a block fails what it covers, over a hold and a pause', async () => {
    const stage = await make()
    const node = await stage.join()
    await stage.hub.pause('hub', kim)
    await stage.hub.hold('conversation:c1', kim)
    await stage.hub.block('host:a', kim)
    const [id = ''] = await stage.acceptMany(1)
    expect(await node.claimAll()).toEqual([])
    expect(await stage.shown((hub) => hub.delivery(id))).toMatchObject({
      state: 'failed',
      reason: 'blocked block:host:a',
    })
    expect(await stage.shown((hub) => hub.why(id))).toMatchObject({ reason: 'failed' })
  })

  it('a drain is a pause of the host that says so', async () => {
    const stage = await make()
    const node = await stage.join()
    expect(await stage.hub.drain('a', 'kim')).toMatchObject({ fence: 'pause:host:a' })
    expect(await stage.shown((hub) => hub.fences())).toMatchObject([
      { fence: 'pause:host:a', reason: 'drain', actor: 'kim' },
    ])
    const ids = await stage.acceptMany(1)
    expect(await node.claimAll()).toEqual([])
    await stage.hub.lift('pause', 'host:a', 'kim')
    expect(idsOf(await node.claimAll())).toEqual(ids)
  })

  it('lapses by itself', async () => {
    const stage = await make()
    const node = await stage.join()
    const ids = await stage.acceptMany(1)
    const { nowMs } = await node.transport.heartbeat(node.who, {
      lastLogId: '0-0',
      progressAgeMs: 0,
      blocking: { sumMs: 0, longestMs: 0 },
    })
    await stage.hub.pause('hub', { ...kim, until: nowMs + 400 })
    const first = await node.claim()
    if (first.deliveries.length > 0) expect(first.nowMs).toBeGreaterThan(nowMs + 399)
    const from = performance.now()
    const reply = await node.claim(10, { waitMs: 20_000 })
    expect(idsOf([...first.deliveries, ...reply.deliveries])).toEqual(ids)
    expect(performance.now() - from).toBeLessThan(4000)
  })

  it('refuses scopes, reasons and times that are none', async () => {
    const stage = await make()
    for (const scope of ['', 'x', 'host:A', 'conversation:', 'hub:x', 'session:é', '\ud800']) {
      await refused(stage, 'INVALID_ARGUMENT', () => stage.hub.pause(scope, kim))
      await refused(stage, 'INVALID_ARGUMENT', () => stage.hub.lift('hold', scope, 'kim'))
    }
    for (const reason of ['', 'x'.repeat(1025), 'é'.repeat(513)]) {
      await refused(stage, 'INVALID_ARGUMENT', () => stage.hub.hold('hub', { ...kim, reason }))
    }
    for (const until of [1, new Date(Number.NaN)]) {
      await refused(stage, 'INVALID_ARGUMENT', () => stage.hub.block('hub', { ...kim, until }))
    }
    await refused(stage, 'INVALID_ARGUMENT', () => stage.hub.lift('pauze' as 'pause', 'hub', 'kim'))
    await refused(stage, 'INVALID_ARGUMENT', () => stage.hub.drain('A', 'kim'))
    await refused(stage, 'INVALID_ARGUMENT', () => stage.hub.drain('', 'kim'))
  })
}
