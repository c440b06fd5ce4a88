import { expect, it } from 'vitest'
import { idsOf, kim, type Make, type Speaker, type Stage } from './stage.js'

const longMs = 20_000
/** Well below every time at which a claim looks by itself. */
const soonMs = 4000

/** Claims until there is nothing to look at: what comes after it is waited for. */
async function settle(node: Speaker): Promise<void> {
  expect(await node.claimAll()).toEqual([])
}

/** Something becomes runnable while a claim waits: it must answer at once. */
async function woken(stage: Stage, node: Speaker, act: () => Promise<unknown>): Promise<string[]> {
  const waiting = node.claim(10, { waitMs: longMs })
  await stage.untilWaiting()
  const from = performance.now()
  await act()
  const found = idsOf((await waiting).deliveries)
  expect(performance.now() - from).toBeLessThan(soonMs)
  return found
}

export function waiting(make: Make): void {
  it('wakes when something is accepted for its host', async () => {
    const stage = await make()
    const node = await stage.join()
    await settle(node)
    let ids: string[] = []
    const found = await woken(stage, node, async () => {
      ids = await stage.acceptMany(1)
    })
    expect(found).toEqual(ids)
  })

  it('wakes when a pause is lifted, and serves what was parked', async () => {
    const stage = await make()
    const node = await stage.join()
    await stage.hub.pause('conversation:c1', kim)
    const ids = await stage.acceptMany(2)
    await settle(node)
    expect(await woken(stage, node, () => stage.hub.lift('pause', 'conversation:c1', 'kim'))).toEqual(ids)
  })

  it('wakes when a hold is lifted, and when a held delivery is released', async () => {
    const stage = await make()
    const node = await stage.join()
    await stage.hub.hold('hub', kim)
    const [one = '', two = ''] = await stage.acceptMany(2)
    await settle(node)
    expect(await woken(stage, node, () => stage.hub.release(one, kim))).toEqual([one])
    await settle(node)
    expect(await woken(stage, node, () => stage.hub.lift('hold', 'hub', 'kim'))).toEqual([two])
  })

  it('wakes when another node of the host leaves, and takes over what it had', async () => {
    const stage = await make({ stale_after_ms: 600_000 })
    const [gone, heir] = [await stage.join(), await stage.join({ node: 'n2' })]
    const ids = await stage.acceptMany(2)
    await gone.claimAll()
    await settle(heir)
    expect(await woken(stage, heir, () => gone.leave())).toEqual(ids)
  })

  it('is refused when its host is retired meanwhile', async () => {
    const stage = await make()
    const node = await stage.join()
    await settle(node)
    const waiting = node.claim(10, { waitMs: longMs }).catch((error: unknown) => error)
    await stage.untilWaiting()
    await stage.hub.retire('a', kim)
    expect(await waiting).toMatchObject({ code: 'HOST_RETIRED' })
  })

  it('answers that there is nothing when its time is up, whatever other hosts get', async () => {
    const stage = await make()
    const node = await stage.join()
    await settle(node)
    const from = performance.now()
    const waiting = node.claim(10, { waitMs: 300, request: 50 })
    await stage.acceptMany(2, { to: [{ host: 'b' }] })
    expect(await waiting).toMatchObject({ deliveries: [], more: false })
    const tookMs = performance.now() - from
    expect(tookMs).toBeGreaterThan(280)
    expect(tookMs).toBeLessThan(soonMs)
    const ids = await stage.acceptMany(1)
    expect((await node.claim(10, { request: 50 })).deliveries).toEqual([])
    expect(idsOf((await node.claim(10, { request: 51 })).deliveries)).toEqual(ids)
  })

  it('does not wait where something is there', async () => {
    const stage = await make()
    const node = await stage.join()
    await settle(node)
    const ids = await stage.acceptMany(1)
    const from = performance.now()
    expect(idsOf((await node.claim(10, { waitMs: longMs })).deliveries)).toEqual(ids)
    expect(performance.now() - from).toBeLessThan(soonMs)
  })

  it('answers that there is nothing once it is aborted, and the same request may be asked again', async () => {
    const stage = await make()
    const node = await stage.join()
    await stage.acceptMany(1)
    const [first] = await node.deliverAll()
    await settle(node)
    const { logId } = await node.claim()
    const stop = new AbortController()
    const waiting = node.claim(10, { waitMs: longMs, signal: stop.signal, request: 50 })
    await stage.untilWaiting()
    stop.abort()
    const reply = await waiting
    expect(reply).toMatchObject({ deliveries: [], ghosts: [], missing: [] })
    expect(reply.logId, 'the last log id goes back').toBe(logId)
    await stage.untilWaiting(0)
    const ids = await stage.acceptMany(1)
    expect(ids).not.toContain(first?.id)
    expect(idsOf((await node.claim(10, { request: 50 })).deliveries)).toEqual(ids)
  })

  it('loses nothing when it is aborted just as something comes', async () => {
    const stage = await make({ stale_after_ms: 600_000 })
    const heir = await stage.join({ node: 'heir' })
    await settle(heir)
    for (let round = 1; round <= 6; round += 1) {
      const node = await stage.join({ incarnation: round })
      await settle(node)
      const stop = new AbortController()
      const waiting = node.claim(10, { waitMs: longMs, signal: stop.signal })
      await stage.untilWaiting()
      const accepting = stage.acceptMany(1)
      if (round % 2 === 0) await Promise.race([accepting, waiting])
      stop.abort()
      const [ids, reply] = await Promise.all([accepting, waiting])
      await node.leave()
      const found = await heir.claimAll()
      expect(idsOf(found), `round ${round}`).toEqual(ids)
      expect(found[0]?.how === 'takeover' || reply.deliveries.length === 0).toBe(true)
      expect((await stage.hub.delivery(ids[0] ?? '')).takeovers).toBe(0)
    }
  })
}
