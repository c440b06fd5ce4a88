import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type MessageInput, prepareMessage } from '../../src/contract/message.js'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

let server: TestServer
let record: OpenRecord

beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server?.stop())
beforeEach(async () => {
  record = await openRecord(server)
})
afterEach(async () => {
  await record.checkInvariants()
  await record.close()
})

function message(changes: Partial<MessageInput> = {}): MessageInput {
  return { key: 'k', conversation: 'c1', sender: 's', to: [{ host: 'a' }], payload: 'p', ...changes }
}

function accept(changes: Partial<MessageInput> = {}) {
  return record.functions.accept(prepareMessage(message(changes)))
}

const hosts = (count: number) => Array.from({ length: count }, (_, at) => ({ host: `h${at}` }))

describe('init', () => {
  let bare: OpenRecord
  beforeEach(async () => {
    bare = await openRecord(server, { init: false })
  })
  afterEach(() => bare.close())

  it('makes the identity once and answers the first one for ever', async () => {
    const first = await bare.functions.init('one', false)
    expect(first).toEqual({ storeId: 'one', generation: 0, made: true })
    const before = await bare.dump()
    expect(await bare.functions.init('two', false)).toEqual({ storeId: 'one', generation: 0, made: false })
    expect(await bare.dump()).toEqual(before)
    expect(Object.keys(before)).toEqual([':identity'])
  })

  it('refuses --after-loss where nothing was lost', async () => {
    await bare.functions.init('one', false)
    await bare.refused('NOTHING_LOST', () => bare.functions.init('two', true))
  })

  it.each(['log', 'hosts', 'counts', 'obligations'] as const)(
    'refuses to begin anew over a remaining :%s, and goes on above all epochs after a loss',
    async (name) => {
      await bare.functions.init('one', false)
      await bare.send('DEL', bare.keys.identity)
      if (name === 'hosts') await bare.send('SADD', bare.keys[name], 'a')
      else if (name === 'obligations') await bare.send('ZADD', bare.keys[name], 1, 'm')
      else if (name === 'counts') await bare.send('HSET', bare.keys[name], 'queued', 1)
      else await bare.send('XADD', bare.keys[name], '*', 'verb', 'x')
      expect(await bare.refused('RECORD_DAMAGED', () => bare.functions.init('two', false))).toContain(name)
      const after = await bare.functions.init('two', true)
      expect(after).toMatchObject({ storeId: 'two', made: true })
      expect(after.generation).toBeGreaterThan(900_000)
    },
  )

  it('gives epochs above those of every earlier generation', async () => {
    await bare.functions.init('one', false)
    await bare.accept()
    await bare.send('DEL', bare.keys.identity)
    const { generation } = await bare.functions.init('two', true)
    const node = await bare.join('a', 'n1')
    const [claimed] = await bare.claimAll(node)
    expect(claimed?.epoch).toBe(generation * 1_000_000)
    await bare.functions.mirror(node, [claimed ?? { id: '', epoch: 0 }])
    const later = await bare.join('a', 'n1', 2)
    expect((await bare.claimAll(later))[0]?.epoch).toBe(generation * 1_000_000 + 1)
    await bare.checkInvariants()
  })

  it('refuses a bad store id', async () => {
    await bare.refused('INVALID_ARGUMENT', () => bare.functions.init('', false))
  })
})

