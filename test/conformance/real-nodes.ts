import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { notSent, terminal } from '../../src/contract/outcomes.js'
import type { Attempt } from '../../src/node/executor.js'
import { freshPath, startNode } from '../support/nodes.js'
import { until } from '../support/until.js'
import { idsOf, kim, type Make, type Stage } from './stage.js'

/** Handlers that run, lane by lane: two of a lane at once are noted. */
function laneWatch() {
  const inside = new Set<string>()
  const overlaps: string[] = []
  const entered: string[] = []
  return {
    overlaps,
    entered,
    execute: async (attempt: Attempt) => {
      const lane = `${attempt.target.host}/${attempt.message.conversation}`
      if (inside.has(lane)) overlaps.push(attempt.id)
      inside.add(lane)
      entered.push(attempt.deliveryId)
      await sleep(1) // the work: other lanes run meanwhile
      inside.delete(lane)
      return { at: attempt.id, said: attempt.payload.toString() }
    },
  }
}

async function untilDone(stage: Stage, count: number): Promise<void> {
  await until(async () => (await stage.hub.counts())['done'] === count, {
    timeoutMs: 30_000,
    everyMs: 50,
    what: `${count} deliveries done`,
  })
}

/** Ids are given in the order in which messages are queued. */
function byTime(one: string, other: string): number {
  const [ms = 0, sequence = 0] = one.split(/[-.]/).map(Number)
  const [otherMs = 0, otherSequence = 0] = other.split(/[-.]/).map(Number)
  return ms - otherMs || sequence - otherSequence
}

const fast = { heartbeat_ms: 200, stale_after_ms: 60_000 }

