import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Outcome } from '../../src/contract/outcomes.js'
import type { ClaimedDelivery } from '../../src/contract/steps.js'
import { type OpenRecord, openRecord, type TestNode } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

let server: TestServer
let record: OpenRecord
let node: TestNode

beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server?.stop())
beforeEach(async () => {
  record = await openRecord(server)
  node = await record.join('a', 'n1')
})
afterEach(async () => {
  await record.checkInvariants()
  await record.close()
})

const notSent: Outcome = { kind: 'not_sent', errorCode: 'busy' }
const nothing: ClaimedDelivery = {
  id: '',
  epoch: 0,
  state: 'queued',
  how: 'new',
  attempts: 0,
  message: { id: '', conversation: '', sender: '', sha256: '' },
  payload: Buffer.alloc(0),
}

let unique = 0

const hold = (scope = 'conversation:c1', untilMs?: number) =>
  record.functions.hold(scope, 'legal', 'kim', untilMs)
const release = (id: string) => record.functions.release(id, 'kim', 'checked')
const reject = (id: string) => record.functions.reject(id, 'kim', 'no')
const holdOne = (id: string) => record.functions.holdDelivery(id, 'kim', 'look at it')
const cancel = (id: string) => record.functions.cancel(id, 'kim', 'withdrawn')
const heldBy = (fence: string) => record.send('ZRANGE', `${record.keys.tag}:held:${fence}`, 0, -1)
const holding = () => record.send('SMEMBERS', `${record.keys.tag}:holding`)
const entriesOf = (host: string) => record.send('XLEN', record.keys.stream(host))

async function report(item: { attempt: string; grant: string }, outcome: Outcome, by = node) {
  unique += 1
  const [answer] = await record.functions.report(by, [
    { id: item.attempt, grant: item.grant, key: `key-${unique}`, outcome },
  ])
  return answer
}

/** Accepts one and delivers it; it is idle then. */
async function idle(conversation = 'c1'): Promise<ClaimedDelivery> {
  const [id = ''] = await record.acceptMany(1, { conversation })
  const delivered = await record.deliverAll(node)
  return delivered.find((each) => each.id === id) ?? nothing
}

/** Begins, proves that nothing ran, and leaves it idle with the live owner. */
async function tryInVain(item: { id: string; epoch: number }) {
  return report(await record.begin(node, item), notSent)
}

/** One delivery in each place from which nothing of it runs, by place. */
const idlePlaces = {
  queued: async () => (await record.acceptMany(1))[0] ?? '',
  parked: async () => {
    await record.functions.pause('conversation:c1', 'wait', 'kim')
    const [id = ''] = await record.acceptMany(1)
    await record.claimAll(node)
    expect(await record.fields(id)).toHaveProperty('parked_by')
    return id
  },
  claimed: async () => {
    const [id = ''] = await record.acceptMany(1)
    await record.claimAll(node)
    return id
  },
  mirrored: async () => {
    await record.acceptMany(1)
    const [claimed = nothing] = await record.claimAll(node)
    await record.functions.mirror(node, [claimed])
    return claimed.id
  },
  delivered: async () => (await idle()).id,
  'delivered after a not_sent': async () => {
    const item = await idle()
    await tryInVain(item)
    return item.id
  },
}

const busyPlaces: Record<string, { code: string; make: () => Promise<string> }> = {
  executing: {
    code: 'EXECUTING',
    make: async () => (await record.begin(node, await idle())).id,
  },
  'executing and listed unknown': {
    code: 'EXECUTING',
    make: async () => {
      const open = await record.begin(node, await idle())
      await report(open, { kind: 'outcome_unknown', errorCode: 'timeout' })
      return open.id
    },
  },
  done: {
    code: 'ALREADY_SETTLED',
    make: async () => {
      const open = await record.begin(node, await idle())
      await report(open, { kind: 'result', result: '1' })
      return open.id
    },
  },
  terminal: {
    code: 'ALREADY_SETTLED',
    make: async () => {
      const open = await record.begin(node, await idle())
      await report(open, { kind: 'terminal', errorCode: 'gone' })
      return open.id
    },
  },
  failed: {
    code: 'ALREADY_SETTLED',
    make: async () => {
      const [id = ''] = await record.acceptMany(1)
      await cancel(id)
      return id
    },
  },
  unknown: {
    code: 'WRONG_STATE',
    make: async () => {
      await record.acceptMany(1)
      const [claimed = nothing] = await record.claimAll(node)
      const item = { id: claimed.id, epoch: claimed.epoch, verdict: 'unknown', reason: 'disk' } as const
      await record.functions.refuse(node, [item])
      return claimed.id
    },
  },
}

