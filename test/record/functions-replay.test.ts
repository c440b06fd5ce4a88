import { describe, expect, it } from 'vitest'
import { eachRecord } from '../support/each-record.js'
import type { OpenRecord, TestNode } from '../support/record.js'
import {
  notSent,
  result,
  type SessionTools,
  sessionTools,
  terminal,
  the,
  unknown,
} from '../support/sessions.js'

// Begin by a handler that is declared idempotent: a later process begins again what an earlier one left open.

let record: OpenRecord
let sessions: SessionTools
let node: TestNode

eachRecord(async (made) => {
  record = made
  await record.config('heartbeat_ms', 60_000)
  await record.config('stale_after_ms', 60_000)
  sessions = sessionTools(record)
  node = await sessions.join('a')
  await sessions.open()
})

type Open = Awaited<ReturnType<SessionTools['begin']>>

const again = (
  by: TestNode,
  open: Open,
  changes: { epoch?: number; grant?: string; idempotent?: boolean } = {},
) => {
  const { id, epoch, grant } = open
  return record.functions.begin(by, [{ id, epoch, grant, idempotent: true, ...changes }])
}
const refusedAgain = (code: string, ...args: Parameters<typeof again>) =>
  record.itemRefused(code, () => again(...args))

/** Begun by incarnation 1; incarnation 2 has joined since, after a crash. */
async function crashed(): Promise<{ open: Open; later: TestNode }> {
  const open = await sessions.begin(node)
  return { open, later: await sessions.join('a', 'n1', 2) }
}

/** A probe speaks of both runs. */
const probed = { kind: 'not_sent', errorCode: 'probe_not_executed' } as const

