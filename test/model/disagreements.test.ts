import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

/**
 * Where the functions once departed from the contract, as the smallest sequences that showed it. The one
 * marked `it.fails` still does: once it is put right it turns red here, and becomes an ordinary test.
 */
describe('what the functions once did otherwise than the contract says:', () => {
  let server: TestServer
  let record: OpenRecord

  beforeAll(async () => {
    server = await startTestServer()
  })
  beforeEach(async () => {
    record = await openRecord(server)
    // Nothing becomes stale by itself, and crashes count to the limit soon.
    await record.config('heartbeat_ms', 3_600_000)
    await record.config('stale_after_ms', 36_000_000)
    await record.config('max_takeovers', 2)
    return () => record.close()
  })
  afterAll(() => server?.stop())

  it('a clean leave hands over at once, wherever an earlier look at the peers had stopped (section 8)', async () => {
    const one = await record.join('a', 'n1')
    const two = await record.join('a', 'n2')
    const [first = ''] = await record.acceptMany(2)
    await record.deliverAll(two)
    await record.functions.leave(two)
    await record.claim(one, 1) // takes the first of two over; the walk stops behind it
    await record.functions.leave(one)
    const again = await record.join('a', 'n2', 2)
    const found = await record.claimAll(again)
    expect(found.map(({ id }) => id)).toContain(first)
  })

  it('a clean leave after a recovered crash is not counted (section 8)', async () => {
    const crashed = await record.join('a', 'n1')
    await record.acceptMany(2)
    await record.claimAll(crashed)
    const leaver = await record.join('a', 'n1', 2)
    const [resumed] = (await record.claim(leaver)).deliveries // counted: one crash
    await record.functions.leave(leaver)
    const third = await record.join('a', 'n1', 3)
    await record.claimAll(third)
    expect((await record.fields(resumed?.id ?? ''))['state']).toBe('claimed') // it is held as poison
  })

  it('a takeover of what a crashed process left is counted, though its successor left cleanly (section 8)', async () => {
    const crashed = await record.join('a', 'n1')
    const [id = ''] = await record.acceptMany(1)
    await record.claimAll(crashed)
    await record.functions.leave(await record.join('a', 'n1', 2))
    await record.claimAll(await record.join('a', 'n2'))
    expect((await record.fields(id))['takeovers']).toBe('1')
  })

  it.fails('a report key used for another attempt of the node is a mismatch (section 4, rule 9)', async () => {
    const node = await record.join('a', 'n1')
    await record.acceptMany(2)
    const [one, two] = await record.deliverAll(node)
    const results = []
    for (const [at, delivery] of [one, two].entries()) {
      if (delivery === undefined) throw new Error('two were accepted')
      const { attempt, grant } = await record.begin(node, delivery)
      const outcome = { kind: 'result', result: `"${at}"` } as const
      results.push(...(await record.functions.report(node, [{ id: attempt, grant, key: 'same', outcome }])))
    }
    expect(results[1]).toMatchObject({ ok: false, code: 'IDEMPOTENCY_MISMATCH' })
  })

  it('deliverBy counts until the first claim, not for a redrive (sections 3 and 7)', async () => {
    const node = await record.join('a', 'n1')
    const [id = ''] = await record.acceptMany(1)
    const [delivery] = await record.deliverAll(node)
    if (delivery === undefined) throw new Error('one was accepted')
    const { attempt, grant } = await record.begin(node, delivery)
    await record.send('HSET', record.keys.delivery(id), 'deliver_by', 1) // it passes now
    const later = await record.join('a', 'n1', 2)
    const outcome = { kind: 'not_sent', errorCode: 'nothing left' } as const
    await record.functions.report(later, [{ id: attempt, grant, key: 'k', outcome }])
    await record.claimAll(later)
    expect(await record.states([id])).toEqual(['claimed']) // it is failed: expired, with an attempt made
  })

  it('a refuse is answered ok only to the one whose refuse it repeats (section 3)', async () => {
    const node = await record.join('a', 'n1')
    const other = await record.join('a', 'n2')
    const [id = ''] = await record.acceptMany(1)
    const [claimed] = await record.claimAll(node)
    const refused = { id, epoch: claimed?.epoch ?? 0, verdict: 'failed', reason: 'payload_corrupt' } as const
    await record.functions.refuse(node, [refused])
    const [answer] = await record.functions.refuse(other, [{ ...refused, epoch: 0 }])
    expect(answer).toMatchObject({ ok: false })
  })
})
