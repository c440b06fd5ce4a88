import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { MessageInput } from '../../src/contract/message.js'
import type { Outcome } from '../../src/contract/outcomes.js'
import { makeRecord, type TestNode, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

let server: TestServer
const records: TestRecord[] = []

beforeAll(async () => {
  server = await startTestServer()
})

afterAll(async () => {
  for (const record of records) await record.close()
  await server?.stop()
})

async function open(name: string): Promise<TestRecord> {
  const record = await makeRecord(server, name)
  records.push(record)
  return record
}

const base: MessageInput = {
  key: 'order-17',
  conversation: 'c1',
  sender: 's1',
  to: [{ host: 'h1' }, { host: 'h2' }],
  payload: '{"n":1}',
}

describe('faults.md 25: one key', () => {
  it('with the same bytes gets the first answer, states current', async () => {
    const record = await open('same')
    const first = await record.hub.accept(base)
    expect(first).toMatchObject({ replayed: false, fanOut: 'complete' })
    const before = await record.dump()
    const again = await record.hub.accept({ ...base, payload: Buffer.from('{"n":1}') })
    expect(again).toEqual({ ...first, replayed: true })
    expect(await record.dump()).toEqual(before)
    await record.deliverAll(await record.join('h1', 'n1'))
    const later = await record.hub.accept(base)
    expect(later.deliveries.map(({ id, state }) => [id, state])).toEqual([
      [first.deliveries[0]?.id, 'delivered'],
      [first.deliveries[1]?.id, 'queued'],
    ])
  })

  it('with recipients in another order, named twice, or other deadlines is the same message', async () => {
    const record = await open('set')
    const first = await record.hub.accept(base)
    const before = await record.dump()
    const same: Partial<MessageInput>[] = [
      { to: [{ host: 'h2' }, { host: 'h1' }] },
      { to: [{ host: 'h1' }, { host: 'h2' }, { host: 'h1' }, { host: 'h2' }] },
      { deliverBy: Date.now() + 60_000 },
      { executeBy: new Date(Date.now() + 90_000), deliverBy: 1 },
    ]
    for (const change of same) {
      expect(await record.hub.accept({ ...base, ...change })).toEqual({ ...first, replayed: true })
    }
    expect(await record.dump()).toEqual(before)
  })

  it('with anything else changed is refused, and the first is untouched', async () => {
    const record = await open('other')
    const first = await record.hub.accept(base)
    const other: Partial<MessageInput>[] = [
      { payload: '{"n":2}' },
      { payload: '{"n":1} ' },
      { payload: '{"n": 1}' },
      { payload: '' },
      { to: [{ host: 'h1' }] },
      { to: [{ host: 'h1' }, { host: 'h3' }] },
      { to: [{ host: 'h1' }, { host: 'h2' }, { host: 'h3' }] },
      { to: [] },
      { conversation: 'c2' },
      { sender: 's2' },
      { parent: 'p1' },
    ]
    for (const change of other) {
      await record.refused('IDEMPOTENCY_MISMATCH', () => record.hub.accept({ ...base, ...change }))
    }
    expect(await record.hub.accept(base)).toEqual({ ...first, replayed: true })
    await record.checkInvariants()
  })

  it('is looked up before every other check', async () => {
    const record = await open('first-check')
    const first = await record.hub.accept(base)
    await record.config('max_payload_bytes', 1)
    await record.config('max_recipients', 1)
    await record.config('open_hosts', 0)
    expect(await record.hub.accept(base)).toEqual({ ...first, replayed: true })
    await record.refused('PAYLOAD_TOO_LARGE', () => record.hub.accept({ ...base, key: 'new' }))
  })

  it('fifty times at once makes one message, and everyone gets its ids', async () => {
    const record = await open('parallel')
    await record.config('inline_fan_out', 1)
    const answers = await Promise.all(Array.from({ length: 50 }, () => record.hub.accept(base)))
    expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1)
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1)
    const ids = answers.map(({ deliveries }) => deliveries.map(({ id, host }) => `${id} ${host}`).join(' '))
    expect(new Set(ids).size).toBe(1)
    expect(Object.keys(await record.dump()).filter((key) => key.startsWith(':delivery:'))).toHaveLength(2)
    await record.checkInvariants()
  })

  it('under fifty different contents at once: one wins, the others are refused', async () => {
    const record = await open('contest')
    const all = Array.from({ length: 50 }, (_, n) => record.hub.accept({ ...base, payload: `${n}` }))
    const answers = await Promise.allSettled(all)
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const answer of answers) {
      if (answer.status === 'rejected') expect(answer.reason).toMatchObject({ code: 'IDEMPOTENCY_MISMATCH' })
    }
    await record.checkInvariants()
  })
})

const result = (text: string): Outcome => ({ kind: 'result', result: text })
const unknown = (errorCode: string): Outcome => ({ kind: 'outcome_unknown', errorCode })

interface Begun {
  readonly record: TestRecord
  readonly node: TestNode
  readonly id: string
  readonly attempt: string
  report(key: string, outcome: Outcome, by?: TestNode): ReturnType<TestRecord['functions']['report']>
}

async function begun(name: string): Promise<Begun> {
  const record = await open(name)
  const node = await record.join('h1', 'n1')
  await record.accept({ to: [{ host: 'h1' }] })
  const [delivered] = await record.deliverAll(node)
  if (delivered === undefined) throw new Error('nothing was claimed')
  const { id, attempt, grant } = await record.begin(node, delivered, 'g1')
  return {
    record,
    node,
    id,
    attempt,
    report: (key, outcome, by = node) => record.functions.report(by, [{ id: attempt, grant, key, outcome }]),
  }
}