describe('a later process of the node', () => {
  it('begins the same grant again: the same attempt, replayed, under a new epoch, listed unknown no more', async () => {
    const { open, later } = await crashed()
    await record.claimAll(later)
    expect(await sessions.unknownList()).toEqual([open.attempt])
    expect(await again(later, open)).toEqual([
      { id: open.id, ok: true, epoch: 2, state: 'delivered', attempt: 1, replayed: true },
    ])
    const row = await record.fields(open.id)
    expect(row).toMatchObject({
      attempts: '1',
      attempt_status: 'executing',
      owner: 'n1',
      incarnation: '2',
      takeovers: '1',
      attempt_1_incarnation: '2',
      attempt_1_replayed_at: expect.stringMatching(/^\d+$/),
    })
    for (const gone of ['unknown_at', 'unknown_reason', 'ended_at'])
      expect(row).not.toHaveProperty(`attempt_1_${gone}`)
    expect(await sessions.unknownList()).toEqual([])
    expect(await record.functions.why(open.id)).toMatchObject({ reason: 'executing' })
  })

  it('that repeats it is answered the same, under the old epoch and the new, and nothing changes', async () => {
    const { open, later } = await crashed()
    const first = await again(later, open)
    const before = await record.dump()
    expect(await again(later, open)).toEqual(first)
    expect(await again(later, open, { epoch: 2 })).toEqual(first)
    expect(await record.dump()).toEqual(before)
  })

  it('that died before it was answered: the next one learns the epoch from the refusal, and begins', async () => {
    const { open, later } = await crashed()
    await again(later, open)
    const last = await sessions.join('a', 'n1', 3)
    expect(await refusedAgain('STALE_EPOCH', last, open)).toMatchObject({ epoch: 2, owner: 'n1' })
    expect(await again(last, open, { epoch: 2 })).toMatchObject([{ ok: true, epoch: 3, attempt: 1 }])
    expect(await record.fields(open.id)).toMatchObject({ takeovers: '2' })
  })

  it.each([
    ['result', result, 'done'],
    ['terminal', terminal, 'terminal'],
    ['not_sent by a probe', probed, 'not_sent'],
  ] as const)('settles as %s under the old grant', async (_, outcome, status) => {
    const { open, later } = await crashed()
    await again(later, open)
    expect(await sessions.report(open, outcome, later)).toMatchObject({ ok: true, state: 'delivered' })
    expect(await record.fields(open.id)).toMatchObject({ attempt_1_status: status, takeovers: '0' })
    if (status !== 'not_sent') return
    expect((await record.begin(later, { id: open.id, epoch: 2 })).attempt).toBe(`${open.id}/2`)
  })

  it('that sent nothing speaks of itself alone: the outcome is unknown again (rule 7)', async () => {
    const { open, later } = await crashed()
    await again(later, open)
    const answer = await sessions.report(open, notSent, later, { key: 'k' })
    expect(answer).toMatchObject({ ok: true, outcome: 'outcome_unknown' })
    expect(await sessions.unknownList()).toEqual([open.attempt])
    expect(await record.fields(open.id)).toMatchObject({
      attempt_status: 'executing',
      attempt_1_unknown_reason: 'busy',
    })
    const before = await record.dump()
    expect(await sessions.report(open, notSent, later, { key: 'k' })).toEqual({ ...answer, replayed: true })
    expect(await record.dump()).toEqual(before)
  })

  it('may report it unknown again: it is listed again, and earlier words stay counted', async () => {
    const open = await sessions.begin(node)
    await sessions.report(open, unknown, node, { ended: true })
    const later = await sessions.join('a', 'n1', 2)
    await again(later, open)
    expect(await record.fields(open.id)).not.toHaveProperty('attempt_1_ended_at')
    expect(await sessions.report(open, { kind: 'outcome_unknown', errorCode: 'cut' }, later)).toMatchObject({
      ok: true,
    })
    expect(await sessions.unknownList()).toEqual([open.attempt])
    expect(await record.fields(open.id)).toMatchObject({
      attempt_1_unknown_reason: 'cut',
      attempt_1_unknown_reports: '2',
    })
  })

  it('holds it: nobody rehomes, resolves or takes over while it lives', async () => {
    const { open, later } = await crashed()
    await again(later, open)
    await sessions.join('b')
    const peer = await sessions.join('a', 'n2')
    await record.refused('EXECUTING', () => record.functions.rehome('s', 'b', 'kim', 'r'))
    await record.refused('EXECUTING', () =>
      record.functions.resolveAttempt(open.attempt, { as: 'result', evidence: 'x' }, 'kim'),
    )
    expect(await record.claimAll(peer)).toEqual([])
    expect(await sessions.unknownList()).toEqual([])
  })

  it('runs on, whatever its earlier process says of its own end', async () => {
    const { open, later } = await crashed()
    await again(later, open)
    expect(await sessions.report(open, unknown, node, { ended: true })).toMatchObject({ ok: true })
    await record.refused('EXECUTING', () =>
      record.functions.resolveAttempt(open.attempt, { as: 'not_sent', evidence: 'x' }, 'kim'),
    )
    expect(await sessions.report(open, result, later)).toMatchObject({ ok: true, outcome: 'result' })
  })

  it('settles what its earlier process reports meanwhile only once', async () => {
    const { open, later } = await crashed()
    await again(later, open)
    expect(await sessions.report(open, result, node)).toMatchObject({ ok: true, outcome: 'result' })
    expect(await sessions.report(open, result, later)).toMatchObject({ ok: false, code: 'ALREADY_SETTLED' })
  })
})

