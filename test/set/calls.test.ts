import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createEffects } from '../../src/client/effects.js'
import type { HubCalls, Page } from '../../src/contract/hub.js'
import { until } from '../support/until.js'
import { messageOf, openSetStage, type SetStage } from './stage.js'

// Every family of calls of a set, on the record and over HTTP alike.

let stage: SetStage
beforeAll(async () => {
  stage = await openSetStage()
})
afterAll(() => stage?.close())

const kim = { reason: 'because', actor: 'kim' }

describe.each(['on the record', 'over HTTP'] as const)('a set %s', (way) => {
  let set: HubCalls
  const host = way === 'on the record' ? 'r' : 'h'
  beforeAll(() => {
    set = way === 'on the record' ? stage.set : stage.client
  })

  /** A message on each hub, by the hub. */
  async function onEach(more: Parameters<typeof messageOf>[1] = {}): Promise<Map<string, string>> {
    const ids = new Map<string, string>()
    for (const hub of stage.names) {
      const message = messageOf(stage.conversationOf(hub), { to: [{ host }], ...more })
      ids.set(hub, (await set.accept({ ...message, key: `${message.key}-${way}` })).id)
    }
    return ids
  }

  test('accepts a message on the hub of its conversation; its ids say which that is, its key does not', async () => {
    for (const hub of stage.names) {
      const message = messageOf(stage.conversationOf(hub), { to: [{ host }] })
      const accepted = await set.accept(message)
      expect(accepted.id).toMatch(new RegExp(`^${hub}:\\d+-\\d+$`))
      expect(accepted.deliveries).toEqual([{ id: `${accepted.id}.1`, host, state: 'queued' }])
      const view = await set.message(accepted.id)
      expect(view).toMatchObject({ id: accepted.id, key: message.key })
      expect(view.deliveries[0]).toMatchObject({ id: `${accepted.id}.1`, message: accepted.id })
      expect(await set.accept(message)).toMatchObject({ id: accepted.id, replayed: true })
      expect(await stage.record(hub).fields(`${accepted.id.split(':')[1]}.1`)).toMatchObject({ host })
    }
  })

  test('sends again on the hub where the message is, with a link to the first', async () => {
    const [[hub, id = ''] = []] = await onEach()
    const again = await set.resend(id, { key: `again ${way}` })
    expect(again.id.startsWith(`${hub}:`)).toBe(true)
    expect((await set.message(again.id)).resendOf).toBe(id)
  })

  test('the log is of all hubs as one, the newest entry first, whatever the pages; a filter by an id is of its hub', async () => {
    const ids = await onEach()
    const all: string[] = []
    for (const hub of stage.names) {
      const { keys, send } = stage.record(hub)
      const logged = (await send('XREVRANGE', keys.log, '+', '-')) as [string][]
      all.push(...logged.map(([id]) => `${hub} ${id}`))
    }
    for (const limit of [1, 7, 1000]) {
      const found = await everyPage((page) => set.logPage({ ...page, limit }))
      expect(found.map(({ hub, id }) => `${hub} ${id}`).toSorted()).toEqual(all.toSorted())
      const times = found.map(({ at }) => at)
      expect(times).toEqual(times.toSorted((one, other) => other - one))
    }
    const verbs = ['accept']
    const accepted = await everyPage((page) => set.logPage({ ...page, verbs, limit: 2, host }))
    expect(new Set(accepted.map(({ hub }) => hub))).toEqual(new Set(stage.names))
    const [hub, id = ''] = [...ids][0] ?? []
    await set.cancel(`${id}.1`, kim)
    const about = await everyPage((page) => set.logPage({ ...page, about: id }))
    expect(about).toMatchObject([
      { hub, verb: 'cancel', changes: [{ ids: [`${id}.1`] }] },
      { hub, verb: 'accept' },
    ])
    for (const cursor of ['elsewhere|1-0', `${hub}|0-0`, `${hub}|18446744073709551616-0`]) {
      await expect(set.logPage({ cursor })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
      await expect(set.messagePage({ cursor })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    }
  })

  test('messages are those of all hubs, the newest first; a payload is that of the hub of the id', async () => {
    const ids = await onEach({ payload: `of ${way}` })
    const newest = (await set.messagePage({ limit: ids.size })).entries
    expect(newest.map(({ id }) => id).toSorted()).toEqual([...ids.values()].toSorted())
    const all = await everyPage((page) => set.messagePage(page))
    // By their ids, that is by the entries of the log: `acceptedAt` was read a moment before, and may be a ms apart.
    const times = all.map(({ id }) => Number(/(\d+)-\d+$/.exec(id)?.[1]))
    expect(times).toEqual(times.toSorted((one, other) => other - one))
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length)
    for (const [hub, id] of ids) {
      const [head] = (await set.messagePage({ id })).entries
      expect(await set.messagePage({ key: head?.key })).toEqual({ entries: [head] })
      const conversation = stage.conversationOf(hub)
      const heads = await everyPage((page) => set.messagePage({ ...page, conversation }))
      expect(heads.map((each) => each.id)).toContain(id)
      expect(heads.every((each) => each.id.startsWith(`${hub}:`))).toBe(true)
      expect(Buffer.from((await set.payload(id)).bytes).toString()).toBe(`of ${way}`)
    }
  })

  test('deliveries of a message are those of its hub; a message and a session of two hubs are refused', async () => {
    for (const [, id] of await onEach()) {
      const { deliveries } = await set.deliveries({ message: id })
      expect(deliveries.map((each) => each.id)).toEqual([`${id}.1`])
    }
    await expect(set.deliveries({ message: 'hf-0:1-0', session: 'hf-1:s' })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    })
    expect((await set.deliveries({ session: 'hf-1:s' })).deliveries).toEqual([])
  })

  test('an overview is the sum of those of its hubs', async () => {
    await onEach()
    await until(async () => (await set.overview()).recipients === (await set.counts())['recipients'], {
      what: 'the recipients of all hubs in the overview',
    })
    const found = await set.overview()
    const counts = await set.counts()
    expect(found).toMatchObject({
      hub: 'hf-0,hf-1,hf-2',
      deliveries: { queued: counts['queued'] ?? 0, held: counts['held'] ?? 0 },
      lists: { held: { count: counts['held'] ?? 0 } },
    })
  })

  test('events are those of every hub, or of the one whose id is asked about', async () => {
    const [[, id = ''] = []] = await onEach()
    const lastEventId = Object.fromEntries(stage.names.map((hub) => [hub, '0-0']))
    const heard = new Set<string | undefined>()
    for await (const event of set.events({ lastEventId, verbs: ['accept'] })) {
      heard.add(event.hub)
      if (heard.size === stage.names.length) break
    }
    await set.cancel(`${id}.1`, kim)
    for await (const event of set.events({ lastEventId, about: id, verbs: ['cancel'] })) {
      expect(event).toMatchObject({ hub: id.split(':')[0], entry: { changes: [{ ids: [`${id}.1`] }] } })
      break
    }
  })

  test('answers of one delivery are of its hub, and so is why it is there', async () => {
    for (const [, id] of await onEach()) {
      expect(await set.delivery(`${id}.1`)).toMatchObject({ id: `${id}.1`, message: id, state: 'queued' })
      expect(await set.why(`${id}.1`)).toMatchObject({ id: `${id}.1`, state: 'queued' })
      expect((await set.waitFor(id, 1)).id).toBe(id)
    }
  })

  test('an id without a hub of the set is refused, with what to do', async () => {
    const refused = { code: 'INVALID_ARGUMENT', next: expect.stringContaining('hf-0:1-0') }
    await expect(set.message('1-0')).rejects.toMatchObject(refused)
    await expect(set.message('hf-7:1-0')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    await expect(set.release('1-0.1', kim)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    await expect(set.message('hf-1:1-0')).rejects.toMatchObject({ code: 'MESSAGE_NOT_FOUND' })
  })

  test('pages go hub after hub and hold every delivery once, whatever their size', async () => {
    await onEach()
    const whole = (await set.deliveries({ host, limit: 1000 })).deliveries.map(({ id }) => id)
    expect(new Set(whole.map((id) => id.split(':')[0]))).toEqual(new Set(stage.names))
    for (const limit of [1, 2, 5]) {
      const found: string[] = []
      let pages = 0
      for (let cursor: string | undefined; ; pages += 1) {
        const page = await set.deliveries({ host, limit, cursor })
        expect(page.deliveries.length).toBeLessThanOrEqual(limit)
        found.push(...page.deliveries.map(({ id }) => id))
        if (page.cursor === undefined) break
        cursor = page.cursor
      }
      expect(found).toEqual(whole)
      expect(pages).toBeGreaterThan(0)
    }
    await expect(set.deliveries({ cursor: 'elsewhere|1' })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    })
    await expect(set.deliveries({ limit: 0 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  })

  test('acts go to the hub of the delivery; the held queue is of all hubs, oldest first', async () => {
    const ids = [...(await onEach()).values()].map((id) => `${id}.1`)
    for (const id of [...ids].reverse()) {
      const acted = await set.holdDelivery(id, kim)
      expect(acted).toMatchObject({ id, state: 'held' })
      expect(acted.logId).toMatch(/^hf-\d:\d+-\d+$/)
    }
    const held = (await set.held()).filter(({ host: its }) => its === host)
    expect(held.map(({ id }) => id).sort()).toEqual([...ids].sort())
    const since = held.map(({ sinceMs }) => sinceMs)
    expect(since).toEqual([...since].sort((one, other) => one - other))
    expect(await everyPage((page) => set.heldPage(page))).toEqual(expect.arrayContaining(held))
    const [released = '', rejected = '', cancelled = ''] = ids
    expect(await set.release(released, kim)).toMatchObject({ state: 'queued' })
    expect(await set.reject(rejected, kim)).toMatchObject({ state: 'failed' })
    expect(await set.cancel(cancelled, kim)).toMatchObject({ state: 'failed' })
  })

  test('an act on many goes through all hubs by its cursor', async () => {
    await onEach()
    const filter = { state: 'queued', host } as const
    const before = (await set.deliveries({ ...filter, limit: 1000 })).deliveries.map(({ id }) => id)
    const refused = await actOnAll((cursor) => set.actOnMany('release', filter, { ...kim, cursor }))
    expect(refused.refused.map(({ id }) => id).sort()).toEqual([...before].sort())
    const held = await actOnAll((cursor) => set.actOnMany('hold', filter, { ...kim, cursor, limit: 2 }))
    expect(held).toMatchObject({ done: before.length, refused: [] })
    expect((await set.deliveries(filter)).deliveries).toEqual([])
  })

  test('counts and the audit are sums', async () => {
    await onEach()
    const counts = await set.counts()
    const own = await Promise.all(stage.names.map((name) => stage.served.hubs.get(name)?.counts()))
    for (const [name, count] of Object.entries(counts)) {
      expect(count).toBe(own.reduce((total, each) => total + (each?.[name] ?? 0), 0))
    }
    const audit = await set.audit()
    const { recipients, byState, owed, pruned } = audit.conservation
    expect(recipients).toBeGreaterThan(3)
    expect(Object.values(byState).reduce((total, count) => total + count, owed + pruned)).toBe(recipients)
    expect(audit.disagreements).toEqual([])
  })

  test('a disagreement of one hub is told with its name', async () => {
    const ids = await onEach()
    const [hub = '', id = ''] = [...ids].at(-1) ?? []
    const own = id.split(':')[1] ?? ''
    const { store, keys } = stage.record(hub)
    await store.call(['HSET', keys.delivery(`${own}.1`), 'state', 'held'])
    const { disagreements } = await set.audit()
    await store.call(['HSET', keys.delivery(`${own}.1`), 'state', 'queued'])
    expect(disagreements.length).toBeGreaterThan(0)
    for (const { about } of disagreements) expect(about.startsWith(`${hub}:`)).toBe(true)
  })

  test('hosts are listed by hub, and one host is the sum of what the hubs say of it', async () => {
    await onEach()
    for (const hub of stage.names) await stage.record(hub).join(host, `n-${hub}`)
    const listed = (await set.hosts()).filter((each) => each.host === host)
    expect(listed.map(({ hub }) => hub)).toEqual(stage.names)
    const one = await set.host(host)
    expect(one?.entries).toBe(listed.reduce((total, { entries }) => total + entries, 0))
    expect(one?.nodes.map(({ hub, node }) => [hub, node])).toEqual(
      stage.names.map((hub) => [hub, `n-${hub}`]),
    )
    expect(await set.host('never-seen')).toBeUndefined()
  })

  test('pending lists are of all hubs', async () => {
    const other = `${host}-pending`
    const ids = await onEach({ to: [{ host: other }] })
    for (const hub of stage.names) {
      const record = stage.record(hub)
      await record.claim(await record.join(other, 'n'))
    }
    const pending = await set.pending(other)
    expect(pending.map(({ hub, delivery }) => [hub, delivery])).toEqual(
      [...ids].map(([hub, id]) => [hub, `${id}.1`]),
    )
    expect(await everyPage((page) => set.pendingPage(other, page))).toMatchObject(
      pending.map(({ delivery }) => ({ delivery })),
    )
  })

  test('an attempt that nobody knows the outcome of is listed and decided by its qualified id', async () => {
    const other = `${host}-unknown`
    const ids = await onEach({ to: [{ host: other }] })
    const attempts: string[] = []
    for (const hub of stage.names) {
      const record = stage.record(hub)
      const node = await record.join(other, 'n')
      const [claimed] = await record.deliverAll(node)
      if (claimed === undefined) throw new Error('nothing was claimed')
      const { attempt, grant } = await record.begin(node, claimed)
      await record.functions.report(node, [
        { id: attempt, grant, key: 'r1', outcome: { kind: 'outcome_unknown', errorCode: 'lost' } },
      ])
      attempts.push(`${hub}:${attempt}`)
    }
    const unknown = (await set.unknown()).filter((each) => each.host === other)
    expect(unknown.map(({ id }) => id).sort()).toEqual([...attempts].sort())
    for (const id of attempts) {
      const resolution = { as: 'result', evidence: 'seen', force: true } as const
      expect(await set.resolveAttempt(id, resolution, 'kim')).toMatchObject({ outcome: 'result' })
    }
    for (const id of ids.values()) {
      const [delivery] = (await set.message(id)).deliveries
      expect(delivery?.attempts).toMatchObject([{ id: `${id}.1/1`, status: 'done' }])
    }
  })

  test('a session is of one hub, and a message reaches it from conversations of that hub alone', async () => {
    const [hub = '', elsewhere = ''] = stage.names
    const session = `${hub}:agent ${way}:7`
    const opening = { host, scope: '/work' }
    const opened = await set.openSession(session, opening, 'kim')
    expect(opened).toMatchObject({ session, host, state: 'open' })
    expect((await set.session(session)).session).toBe(session)
    expect((await everyPage((page) => set.sessionPage(page))).map((each) => each.session)).toContain(session)

    const near = stage.conversationOf(hub)
    for (const named of [session, session.slice(hub.length + 1)]) {
      const accepted = await set.accept(messageOf(near, { to: [{ session: named }] }))
      expect(accepted.deliveries).toMatchObject([{ session }])
    }
    const far = messageOf(stage.conversationOf(elsewhere), { to: [{ session }] })
    await expect(set.accept(far)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining(`is on hub ${hub}; the conversation is on ${elsewhere}`),
    })
    const closing = {
      epoch: opened.epoch,
      reason: 'removed',
      drained: true,
      abandoned: 0,
      terminal: true,
    } as const
    expect(await set.closeSession(session, closing, 'kim')).toMatchObject({ session, state: 'closed' })
    const stranger = { ...opening, parent: `${elsewhere}:p` }
    await expect(set.openSession(`${hub}:child`, stranger, 'kim')).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    })
    await expect(set.openSession('agent', opening, 'kim')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  })

  test('an effect is of the hub that its id names', async () => {
    const effects = createEffects(set, { executor: 'e1' })
    const id = `hf-1:charge ${way}`
    const request = { id, type: 'charge', payload: { cents: 5 } }
    let ran = 0
    const run = () => effects.run(request, () => ({ ran: ++ran }))
    expect(await run()).toMatchObject({ kind: 'result', replayed: false })
    expect(await run()).toMatchObject({ kind: 'result', replayed: true, value: { ran: 1 } })
    expect(await set.effect(id)).toMatchObject({ id, status: 'done' })
    expect((await everyPage((page) => set.effectPage(page))).map((each) => each.id)).toContain(id)
    await expect(effects.run({ ...request, id: 'charge' }, () => 1)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    })
  })

  test('settings are changed on every hub; where one has another, that is shown under its name', async () => {
    await set.configure({ max_redrive: 7 }, 'kim')
    for (const name of stage.names) {
      expect(await stage.record(name).send('HGET', stage.record(name).keys.config, 'max_redrive')).toBe('7')
    }
    const one = (all: Awaited<ReturnType<HubCalls['configuration']>>) =>
      all.filter(({ name }) => name.endsWith('max_redrive')).map(({ name, value }) => [name, value])
    expect(one(await set.configuration())).toEqual([['max_redrive', 7]])
    await stage.record('hf-2').config('max_redrive', 3)
    expect(one(await set.configuration())).toEqual([
      ['max_redrive', 7],
      ['hf-2:max_redrive', 3],
    ])
    await expect(set.configure({ nonsense: 1 }, 'kim')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  })

  test('sweeps are of each hub', async () => {
    const sweeps = await set.sweeps()
    expect(new Set(sweeps.map(({ hub }) => hub))).toEqual(new Set(stage.names))
  })

  test('a host is drained and retired on every hub; those that never saw it do not matter', async () => {
    const other = `${host}-gone`
    await set.accept(messageOf(stage.conversationOf('hf-1'), { to: [{ host: other }] }))
    expect(await set.drain(other, 'kim')).toMatchObject({ fence: `pause:host:${other}` })
    for (const name of stage.names) {
      const { keys } = stage.record(name)
      expect(await stage.record(name).send('HEXISTS', keys.fences, `pause:host:${other}`)).toBe(1)
    }
    await set.retire(other, kim)
    expect((await set.host(other))?.retiredAt).toBeGreaterThan(0)
    await expect(set.retire('never-seen', kim)).rejects.toMatchObject({ code: 'HOST_NOT_FOUND' })
  })

  test('a host that some hubs never saw is retired on none of them, and the error says so', async () => {
    const { keys, send } = stage.record('hf-1')
    await send('RENAME', keys.identity, `${keys.tag}:aside`)
    const retiring = set.retire('never-seen', kim)
    await expect(retiring).rejects.toMatchObject({
      code: 'SET_INCOMPLETE',
      message: expect.stringMatching(
        /never-seen is retired on no hub; nothing to do on hf-0, hf-2 \(HOST_NOT_FOUND\); not on hf-1 \(STORE_/,
      ),
      current: { done: [], absent: ['hf-0', 'hf-2'], missing: ['hf-1'] },
    })
    await send('RENAME', `${keys.tag}:aside`, keys.identity)
  })
})

async function everyPage<Entry>(
  read: (page: { cursor: string | undefined; limit: number }) => Promise<Page<Entry>>,
): Promise<Entry[]> {
  const found: Entry[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await read({ cursor, limit: 2 })
    found.push(...page.entries)
    if (page.cursor === undefined) return found
    cursor = page.cursor
  }
}

async function actOnAll(act: (cursor: string | undefined) => ReturnType<HubCalls['actOnMany']>) {
  const refused: { id: string }[] = []
  let done = 0
  for (let cursor: string | undefined; ; ) {
    const page = await act(cursor)
    done += page.done
    refused.push(...page.refused)
    if (page.cursor === undefined) return { done, refused }
    cursor = page.cursor
  }
}
