import { describe, expect, it } from 'vitest'
import type { Outcome, OutcomeKind } from '../../src/contract/outcomes.js'
import { eachRecord } from '../support/each-record.js'
import type { OpenRecord, TestNode } from '../support/record.js'
import { notSent, result, type SessionTools, sessionTools, terminal, unknown } from '../support/sessions.js'

// The outcome table: four outcomes, and all that can happen to a report of one. They never collapse.

let record: OpenRecord
let sessions: SessionTools
let node: TestNode
let open: Awaited<ReturnType<SessionTools['begin']>>

eachRecord(async (made) => {
  record = made
  await record.config('heartbeat_ms', 60_000)
  await record.config('stale_after_ms', 60_000)
  sessions = sessionTools(record)
  node = await sessions.join('a')
  await sessions.open()
  open = await sessions.begin(node)
})

const outcomes = { result, terminal, not_sent: notSent, outcome_unknown: unknown }
const kinds = Object.keys(outcomes) as OutcomeKind[]
const statusOf = { result: 'done', terminal: 'terminal', not_sent: 'not_sent', outcome_unknown: 'executing' }

const report = (outcome: Outcome, by = node, key = 'k') => sessions.report(open, outcome, by, { key })

/** The same kind with another body, and the other kinds. */
const otherContents: Record<OutcomeKind, Outcome[]> = {
  result: [{ kind: 'result', result: '{"n":1.1}' }, terminal, notSent, unknown],
  terminal: [{ kind: 'terminal', errorCode: 'gone', errorJson: '{}' }, result, notSent, unknown],
  not_sent: [{ kind: 'not_sent', errorCode: 'other' }, result, terminal, unknown],
  outcome_unknown: [{ kind: 'outcome_unknown', errorCode: 'other' }, result, terminal, notSent],
}

/** What became of it: `<answer> | <attempt's status> | <delivery's state and host> | <listed?>`. */
async function told(answer: Awaited<ReturnType<typeof report>>): Promise<string> {
  const row = await record.fields(open.id)
  const said = answer.ok ? `${answer.outcome}${answer.replayed ? ' again' : ''}` : answer.code
  const listed = (await sessions.unknownList()).includes(open.attempt)
  return `${said} | ${row['attempt_1_status']} | ${row['state']} at ${row['host']} | ${listed ? 'unknown' : '-'}`
}

type Told = Record<OutcomeKind, string>

/** As the live owner of an open attempt is answered, with the places of a not_sent where they differ. */
const applied = (notSentAt = 'delivered at a'): Told => ({
  result: 'result | done | delivered at a | -',
  terminal: 'terminal | terminal | delivered at a | -',
  not_sent: `not_sent | not_sent | ${notSentAt} | -`,
  outcome_unknown: 'outcome_unknown | executing | delivered at a | unknown',
})

const late = (rest: string): Told => {
  const each = `ALREADY_SETTLED | ${rest}`
  return { result: each, terminal: each, not_sent: each, outcome_unknown: each }
}

/** What a replay did not send may have been sent by the run before it. */
const afterReplay: Told = { ...applied(), not_sent: applied().outcome_unknown }

/** Before the report: what happens, who reports, and what is then so. */
const before: Record<string, { expected: Told; happens: () => Promise<TestNode> }> = {
  nothing: { expected: applied(), happens: async () => node },
  'it was reported unknown under another key': {
    expected: applied(),
    happens: async () => {
      await sessions.report(open, unknown, node)
      return node
    },
  },
  'a later process of its node joined, and reports': {
    expected: applied('queued at a'),
    happens: () => sessions.join('a', 'n1', 2),
  },
  'a later process of its node joined and claimed; the superseded one reports': {
    expected: applied('queued at a'),
    happens: async () => {
      await record.claimAll(await sessions.join('a', 'n1', 2))
      return node
    },
  },
  'a later process began it again, and reports': {
    expected: afterReplay,
    happens: async () => {
      const later = await sessions.join('a', 'n1', 2)
      await record.functions.begin(later, [{ ...open, idempotent: true }])
      return later
    },
  },
  'a later process began it again; the superseded one reports': {
    expected: afterReplay,
    happens: async () => {
      const later = await sessions.join('a', 'n1', 2)
      await record.functions.begin(later, [{ ...open, idempotent: true }])
      return node
    },
  },
  'its node went silent, and a peer found nothing to take over': {
    expected: applied(),
    happens: async () => {
      const peer = await sessions.join('a', 'n2')
      await sessions.silence(node)
      expect(await record.claimAll(peer)).toEqual([])
      expect(await sessions.unknownList()).toEqual([open.attempt])
      return node
    },
  },
  'its node went silent': {
    expected: applied(),
    happens: async () => {
      await sessions.silence(node)
      return node
    },
  },
  'its node left': {
    expected: applied('queued at a'),
    happens: async () => {
      await record.functions.leave(node)
      return node
    },
  },
  'its host was retired': {
    expected: applied('held at a'),
    happens: async () => {
      await record.functions.retire('a', 'kim', 'sold')
      return node
    },
  },
  'its session was rehomed': {
    expected: applied('queued at b'),
    happens: async () => {
      await sessions.join('b')
      await sessions.silence(node)
      await sessions.rehome()
      return node
    },
  },
  'it was found not sent, and its idle delivery taken over': {
    expected: late('not_sent | delivered at a | -'),
    happens: async () => {
      await sessions.report(open, notSent, node)
      const peer = await sessions.join('a', 'n2')
      await sessions.silence(node)
      expect(await record.claimAll(peer)).toMatchObject([{ id: open.id, how: 'takeover', epoch: 2 }])
      return node
    },
  },
  'someone resolved it as a result': {
    expected: late('done | delivered at a | -'),
    happens: async () => {
      const how = { as: 'result', evidence: 'x', force: true } as const
      await record.functions.resolveAttempt(open.attempt, how, 'kim')
      return node
    },
  },
  'someone resolved it as not sent': {
    expected: late('not_sent | queued at a | -'),
    happens: async () => {
      const how = { as: 'not_sent', evidence: 'x', force: true } as const
      await record.functions.resolveAttempt(open.attempt, how, 'kim')
      return node
    },
  },
}