describe('is refused', () => {
  it('to another node of the host, to another grant, without the declaration, and under another epoch', async () => {
    const { open, later } = await crashed()
    const peer = await sessions.join('a', 'n2', 7)
    await refusedAgain('NOT_OWNER', peer, open)
    await refusedAgain('NOT_OWNER', later, open, { grant: 'other' })
    await refusedAgain('NOT_OWNER', later, open, { idempotent: false })
    await refusedAgain('STALE_EPOCH', later, open, { epoch: 2 })
    await refusedAgain('STALE_EPOCH', later, open, { epoch: 0 })
    expect(await again(later, open)).toMatchObject([{ ok: true }])
    await refusedAgain('GRANT_OPEN', later, open, { grant: 'other', epoch: 2 })
  })

  it('to an earlier process, whichever begins last', async () => {
    const { open, later } = await crashed()
    await record.refused('SUPERSEDED', () => again(node, open))
    await again(later, open)
    await record.refused('SUPERSEDED', () => again(node, open, { epoch: 2 }))
    await record.functions.leave(later)
    await record.refused('LEFT', () => again(later, open))
  })

  it('not to the process itself: it repeats its begin, which is no replay', async () => {
    const open = await sessions.begin(node)
    const before = await record.dump()
    expect(await again(node, open)).toEqual([
      { id: open.id, ok: true, epoch: 1, state: 'delivered', attempt: 1 },
    ])
    expect(await record.dump()).toEqual(before)
  })

  it.each([
    ['pause', 'PAUSED'],
    ['hold', 'HELD'],
    ['block', 'BLOCKED'],
  ] as const)('under a %s, and nothing moves by it; after the lift it begins', async (kind, code) => {
    const { open, later } = await crashed()
    await record.functions[kind]('conversation:c1', 'r', 'kim')
    expect(await refusedAgain(code, later, open)).toMatchObject({ state: 'delivered', epoch: 1 })
    await record.functions.lift(kind, 'conversation:c1', 'kim')
    expect(await again(later, open)).toMatchObject([{ ok: true, replayed: true }])
  })

  it.each([
    ['PAUSED', { reason: 'reload', terminal: false }],
    ['HELD', { reason: 'disable', terminal: true }],
  ] as const)('%s while its session is closed so', async (code, closing) => {
    const { open, later } = await crashed()
    await sessions.close('s', closing)
    await refusedAgain(code, later, open)
    await sessions.open()
    expect(await again(later, open)).toMatchObject([{ ok: true }])
  })

  it('NOT_OWNER once its session lives elsewhere', async () => {
    const { open, later } = await crashed()
    await sessions.join('b')
    await sessions.rehome()
    expect(await refusedAgain('NOT_OWNER', later, open)).toMatchObject({
      detail: 'its session lives on host b',
    })
    expect(await sessions.report(open, notSent, later)).toMatchObject({ ok: true, state: 'queued' })
  })

  it('TOO_MANY_CRASHES at max_takeovers; it stays listed until someone resolves it', async () => {
    await record.config('max_takeovers', 3)
    const open = await sessions.begin(node)
    let { epoch } = open
    for (let incarnation = 2; incarnation <= 3; incarnation += 1) {
      const by = await sessions.join('a', 'n1', incarnation)
      const [answer] = await again(by, open, { epoch })
      epoch = answer?.epoch ?? 0
    }
    expect(await record.fields(open.id)).toMatchObject({ takeovers: '2', epoch: '3' })
    const last = await sessions.join('a', 'n1', 4)
    await record.claimAll(last)
    await refusedAgain('TOO_MANY_CRASHES', last, open, { epoch })
    expect(await sessions.unknownList()).toEqual([open.attempt])
  })

  it('not for clean leaves: they do not count', async () => {
    await record.config('max_takeovers', 1)
    const open = await sessions.begin(node)
    await record.functions.leave(node)
    const second = await sessions.join('a', 'n1', 2)
    expect(await again(second, open)).toMatchObject([{ ok: true, epoch: 2 }])
    expect(await record.fields(open.id)).toMatchObject({ takeovers: '0' })
    const third = await sessions.join('a', 'n1', 3)
    await refusedAgain('TOO_MANY_CRASHES', third, open, { epoch: 2 })
  })

  it.each([
    ['result', 'delivered'],
    ['terminal', 'delivered'],
    ['not_sent', 'queued'],
  ] as const)('ALREADY_SETTLED once someone resolved it as %s', async (as, state) => {
    const { open, later } = await crashed()
    await record.functions.resolveAttempt(open.attempt, { as, evidence: 'x' }, 'kim')
    expect(await refusedAgain('ALREADY_SETTLED', later, open)).toMatchObject({ state })
    if (state !== 'queued') return
    await record.functions.holdDelivery(open.id, 'kim', 'look at it')
    await refusedAgain('ALREADY_SETTLED', later, open)
    await record.functions.release(open.id, 'kim', 'go on')
    const second = await record.begin(later, the(await record.deliverAll(later), open.id))
    await refusedAgain('ALREADY_SETTLED', later, open)
    expect(await sessions.report(second, result, later)).toMatchObject({ ok: true, attempt: 2 })
  })
})
