import { describe, expect, it } from 'vitest'
import { isFenceScope } from '../../src/contract/ids.js'
import type { ClaimedDelivery } from '../../src/contract/steps.js'
import { eachRecord } from '../support/each-record.js'
import type { OpenRecord, TestNode } from '../support/record.js'
import { until } from '../support/until.js'

let record: OpenRecord
let node: TestNode

eachRecord(async (made) => {
  record = made
  node = await record.join('a', 'n1')
})

const idsOf = (deliveries: readonly ClaimedDelivery[]) => deliveries.map(({ id }) => id)
const howsOf = (deliveries: readonly ClaimedDelivery[]) => [...new Set(deliveries.map(({ how }) => how))]

/** One delivery of session `s` in conversation c1 on host a. */
async function sessionDelivery(): Promise<string> {
  await record.send('HSET', record.keys.session('s'), 'host', 'a')
  const [id = ''] = await record.acceptMany(1, { to: [{ session: 's' }] })
  return id
}

const scopes = ['hub', 'host:a', 'conversation:c1', 'session:s']

describe.each(scopes)('over %s', (scope) => {
  it('a pause parks in place, and serves again when it is lifted', async () => {
    const id = await sessionDelivery()
    const set = await record.functions.pause(scope, 'customer asked', 'kim')
    expect(set.fence).toBe(`pause:${scope}`)
    expect((await record.claim(node)).deliveries).toEqual([])
    expect(await record.fields(id)).toMatchObject({
      state: 'queued',
      parked_by: `pause:${scope}`,
      attempts: '0',
    })
    expect(await record.functions.why(id)).toMatchObject({ reason: 'fenced' })
    expect((await record.functions.why(id)).detail).toContain('customer asked')
    await record.checkInvariants()
    const lifted = await record.functions.lift('pause', scope, 'kim')
    expect(lifted).toMatchObject({ fence: `pause:${scope}`, hostsRung: 1 })
    const claimed = await record.claimAll(node)
    expect(claimed).toMatchObject([{ id, how: 'parked', state: 'claimed', epoch: 1 }])
  })

  it('a block fails what is queued, parked, or delivered and not begun, and names itself', async () => {
    const delivered = await sessionDelivery()
    const [handed] = await record.deliverAll(node)
    const parked = await sessionDelivery()
    await record.functions.pause('hub', 'wait', 'kim')
    await record.claimAll(node)
    await record.functions.lift('pause', 'hub', 'kim')
    const queued = await sessionDelivery()
    await record.functions.block(scope, 'never', 'kim')
    expect(await record.claimAll(node)).toEqual([])
    const item = { id: delivered, epoch: handed?.epoch ?? 0, grant: 'g' }
    expect(await record.functions.begin(node, [item])).toEqual([
      expect.objectContaining({ ok: false, code: 'BLOCKED', state: 'failed', detail: `block:${scope}` }),
    ])
    expect(await record.states([delivered, parked, queued])).toEqual(['failed', 'failed', 'failed'])
    for (const id of [delivered, parked, queued]) {
      expect(await record.fields(id)).toMatchObject({ failed_code: 'blocked', attempts: '0' })
      const why = await record.functions.why(id)
      expect(why.reason).toBe('failed')
      expect(why.detail).toContain(`block:${scope}`)
    }
  })

  it('does not touch what it does not cover', async () => {
    await record.functions.pause(scope.replace(/:.*/, ':other').replace('hub', 'host:other'), 'r', 'kim')
    const id = await sessionDelivery()
    expect(idsOf(await record.claimAll(node))).toEqual([id])
  })
})

describe('a fence set by hand', () => {
  it.each([
    ['plain text', 'customer asked'],
    ['text that looks like JSON', '{not json'],
    ['JSON without expiry', '{"reason":"r","until":null}'],
    ['JSON with a word as expiry', '{"reason":"r","until":"tomorrow"}'],
    ['a number', '17'],
  ])('holds with %s as reason', async (_, text) => {
    await record.send('HSET', record.keys.fences, 'pause:conversation:c1', text)
    const [id = ''] = await record.acceptMany(1)
    expect((await record.claim(node)).deliveries).toEqual([])
    expect((await record.functions.why(id)).detail).toContain(text)
    expect(await record.functions.lift('pause', 'conversation:c1', 'kim')).toMatchObject({ reason: text })
    expect(idsOf(await record.claimAll(node))).toEqual([id])
  })

  it('is not in the way under a field that no rule reads', async () => {
    for (const field of ['pauze:hub', 'pause', 'pause:everything', 'hub']) {
      await record.send('HSET', record.keys.fences, field, 'x')
    }
    const [id = ''] = await record.acceptMany(1)
    expect(idsOf(await record.claimAll(node))).toEqual([id])
  })

  it('is noticed within the look interval when it is deleted by hand', async () => {
    await record.functions.pause('conversation:c1', 'r', 'kim')
    const [id = ''] = await record.acceptMany(1)
    await record.claimAll(node)
    const looked = await record.claim(node)
    await record.send('HDEL', record.keys.fences, 'pause:conversation:c1')
    expect(looked.nextAtMs).toBeLessThanOrEqual(looked.nowMs + 5_000)
    const claimed = await until(
      async () => {
        const { deliveries } = await record.claim(node)
        return deliveries.length > 0 ? deliveries : undefined
      },
      { everyMs: 100, timeoutMs: 8_000 },
    )
    expect(idsOf(claimed)).toEqual([id])
  })
})