const outcomes: Readonly<Record<string, Outcome>> = {
  result: result('{"a":1.10}'),
  terminal: { kind: 'terminal', errorCode: 'gone', errorJson: '{"why":"x"}' },
  not_sent: { kind: 'not_sent', errorCode: 'busy', errorJson: '{"n":1}' },
  outcome_unknown: { kind: 'outcome_unknown', errorCode: 'timed_out', errorJson: '{"t":1}' },
}

describe('faults.md 26: a report is repeated', () => {
  for (const [kind, outcome] of Object.entries(outcomes)) {
    it(`${kind} under its key: the recorded answer, and nothing changes`, async () => {
      const { record, report } = await begun(`repeat-${kind.replace('_', '-')}`)
      const [first] = await report('k1', outcome)
      expect(first).toMatchObject({ ok: true, outcome: kind })
      const before = await record.dump()
      for (let time = 0; time < 3; time += 1) {
        expect(await report('k1', outcome)).toEqual([{ ...first, replayed: true }])
      }
      expect(await record.dump()).toEqual(before)
      await record.checkInvariants()
    })

    it(`${kind} under its key with other content: IDEMPOTENCY_MISMATCH, and nothing changes`, async () => {
      const { record, report } = await begun(`mismatch-${kind.replace('_', '-')}`)
      await report('k1', outcome)
      const changed = { ...outcome, ...(outcome.kind === 'result' ? { result: '2' } : { errorJson: '2' }) }
      await record.itemRefused('IDEMPOTENCY_MISMATCH', () => report('k1', changed))
      for (const [other, content] of Object.entries(outcomes)) {
        if (other === kind) continue
        await record.itemRefused('IDEMPOTENCY_MISMATCH', () => report('k1', content))
      }
      await record.checkInvariants()
    })
  }

  it('unknown first and the result later are two reports; both can be repeated', async () => {
    const { record, report, attempt } = await begun('two-reports')
    await report('k1', unknown('timed_out'))
    expect(await record.hub.unknown()).toMatchObject([{ id: attempt, reason: 'timed_out' }])
    expect(await report('k2', result('1'))).toMatchObject([{ ok: true, outcome: 'result' }])
    expect(await record.hub.unknown()).toEqual([])
    const before = await record.dump()
    expect(await report('k1', unknown('timed_out'))).toMatchObject([{ ok: true, replayed: true }])
    expect(await report('k2', result('1'))).toMatchObject([{ ok: true, outcome: 'result', replayed: true }])
    expect(await record.dump()).toEqual(before)
  })

  it('a first unknown, repeated after a second one, is a repeat still', async () => {
    const { record, report } = await begun('two-unknowns')
    await report('k1', unknown('timed_out'))
    await report('k2', unknown('executor_died'))
    const before = await record.dump()
    expect(await report('k1', unknown('timed_out'))).toMatchObject([{ ok: true, replayed: true }])
    await record.itemRefused('IDEMPOTENCY_MISMATCH', () => report('k1', unknown('another')))
    expect(await record.dump()).toEqual(before)
  })
})

describe('contract 4, rules 3 and 9: reports that come too late, or from others', () => {
  for (const first of ['result', 'terminal'] as const) {
    it(`after a ${first} every other report is ALREADY_SETTLED, counted, and changes no outcome`, async () => {
      const { record, report, id } = await begun(`late-${first}`)
      await report('k1', outcomes[first] ?? result('1'))
      const settled = await record.fields(id)
      let late = 0
      for (const [kind, outcome] of Object.entries(outcomes)) {
        late += 1
        const [answer] = await report(`late-${kind}`, outcome)
        expect(answer).toMatchObject({ ok: false, code: 'ALREADY_SETTLED', detail: first })
        expect(await record.fields(id)).toMatchObject({ ...settled, attempt_1_late: String(late) })
        expect((await record.hub.counts())['late_reports']).toBe(late)
      }
      const before = await record.dump()
      await report('late-result', outcomes['result'] ?? result('1'))
      expect(await record.dump(), 'a repeated late report is counted once').toEqual(before)
      await record.checkInvariants()
    })
  }

  it('a result after not_sent leaves the attempt closed and the next one alone', async () => {
    const { record, report, id, node } = await begun('late-after-not-sent')
    await report('k1', outcomes['not_sent'] ?? result('1'))
    const second = await record.begin(node, { id, epoch: 1 }, 'g2')
    expect(second.attempt).toBe(`${id}/2`)
    expect(await report('k2', result('1'))).toMatchObject([{ ok: false, code: 'ALREADY_SETTLED' }])
    const row = await record.fields(id)
    expect(row).toMatchObject({
      attempt_1_status: 'not_sent',
      attempt_1_late: '1',
      attempt_2_status: 'executing',
    })
    expect(row).not.toHaveProperty('attempt_2_late')
    await record.checkInvariants()
  })

  it('another node, another grant, another attempt: refused, nothing changes', async () => {
    const { record, report, id, attempt, node } = await begun('others')
    const other = await record.join('h1', 'n2')
    await record.itemRefused('NOT_OWNER', () => report('k1', result('1'), other))
    const send = (about: string, grant: string) =>
      record.functions.report(node, [{ id: about, grant, key: 'k', outcome: result('1') }])
    await record.itemRefused('NOT_OWNER', () => send(attempt, 'g2'))
    await record.itemRefused('NOT_BEGUN', () => send(id, 'g2'))
    await record.itemRefused('ATTEMPT_NOT_FOUND', () => send(`${id}/2`, 'g1'))
    await record.itemRefused('ATTEMPT_NOT_FOUND', () => send(`${id}/0`, 'g1'))
    await record.itemRefused('DELIVERY_NOT_FOUND', () => send('1-000001.1/1', 'g1'))
    expect(await send(id, 'g1')).toMatchObject([{ ok: true, outcome: 'result' }])
  })
})