describe('without a record', () => {
  const who = { host: 'a', node: 'n1', incarnation: 1 }
  const item = { id: '1764430000000-000000.1', epoch: 1 }
  const outcome = { kind: 'result', result: '1' } as const
  const effect = { executor: 'x', grant: 'g' }
  const payloadHash = 'a'.repeat(64)
  const crash = { epoch: 1, reason: 'crash', drained: false, abandoned: 0 } as const
  const verbs: Record<string, (on: OpenRecord) => Promise<unknown>> = {
    accept: (on) => on.accept(),
    accept_batch: (on) => on.functions.acceptBatch([prepareMessage(message())]),
    fan_out: (on) => on.functions.fanOut('1764430000000-000000', 10),
    join: (on) => on.functions.join(who, 'i', [], '0-0'),
    heartbeat: (on) =>
      on.functions.heartbeat(who, {
        lastLogId: '0-0',
        progressAgeMs: 0,
        blocking: { sumMs: 0, longestMs: 0 },
      }),
    leave: (on) => on.functions.leave(who),
    claim: (on) => on.functions.claim(who, 1, 1),
    mirror: (on) => on.functions.mirror(who, [item]),
    ack: (on) => on.functions.ack(who, [item]),
    refuse: (on) => on.functions.refuse(who, [{ ...item, verdict: 'failed', reason: 'x' }]),
    begin: (on) => on.functions.begin(who, [{ ...item, grant: 'g' }]),
    take: (on) => on.functions.take(who, [{ ...item, grant: 'g' }]),
    report: (on) => on.functions.report(who, [{ id: item.id, grant: 'g', key: 'k', outcome }]),
    pause: (on) => on.functions.pause('hub', 'r', 'a'),
    hold: (on) => on.functions.hold('hub', 'r', 'a'),
    block: (on) => on.functions.block('hub', 'r', 'a'),
    release: (on) => on.functions.release(item.id, 'a', 'r'),
    reject: (on) => on.functions.reject(item.id, 'a', 'r'),
    hold_delivery: (on) => on.functions.holdDelivery(item.id, 'a', 'r'),
    cancel: (on) => on.functions.cancel(item.id, 'a', 'r'),
    retire: (on) => on.functions.retire('a', 'a', 'r'),
    lift: (on) => on.functions.lift('pause', 'hub', 'a'),
    why: (on) => on.functions.why(item.id),
    add_principal: (on) =>
      on.functions.addPrincipal({ name: 'p', role: 'viewer', tokenSha256: 'a'.repeat(64) }, 'a'),
    revoke_principal: (on) => on.functions.revokePrincipal('p', 'a', 'r'),
    configure: (on) => on.functions.configure({ max_redrive: '3' }, 'a'),
    claim_effect: (on) => on.functions.claimEffect('e', { ...effect, type: 't', payloadHash }),
    take_over_effect: (on) => {
      const seen = { basis: 'probe', epoch: 1, startedAt: 1 } as const
      return on.functions.takeOverEffect('e', { ...effect, ...seen, payloadHash })
    },
    settle_effect: (on) => on.functions.settleEffect('e', { ...effect, epoch: 1, outcome }),
    resolve_effect: (on) => on.functions.resolveEffect('e', { as: 'result', evidence: 'x' }, 'a'),
    open_session: (on) => on.functions.openSession('s', { host: 'a', scope: '/' }, 'a'),
    close_session: (on) => on.functions.closeSession('s', crash, 'a'),
    rehome: (on) => on.functions.rehome('s', 'b', 'a', 'r'),
    move: (on) => on.functions.move('s', 'a'),
    resolve_attempt: (on) =>
      on.functions.resolveAttempt(`${item.id}/1`, { as: 'result', evidence: 'x' }, 'a'),
    resolve_delivery: (on) => on.functions.resolveDelivery(item.id, { as: 'failed', evidence: 'x' }, 'a'),
    prune: (on) => on.functions.prune(10),
    ...Object.fromEntries(
      (['claims', 'nodes', 'parked', 'reports', 'stale'] as const).map((name) => [
        `sweep_${name}`,
        (on: OpenRecord) => on.functions.sweepHost(name, 'a', ''),
      ]),
    ),
    ...Object.fromEntries(
      (['deadlines', 'effects', 'held', 'rehome'] as const).map((name) => [
        `sweep_${name}`,
        (on: OpenRecord) => on.functions.sweepHub(name, ''),
      ]),
    ),
    reconcile: (on) => on.functions.reconcile([item.id], { repair: true, lanes: true }),
    reconcile_messages: (on) =>
      on.functions.reconcileMessages(['1764430000000-000000'], { repair: true, relist: true }),
    reconcile_lists: (on) => on.functions.reconcileLists('types', { repair: true }),
    tally: (on) => on.functions.tally(),
    busy_hosts: (on) => on.functions.busyHosts(['a']),
    attest: (on) => on.functions.attest('tests', '0-0', 'always'),
    note_lost: (on) => on.functions.noteLost('tests', ['1764430000000-000000']),
    recount: (on) => on.functions.recount('0-0', { queued: 1 }),
    note_sweep: (on) => {
      const did = { found: 0, repaired: 0, left: 0, notes: [] }
      return on.functions.noteSweep('claims', { ...did, durationMs: 1, cursor: '', by: 'tests' })
    },
  }

  it('covers every function but init', async () => {
    const listed = (await record.send('FUNCTION', 'LIST', 'LIBRARYNAME', 'holdfast')) as unknown[][]
    const functions = listed[0]?.[listed[0].indexOf('functions') + 1] as string[][]
    const names = functions.map((each) => String(each[1])).filter((name) => !/_(version|init)$/.test(name))
    expect(names.map((name) => name.slice('hf_'.length)).sort()).toEqual(Object.keys(verbs).sort())
  })

  it.each(Object.keys(verbs))('%s answers STORE_UNKNOWN and changes nothing', async (verb) => {
    const bare = await openRecord(server, { init: false })
    await bare.refused('STORE_UNKNOWN', () => verbs[verb]?.(bare) ?? Promise.resolve())
    expect(await bare.dump()).toEqual({})
    // What is left of a record whose identity was lost is not touched either.
    await bare.functions.init('one', false)
    await bare.accept()
    await bare.join('a', 'n1')
    await bare.send('DEL', bare.keys.identity)
    await bare.refused('STORE_UNKNOWN', () => verbs[verb]?.(bare) ?? Promise.resolve())
    await bare.close()
  })

  it.each(Object.keys(verbs))('%s changes nothing on a record of another layout', async (verb) => {
    await record.accept()
    await record.send('HSET', record.keys.identity, 'schema', '99')
    await record.refused('STORE_UNKNOWN', () => verbs[verb]?.(record) ?? Promise.resolve())
  })
})