export function realNodes(make: Make): void {
  it('200 messages over 3 hosts: each executed once, every lane in order', async () => {
    const stage = await make(fast)
    const hosts = ['a', 'b', 'c']
    const watches = new Map(hosts.map((host) => [host, laneWatch()]))
    const started = hosts.map(async (host) => {
      const execute = watches.get(host)?.execute
      return startNode({ ...(await stage.nodeReach(host)), execute, host, concurrency: 4 })
    })
    const lanes = new Map<string, string[]>()
    const send = async (at: number) => {
      const [host, conversation] = [hosts[at % 3] ?? '', `c${at % 7}`]
      const lane = `${host}/${conversation}`
      const ids = await stage.acceptMany(1, { to: [{ host }], conversation, payload: lane })
      lanes.set(lane, [...(lanes.get(lane) ?? []), ...ids])
    }
    for (let first = 0; first < 200; first += 20) {
      await Promise.all(Array.from({ length: 20 }, (_, at) => send(first + at)))
    }
    const nodes = await Promise.all(started)
    await untilDone(stage, 200)
    for (const [lane, ids] of lanes) {
      const entered = watches.get(lane.slice(0, 1))?.entered.filter((id) => ids.includes(id))
      expect(entered, lane).toEqual(ids.toSorted(byTime))
    }
    expect([...watches.values()].flatMap(({ overlaps }) => overlaps)).toEqual([])
    const [some = ''] = lanes.get('a/c0') ?? []
    expect((await stage.shown((hub) => hub.delivery(some))).attempts).toMatchObject([
      { status: 'done', result: JSON.stringify({ at: `${some}/1`, said: 'a/c0' }) },
    ])
    for (const { node } of nodes) {
      await node.stop()
      expect(await node.closed).toEqual({ kind: 'left' })
    }
    const views = await stage.hub.hosts()
    expect(views.flatMap((host) => host.nodes.map(({ state }) => state))).toEqual(['left', 'left', 'left'])
  })

  it('a node that is stopped and started again half-way finishes, everything once', async () => {
    const stage = await make(fast)
    const watch = laneWatch()
    const { execute } = watch
    const options = { ...(await stage.nodeReach('a')), execute, host: 'a', concurrency: 3, buffer: 20 }
    const mirror = freshPath('db')
    const ids = await stage.acceptMany(40)
    for (let at = 0; at < 20; at += 1)
      ids.push(...(await stage.acceptMany(1, { conversation: `d${at % 4}` })))
    const first = await startNode({ ...options, mirror })
    await until(() => watch.entered.length >= 15)
    await first.node.stop()
    expect(await first.node.closed).toEqual({ kind: 'left' })
    const before = watch.entered.length
    expect(before).toBeLessThan(60)
    await startNode({ ...options, mirror })
    await untilDone(stage, 60)
    expect(watch.entered.toSorted()).toEqual(ids.toSorted())
    expect(watch.overlaps).toEqual([])
    const views = await Promise.all(ids.map((id) => stage.hub.delivery(id)))
    expect(views.map(({ takeovers, attempts }) => [takeovers, attempts.length])).toEqual(
      ids.map(() => [0, 1]),
    )
  })

  it('a node that is idle stops at once, and leaves', async () => {
    const stage = await make(fast)
    const { node } = await startNode({ ...(await stage.nodeReach('a')), host: 'a' })
    await stage.untilWaiting()
    const from = performance.now()
    await node.stop()
    expect(performance.now() - from).toBeLessThan(4000)
    expect(await node.closed).toEqual({ kind: 'left' })
    expect((await stage.hub.host('a'))?.nodes).toMatchObject([{ state: 'left' }])
  })

  it('stop waits for what runs, and another node goes on with the rest', async () => {
    const stage = await make(fast)
    let release = () => {}
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    const reach = await stage.nodeReach('a')
    const ids = await stage.acceptMany(3)
    const gone = await startNode({ ...reach, host: 'a', node: 'gone', execute: () => gate })
    await until(() => gone.executed.length === 1)
    const heir = await startNode({ ...reach, host: 'a', node: 'heir' })
    const stopped = gone.node.stop()
    release()
    await stopped
    await untilDone(stage, 3)
    expect(gone.executed.map(({ deliveryId }) => deliveryId)).toEqual(ids.slice(0, 1))
    expect(heir.executed.map(({ deliveryId }) => deliveryId)).toEqual(ids.slice(1))
  })

  it('a node takes over from one that went silent, and executes what that had', async () => {
    const stage = await make({ heartbeat_ms: 100, stale_after_ms: 400 })
    const silent = await stage.join({ node: 'silent' })
    const ids = await stage.acceptMany(2)
    await silent.claimAll()
    const heir = await startNode({ ...(await stage.nodeReach('a')), host: 'a', node: 'heir' })
    await untilDone(stage, 2)
    expect(heir.executed.map(({ deliveryId }) => deliveryId)).toEqual(ids)
    for (const id of ids) {
      // A settled outcome resets the count of takeovers.
      expect(await stage.shown((hub) => hub.delivery(id))).toMatchObject({
        owner: 'heir',
        epoch: 2,
        takeovers: 0,
      })
    }
  })

  it('nothing begins under a pause; it goes on in order when that is lifted', async () => {
    const stage = await make(fast)
    const watch = laneWatch()
    await startNode({ ...(await stage.nodeReach('a')), execute: watch.execute, host: 'a' })
    await stage.untilWaiting()
    await stage.hub.pause('conversation:c1', kim)
    const ids = await stage.acceptMany(5)
    const [free = ''] = await stage.acceptMany(1, { conversation: 'c2' })
    await untilDone(stage, 1)
    expect(watch.entered).toEqual([free])
    await stage.hub.lift('pause', 'conversation:c1', 'kim')
    await untilDone(stage, 6)
    expect(watch.entered.slice(1)).toEqual(ids)
  })

  it('a node that is superseded ends as failed', async () => {
    const stage = await make({ ...fast, heartbeat_ms: 50 })
    const { node } = await startNode({ ...(await stage.nodeReach('a')), host: 'a', node: 'n1' })
    await stage.join({ incarnation: 99 })
    expect(await node.closed).toMatchObject({ kind: 'failed', error: { code: 'SUPERSEDED' } })
    await node.stop()
  })

  it('a node of a retired host ends as failed', async () => {
    const stage = await make(fast)
    const { node } = await startNode({ ...(await stage.nodeReach('a')), host: 'a' })
    await stage.untilWaiting()
    await stage.hub.retire('a', kim)
    expect(await node.closed).toMatchObject({ kind: 'failed', error: { code: 'HOST_RETIRED' } })
  })

  it('every outcome of a handler is recorded, and not_sent is tried again', async () => {
    const stage = await make(fast)
    let busy = 0
    const node = await startNode({
      ...(await stage.nodeReach('a')),
      host: 'a',
      execute: ({ payload }) => {
        if (String(payload) === 'busy' && busy++ === 0) return notSent('prompt contention', { n: 1 })
        if (String(payload) === 'gone') return terminal('target_gone', { digits: '1.10' })
        if (String(payload) === 'throws') throw new TypeError('who knows')
        return { fine: '😀' }
      },
    })
    const payloads = ['fine', 'busy', 'gone', 'throws']
    const ids: string[] = []
    for (const payload of payloads)
      ids.push(...(await stage.acceptMany(1, { payload, conversation: payload })))
    await until(
      async () => (await stage.hub.counts())['done'] === 2 && (await stage.hub.unknown()).length === 1,
    )
    await until(async () => (await stage.hub.counts())['terminal'] === 1)
    const views = await Promise.all(ids.map((id) => stage.shown((hub) => hub.delivery(id))))
    expect(views.map(({ attempts }) => attempts)).toMatchObject([
      [{ status: 'done', result: '{"fine":"😀"}' }],
      [{ status: 'not_sent', errorCode: 'prompt contention', errorJson: '{"n":1}' }, { status: 'done' }],
      [{ status: 'terminal', errorCode: 'target_gone', errorJson: '{"digits":"1.10"}' }],
      [{ status: 'executing', errorCode: 'TypeError', unknownReason: 'TypeError' }],
    ])
    expect(node.executed).toHaveLength(5)
    expect(idsOf(await stage.hub.unknown())).toEqual([`${ids[3]}/1`])
  })

  it('a payload that does not match its digest is refused, and held', async () => {
    const stage = await make(fast)
    const { record } = stage
    const { id } = await stage.accept()
    await record.send('SET', record.keys.payload(id), 'something else')
    const node = await startNode({ ...(await stage.nodeReach('a')), host: 'a' })
    await until(async () => (await stage.hub.held()).length === 1)
    expect(await stage.shown((hub) => hub.held())).toMatchObject([
      { id: `${id}.1`, reason: 'payload_corrupt' },
    ])
    expect(node.executed).toEqual([])
  })
}
