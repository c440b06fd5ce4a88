import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { ClaimedDelivery, StepItem, StepResult, TakeItem, TakeReply } from '../../src/contract/steps.js'
import {
  comparable,
  movesOf,
  type OpenRecord,
  openRecord,
  type TestNode,
  withoutIds,
} from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { type SessionTools, sessionTools } from '../support/sessions.js'

/** A record, a node of host `a` on it, and sessions. */
interface Side {
  readonly record: OpenRecord
  readonly node: TestNode
  readonly sessions: SessionTools
}

let server: TestServer
let record: OpenRecord
let node: TestNode
let one: Side
/** On which each step is a call of its own. */
let twin: Side

async function openSide(): Promise<Side> {
  const opened = await openRecord(server)
  const sessions = sessionTools(opened)
  await opened.config('heartbeat_ms', 60_000)
  return { record: opened, node: await sessions.join('a'), sessions }
}

beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server?.stop())
beforeEach(async () => {
  one = await openSide()
  twin = await openSide()
  record = one.record
  node = one.node
})
afterEach(async () => {
  for (const side of [one, twin]) {
    await side.record.checkInvariants()
    await side.record.close()
  }
})

const unknownId = '1764430000000-000000.1'
const done = { kind: 'result', result: '1' } as const
const item = ({ id, epoch }: StepItem): StepItem => ({ id, epoch })
const withGrants = (items: readonly StepItem[]) =>
  items.map((each, at) => ({ ...item(each), grant: `g${at}` }))

async function claimMany(side: Side, count: number, message = {}): Promise<ClaimedDelivery[]> {
  await side.record.acceptMany(count, message)
  return await side.record.claimAll(side.node)
}

async function claimOne(message = {}): Promise<ClaimedDelivery> {
  const [claimed] = await claimMany(one, 1, message)
  if (claimed === undefined) throw new Error('nothing was handed out')
  return claimed
}

const take = (...items: TakeItem[]) => record.functions.take(node, items)

/** One delivery, handed off and begun under a grant. */
async function beginOne(grant = 'g'): Promise<TakeItem & { grant: string }> {
  const asked = { ...item(await claimOne()), grant }
  const { begun } = await take(asked)
  expect(begun).toEqual([{ ...item(asked), ok: true, state: 'delivered', attempt: 1 }])
  return asked
}

async function report(
  { id, grant }: { id: string; grant: string },
  outcome: object = done,
): Promise<unknown> {
  return await record.functions.report(node, [
    { id, grant, key: `of-${grant}`, outcome: outcome as typeof done },
  ])
}

/** What mirror, ack and, for those with a grant, begin answer and do. */
async function threeCalls({ record: on, node: by }: Side, items: readonly TakeItem[]): Promise<TakeReply> {
  await on.functions.mirror(by, items)
  const results = await on.functions.ack(by, items)
  const begins = items.flatMap(({ grant, ...rest }, at) =>
    grant !== undefined && results[at]?.ok ? [{ ...rest, grant }] : [],
  )
  return { results, begun: begins.length === 0 ? [] : await on.functions.begin(by, begins) }
}

/** Take answers, and does to a record, what three calls do on the twin. */
async function likeThreeCalls(prepare: (side: Side) => Promise<readonly TakeItem[]>): Promise<TakeReply> {
  const items = await prepare(one)
  const answer = await record.functions.take(node, items)
  const expected = await threeCalls(twin, await prepare(twin))
  expect(withoutIds(answer)).toEqual(withoutIds(expected))
  const [dump, other] = [await record.dump(), await twin.record.dump()]
  expect(comparable(dump)).toEqual(comparable(other))
  expect(movesOf(dump)).toEqual(movesOf(other))
  return answer
}

const codes = (results: readonly StepResult[]) => results.map((each) => (each.ok ? each.state : each.code))