describe('accept', () => {
  it('stores the message, its payload and key, and one queued delivery a recipient', async () => {
    const payload = Buffer.from([0, 255, 13, 10, 0x7b])
    const reply = await accept({
      payload,
      contentType: 'application/octet-stream',
      parent: 'p1',
      to: hosts(2),
    })
    expect(reply).toMatchObject({ replayed: false, recipients: 2, made: 2 })
    expect(reply.id).toMatch(/^\d{13}-\d{8}$/)
    expect(reply.deliveries).toEqual([
      { id: `${reply.id}.1`, host: 'h0', state: 'queued' },
      { id: `${reply.id}.2`, host: 'h1', state: 'queued' },
    ])
    const stored = await record.store.call(['GET', record.keys.payload(reply.id)], { buffers: true })
    expect(stored).toEqual(payload)
    expect(await record.fields(`${reply.id}.1`)).toMatchObject({
      host: 'h0',
      conversation: 'c1',
      state: 'queued',
      epoch: '0',
      attempts: '0',
    })
    expect(await record.send('ZCARD', record.keys.obligations)).toBe(0)
    expect(await record.send('SMEMBERS', record.keys.hosts)).toEqual(expect.arrayContaining(['h0', 'h1']))
  })

  it('names a recipient once that is named twice', async () => {
    const reply = await record.functions.accept({
      ...prepareMessage(message()),
      recipients: ['host:a', 'host:a', 'host:b'],
    })
    expect(reply).toMatchObject({ recipients: 2, made: 2 })
  })

  it.each([
    [127, 127],
    [128, 128],
    [129, 128],
  ])('makes of %i recipients %i deliveries by itself', async (recipients, made) => {
    const reply = await accept({ to: hosts(recipients) })
    expect(reply).toMatchObject({ recipients, made })
    expect(reply.deliveries).toHaveLength(made)
    expect(await record.send('ZCARD', record.keys.obligations)).toBe(recipients > made ? 1 : 0)
    expect(await record.send('LRANGE', record.keys.recipients(reply.id), 0, -1)).toEqual(
      hosts(recipients)
        .slice(made)
        .map(({ host }) => `host:${host}`),
    )
  })

  it('is complete and settled at once without recipients', async () => {
    const reply = await accept({ to: [] })
    expect(reply).toMatchObject({ recipients: 0, made: 0, deliveries: [] })
    expect(await record.send('HGET', record.keys.message(reply.id), 'settled_at')).toMatch(/^\d+$/)
    expect(await record.send('ZCARD', record.keys.obligations)).toBe(0)
  })

  it('answers the first ids for a repeated key, changing nothing', async () => {
    const first = await accept({ to: hosts(3) })
    const before = await record.dump()
    const again = await accept({ to: hosts(3).reverse(), deliverBy: 4_000_000_000_000 })
    expect(again).toMatchObject({ id: first.id, replayed: true, recipients: 3, made: 3, deliveries: [] })
    expect(await record.dump()).toEqual(before)
  })

  it.each([
    { conversation: 'other' },
    { sender: 'other' },
    { parent: 'other' },
    { payload: 'other' },
    { to: [{ host: 'b' }] },
    { to: [{ host: 'a' }, { host: 'b' }] },
  ] satisfies Partial<MessageInput>[])('refuses the key with other content: %j', async (changes) => {
    await accept()
    await record.refused('IDEMPOTENCY_MISMATCH', () => accept(changes))
  })

  it('looks the key up before every other check', async () => {
    await accept({ payload: 'x'.repeat(100), to: hosts(3) })
    await record.config('max_payload_bytes', 10)
    await record.config('max_recipients', 1)
    await record.config('open_hosts', 0)
    expect(await accept({ payload: 'x'.repeat(100), to: hosts(3) })).toMatchObject({ replayed: true })
  })

  it('says so when the message of a known key is gone', async () => {
    const { id } = await accept()
    await record.send('DEL', record.keys.message(id))
    record.damaged(`${id}.1`)
    await record.refused('MESSAGE_NOT_FOUND', () => accept())
  })

  it('takes a payload of just max_payload_bytes and refuses one byte more', async () => {
    await record.config('max_payload_bytes', 10)
    await accept({ payload: 'x'.repeat(10) })
    await record.refused('PAYLOAD_TOO_LARGE', () => accept({ key: 'k2', payload: 'x'.repeat(11) }))
  })

  it('takes max_recipients and refuses one more', async () => {
    await record.config('max_recipients', 3)
    await accept({ to: hosts(3) })
    await record.refused('TOO_MANY_RECIPIENTS', () => accept({ key: 'k2', to: hosts(4) }))
  })

  it('changes nothing, or everything, however large inline_fan_out is', async () => {
    await record.config('inline_fan_out', 10_000)
    const reply = await accept({ to: hosts(9_000) })
    expect(reply.recipients).toBe(9_000)
  })

  it('refuses a host that never joined when open_hosts is 0, and takes one that did', async () => {
    await record.config('open_hosts', 0)
    await record.join('a', 'n1')
    await accept()
    await record.refused('NO_ROUTE', () => accept({ key: 'k2', to: [{ host: 'a' }, { host: 'b' }] }))
    await record.config('inline_fan_out', 1)
    await record.refused('NO_ROUTE', () => accept({ key: 'k3', to: [{ host: 'a' }, { host: 'b' }] }))
  })

  it('refuses a session never seen, also beyond the inline fan-out', async () => {
    await record.refused('NO_ROUTE', () => accept({ to: [{ session: 's1' }] }))
    await record.config('inline_fan_out', 1)
    await record.refused('NO_ROUTE', () => accept({ to: [{ host: 'a' }, { session: 's1' }] }))
  })

  it('routes a session to the host that owns it, one delivery a session', async () => {
    await record.send('HSET', record.keys.session('s/1'), 'host', 'b')
    await record.send('HSET', record.keys.session('s2'), 'host', 'b')
    const reply = await accept({ to: [{ session: 's/1' }, { session: 's2' }, { host: 'b' }] })
    expect(reply.deliveries).toEqual([
      { id: `${reply.id}.1`, host: 'b', session: 's/1', state: 'queued' },
      { id: `${reply.id}.2`, host: 'b', session: 's2', state: 'queued' },
      { id: `${reply.id}.3`, host: 'b', state: 'queued' },
    ])
    const node = await record.join('b', 'n1')
    expect((await record.claimAll(node)).map(({ session }) => session)).toEqual(['s/1', 's2', undefined])
  })

  it.each([
    ['a stream', 'stream:a'],
    ['the counts', 'counts'],
  ])('refuses before it writes when %s is no such key any more', async (_, name) => {
    await record.send('SET', `${record.keys.tag}:${name}`, 'broken by hand')
    await record.refused('RECORD_DAMAGED', () => accept())
    await record.send('DEL', `${record.keys.tag}:${name}`)
  })

  it.each([
    ['key', ''],
    ['key', 'x'.repeat(256)],
    ['conversation', 'tab\there'],
    ['sender', 'é'],
    ['sha256', ''],
    ['deliverBy', '-1'],
    ['executeBy', '1.5'],
    ['recipients', ['host:A']],
    ['recipients', ['host:-a']],
    ['recipients', ['queue:a']],
    ['recipients', ['session:']],
  ])('refuses %s %j', async (member, value) => {
    await record.refused('INVALID_ARGUMENT', () =>
      record.functions.accept({ ...prepareMessage(message()), [member]: value }),
    )
  })

  it('refuses another key than a tag, and too few arguments', async () => {
    const call = (tag: string, args: string[]) => record.store.fcall('hf_accept', tag, args)
    await record.refused('INVALID_ARGUMENT', () => call(record.keys.tag, ['k']))
    await record.refused('INVALID_ARGUMENT', () => call('{T1}', []))
    await record.refused('INVALID_ARGUMENT', () => call(`${record.keys.tag}:x`, []))
  })
})