describe('hold', () => {
  it('sends what is covered to the held queue at its next claim, with reason, fence and a new epoch', async () => {
    const [id = ''] = await record.acceptMany(1)
    const [other = ''] = await record.acceptMany(1, { conversation: 'c2' })
    expect(await hold()).toMatchObject({ fence: 'hold:conversation:c1' })
    expect(await record.states([id])).toEqual(['queued'])
    expect((await record.claimAll(node)).map((each) => each.id)).toEqual([other])
    expect(await record.fields(id)).toMatchObject({
      state: 'held',
      held_reason: 'fence',
      held_fence: 'hold:conversation:c1',
      held_by: 'a/n1',
      epoch: '1',
    })
    expect(await heldBy('hold:conversation:c1')).toEqual([id])
    expect(await holding()).toEqual(['hold:conversation:c1'])
    expect(await record.functions.why(id)).toMatchObject({
      reason: 'held',
      detail: 'fence hold:conversation:c1',
    })
  })

  it('sends what was delivered there at its begin, which is answered HELD, and HELD again', async () => {
    const item = await idle()
    await hold()
    const begin = () => record.functions.begin(node, [{ ...item, grant: 'g' }])
    expect(await begin()).toMatchObject([{ ok: false, code: 'HELD', state: 'held', epoch: item.epoch + 1 }])
    expect(await record.fields(item.id)).toMatchObject({ held_fence: 'hold:conversation:c1', attempts: '0' })
    await record.itemRefused('HELD', begin)
  })

  it.each(['hub', 'host:a', 'conversation:c1'])('of %s covers what lies in it', async (scope) => {
    const [id = ''] = await record.acceptMany(1)
    await hold(scope)
    await record.claimAll(node)
    expect(await heldBy(`hold:${scope}`)).toEqual([id])
  })

  it.each(['host:b', 'conversation:c', 'conversation:c11', 'session:c1'])(
    'of %s covers none of it',
    async (scope) => {
      const [id = ''] = await record.acceptMany(1)
      await hold(scope)
      expect((await record.claimAll(node)).map((each) => each.id)).toEqual([id])
    },
  )

  it('lets what is claimed, mirrored, executing or reported go on', async () => {
    await record.acceptMany(2)
    const [first = nothing, second = nothing] = await record.claimAll(node)
    await record.functions.mirror(node, [second])
    await hold()
    expect((await record.functions.mirror(node, [first]))[0]?.ok).toBe(true)
    expect((await record.functions.ack(node, [first, second])).map(({ ok }) => ok)).toEqual([true, true])
    await record.functions.lift('hold', 'conversation:c1', 'kim')
    const open = await record.begin(node, first)
    await hold()
    expect(await report(open, { kind: 'result', result: '1' })).toMatchObject({ ok: true })
  })

  it('gives way to a block and comes before a pause', async () => {
    await hold()
    await record.functions.pause('hub', 'wait', 'kim')
    const [held = ''] = await record.acceptMany(1)
    await record.claimAll(node)
    await record.functions.block('hub', 'never', 'kim')
    const [failed = ''] = await record.acceptMany(1)
    await record.claimAll(node)
    expect(await record.states([held, failed])).toEqual(['held', 'failed'])
  })

  it('is refused without a reason or actor, for no scope, and when it has lapsed already', async () => {
    const { functions } = record
    await record.refused('INVALID_ARGUMENT', () => functions.hold('hub', '', 'kim'))
    await record.refused('INVALID_ARGUMENT', () => functions.hold('hub', 'r', ''))
    await record.refused('INVALID_ARGUMENT', () => functions.hold('hubs', 'r', 'kim'))
    await record.refused('INVALID_ARGUMENT', () => functions.hold('host:A', 'r', 'kim'))
    await record.refused('INVALID_ARGUMENT', () => functions.hold('hub', 'r', 'kim', 1))
    await record.refused('FENCE_NOT_FOUND', () => functions.lift('hold', 'hub', 'kim'))
  })
})