describe.each(Object.entries(before))('before: %s', (_, { happens, expected }) => {
  it.each(kinds)(
    '%s is answered, recorded and listed as the table says; repeated, it is the same',
    async (kind) => {
      const by = await happens()
      const first = await report(outcomes[kind], by)
      expect(await told(first)).toBe(expected[kind])
      const settled = await record.dump()
      const again = await report(outcomes[kind], by)
      expect(await told(again)).toBe(first.ok ? expected[kind].replace(' |', ' again |') : expected[kind])
      for (const other of otherContents[kind]) {
        expect(await report(other, by)).toMatchObject({ ok: false, code: 'IDEMPOTENCY_MISMATCH' })
      }
      expect(await record.dump()).toEqual(settled)
    },
  )
})

/** After the report: what happens, and what it leaves as it was. */
const after: Record<string, { expected: Told; happens: () => Promise<unknown> }> = {
  'its node left, and a peer looks': {
    expected: applied(),
    happens: async () => {
      await record.functions.leave(node)
      await record.claimAll(await sessions.join('a', 'n2'))
    },
  },
  'its node went silent, and a peer looks': {
    expected: applied(),
    happens: async () => {
      const peer = await sessions.join('a', 'n2')
      await sessions.silence(node)
      await record.claimAll(peer)
    },
  },
  'a later process of its node looks': {
    expected: applied(),
    happens: async () => record.claimAll(await sessions.join('a', 'n1', 2)),
  },
  'its host is retired': {
    expected: applied('held at a'),
    happens: () => record.functions.retire('a', 'kim', 'sold'),
  },
  'its session is rehomed': {
    expected: applied('queued at b'),
    happens: async () => {
      await sessions.join('b')
      await sessions.silence(node)
      await sessions.rehome()
    },
  },
}

describe.each(Object.entries(after))('after: %s', (_, { happens, expected }) => {
  it.each(kinds)('%s stays as it was reported, and so does its answer', async (kind) => {
    expect(await told(await report(outcomes[kind]))).toBe(applied()[kind])
    await happens()
    const again = await report(outcomes[kind])
    expect(again).toMatchObject({ ok: true, replayed: true, outcome: kind })
    expect((await told(again)).replace(' again', '')).toBe(expected[kind])
    expect(await record.fields(open.id)).toMatchObject({ attempt_1_status: statusOf[kind] })
    // Every other outcome comes too late, except after an unknown one: that waits for it.
    for (const other of kinds.filter((each) => each !== kind && each !== 'outcome_unknown')) {
      const answer = await report(outcomes[other], node, `then ${other}`.replace(' ', '-'))
      if (kind === 'outcome_unknown') return expect(answer).toMatchObject({ ok: true, outcome: other })
      expect(answer).toMatchObject({ ok: false, code: 'ALREADY_SETTLED' })
    }
  })
})

describe('reports of an unknown outcome', () => {
  const field = async (name: string) => (await record.fields(open.id))[`attempt_1_unknown_${name}`]
  const say = (errorCode: string, key: string) => report({ kind: 'outcome_unknown', errorCode }, node, key)

  it('are counted, once a key; the latest reason and its time stand, the time in the list is the first', async () => {
    await say('timeout', 'u1')
    const since = await record.send('ZSCORE', record.keys.unknown, open.attempt)
    await say('timeout', 'u1')
    expect(await field('reports')).toBe('1')
    await record.send('HSET', record.keys.delivery(open.id), 'attempt_1_unknown_reported_at', 1)
    await say('probe_failed', 'u2')
    await say('probe_failed', 'u3')
    expect([await field('reports'), await field('reason')]).toEqual(['3', 'probe_failed'])
    expect(Number(await field('reported_at'))).toBeGreaterThan(1)
    expect([await field('at'), await record.send('ZSCORE', record.keys.unknown, open.attempt)]).toEqual([
      since,
      since,
    ])
  })

  it('stay counted when it is settled at last, and when it was listed by others first', async () => {
    const peer = await sessions.join('a', 'n2')
    await sessions.silence(node)
    await record.claimAll(peer)
    expect([await field('reports'), await field('reason')]).toEqual([undefined, 'stale'])
    await say('timeout', 'u1')
    await report(result, node, 'r')
    expect([await field('reports'), await field('reason')]).toEqual(['1', 'timeout'])
  })

  it('are told apart by their whole keys', async () => {
    for (const key of ['a=b', 'a', 'b', '=', 'a=b=c']) {
      expect(await say(`reason of ${key}`, key), key).toMatchObject({ ok: true })
    }
    expect(await field('reports')).toBe('5')
    expect(await say('reason of a', 'a')).toMatchObject({ ok: true, replayed: true })
    expect(await say('reason of a=b', 'a')).toMatchObject({ ok: false, code: 'IDEMPOTENCY_MISMATCH' })
  })
})