describe('fan_out', () => {
  it('makes what is owed chunk by chunk, then the obligation is gone and a repeat changes nothing', async () => {
    await record.config('inline_fan_out', 2)
    const { id } = await accept({ to: hosts(9) })
    const made: string[] = []
    for (const expected of [5, 8, 9]) {
      expect(await record.send('ZCARD', record.keys.obligations)).toBe(1)
      const reply = await record.functions.fanOut(id, 3)
      expect(reply).toMatchObject({ id, recipients: 9, made: expected })
      made.push(...reply.deliveries.map((delivery) => `${delivery.id} ${delivery.host}`))
      await record.checkInvariants()
    }
    expect(made).toEqual(Array.from({ length: 7 }, (_, at) => `${id}.${at + 3} h${at + 2}`))
    expect(await record.send('ZCARD', record.keys.obligations)).toBe(0)
    expect(await record.send('EXISTS', record.keys.recipients(id))).toBe(0)
    const before = await record.dump()
    expect(await record.functions.fanOut(id, 3)).toMatchObject({ made: 9, deliveries: [] })
    expect(await record.dump()).toEqual(before)
  })

  it('routes sessions as they stand when the chunk is made, with the deadlines of the message', async () => {
    await record.config('inline_fan_out', 1)
    await record.send('HSET', record.keys.session('s'), 'host', 'b')
    const deliverBy = 4_000_000_000_000
    const { id } = await accept({
      to: [{ host: 'a' }, { session: 's' }],
      deliverBy,
      executeBy: deliverBy + 1,
    })
    await record.send('HSET', record.keys.session('s'), 'host', 'c')
    await record.functions.fanOut(id, 10)
    expect(await record.fields(`${id}.2`)).toMatchObject({
      host: 'c',
      session: 's',
      deliver_by: String(deliverBy),
      execute_by: String(deliverBy + 1),
    })
  })

  it('refuses a message that is not there, bad arguments, and an obligation that names too few', async () => {
    await record.refused('MESSAGE_NOT_FOUND', () => record.functions.fanOut('1-000000', 10))
    await record.refused('INVALID_ARGUMENT', () => record.functions.fanOut('1-000000', 0))
    await record.refused('INVALID_ARGUMENT', () => record.functions.fanOut('', 1))
    await record.config('inline_fan_out', 2)
    const { id } = await accept({ to: hosts(4) })
    const owed = (await record.send('LPOP', record.keys.recipients(id))) as string
    await record.refused('RECORD_DAMAGED', () => record.functions.fanOut(id, 10))
    await record.send('LPUSH', record.keys.recipients(id), owed)
    expect(await record.functions.fanOut(id, 10)).toMatchObject({ made: 4 })
  })

  it('leaves the obligation where a session has lost its route', async () => {
    await record.config('inline_fan_out', 1)
    await record.send('HSET', record.keys.session('s'), 'host', 'b')
    const { id } = await accept({ to: [{ host: 'a' }, { session: 's' }] })
    await record.send('DEL', record.keys.session('s'))
    await record.refused('NO_ROUTE', () => record.functions.fanOut(id, 10))
  })
})