describe('the end of a hold', () => {
  /** Held ones of host a by this hold. */
  async function held(count: number, scope = 'conversation:c1', untilMs?: number): Promise<string[]> {
    await hold(scope, untilMs)
    const ids = await record.acceptMany(count)
    await record.claimAll(node)
    expect(new Set(await record.states(ids))).toEqual(new Set(['held']))
    return ids
  }

  it('by lift requeues what it parked, under a new epoch, in the order it was held', async () => {
    const ids = await held(3)
    expect(await record.functions.lift('hold', 'conversation:c1', 'kim')).toMatchObject({ left: 0 })
    expect(await record.fields(ids[0] ?? '')).toMatchObject({
      state: 'queued',
      epoch: '2',
      requeued_by: 'kim',
      requeued_reason: 'lifted hold:conversation:c1',
    })
    expect(await holding()).toEqual([])
    expect((await record.claimAll(node)).map((each) => each.id)).toEqual(ids)
  })

  it('by lift gives back a slice, and the next claims of any host the rest: 450 held by one hold', async () => {
    const ids = await held(450)
    const { left } = await record.functions.lift('hold', 'conversation:c1', 'kim')
    expect(left).toBeGreaterThan(0)
    expect(left).toBeLessThan(450)
    await record.checkInvariants()
    const elsewhere = await record.join('b', 'n1')
    const first = await record.claim(elsewhere)
    expect(first.more).toBe(true)
    await record.claimAll(elsewhere)
    expect(await entriesOf('a')).toBe(450)
    expect(await holding()).toEqual([])
    expect((await record.claimAll(node)).map((each) => each.id).toSorted()).toEqual(ids.toSorted())
  })

  it('by expiry requeues at a later claim of any host, which was told when to look', async () => {
    const untilMs = (await record.nowMs()) + 1500
    const [id = ''] = await held(1, 'conversation:c1', untilMs)
    const elsewhere = await record.join('b', 'n1')
    const reply = await record.claim(elsewhere)
    expect(reply.nextAtMs).toBeLessThanOrEqual(untilMs)
    await until(async () => {
      await record.claim(elsewhere)
      return (await record.states([id]))[0] === 'queued'
    })
    expect(Number((await record.fields(id))['requeued_at'])).toBeGreaterThanOrEqual(untilMs)
    expect((await record.claimAll(node)).map((each) => each.id)).toEqual([id])
  })

  it('by a field deleted by hand is noticed by the next claim', async () => {
    const [id = ''] = await held(1)
    server.cli('HDEL', record.keys.fences, 'hold:conversation:c1')
    await record.claim(await record.join('b', 'n1'))
    expect(await record.fields(id)).toMatchObject({ state: 'queued', requeued_by: 'lapsed' })
  })

  it('leaves what another hold parked, and what others covers is held again by that', async () => {
    await hold('hub')
    const ids = await held(2)
    expect(await heldBy('hold:hub')).toEqual(ids)
    await record.functions.lift('hold', 'conversation:c1', 'kim')
    expect(await record.states(ids)).toEqual(['held', 'held'])
    await hold()
    await record.functions.lift('hold', 'hub', 'kim')
    await record.claimAll(node)
    expect(await heldBy('hold:conversation:c1')).toEqual(ids)
    expect(await holding()).toEqual(['hold:conversation:c1'])
  })

  it('finds every lapsed hold among more than a look takes', async () => {
    const ids: string[] = []
    for (let at = 0; at < 45; at += 1) {
      await hold(`conversation:h${at}`)
      ids.push(...(await record.acceptMany(1, { conversation: `h${at}` })))
    }
    await record.claimAll(node)
    await record.send('DEL', record.keys.fences)
    await until(async () => {
      await record.claimAll(node)
      return (await record.states(ids)).every((state) => state === 'claimed')
    })
  })
})