describe('take', () => {
  it('hands off and begins in one call what mirror, ack and begin do in three', async () => {
    const { results, begun } = await likeThreeCalls(async (side) => withGrants(await claimMany(side, 3)))
    expect(codes(results)).toEqual(['delivered', 'delivered', 'delivered'])
    expect(begun.map((each) => (each.ok ? each.attempt : each.code))).toEqual([1, 1, 1])
    expect(await record.send('XLEN', record.keys.stream('a'))).toBe(0)
    const awaiting = (await record.send('ZRANGE', record.keys.awaiting('a'), 0, -1)) as string[]
    expect(awaiting).toEqual(results.map(({ id }) => id))
    const row = await record.fields(results[0]?.id ?? '')
    expect(row).toMatchObject({
      state: 'delivered',
      attempts: '1',
      attempt_status: 'executing',
      attempt_1_grant: 'g0',
      attempt_1_node: 'a/n1',
      attempt_1_incarnation: '1',
    })
    expect(row['mirrored_at']).toBe(row['delivered_at'])
    expect(row['attempt_1_begun_at']).toBe(row['delivered_at'])
  })

  it('hands off only what has no grant, in the same batch as others', async () => {
    const { results, begun } = await likeThreeCalls(async (side) => {
      const [bare, ...rest] = await claimMany(side, 4)
      return [
        ...withGrants(rest.slice(0, 1)),
        item(bare ?? rest[0] ?? { id: '', epoch: 0 }),
        ...rest.slice(1).map(item),
      ]
    })
    expect(codes(results)).toEqual(['delivered', 'delivered', 'delivered', 'delivered'])
    expect(begun.map(({ id }) => id)).toEqual([results[0]?.id])
    expect(await record.fields(results[1]?.id ?? '')).toMatchObject({ state: 'delivered', attempts: '0' })
  })

  it.each(['claimed', 'mirrored', 'delivered'] as const)(
    'takes on what is %s, with and without a grant',
    async (from) => {
      const { results, begun } = await likeThreeCalls(async (side) => {
        const claimed = await claimMany(side, 3)
        const { functions } = side.record
        if (from !== 'claimed') await functions.mirror(side.node, claimed)
        if (from === 'delivered') await functions.ack(side.node, claimed)
        return [...withGrants(claimed.slice(0, 2)), ...claimed.slice(2).map(item)]
      })
      expect(codes(results)).toEqual(['delivered', 'delivered', 'delivered'])
      expect(codes(begun)).toEqual(['delivered', 'delivered'])
    },
  )

  it('takes on what a session is meant for, and notes under which opening it was begun', async () => {
    const { begun } = await likeThreeCalls(async (side) => {
      await side.sessions.open()
      await side.sessions.open()
      return withGrants(await claimMany(side, 2, { to: [{ session: 's' }] }))
    })
    for (const { id } of begun)
      expect(await record.fields(id)).toMatchObject({ attempt_1_session_epoch: '2' })
    const open = await record.send('SMEMBERS', record.keys.sessionAttempts('s'))
    expect(open).toHaveLength(2)
  })

  it('takes on what a later process of the node resumed, in whatever state it was left', async () => {
    const { results } = await likeThreeCalls(async (side) => {
      const claimed = await claimMany(side, 3)
      await side.record.functions.mirror(side.node, claimed.slice(1))
      await side.record.functions.ack(side.node, claimed.slice(2))
      await side.record.functions.leave(side.node)
      const later = await side.sessions.join('a', 'n1', 2)
      const resumed = await side.record.claimAll(later)
      Object.assign(side.node, later)
      return withGrants(resumed)
    })
    expect(results).toMatchObject([2, 2, 2].map((epoch) => ({ ok: true, epoch, state: 'delivered' })))
  })

  it('is answered the same again, changing nothing', async () => {
    const claimed = await claimMany(one, 3)
    const items = [...withGrants(claimed.slice(0, 2)), ...claimed.slice(2).map(item)]
    const first = await take(...items)
    const before = await record.dump()
    expect(await take(...items)).toEqual(first)
    expect(await record.dump()).toEqual(before)
    // Without its grant, too: the handoff alone is asked for.
    expect(await take(...items.map(item))).toEqual({ results: first.results, begun: [] })
    expect(await record.dump()).toEqual(before)
  })

  it('begins what was handed off without a grant before, also by begin itself', async () => {
    const [first, second] = (await claimMany(one, 2)).map(item)
    if (first === undefined || second === undefined) throw new Error('two were accepted')
    await take(first, second)
    expect((await take({ ...first, grant: 'g' })).begun).toMatchObject([{ ok: true, attempt: 1 }])
    expect(await record.functions.begin(node, [{ ...second, grant: 'h' }])).toMatchObject([
      { ok: true, attempt: 1 },
    ])
    expect((await take({ ...second, grant: 'h' })).begun).toMatchObject([{ ok: true, attempt: 1 }])
  })

  it('refuses another grant while one is open: GRANT_OPEN, with the handoff ok', async () => {
    const open = await beginOne()
    const before = await record.dump()
    const { results, begun } = await take({ ...open, grant: 'another' })
    expect(results).toEqual([{ ...item(open), ok: true, state: 'delivered' }])
    expect(begun).toEqual([{ ...item(open), ok: false, code: 'GRANT_OPEN', state: 'delivered', owner: 'n1' }])
    expect(await record.dump()).toEqual(before)
  })

  it('refuses what is settled: ALREADY_SETTLED, under the same grant and under another', async () => {
    const open = await beginOne()
    await report(open)
    const before = await record.dump()
    for (const grant of [open.grant, 'another']) {
      const { results, begun } = await take({ ...open, grant })
      expect(codes(results)).toEqual(['delivered'])
      expect(codes(begun)).toEqual(['ALREADY_SETTLED'])
    }
    expect(await record.dump()).toEqual(before)
  })

  it('opens the next attempt after a not_sent, under a new grant only', async () => {
    const open = await beginOne()
    await report(open, { kind: 'not_sent', errorCode: 'busy' })
    const { begun } = await take({ ...open, grant: 'g' }, { ...open, grant: 'second' })
    expect(codes(begun)).toEqual(['ALREADY_SETTLED', 'delivered'])
    expect(begun[1]).toMatchObject({ ok: true, attempt: 2 })
    expect(await record.fields(open.id)).toMatchObject({ attempts: '2', attempt_2_grant: 'second' })
  })

  it('answers the same item twice in a batch the same, and one of two grants', async () => {
    const [first, second] = withGrants(await claimMany(one, 2))
    if (first === undefined || second === undefined) throw new Error('two were accepted')
    const { results, begun } = await take(first, second, first, { ...second, grant: 'another' })
    expect(codes(results)).toEqual(['delivered', 'delivered', 'delivered', 'delivered'])
    expect(begun.map((each) => (each.ok ? each.attempt : each.code))).toEqual([1, 1, 1, 'GRANT_OPEN'])
  })

  it('opens one attempt, whoever asks at the same time', async () => {
    const claimed = item(await claimOne())
    const grants = ['g1', 'g2', 'g1', 'g2', 'g3', 'g1']
    const answers = await Promise.all(grants.map((grant) => take({ ...claimed, grant })))
    expect(answers.flatMap(({ results }) => codes(results))).toEqual(grants.map(() => 'delivered'))
    const won = (await record.fields(claimed.id))['attempt_1_grant']
    expect(answers.flatMap(({ begun }) => codes(begun))).toEqual(
      grants.map((grant) => (grant === won ? 'delivered' : 'GRANT_OPEN')),
    )
    expect(await record.fields(claimed.id)).toMatchObject({ attempts: '1' })
  })

  it('takes a thousand items in one call', async () => {
    await record.config('max_payload_bytes', 1024)
    await record.acceptMany(1000)
    const claimed = await record.claimAll(node, 1000)
    const { results, begun } = await take(...withGrants(claimed))
    expect(results.map(({ id }) => id)).toEqual(claimed.map(({ id }) => id))
    expect(begun.map(({ id }) => id)).toEqual(claimed.map(({ id }) => id))
    expect([...results, ...begun].every(({ ok }) => ok)).toBe(true)
  })
})