describe('expiry', () => {
  it('is told as the next time to claim, and lapses by itself', async () => {
    const untilMs = (await record.nowMs()) + 300
    await record.functions.pause('conversation:c1', 'r', 'kim', untilMs)
    const [id = ''] = await record.acceptMany(1)
    expect(await record.claim(node)).toMatchObject({ deliveries: [], nextAtMs: untilMs })
    expect(await record.claim(node)).toMatchObject({ deliveries: [], nextAtMs: untilMs })
    await until(async () => (await record.nowMs()) >= untilMs)
    expect(idsOf((await record.claim(node)).deliveries)).toEqual([id])
  })

  it('is noticed in time too when another lane was looked at before', async () => {
    await record.functions.pause('conversation:slow', 'r', 'kim')
    await record.acceptMany(1, { conversation: 'slow' })
    await record.claimAll(node)
    await record.claimAll(node)
    const untilMs = (await record.nowMs()) + 300
    await record.functions.pause('conversation:c1', 'r', 'kim', untilMs)
    const [id = ''] = await record.acceptMany(1)
    expect((await record.claim(node)).nextAtMs).toBe(untilMs)
    await until(async () => (await record.nowMs()) >= untilMs)
    expect(idsOf((await record.claim(node)).deliveries)).toEqual([id])
  })

  it('ends a block: what comes later is served', async () => {
    const untilMs = (await record.nowMs()) + 200
    await record.functions.block('conversation:c1', 'r', 'kim', untilMs)
    await until(async () => (await record.nowMs()) >= untilMs)
    const [id = ''] = await record.acceptMany(1)
    expect(idsOf(await record.claimAll(node))).toEqual([id])
  })

  it('must lie ahead', async () => {
    const past = (await record.nowMs()) - 1
    await record.refused('INVALID_ARGUMENT', () => record.functions.pause('hub', 'r', 'kim', past))
  })
})

describe('precedence', () => {
  it.each([
    ['pause:hub', 'block:session:s'],
    ['pause:session:s', 'block:hub'],
    ['pause:conversation:c1', 'block:conversation:c1'],
    ['hold:hub', 'block:host:a'],
  ])('lets a block win: %s and %s', async (weak, strong) => {
    const id = await sessionDelivery()
    await record.send('HSET', record.keys.fences, weak, 'x', strong, 'y')
    await record.claimAll(node)
    expect(await record.states([id])).toEqual(['failed'])
  })

  it('lets go only when the last of several pauses is lifted', async () => {
    const id = await sessionDelivery()
    for (const scope of scopes) await record.functions.pause(scope, 'r', 'kim')
    for (const scope of scopes) {
      expect(await record.claimAll(node)).toEqual([])
      await record.functions.lift('pause', scope, 'kim')
    }
    expect(idsOf(await record.claimAll(node))).toEqual([id])
  })
})