describe('release', () => {
  it('passes the holds that stood when it was given, at claim and at begin, once', async () => {
    await hold('hub')
    await hold()
    const [id = ''] = await record.acceptMany(1)
    await record.claimAll(node)
    const released = await release(id)
    expect(released).toMatchObject({ id, state: 'queued', epoch: 2 })
    expect(await record.fields(id)).toMatchObject({ requeued_by: 'kim', requeued_reason: 'checked' })
    const [item = nothing] = await record.deliverAll(node)
    expect(item).toMatchObject({ id, epoch: 3, how: 'new' })
    const open = await record.begin(node, item)
    await report(open, notSent)
    const [again] = await record.functions.begin(node, [{ ...item, grant: 'second' }])
    expect(again).toMatchObject({ ok: false, code: 'HELD' })
  })

  it('passes the holds that it names, not one that a conversation is called after', async () => {
    const conversation = 'x hold:hub y'
    await hold(`conversation:${conversation}`)
    const [id = ''] = await record.acceptMany(1, { conversation })
    await record.claimAll(node)
    await release(id)
    await record.send('HSET', record.keys.fences, 'hold:hub', 'typed by hand')
    expect(await record.claimAll(node)).toEqual([])
    expect(await record.states([id])).toEqual(['held'])
  })

  it('is caught by a hold that was set since: before the claim, and before the begin', async () => {
    await hold()
    const [one = '', two = ''] = await record.acceptMany(2)
    await record.claimAll(node)
    await release(one)
    await hold('hub')
    expect(await record.claimAll(node)).toEqual([])
    expect(await heldBy('hold:hub')).toEqual([one])
    await release(two)
    const [item = nothing] = await record.deliverAll(node)
    expect(item.id).toBe(two)
    await hold('host:a')
    const [answer] = await record.functions.begin(node, [{ ...item, grant: 'g' }])
    expect(answer).toMatchObject({ ok: false, code: 'HELD', detail: 'hold:host:a' })
  })

  it('is caught by the same hold when it was lifted and set again, or set anew', async () => {
    await hold()
    const [id = ''] = await record.acceptMany(1)
    await record.claimAll(node)
    const { logId } = await release(id)
    // Fences know their time in milliseconds: a later one.
    await until(async () => (await record.nowMs()) > Number(logId.split('-')[0]))
    await hold()
    expect(await record.claimAll(node)).toEqual([])
    expect(await record.states([id])).toEqual(['held'])
  })

  it('does not pass a pause or a block', async () => {
    await hold()
    const [one = '', two = ''] = await record.acceptMany(2)
    await record.claimAll(node)
    await record.functions.pause('conversation:c1', 'wait', 'kim')
    await release(one)
    expect(await record.claimAll(node)).toEqual([])
    expect(await record.fields(one)).toMatchObject({ state: 'queued', parked_by: 'pause:conversation:c1' })
    await record.functions.lift('pause', 'conversation:c1', 'kim')
    const [item = nothing] = await record.deliverAll(node)
    expect(item).toMatchObject({ id: one, how: 'parked' })
    await record.functions.block('hub', 'never', 'kim')
    await release(two)
    await record.claimAll(node)
    expect(await record.states([two])).toEqual(['failed'])
    expect(await record.functions.begin(node, [{ ...item, grant: 'g' }])).toMatchObject([{ code: 'BLOCKED' }])
  })

  it('starts with clean counters after poison', async () => {
    await record.config('max_takeovers', 1)
    const [id = ''] = await record.acceptMany(1)
    await record.claimAll(node)
    const later = await record.join('a', 'n1', 2)
    await record.claimAll(later)
    expect(await record.fields(id)).toMatchObject({ held_reason: 'poison', takeovers: '1' })
    await release(id)
    expect(await record.fields(id)).toMatchObject({ state: 'queued', takeovers: '0' })
    await record.config('max_takeovers', 2)
    await record.claimAll(later)
    const last = await record.join('a', 'n1', 3)
    expect(await record.claimAll(last)).toMatchObject([{ id, how: 'resume' }])
  })

  it('gives a fresh redrive allowance', async () => {
    await record.config('max_redrive', 2)
    const item = await idle()
    await tryInVain(item)
    expect(await tryInVain(item)).toMatchObject({ state: 'held' })
    expect(await record.fields(item.id)).toMatchObject({ held_reason: 'redrive_exhausted' })
    await release(item.id)
    const [again = nothing] = await record.deliverAll(node)
    expect(await tryInVain(again)).toMatchObject({ state: 'delivered' })
    expect(await tryInVain(again)).toMatchObject({ state: 'held' })
    expect(await record.fields(item.id)).toMatchObject({ attempts: '4', held_reason: 'redrive_exhausted' })
  })

  it('of what a release was refused for a retired host changes nothing', async () => {
    const item = await idle()
    await holdOne(item.id)
    await record.functions.retire('a', 'kim', 'gone')
    await record.refused('HOST_RETIRED', () => release(item.id))
  })
})