describe('refused for itself, while others go on:', () => {
  it('STALE_EPOCH, NOT_OWNER, WRONG_STATE and DELIVERY_NOT_FOUND', async () => {
    const { results, begun } = await likeThreeCalls(async (side) => {
      const { functions } = side.record
      const n2 = await side.sessions.join('a', 'n2')
      await side.record.acceptMany(1)
      const [foreign] = await side.record.claimAll(n2)
      const [first, stale, failed, unknown, held, last] = await claimMany(side, 6)
      for (const [each, verdict, reason] of [
        [failed, 'failed', 'no_room'],
        [unknown, 'unknown', 'in_doubt'],
        [held, 'failed', 'payload_corrupt'],
      ] as const) {
        if (each !== undefined) await functions.refuse(side.node, [{ ...item(each), verdict, reason }])
      }
      const nothing = { id: unknownId, epoch: 1 }
      const items = [first, nothing, stale, foreign, failed, unknown, held, last].map(
        (each) => each ?? nothing,
      )
      return withGrants(items).map((each) => (each.id === stale?.id ? { ...each, epoch: 7 } : each))
    })
    expect(codes(results)).toEqual([
      'delivered',
      'DELIVERY_NOT_FOUND',
      'STALE_EPOCH',
      'NOT_OWNER',
      'WRONG_STATE',
      'WRONG_STATE',
      'STALE_EPOCH',
      'delivered',
    ])
    expect(begun.map(({ id }) => id)).toEqual([results[0]?.id, results[7]?.id])
    expect(codes(begun)).toEqual(['delivered', 'delivered'])
  })

  it('says the state, the epoch and the owner that stand in the way, and changes nothing', async () => {
    const claimed = item(await claimOne())
    const other = await one.sessions.join('a', 'n2')
    const elsewhere = await one.sessions.join('b', 'n1')
    const before = await record.dump()
    const refusals = [
      (await take({ ...claimed, epoch: 0, grant: 'g' })).results,
      (await record.functions.take(other, [{ ...claimed, grant: 'g' }])).results,
      (await record.functions.take(elsewhere, [{ ...claimed, grant: 'g' }])).results,
    ].flat()
    const standing = { ...claimed, ok: false, state: 'claimed', owner: 'n1' }
    expect(refusals).toEqual([
      { ...standing, code: 'STALE_EPOCH' },
      { ...standing, code: 'NOT_OWNER' },
      { ...standing, code: 'NOT_OWNER' },
    ])
    expect(await record.dump()).toEqual(before)
  })

  it('NOT_OWNER and STALE_EPOCH once another node took it over', async () => {
    const claimed = item(await claimOne())
    const heir = await one.sessions.join('a', 'n2')
    await one.sessions.silence(node)
    expect(await record.claimAll(heir)).toMatchObject([{ id: claimed.id, epoch: 2, how: 'takeover' }])
    const before = await record.dump()
    for (const [epoch, code] of [
      [1, 'STALE_EPOCH'],
      [2, 'NOT_OWNER'],
    ] as const) {
      const { results, begun } = await take({ ...claimed, epoch, grant: 'g' })
      expect(results).toEqual([{ id: claimed.id, ok: false, code, epoch: 2, state: 'claimed', owner: 'n2' }])
      expect(begun).toEqual([])
    }
    expect(await record.dump()).toEqual(before)
  })

  it('what was rehomed meanwhile, and what an operator held or cancelled', async () => {
    const { results, begun } = await likeThreeCalls(async (side) => {
      await side.sessions.join('b')
      await side.sessions.open()
      const [moved] = await claimMany(side, 1, { to: [{ session: 's' }] })
      const [held, cancelled, good] = await claimMany(side, 3)
      await side.sessions.rehome()
      await side.record.functions.holdDelivery(held?.id ?? '', 'kim', 'wait')
      await side.record.functions.cancel(cancelled?.id ?? '', 'kim', 'no')
      return withGrants([moved, held, cancelled, good].map((each) => each ?? { id: unknownId, epoch: 1 }))
    })
    expect(codes(results)).toEqual(['NOT_OWNER', 'STALE_EPOCH', 'STALE_EPOCH', 'delivered'])
    expect(codes(begun)).toEqual(['delivered'])
  })
})

