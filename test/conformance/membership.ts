import { expect, it } from 'vitest'
import { beat, done, idsOf, type Make, never, refused, type Speaker } from './stage.js'

/** Every call of a process about one delivery, a report left out. */
function callsOf({ who, transport, claim, mirror, ack, begin }: Speaker, id: string) {
  const about = { id, epoch: 1 }
  return {
    heartbeat: () => transport.heartbeat(who, beat),
    claim: () => claim(),
    mirror: () => mirror(about),
    ack: () => ack(about),
    refuse: () => transport.refuse(who, [{ ...about, verdict: 'failed', reason: 'x' }]),
    begin: () => begin({ ...about, grant: 'g' }),
  } satisfies Record<string, () => Promise<unknown>>
}

export function membership(make: Make): void {
  it('join tells the settings that a node works by, and which of them are bad', async () => {
    const stage = await make({ heartbeat_ms: 700, stale_after_ms: 5000, max_result_bytes: 1000 })
    await stage.record.config('max_redrive', 'many')
    const transport = await stage.transport('a')
    const who = { host: 'a', node: 'n1', incarnation: 3 }
    const joined = await transport.join(who, 'x', ['/srv/work'], '0-0')
    expect(joined).toEqual({
      nowMs: expect.any(Number),
      logId: expect.stringMatching(/^\d+-\d+$/),
      storeId: `store-${stage.record.name}`,
      generation: 0,
      heartbeatMs: 700,
      staleAfterMs: 5000,
      maxResultBytes: 1000,
      maxRedrive: 10,
      badSettings: ['max_redrive'],
    })
    expect(Math.abs(joined.nowMs - Date.now())).toBeLessThan(5000)
    expect(await stage.shown((hub) => hub.counts())).toEqual({})
    expect(await stage.record.send('HGET', stage.record.keys.node('a', 'n1'), 'scopes')).toBe('["/srv/work"]')
  })

  it('a join repeated by the same process is harmless: its requests and its work go on', async () => {
    const stage = await make()
    const node = await stage.join()
    await stage.acceptMany(2)
    const first = await node.claim(10, { request: 9 })
    await node.transport.join(node.who, 'i1', [], first.logId)
    expect((await node.claim(10, { request: 9 })).deliveries).toEqual(first.deliveries)
    expect((await node.mirror(...first.deliveries)).map(({ ok }) => ok)).toEqual([true, true])
  })

  it('a later incarnation supersedes the earlier in every call but a report', async () => {
    const stage = await make()
    const old = await stage.join()
    const open = await old.open(await old.takeOne('delivered'))
    await stage.join({ incarnation: 2 })
    const calls = {
      ...callsOf(old, open.id),
      join: () => old.transport.join(old.who, 'i1', [], '0-0'),
      leave: () => old.leave(),
    }
    for (const call of Object.values(calls)) await refused(stage, 'SUPERSEDED', call)
    expect(await old.conclude(open, done)).toMatchObject({ ok: true, outcome: 'result' })
  })

  it('an equal incarnation of another process is a copied mirror', async () => {
    const stage = await make()
    const node = await stage.join()
    const copy = await stage.transport('a')
    await refused(stage, 'MIRROR_CLONED', () => copy.join(node.who, 'another', [], '0-0'))
    await node.beat()
  })

  it('what has left may do nothing more but report, and may leave again', async () => {
    const stage = await make()
    const node = await stage.join()
    const open = await node.open(await node.takeOne('delivered'))
    await node.leave()
    const before = await stage.record.dump()
    await node.leave()
    expect(await stage.record.dump()).toEqual(before)
    const calls = { ...callsOf(node, open.id), join: () => node.transport.join(node.who, 'i1', [], '0-0') }
    for (const call of Object.values(calls)) await refused(stage, 'LEFT', call)
    expect(await node.conclude(open, done)).toMatchObject({ ok: true })
    expect(await stage.shown((hub) => hub.host('a').then((host) => host?.nodes[0]?.state))).toBe('left')
  })

  it('who never joined is asked to, in every call', async () => {
    const stage = await make()
    const node = await stage.join()
    const open = await node.open(await node.takeOne('delivered'))
    for (const changes of [{ node: 'n9' }, { incarnation: 2 }]) {
      const who = { ...node.who, ...changes }
      const stranger: Speaker = {
        ...node,
        who,
        claim: () => node.transport.claim(who, 1, 1, { waitMs: 0, signal: new AbortController().signal }),
        mirror: (...items) => node.transport.mirror(who, items, {}),
        ack: (...items) => node.transport.ack(who, items, {}),
        begin: (...items) => node.transport.begin(who, items, {}),
      }
      const report = { id: open.attempt, grant: open.grant, key: 'k', outcome: done }
      const calls = {
        ...callsOf(stranger, open.id),
        leave: () => node.transport.leave(who),
        report: () => node.transport.report(who, [report], {}),
      }
      for (const call of Object.values(calls)) await refused(stage, 'NOT_JOINED', call)
    }
  })

  it('a heartbeat answers the pace, and what it carries is shown with the host', async () => {
    const stage = await make()
    const { who, transport } = await stage.join()
    await stage.hub.configure({ heartbeat_ms: 300, stale_after_ms: 900 }, 'kim')
    const answer = await transport.heartbeat(who, {
      lastLogId: '5-1',
      progressAgeMs: 40.4,
      blocking: { sumMs: 7.4, longestMs: 3.6 },
      mirror: { commits: 2, sumMs: 1.6, longestMs: 1.2 },
    })
    expect(answer).toEqual({
      nowMs: expect.any(Number),
      logId: expect.stringMatching(/^\d+-\d+$/),
      heartbeatMs: 300,
      staleAfterMs: 900,
    })
    const [node] = (await stage.hub.host('a'))?.nodes ?? []
    expect(node).toEqual({
      node: 'n1',
      state: 'live',
      incarnation: 1,
      heartbeatAgeMs: expect.any(Number),
      progressAgeMs: expect.any(Number),
      blockingMs: 7,
      blockingLongestMs: 4,
      mirrorCommits: 2,
      mirrorMs: 2,
      mirrorLongestMs: 1,
    })
    const row = stage.record.keys.node('a', 'n1')
    expect(await stage.record.send('HGET', row, 'progress_at')).toBe(String(answer.nowMs - 40))
    expect(await stage.record.send('HGET', row, 'last_log_id')).toBe('5-1')
  })

  it('a leave hands over at once and uncounted what was not begun', async () => {
    const stage = await make({ stale_after_ms: 600_000 })
    const [gone, heir] = [await stage.join(), await stage.join({ node: 'n2' })]
    const ids = await stage.acceptMany(3)
    const claimed = await gone.claimAll()
    await gone.mirror(...claimed.slice(0, 2))
    await gone.ack(...claimed.slice(0, 1))
    await heir.claim()
    await gone.leave()
    const { deliveries } = await heir.claim()
    expect(deliveries.map(({ id, epoch, how, state }) => [id, epoch, how, state])).toEqual([
      [ids[0], 2, 'takeover', 'delivered'],
      [ids[1], 2, 'takeover', 'mirrored'],
      [ids[2], 2, 'takeover', 'claimed'],
    ])
    for (const id of ids) {
      expect(await stage.shown((hub) => hub.delivery(id))).toMatchObject({ takeovers: 0, owner: 'n2' })
    }
  })

  it('takes node ids of every printable form as they are', async () => {
    const stage = await make()
    const host = 'a.b-c_d'
    const names = ['n/1', 'a b', '100%25', '..', '.', '?q=1#h', `"quoted"\\`, '~'.repeat(255)]
    for (const node of names) {
      const speaker = await stage.join({ node, host })
      const [id = ''] = await stage.acceptMany(1, { to: [{ host }] })
      expect(idsOf(await speaker.deliverAll())).toEqual([id])
      await speaker.beat()
      await speaker.conclude(await speaker.open({ id, epoch: 1 }), done)
      const view = await stage.shown((hub) => hub.delivery(id))
      expect(view).toMatchObject({ owner: node, attempts: [{ node: `${host}/${node}`, status: 'done' }] })
      await speaker.leave()
    }
    const nodes = (await stage.hub.host(host))?.nodes.map(({ node, state }) => `${node} ${state}`)
    expect(nodes?.toSorted()).toEqual(names.map((node) => `${node} left`).toSorted())
  })

  it('refuses identities that are none, in every call', async () => {
    const stage = await make()
    const transport = await stage.transport('a')
    const waiting = { waitMs: 0, signal: new AbortController().signal }
    const changes = [
      ...['A', 'a b', 'a.', 'x'.repeat(64), ''].map((host) => ({ host })),
      ...['', 'tab\t', 'é', '\ud800', 'n'.repeat(256)].map((node) => ({ node })),
      ...[0, 1.5, -1].map((incarnation) => ({ incarnation })),
    ]
    for (const change of changes) {
      const who = { host: 'a', node: 'n1', incarnation: 1, ...change }
      const calls = {
        join: () => transport.join(who, 'i1', [], '0-0'),
        heartbeat: () => transport.heartbeat(who, beat),
        claim: () => transport.claim(who, 1, 1, waiting),
        ack: () => transport.ack(who, [{ id: never, epoch: 1 }], {}),
        leave: () => transport.leave(who),
      }
      for (const call of Object.values(calls)) await refused(stage, 'INVALID_ARGUMENT', call)
    }
  })
}