describe('reject', () => {
  it('fails what is held, by decision, and settles its message', async () => {
    await hold()
    const [id = ''] = await record.acceptMany(1)
    await record.claimAll(node)
    expect(await reject(id)).toMatchObject({ id, state: 'failed' })
    expect(await record.fields(id)).toMatchObject({
      failed_code: 'rejected',
      failed_by: 'kim',
      failed_detail: 'no',
    })
    expect(await holding()).toEqual([])
    await record.refused('NOT_HELD', () => reject(id))
    await record.refused('NOT_HELD', () => release(id))
  })
})

describe('release and reject of what is not held', () => {
  const places = {
    ...idlePlaces,
    ...Object.fromEntries(Object.entries(busyPlaces).map(([k, v]) => [k, v.make])),
  }
  it.each(Object.entries(places))('%s: NOT_HELD, nothing changes', async (_, make) => {
    const id = await make()
    await record.refused('NOT_HELD', () => release(id))
    await record.refused('NOT_HELD', () => reject(id))
  })

  it('not there, or no id, or without actor or reason', async () => {
    const missing = '1764430000000-000000.1'
    for (const verb of ['release', 'reject', 'holdDelivery', 'cancel'] as const) {
      await record.refused('DELIVERY_NOT_FOUND', () => record.functions[verb](missing, 'kim', 'r'))
      await record.refused('INVALID_ARGUMENT', () => record.functions[verb]('x', 'kim', 'r'))
      await record.refused('INVALID_ARGUMENT', () => record.functions[verb](missing, '', 'r'))
      await record.refused('INVALID_ARGUMENT', () => record.functions[verb](missing, 'kim', ''))
    }
  })
})

describe('an operator holds one delivery', () => {
  it.each(Object.entries(idlePlaces))('%s: it is held under a new epoch, without owner', async (_, make) => {
    const id = await make()
    const before = Number((await record.fields(id))['epoch'])
    expect(await holdOne(id)).toMatchObject({ id, state: 'held', epoch: before + 1 })
    const row = await record.fields(id)
    expect(row).toMatchObject({ held_reason: 'look at it', held_by: 'kim', epoch: String(before + 1) })
    expect(row).not.toHaveProperty('owner')
    expect(row).not.toHaveProperty('parked_by')
    expect(await holding()).toEqual([])
    expect(await record.claimAll(node)).toEqual([])
    expect(await release(id)).toMatchObject({ state: 'queued' })
  })

  it('held by a fence: it is the operator that holds it from now on', async () => {
    await hold()
    const [id = ''] = await record.acceptMany(1)
    await record.claimAll(node)
    await holdOne(id)
    await record.functions.lift('hold', 'conversation:c1', 'kim')
    await record.claimAll(node)
    expect(await record.fields(id)).toMatchObject({ state: 'held', held_reason: 'look at it' })
  })

  it('refuses the next step of its owner with STALE_EPOCH, and its begin with HELD', async () => {
    await record.acceptMany(3)
    const [claimed = nothing, mirrored = nothing, delivered = nothing] = await record.claimAll(node)
    await record.functions.mirror(node, [mirrored, delivered])
    await record.functions.ack(node, [delivered])
    for (const { id } of [claimed, mirrored, delivered]) await holdOne(id)
    await record.itemRefused('STALE_EPOCH', () => record.functions.mirror(node, [claimed]))
    await record.itemRefused('STALE_EPOCH', () => record.functions.ack(node, [mirrored]))
    await record.itemRefused('HELD', () => record.functions.begin(node, [{ ...delivered, grant: 'g' }]))
    await release(delivered.id)
    await record.itemRefused('STALE_EPOCH', () =>
      record.functions.begin(node, [{ ...delivered, grant: 'g' }]),
    )
  })

  it.each(Object.entries(busyPlaces))('%s: refused, nothing changes', async (_, { code, make }) => {
    const id = await make()
    await record.refused(code, () => holdOne(id))
  })
})

