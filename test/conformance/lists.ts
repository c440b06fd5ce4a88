import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import type { LiveState, Page, PageOptions } from '../../src/contract/hub.js'
import { until } from '../support/until.js'
import { idsOf, type Make, never, neverMessage, refused, type Stage, unknown } from './stage.js'

/** Every entry by pages of this size, from both ways to the record. */
async function allBy<Entry>(
  stage: Stage,
  limit: number,
  read: (hub: Stage['hub'], page: PageOptions) => Promise<Page<Entry>>,
): Promise<Entry[]> {
  const found: Entry[] = []
  let cursor: string | undefined
  for (let pages = 0; pages < 200; pages += 1) {
    const page = await stage.shown((hub) => read(hub, { cursor, limit }))
    expect(page.entries.length).toBeLessThanOrEqual(limit)
    found.push(...page.entries)
    cursor = page.cursor
    if (cursor === undefined) return found
  }
  throw new Error('the pages do not end')
}

const states: readonly LiveState[] = ['queued', 'claimed', 'mirrored', 'delivered', 'held', 'unknown']

export function lists(make: Make): void {
  it('pages of deliveries visit everything once, by host and by state', async () => {
    const stage = await make()
    const node = await stage.join()
    const ids = await stage.acceptMany(14)
    const claimed = await node.claimAll(12)
    const first = claimed.slice(0, 12)
    await node.mirror(...first.slice(0, 8))
    await node.ack(...first.slice(0, 4))
    const refusal = { reason: 'payload_corrupt' }
    for (const [at, each] of [first[1], first[5], first[9]].entries()) {
      const verdict = at === 0 ? ('failed' as const) : ('unknown' as const)
      const why = at === 0 ? refusal : { reason: 'disk' }
      if (each) await node.transport.refuse(node.who, [{ id: each.id, epoch: 1, verdict, ...why }])
    }
    const elsewhere = await stage.acceptMany(3, { to: [{ host: 'b' }, { host: 'c' }] })
    const read = (filter: object) => (hub: Stage['hub'], page: PageOptions) =>
      hub
        .deliveries({ ...filter, ...page })
        .then(({ deliveries, cursor }) => ({ entries: deliveries, cursor }))
    for (const limit of [1, 4, 1000]) {
      const found = idsOf(await allBy(stage, limit, read({})))
      expect(found.toSorted()).toEqual([...ids, ...elsewhere].toSorted())
    }
    const onB = idsOf(await allBy(stage, 2, read({ host: 'b' })))
    expect(onB).toEqual(elsewhere.filter((_, at) => at % 2 === 0))
    const counts = await stage.shown((hub) => hub.counts())
    for (const state of states) {
      const found = await allBy(stage, 2, read({ state }))
      expect(found.map((each) => each.state)).toEqual(found.map(() => state))
      expect(found, state).toHaveLength(counts[state] ?? 0)
    }
  })

  it('pages of deliveries are those that every member of a filter wants', async () => {
    const stage = await make()
    for (let at = 0; at < 6; at += 1) await stage.accept({ conversation: `c${at % 2}`, to: [{ host: 'f' }] })
    const [{ id: message, deliveries } = { id: '', deliveries: [] }] = [
      await stage.accept({ conversation: 'c0', to: [{ host: 'f' }, { host: 'g' }, { host: 'h' }] }),
    ]
    const [one, two] = idsOf(deliveries)
    await stage.hub.holdDelivery(one ?? '', { actor: 'kim', reason: 'odd one' })
    await stage.hub.cancel(two ?? '', { actor: 'kim', reason: 'r' })
    const found = async (filter: object) =>
      idsOf(
        await allBy(stage, 2, (hub, page) =>
          hub
            .deliveries({ ...filter, ...page })
            .then(({ deliveries: entries, cursor }) => ({ entries, cursor })),
        ),
      )
    expect(await found({ conversation: 'c1' })).toHaveLength(3)
    expect(await found({ conversation: 'c0', host: 'f' })).toHaveLength(4)
    expect(await found({ conversation: 'c0', state: 'held', reason: 'odd' })).toEqual([one])
    expect(await found({ reason: 'even' })).toEqual([])
    expect(await found({ session: 'nobody' })).toEqual([])
    expect(await found({ message })).toEqual(idsOf(deliveries))
    expect(await found({ message, host: 'h' })).toEqual([deliveries[2]?.id])
    expect(await found({ message: neverMessage })).toEqual([])
    const { matched } = await stage.hub.actOnMany(
      'hold',
      { state: 'queued', conversation: 'c1', host: 'f' },
      { actor: 'kim', reason: 'r', dryRun: true, limit: 2 },
    )
    expect(matched).toBe(2)
    await refused(stage, 'INVALID_ARGUMENT', () => stage.hub.deliveries({ message: 'x' }))
    await refused(stage, 'INVALID_ARGUMENT', () => stage.hub.deliveries({ conversation: '' }))
    await refused(stage, 'INVALID_ARGUMENT', () => stage.hub.deliveries({ message, cursor: 'x' }))
  })

  it('a cursor at which nothing can be is refused', async () => {
    const stage = await make()
    await stage.acceptMany(1)
    const past = '18446744073709551616'
    for (const cursor of [
      '0-0',
      '00-0',
      `${past}-0`,
      `1-${past}`,
      `1-${'9'.repeat(40)}`,
      '-',
      '+',
      '(1-1',
      '',
    ]) {
      await refused(stage, 'INVALID_ARGUMENT', () => stage.hub.logPage({ cursor }))
      await refused(stage, 'INVALID_ARGUMENT', () => stage.hub.messagePage({ cursor }))
    }
    for (const cursor of ['. x', '1. x', '1.2.3 x', '-1 x', '1e3 x', 'inf x']) {
      await refused(stage, 'INVALID_ARGUMENT', () => stage.hub.sessionPage({ cursor }))
      await refused(stage, 'INVALID_ARGUMENT', () => stage.hub.unknownPage({ cursor }))
    }
  })

  it('pages of the held queue, of the unknown list and of pending lists visit everything once', async () => {
    const stage = await make()
    const node = await stage.join()
    await stage.acceptMany(7)
    const delivered = await node.deliverAll()
    for (const each of delivered) await node.conclude(await node.open(each), unknown)
    await stage.acceptMany(7)
    const held = await node.deliverAll()
    for (const { id } of held) await stage.hub.holdDelivery(id, { actor: 'kim', reason: 'r' })
    await stage.acceptMany(7)
    const pending = await node.claimAll()
    await node.mirror(...pending.slice(0, 3))
    const shownPending = (hub: Stage['hub'], page: PageOptions) =>
      hub.pendingPage('a', page).then(({ entries, cursor }) => ({
        entries: entries.map((entry) => ({ ...entry, idleMs: 0 })),
        cursor,
      }))
    for (const limit of [1, 3, 7, 1000]) {
      expect(idsOf(await allBy(stage, limit, (hub, page) => hub.heldPage(page)))).toEqual(idsOf(held))
      const doubtful = await allBy(stage, limit, (hub, page) => hub.unknownPage(page))
      expect(idsOf(doubtful)).toEqual(delivered.map(({ id }) => `${id}/1`))
      const listed = await allBy(stage, limit, shownPending)
      expect(listed.map((entry) => entry.delivery)).toEqual(idsOf(pending))
    }
    expect(await allBy(stage, 1000, shownPending)).toEqual(
      pending.map(({ id }, at) => ({
        host: 'a',
        entry: expect.stringMatching(/^\d+-\d+$/),
        consumer: 'n1',
        idleMs: 0,
        delivery: id,
        state: at < 3 ? 'mirrored' : 'claimed',
        epoch: 1,
        owner: 'n1',
      })),
    )
    expect(idsOf(await stage.hub.held())).toEqual(idsOf(held))
    expect(await stage.hub.unknown()).toHaveLength(7)
    expect(await stage.hub.pending()).toHaveLength(7)
    expect(await stage.hub.pending('b')).toEqual([])
  })

  it('pages of hosts visit every one once, with nodes and what waits', async () => {
    const stage = await make()
    await stage.acceptMany(2, { to: [{ host: 'z' }, { host: 'b' }, { host: 'a.1' }] })
    await stage.join({ host: 'joined' })
    for (const limit of [1, 3, 1000]) {
      const hosts = await allBy(stage, limit, (hub, page) =>
        hub.hostPage(page).then(({ entries, cursor }) => ({
          entries: entries.map(({ nodes, ...host }) => ({ ...host, nodes: nodes.map(({ node }) => node) })),
          cursor,
        })),
      )
      expect(hosts).toEqual([
        { host: 'a.1', joined: false, entries: 2, awaiting: 0, nodes: [] },
        { host: 'b', joined: false, entries: 2, awaiting: 0, nodes: [] },
        { host: 'joined', joined: true, entries: 0, awaiting: 0, nodes: ['n1'] },
        { host: 'z', joined: false, entries: 2, awaiting: 0, nodes: [] },
      ])
    }
    expect((await stage.hub.hosts()).map(({ host }) => host)).toEqual(['a.1', 'b', 'joined', 'z'])
    expect(await stage.hub.host('never')).toBeUndefined()
  })

  it('pages of messages have every one once, the newest first, and only what a filter wants', async () => {
    const stage = await make()
    const accepted = await Promise.all(
      Array.from({ length: 12 }, (_, at) => stage.accept({ conversation: `c${at % 3}`, key: `key ${at}` })),
    )
    const ids = idsOf(accepted).toSorted().reverse()
    for (const limit of [1, 5, 1000]) {
      expect(idsOf(await allBy(stage, limit, (hub, page) => hub.messagePage(page)))).toEqual(ids)
    }
    const [first, second] = accepted
    const found = async (filter: object) =>
      idsOf(await allBy(stage, 2, (hub, page) => hub.messagePage({ ...filter, ...page })))
    const ofC1 = accepted.filter((_, at) => at % 3 === 1)
    expect(await found({ conversation: 'c1' })).toEqual(idsOf(ofC1).toSorted().reverse())
    expect(await found({ sender: 'tests', conversation: 'c2' })).toHaveLength(4)
    expect(await found({ sender: 'nobody' })).toEqual([])
    expect(await found({ id: first?.id })).toEqual([first?.id])
    expect(await found({ id: neverMessage })).toEqual([])
    expect(await found({ key: 'key 1' })).toEqual([second?.id])
    expect(await found({ key: 'key 1', id: first?.id })).toEqual([])
    expect(await found({ key: 'key 1', conversation: 'c2' })).toEqual([])
    expect(await found({ key: 'no such key' })).toEqual([])
    const { deliveries, ...head } = await stage.hub.message(first?.id ?? '')
    expect(await stage.hub.messagePage({ id: first?.id })).toEqual({ entries: [{ ...head, settled: 0 }] })
    for (const { id } of deliveries) await stage.hub.cancel(id, { actor: 'kim', reason: 'r' })
    const [settled] = (await stage.hub.messagePage({ id: first?.id })).entries
    expect(settled).toMatchObject({ settled: 1, recipients: 1, settledAt: expect.any(Number) })
    const { send, keys } = stage.record
    const row = (await send('HGETALL', keys.message(second?.id ?? ''))) as string[]
    await send('DEL', keys.message(second?.id ?? ''))
    expect(await found({})).toEqual(ids.filter((id) => id !== second?.id))
    await send('HSET', keys.message(second?.id ?? ''), ...row)
  })

  it('a payload is the bytes that were accepted, with their media type and digest', async () => {
    const stage = await make()
    const bytes = Buffer.from([0, 255, 10, 13, 128, 0])
    const { id } = await stage.accept({ payload: bytes, contentType: 'image/x; a="50%"' })
    const { bytes: found, contentType, sha256 } = await stage.shown((hub) => hub.payload(id))
    expect(Buffer.from(found).equals(bytes)).toBe(true)
    expect({ contentType, sha256 }).toEqual({
      contentType: 'image/x; a="50%"',
      sha256: createHash('sha256').update(bytes).digest('hex'),
    })
    const { id: plain } = await stage.accept({ payload: '' })
    expect((await stage.hub.payload(plain)).bytes).toHaveLength(0)
    await refused(stage, 'MESSAGE_NOT_FOUND', () => stage.hub.payload(neverMessage))
    await refused(stage, 'INVALID_ARGUMENT', () => stage.hub.payload('x'))
  })

  it('pages of the log have every entry once, the newest first, and only what a filter wants', async () => {
    const stage = await make()
    const node = await stage.join()
    const ids = await stage.acceptMany(5)
    await node.deliverAll()
    await stage.hub.pause('host:b', { actor: 'kim', reason: 'r' })
    const [one = ''] = ids
    await stage.hub.holdDelivery(one, { actor: 'kim', reason: 'r' })
    const { keys, send } = stage.record
    const logged = (await send('XREVRANGE', keys.log, '+', '-')) as [string, string[]][]
    for (const limit of [1, 3, 1000]) {
      const found = await allBy(stage, limit, (hub, page) => hub.logPage(page))
      expect(idsOf(found)).toEqual(logged.map(([id]) => id))
    }
    const verbs = async (filter: object) =>
      (await allBy(stage, 2, (hub, page) => hub.logPage({ ...filter, ...page }))).map(({ verb }) => verb)
    expect(await verbs({ verbs: ['pause', 'hold_delivery'] })).toEqual(['hold_delivery', 'pause'])
    expect(await verbs({ actor: 'kim' })).toEqual(['hold_delivery', 'pause'])
    expect(await verbs({ host: 'b' })).toEqual(['pause'])
    const accepts = logged.filter(([, fields]) => fields[1] === 'accept' && fields.includes('a'))
    expect(await verbs({ verbs: ['accept'], host: 'a' })).toHaveLength(accepts.length)
    const message = one.split('.')[0]
    expect(await verbs({ about: message })).toEqual(await verbs({ about: one }))
    expect(await verbs({ about: one })).toEqual(['hold_delivery', 'ack', 'mirror', 'claim', 'accept'])
    expect(await verbs({ about: 'host:b' })).toEqual(['pause'])
    expect(await verbs({ about: 'pause:host:b' })).toEqual(['pause'])
    expect(await verbs({ about: 'nobody' })).toEqual([])
    const [newest] = (await stage.hub.logPage({ limit: 1 })).entries
    expect(newest).toMatchObject({
      at: Number(logged[0]?.[0].split('-')[0]),
      actor: 'kim',
      changes: [{ ids: [one], from: 'delivered', to: 'held' }],
    })
  })

  it('a page of the log looks at 2000 entries at most', async () => {
    const stage = await make()
    const { store, keys } = stage.record
    const add = ['XADD', keys.log, '*', 'verb', 'test', 'actor', 'tests']
    await stage.accept()
    await store.pipeline(Array.from({ length: 4500 }, () => add))
    const sizes: number[] = []
    for (let cursor: string | undefined; ; ) {
      const page = await stage.hub.logPage({ verbs: ['accept'], cursor })
      sizes.push(page.entries.length)
      cursor = page.cursor
      if (cursor === undefined) break
    }
    expect(sizes).toEqual([0, 0, 1])
  })

  it('an overview says what the record counts, at most two seconds late', async () => {
    const stage = await make()
    const node = await stage.join()
    const [first = ''] = await stage.acceptMany(3)
    const [claimed] = (await node.claim(1)).deliveries
    await stage.hub.holdDelivery(first, { actor: 'kim', reason: 'r' })
    await stage.hub.pause('host:b', { actor: 'kim', reason: 'r' })
    expect(claimed?.id).toBe(first)
    await until(async () => (await stage.hub.overview()).fences === 1, { what: 'the fence in the overview' })
    const found = await stage.hub.overview()
    expect(found).toMatchObject({
      hub: stage.record.name,
      recipients: 3,
      deliveries: { queued: 2, held: 1, claimed: 0, failed: 0 },
      attempts: { done: 0, terminal: 0 },
      hosts: 1,
      fences: 1,
      effectsExecuting: 0,
      lists: { held: { count: 1 }, unknown: { count: 0, oldestAgeMs: 0 } },
      nodes: { live: 1, silent: 0 },
    })
    expect(Math.abs(Date.now() - found.at)).toBeLessThan(60_000)
  })

  it('events go on after a place, and are only those that a filter wants', async () => {
    const stage = await make()
    const { hub } = stage
    const {
      entries: [start],
    } = await hub.logPage({ limit: 1 })
    await stage.accept()
    await hub.pause('host:b', { actor: 'kim', reason: 'r' })
    await hub.lift('pause', 'host:b', 'kim')
    const over = new AbortController()
    const heard: string[] = []
    const lastEventId = start?.id ?? '0-0'
    for await (const event of hub.events({ lastEventId, host: 'b', signal: over.signal })) {
      if (event.kind !== 'entry') continue
      heard.push(event.entry.verb)
      if (heard.length === 2) over.abort()
    }
    expect(heard).toEqual(['pause', 'lift'])
    const next = hub.events({ verbs: ['accept'], lastEventId })
    expect((await next.next()).value).toMatchObject({
      kind: 'entry',
      entry: { verb: 'accept', hosts: ['a'] },
    })
    await next.return()
    await refused(stage, 'INVALID_ARGUMENT', () => hub.events({ lastEventId, host: 'No' }).next())
    await refused(stage, 'INVALID_ARGUMENT', () => hub.events({ lastEventId, verbs: ['No'] }).next())
  })

  it('say what is not there, and refuse what is no id or cursor', async () => {
    const stage = await make()
    await stage.acceptMany(1)
    const { hub } = stage
    await refused(stage, 'MESSAGE_NOT_FOUND', () => hub.message(neverMessage))
    await refused(stage, 'DELIVERY_NOT_FOUND', () => hub.delivery(never))
    await refused(stage, 'DELIVERY_NOT_FOUND', () => hub.why(never))
    for (const bad of ['', 'x', '..', 'a/b', '%2F', '\ud800', 'x'.repeat(300)]) {
      await refused(stage, 'INVALID_ARGUMENT', () => hub.message(bad))
      await refused(stage, 'INVALID_ARGUMENT', () => hub.delivery(bad))
      await refused(stage, 'INVALID_ARGUMENT', () => hub.why(bad))
    }
    for (const bad of ['', 'A', '..', 'a/b', '\ud800', 'x'.repeat(64)]) {
      await refused(stage, 'INVALID_ARGUMENT', () => hub.host(bad))
      await refused(stage, 'INVALID_ARGUMENT', () => hub.pendingPage(bad))
      await refused(stage, 'INVALID_ARGUMENT', () => hub.deliveries({ host: bad }))
    }
    const cursor = 'none of ours'
    await refused(stage, 'INVALID_ARGUMENT', () => hub.deliveries({ cursor }))
    await refused(stage, 'INVALID_ARGUMENT', () => hub.heldPage({ cursor }))
    await refused(stage, 'INVALID_ARGUMENT', () => hub.unknownPage({ cursor }))
    await refused(stage, 'INVALID_ARGUMENT', () => hub.hostPage({ cursor }))
    await refused(stage, 'INVALID_ARGUMENT', () => hub.pendingPage('a', { cursor }))
    await refused(stage, 'INVALID_ARGUMENT', () => hub.logPage({ cursor }))
    await refused(stage, 'INVALID_ARGUMENT', () => hub.messagePage({ cursor }))
    await refused(stage, 'INVALID_ARGUMENT', () => hub.messagePage({ id: 'x' }))
    await refused(stage, 'INVALID_ARGUMENT', () => hub.messagePage({ sender: '' }))
    await refused(stage, 'INVALID_ARGUMENT', () => hub.logPage({ verbs: [] }))
    await refused(stage, 'INVALID_ARGUMENT', () => hub.logPage({ about: '' }))
  })

  it('answer that there is no record, once it is gone, and recover with it', async () => {
    const stage = await make()
    const node = await stage.join()
    const { hub, record } = stage
    const identity = (await record.send('HGETALL', record.keys.identity)) as string[]
    await record.send('DEL', record.keys.identity)
    const calls: Readonly<Record<string, () => Promise<unknown>>> = {
      accept: () => stage.accept(),
      message: () => hub.message(neverMessage),
      deliveries: () => hub.deliveries(),
      held: () => hub.held(),
      hosts: () => hub.hosts(),
      fences: () => hub.fences(),
      pause: () => hub.pause('hub', { actor: 'kim', reason: 'r' }),
      configuration: () => hub.configuration(),
      beat: () => node.beat(),
      claim: () => node.claim(),
    }
    for (const call of Object.values(calls)) await refused(stage, 'STORE_UNKNOWN', call)
    await record.send('HSET', record.keys.identity, ...identity)
    await node.beat()
    expect(await hub.fences()).toEqual([])
  })
}