describe('order', () => {
  it('of a lane survives a pause: parked first, what came later behind, other lanes pass', async () => {
    await record.functions.pause('conversation:c1', 'r', 'kim')
    const first = [...(await record.acceptMany(1)), ...(await record.acceptMany(1))]
    const passing = await record.acceptMany(1, { conversation: 'c2' })
    expect(idsOf(await record.claimAll(node))).toEqual(passing)
    const second = await record.acceptMany(1)
    expect(await record.claimAll(node)).toEqual([])
    await record.functions.lift('pause', 'conversation:c1', 'kim')
    const third = await record.acceptMany(1)
    const other = await record.acceptMany(1, { conversation: 'c2' })
    const claimed = await record.claimAll(node, 2)
    expect(idsOf(claimed)).toEqual([...first, ...second, ...third, ...other])
    expect(claimed.map(({ how }) => how)).toEqual(['parked', 'parked', 'parked', 'new', 'new'])
  })

  it('keeps a lane behind its parked head while a claim is too small for all of it', async () => {
    await record.functions.pause('conversation:c1', 'r', 'kim')
    const ids: string[] = []
    for (let each = 0; each < 5; each += 1) ids.push(...(await record.acceptMany(1)))
    await record.claimAll(node)
    await record.functions.lift('pause', 'conversation:c1', 'kim')
    for (let each = 0; each < 3; each += 1) ids.push(...(await record.acceptMany(1)))
    const found: string[] = []
    for (let more = true; more; ) {
      const reply = await record.claim(node, 1)
      more = reply.more
      found.push(...idsOf(reply.deliveries))
    }
    expect(found).toEqual(ids)
  })

  it('keeps sessions of one conversation apart', async () => {
    await record.send('HSET', record.keys.session('s'), 'host', 'a')
    await record.send('HSET', record.keys.session('t'), 'host', 'a')
    await record.functions.pause('session:s', 'r', 'kim')
    const { deliveries } = await record.accept({ to: [{ session: 's' }, { session: 't' }, { host: 'a' }] })
    expect(idsOf(await record.claimAll(node))).toEqual([deliveries[1]?.id, deliveries[2]?.id])
  })

  it('lets another pause meet a lane on its way out', async () => {
    await record.functions.pause('conversation:c1', 'r', 'kim')
    const ids = await record.acceptMany(3)
    await record.claimAll(node)
    await record.functions.pause('host:a', 'r', 'kim')
    await record.functions.lift('pause', 'conversation:c1', 'kim')
    expect(await record.claimAll(node)).toEqual([])
    await record.functions.lift('pause', 'host:a', 'kim')
    expect(idsOf(await record.claimAll(node)).toSorted()).toEqual(ids.toSorted())
  })
})

describe('lift', () => {
  it('rings exactly the hosts with something parked', async () => {
    const others = { b: await record.join('b', 'n1'), c: await record.join('c', 'n1') }
    await record.acceptMany(1, { to: [{ host: 'a' }, { host: 'b' }] })
    await record.acceptMany(1, { conversation: 'c2', to: [{ host: 'c' }] })
    await record.functions.pause('conversation:c1', 'r', 'kim')
    for (const each of [node, others.b, others.c]) await record.claimAll(each)
    const { hostsRung } = await record.functions.lift('pause', 'conversation:c1', 'kim')
    expect(hostsRung).toBe(2)
    const rung = await Promise.all(['a', 'b', 'c'].map((host) => record.send('XLEN', record.keys.bell(host))))
    expect(rung).toEqual([1, 1, 0])
    const { bellId } = await record.claim(node)
    expect(bellId).not.toBe('0-0')
    expect(await record.send('XREAD', 'STREAMS', record.keys.bell('a'), bellId)).toBeNull()
    await record.claimAll(others.b)
    await record.functions.pause('hub', 'r', 'kim')
    expect(await record.functions.lift('pause', 'hub', 'kim')).toMatchObject({ hostsRung: 0 })
  })

  it('refuses a fence that does not stand', async () => {
    await record.refused('FENCE_NOT_FOUND', () => record.functions.lift('pause', 'hub', 'kim'))
    await record.functions.pause('hub', 'r', 'kim')
    await record.refused('FENCE_NOT_FOUND', () => record.functions.lift('block', 'hub', 'kim'))
    await record.functions.lift('pause', 'hub', 'kim')
    await record.refused('FENCE_NOT_FOUND', () => record.functions.lift('pause', 'hub', 'kim'))
  })
})

describe('setting', () => {
  it('answers the reason that stood there before', async () => {
    const first = await record.functions.pause('hub', 'one', 'kim')
    expect(first.replaced).toBeUndefined()
    const second = await record.functions.pause('hub', 'two', 'lee')
    expect(JSON.parse(second.replaced ?? '')).toMatchObject({ reason: 'one', actor: 'kim' })
  })

  it.each([
    '',
    'everything',
    'hub:x',
    'host:A',
    'host:',
    'host:a b',
    'conversation:',
    'conversation:é',
    `session:${'x'.repeat(256)}`,
    'lane:x',
  ])('refuses the scope %j', async (scope) => {
    await record.refused('INVALID_ARGUMENT', () => record.functions.pause(scope, 'r', 'kim'))
    await record.refused('INVALID_ARGUMENT', () => record.functions.block(scope, 'r', 'kim'))
    await record.refused('INVALID_ARGUMENT', () => record.functions.lift('pause', scope, 'kim'))
    expect(isFenceScope(scope)).toBe(false)
  })

  it.each(['hub', 'host:a.b-1', 'conversation:hub', 'conversation:a:b /%', 'session: '])(
    'takes the scope %j',
    async (scope) => {
      expect(await record.functions.pause(scope, 'r', 'kim')).toMatchObject({ fence: `pause:${scope}` })
      expect(isFenceScope(scope)).toBe(true)
    },
  )

  it('refuses no reason, no actor, another kind, and a bad time', async () => {
    const { functions } = record
    await record.refused('INVALID_ARGUMENT', () => functions.pause('hub', '', 'kim'))
    await record.refused('INVALID_ARGUMENT', () => functions.pause('hub', 'r', ''))
    await record.refused('INVALID_ARGUMENT', () => functions.pause('hub', 'x'.repeat(1025), 'kim'))
    await record.refused('INVALID_ARGUMENT', () => functions.pause('hub', 'r', 'kim', 1.5))
    await record.refused('INVALID_ARGUMENT', () => functions.lift('stop', 'hub', 'kim'))
  })
})