describe('handed off, but not begun:', () => {
  it('PAUSED under a pause, and nothing else; begun with the same grant once it is lifted', async () => {
    const { results, begun } = await likeThreeCalls(async (side) => {
      const claimed = withGrants(await claimMany(side, 2))
      await side.record.functions.pause('conversation:c1', 'wait', 'kim')
      return claimed
    })
    expect(codes(results)).toEqual(['delivered', 'delivered'])
    expect(begun).toEqual(
      results.map(({ id }) => ({
        id,
        ok: false,
        code: 'PAUSED',
        epoch: 1,
        state: 'delivered',
        owner: 'n1',
        detail: 'pause:conversation:c1',
      })),
    )
    const ids = results.map(({ id }) => id)
    for (const id of ids) expect(await record.fields(id)).toMatchObject({ state: 'delivered', attempts: '0' })
    const items = withGrants(ids.map((id) => ({ id, epoch: 1 })))
    const before = await record.dump()
    expect(await take(...items)).toEqual({ results, begun })
    expect(await record.dump()).toEqual(before)
    await record.functions.lift('pause', 'conversation:c1', 'kim')
    expect((await take(...items)).begun).toMatchObject([{ ok: true }, { ok: true }])
    // What is open is answered under a new pause, as begin answers it.
    await record.functions.pause('hub', 'again', 'kim')
    expect((await take(...items)).begun).toMatchObject([{ ok: true }, { ok: true }])
  })

  it('HELD under a hold: in the held queue by that fence, released and begun', async () => {
    const { results, begun } = await likeThreeCalls(async (side) => {
      const claimed = await claimMany(side, 3)
      await side.record.functions.hold('host:a', 'legal', 'kim')
      return [...withGrants(claimed.slice(0, 2)), ...claimed.slice(2).map(item)]
    })
    expect(codes(results)).toEqual(['delivered', 'delivered', 'delivered'])
    expect(begun).toMatchObject([
      { ok: false, code: 'HELD', state: 'held', epoch: 2, detail: 'hold:host:a' },
      { ok: false, code: 'HELD', state: 'held', epoch: 2 },
    ])
    const ids = results.map(({ id }) => id)
    expect(await record.states(ids)).toEqual(['held', 'held', 'delivered'])
    const row = await record.fields(ids[0] ?? '')
    expect(row).toMatchObject({ held_reason: 'fence', held_fence: 'hold:host:a', attempts: '0' })
    expect(row).not.toHaveProperty('owner')
    expect(await record.send('ZRANGE', record.keys.awaiting('a'), 0, -1)).toEqual([ids[2]])
    expect(await record.send('ZCARD', record.keys.heldBy('hold:host:a'))).toBe(2)
    // Its node learns that it is not its own any more.
    const before = await record.dump()
    const again = await take(...ids.slice(0, 2).map((id) => ({ id, epoch: 1, grant: 'g' })))
    expect([codes(again.results), again.begun]).toEqual([['STALE_EPOCH', 'STALE_EPOCH'], []])
    expect(await record.dump()).toEqual(before)
    await record.functions.lift('hold', 'host:a', 'kim')
    expect(await record.states(ids)).toEqual(['queued', 'queued', 'delivered'])
  })

  it('BLOCKED under a block: failed, and settled on its message', async () => {
    const { results, begun } = await likeThreeCalls(async (side) => {
      const claimed = withGrants(await claimMany(side, 2))
      await side.record.functions.block('hub', 'no', 'kim')
      return claimed
    })
    expect(codes(results)).toEqual(['delivered', 'delivered'])
    expect(begun).toMatchObject(
      results.map(() => ({ ok: false, code: 'BLOCKED', state: 'failed', detail: 'block:hub' })),
    )
    const id = results[0]?.id ?? ''
    expect(await record.fields(id)).toMatchObject({ failed_code: 'blocked', attempts: '0' })
    const before = await record.dump()
    expect(codes((await take({ id, epoch: 1, grant: 'g0' })).results)).toEqual(['WRONG_STATE'])
    expect(await record.dump()).toEqual(before)
  })

  it('EXPIRED once executeBy has passed; without a grant it is handed off all the same', async () => {
    const { results, begun } = await likeThreeCalls(async (side) => {
      const { nowMs } = await side.record.claim(side.node)
      const claimed = await claimMany(side, 2, { executeBy: nowMs })
      return [...withGrants(claimed.slice(0, 1)), ...claimed.slice(1).map(item)]
    })
    expect(codes(results)).toEqual(['delivered', 'delivered'])
    expect(begun).toMatchObject([{ ok: false, code: 'EXPIRED', state: 'failed', detail: 'execute_by' }])
    const [expired = '', idle = ''] = results.map(({ id }) => id)
    expect(await record.fields(expired)).toMatchObject({ failed_code: 'expired', attempts: '0' })
    expect(await record.states([idle])).toEqual(['delivered'])
  })

  it('keeps an open attempt whose executeBy passes, and its grant', async () => {
    const open = await beginOne()
    await record.send('HSET', record.keys.delivery(open.id), 'execute_by', 1)
    expect((await take(open)).begun).toMatchObject([{ ok: true, attempt: 1 }])
  })

  it('NOT_OWNER where its session moved meanwhile: queued at its home', async () => {
    const { results, begun } = await likeThreeCalls(async (side) => {
      await side.sessions.join('b')
      await side.sessions.open()
      const claimed = await claimMany(side, 1, { to: [{ session: 's' }] })
      // As between the flip of a rehome and its turn in the moves.
      await side.record.send('HSET', side.record.keys.session('s'), 'host', 'b')
      return withGrants(claimed)
    })
    expect(codes(results)).toEqual(['delivered'])
    expect(begun).toMatchObject([
      { ok: false, code: 'NOT_OWNER', state: 'queued', epoch: 2, detail: 'its session lives on host b' },
    ])
    const id = results[0]?.id ?? ''
    expect(await record.fields(id)).toMatchObject({ host: 'b', rehomed_from: 'a', rehomed_by: 'a/n1' })
    expect(await record.send('XLEN', record.keys.stream('a'))).toBe(0)
    const before = await record.dump()
    expect(codes((await take({ id, epoch: 1, grant: 'g0' })).results)).toEqual(['NOT_OWNER'])
    expect(await record.dump()).toEqual(before)
    const target = { host: 'b', node: 'n1', incarnation: 1, request: 0 }
    expect(await record.claimAll(target)).toMatchObject([{ id, epoch: 3 }])
  })

  it.each([
    ['closed', { reason: 'reload', terminal: false }, 'PAUSED', 'delivered'],
    ['closed for good', { reason: 'disable', terminal: true }, 'HELD', 'held'],
  ] as const)('where its session is %s', async (_, closing, code, state) => {
    const { begun } = await likeThreeCalls(async (side) => {
      await side.sessions.open()
      const claimed = await claimMany(side, 1, { to: [{ session: 's' }] })
      await side.sessions.close('s', closing)
      return withGrants(claimed)
    })
    expect(begun).toMatchObject([{ ok: false, code, state }])
    await record.checkInvariants()
    for (const side of [one, twin]) await side.sessions.open()
    const again = await take({ id: begun[0]?.id ?? '', epoch: 1, grant: 'g0' })
    expect([...codes(again.results), ...codes(again.begun)]).toEqual(
      state === 'held' ? ['STALE_EPOCH'] : ['delivered', 'delivered'],
    )
  })

  it('where its session is missing: failed', async () => {
    const { begun } = await likeThreeCalls(async (side) => {
      await side.sessions.open()
      const claimed = await claimMany(side, 1, { to: [{ session: 's' }] })
      await side.record.send('HSET', side.record.keys.session('s'), 'state', 'missing')
      return withGrants(claimed)
    })
    expect(begun).toMatchObject([{ ok: false, code: 'BLOCKED', state: 'failed' }])
    expect(await record.fields(begun[0]?.id ?? '')).toMatchObject({ failed_code: 'target_session_missing' })
  })

  it('the strictest of several fences decides, for each lane', async () => {
    const { begun } = await likeThreeCalls(async (side) => {
      const claimed: ClaimedDelivery[] = []
      for (const conversation of ['blocked', 'held', 'paused'])
        claimed.push(...(await claimMany(side, 1, { conversation })))
      const { functions } = side.record
      await functions.pause('hub', 'r', 'kim')
      await functions.hold('conversation:blocked', 'r', 'kim')
      await functions.block('conversation:blocked', 'r', 'kim')
      await functions.hold('conversation:held', 'r', 'kim')
      return withGrants(claimed)
    })
    expect(codes(begun)).toEqual(['BLOCKED', 'HELD', 'PAUSED'])
  })
})