describe('an operator cancels one delivery', () => {
  it.each(Object.entries(idlePlaces))('%s: it failed, and its message is settled', async (_, make) => {
    const id = await make()
    const before = Number((await record.fields(id))['epoch'])
    expect(await cancel(id)).toMatchObject({ id, state: 'failed', epoch: before + 1 })
    const row = await record.fields(id)
    expect(row).toMatchObject({ failed_code: 'cancelled', failed_by: 'kim', failed_detail: 'withdrawn' })
    expect(row).not.toHaveProperty('owner')
    expect(await record.claimAll(node)).toEqual([])
    await record.refused('ALREADY_SETTLED', () => cancel(id))
  })

  it('held: it failed, and leaves the lists of its hold', async () => {
    await hold()
    const [id = ''] = await record.acceptMany(1)
    await record.claimAll(node)
    expect(await cancel(id)).toMatchObject({ state: 'failed' })
    expect(await holding()).toEqual([])
  })

  it('refuses the next step of its owner with STALE_EPOCH', async () => {
    await record.acceptMany(3)
    const [claimed = nothing, mirrored = nothing, delivered = nothing] = await record.claimAll(node)
    await record.functions.mirror(node, [mirrored, delivered])
    await record.functions.ack(node, [delivered])
    for (const { id } of [claimed, mirrored, delivered]) await cancel(id)
    await record.itemRefused('STALE_EPOCH', () => record.functions.mirror(node, [claimed]))
    await record.itemRefused('STALE_EPOCH', () => record.functions.ack(node, [mirrored]))
    await record.itemRefused('STALE_EPOCH', () =>
      record.functions.begin(node, [{ ...delivered, grant: 'g' }]),
    )
  })

  it.each(Object.entries(busyPlaces))('%s: refused, nothing changes', async (_, { code, make }) => {
    const id = await make()
    await record.refused(code, () => cancel(id))
  })
})

describe('lanes after an operator took something out of them', () => {
  it('serve the rest in order, each once, when the pause lifts', async () => {
    await record.functions.pause('conversation:c1', 'wait', 'kim')
    const ids = await record.acceptMany(5)
    await record.claimAll(node)
    await holdOne(ids[0] ?? '')
    await cancel(ids[2] ?? '')
    await release(ids[0] ?? '')
    await record.claimAll(node)
    await record.functions.lift('pause', 'conversation:c1', 'kim')
    const served = (await record.claimAll(node)).map((each) => each.id)
    expect(served.toSorted()).toEqual([ids[0], ids[1], ids[3], ids[4]].toSorted())
    expect(served.filter((id) => id !== ids[0])).toEqual([ids[1], ids[3], ids[4]])
    expect(await record.send('EXISTS', record.keys.parked('a'))).toBe(0)
  })
})

it('every reason to be held is reached', async () => {
  await record.config('max_takeovers', 1)
  await record.config('max_redrive', 1)
  const exhausted = await idle()
  await tryInVain(exhausted)
  const corrupt = await idle()
  const item = { id: corrupt.id, epoch: corrupt.epoch, verdict: 'failed', reason: 'payload_corrupt' } as const
  await record.functions.refuse(node, [item])
  const poisonous = await idle()
  const later = await record.join('a', 'n1', 2)
  await record.claimAll(later)
  await hold('conversation:c2')
  const [fenced = ''] = await record.acceptMany(1, { conversation: 'c2' })
  await record.claimAll(later)
  const [byHand = '', last = ''] = await record.acceptMany(2)
  await holdOne(byHand)
  while ((await record.functions.retire('a', 'kim', 'gone')).more);
  const reasons = await Promise.all(
    [exhausted.id, corrupt.id, poisonous.id, fenced, byHand, last].map(
      async (id) => (await record.fields(id))['held_reason'],
    ),
  )
  expect(reasons).toEqual([
    'redrive_exhausted',
    'payload_corrupt',
    'poison',
    'fence',
    'look at it',
    'retired',
  ])
})