describe('much that is parked', () => {
  it('is looked at in bounded slices until all 200 lanes were seen', async () => {
    const ids: string[] = []
    await record.functions.pause('hub', 'r', 'kim')
    for (let lane = 0; lane < 200; lane += 1)
      ids.push(...(await record.acceptMany(1, { conversation: `c${lane}` })))
    await record.claimAll(node)
    expect(await record.send('ZCARD', record.keys.parked('a'))).toBe(200)
    // One more pause keeps every third lane where it is.
    for (let lane = 0; lane < 200; lane += 3)
      await record.functions.pause(`conversation:c${lane}`, 'r', 'kim')
    await record.functions.lift('pause', 'hub', 'kim')
    const found: ClaimedDelivery[] = []
    let claims = 0
    for (let more = true; more; claims += 1) {
      const reply = await record.claim(node, 1000)
      more = reply.more
      found.push(...reply.deliveries)
    }
    expect(idsOf(found).toSorted()).toEqual(ids.filter((_, lane) => lane % 3 !== 0).toSorted())
    expect(howsOf(found)).toEqual(['parked'])
    expect(claims).toBeGreaterThan(1)
    expect(claims).toBeLessThan(40)
    expect(await record.send('ZCARD', record.keys.parked('a'))).toBe(67)
  })

  it('in one lane comes out whole without a wait: 600 served', async () => {
    await record.config('max_payload_bytes', 1024)
    await record.functions.pause('hub', 'r', 'kim')
    const ids = await record.acceptMany(600)
    await record.claimAll(node)
    await record.functions.lift('pause', 'hub', 'kim')
    expect(await record.claimAll(node, 1000)).toHaveLength(ids.length)
  })

  it('in one lane fails whole under a block without a wait: 600', async () => {
    await record.functions.pause('hub', 'r', 'kim')
    const ids = await record.acceptMany(600)
    await record.claimAll(node)
    await record.functions.block('conversation:c1', 'r', 'kim')
    await record.functions.lift('pause', 'hub', 'kim')
    expect(await record.claimAll(node)).toEqual([])
    expect(new Set(await record.states(ids))).toEqual(new Set(['failed']))
    expect(await record.send('XLEN', record.keys.stream('a'))).toBe(0)
  })

  it('leaves no sign of parking on what it fails', async () => {
    await record.functions.pause('hub', 'r', 'kim')
    const [id = ''] = await record.acceptMany(1)
    await record.claimAll(node)
    await record.functions.block('hub', 'r', 'kim')
    await record.functions.lift('pause', 'hub', 'kim')
    await record.claimAll(node)
    const row = await record.fields(id)
    expect(row['state']).toBe('failed')
    expect(row['parked_by']).toBeUndefined()
  })

  it('is failed when its deliverBy passed meanwhile', async () => {
    await record.functions.pause('hub', 'r', 'kim')
    const deliverBy = (await record.nowMs()) + 200
    const [late = ''] = await record.acceptMany(1, { deliverBy })
    const [kept = ''] = await record.acceptMany(1)
    await record.claimAll(node)
    await until(async () => (await record.nowMs()) >= deliverBy)
    await record.functions.lift('pause', 'hub', 'kim')
    expect(idsOf(await record.claimAll(node))).toEqual([kept])
    expect(await record.fields(late)).toMatchObject({ state: 'failed', failed_code: 'expired' })
  })
})

it('a claim never grants anything after a pause was acknowledged (I3)', async () => {
  const others = await Promise.all(['n2', 'n3', 'n4'].map((name) => record.join('a', name)))
  const nodes = [node, ...others]
  await record.acceptMany(300)
  const granted: { at: string; count: number }[] = []
  let paused = ''
  await Promise.all([
    ...nodes.map(async (each) => {
      for (let claims = 0; claims < 12; claims += 1) {
        const reply = await record.claim(each, 5)
        granted.push({ at: reply.logId, count: reply.deliveries.length })
      }
    }),
    record.functions.pause('hub', 'r', 'kim').then(({ logId }) => {
      paused = logId
    }),
  ])
  const log = (await record.send('XRANGE', record.keys.log, `(${paused}`, '+')) as [string, string[]][]
  expect(log.filter(([, fields]) => fields.includes('claimed'))).toEqual([])
  expect(granted.length).toBe(48)
  expect(await record.claimAll(node)).toEqual([])
})