describe('released from a hold', () => {
  it('it passes that hold once, at the claim and in the take', async () => {
    const { begun } = await likeThreeCalls(async (side) => {
      const { functions } = side.record
      await functions.hold('conversation:c1', 'legal', 'kim')
      const [id = ''] = await side.record.acceptMany(1)
      await side.record.claimAll(side.node)
      await functions.release(id, 'kim', 'it may')
      return withGrants(await side.record.claimAll(side.node))
    })
    expect(begun).toMatchObject([{ ok: true, attempt: 1 }])
    const [open] = begun
    const row = await record.fields(open?.id ?? '')
    expect(row).not.toHaveProperty('released_at')
    expect(row).not.toHaveProperty('released_holds')
    // Once: what comes after a not_sent meets it.
    const asked = { id: open?.id ?? '', epoch: open?.epoch ?? 0, grant: 'g0' }
    await report(asked, { kind: 'not_sent', errorCode: 'busy' })
    const next = await take({ ...asked, grant: 'second' })
    expect(next.begun).toMatchObject([{ ok: false, code: 'HELD', detail: 'hold:conversation:c1' }])
  })

  it('a take without a grant uses nothing of it up; another fence stops it all the same', async () => {
    await record.functions.hold('conversation:c1', 'legal', 'kim')
    const [id = ''] = await record.acceptMany(1)
    await record.claimAll(node)
    await record.functions.release(id, 'kim', 'it may')
    const [claimed] = await record.claimAll(node)
    const asked = { id, epoch: claimed?.epoch ?? 0 }
    await take(asked)
    await record.functions.pause('hub', 'wait', 'kim')
    expect(codes((await take({ ...asked, grant: 'g' })).begun)).toEqual(['PAUSED'])
    await record.functions.lift('pause', 'hub', 'kim')
    expect((await take({ ...asked, grant: 'g' })).begun).toMatchObject([{ ok: true, attempt: 1 }])
  })

  it('a hold that was set since holds it', async () => {
    const { begun } = await likeThreeCalls(async (side) => {
      const { functions } = side.record
      await functions.hold('conversation:c1', 'legal', 'kim')
      const [id = ''] = await side.record.acceptMany(1)
      await side.record.claimAll(side.node)
      await functions.release(id, 'kim', 'it may')
      const claimed = await side.record.claimAll(side.node)
      await functions.hold('host:a', 'audit', 'kim')
      return withGrants(claimed)
    })
    expect(begun).toMatchObject([{ ok: false, code: 'HELD', detail: 'hold:host:a' }])
  })
})

describe('refused as a whole, with nothing changed:', () => {
  it('malformed batches', async () => {
    const claimed = item(await claimOne())
    const bad: TakeItem[] = [
      { ...claimed, id: 'x' },
      { ...claimed, id: `${claimed.id}/1` },
      { ...claimed, epoch: -1 },
      { ...claimed, epoch: 1.5 },
      { ...claimed, grant: 'tab\there' },
      { ...claimed, grant: 'é' },
      { ...claimed, grant: 'g'.repeat(256) },
    ]
    for (const each of bad) await record.refused('INVALID_ARGUMENT', () => take(claimed, each))
    await record.refused('INVALID_ARGUMENT', () => take())
    const tooMany = Array.from({ length: 1001 }, () => claimed)
    await record.refused('INVALID_ARGUMENT', () => take(...tooMany))
    const call = (...args: (string | number)[]) => record.store.fcall('hf_take', record.keys.tag, args)
    const { id, epoch } = claimed
    await record.refused('INVALID_ARGUMENT', () => call('a', 'n1', 1, id, epoch, '', id, epoch))
    await record.refused('INVALID_ARGUMENT', () => call('a', 'n1', 1, id, epoch))
    await record.refused('INVALID_ARGUMENT', () => call('A', 'n1', 1, id, epoch, ''))
    await record.refused('INVALID_ARGUMENT', () => call('a', 'n1', 0, id, epoch, ''))
    await record.refused('INVALID_ARGUMENT', () => call('a', '', 1, id, epoch, ''))
  })

  it('NOT_JOINED, SUPERSEDED and LEFT', async () => {
    const items = withGrants(await claimMany(one, 2))
    const { functions } = record
    const stranger = { host: 'a', node: 'n9', incarnation: 1 }
    await record.refused('NOT_JOINED', () => functions.take(stranger, items))
    await record.refused('NOT_JOINED', () => functions.take({ ...node, incarnation: 9 }, items))
    const later = await one.sessions.join('a', 'n1', 2)
    await record.refused('SUPERSEDED', () => take(...items))
    const before = await record.dump()
    expect(codes((await functions.take(later, items)).results)).toEqual(['NOT_OWNER', 'NOT_OWNER'])
    expect(await record.dump()).toEqual(before)
    await functions.leave(later)
    await record.refused('LEFT', () => functions.take(later, items))
  })

  it('HOST_RETIRED', async () => {
    const items = withGrants(await claimMany(one, 2))
    await record.functions.retire('a', 'kim', 'sold')
    await record.refused('HOST_RETIRED', () => take(...items))
    expect(await record.states(items.map(({ id }) => id))).toEqual(['held', 'held'])
  })
})
