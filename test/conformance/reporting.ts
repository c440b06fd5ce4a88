import { expect, it } from 'vitest'
import type { Outcome } from '../../src/contract/outcomes.js'
import {
  done,
  itemRefused,
  type Make,
  never,
  notSent,
  type OpenAttempt,
  refused,
  type Speaker,
  type Stage,
  terminal,
  unknown,
} from './stage.js'

async function begun(
  make: Make,
  settings?: Parameters<Make>[0],
): Promise<{ stage: Stage; node: Speaker; open: OpenAttempt }> {
  const stage = await make(settings)
  const node = await stage.join()
  return { stage, node, open: await node.open(await node.takeOne('delivered')) }
}

/** JSON texts that lose something as soon as anybody reads and writes them again. */
const exactTexts = [
  '{"z":1,"a":12345678901234567890,"n":1.10,"e":1E2,"neg":-0,"s":"\\u00e9\\/\\ud83d\\ude00"}',
  '[ 1 ,\n\t2.0 ]',
  '"text"',
  'null',
  '0.10',
  '{}',
  '"é 😀 \\u0000 \u2028"',
]

/** Texts that a stricter reader refuses, or that are no JSON: what happened is recorded all the same. */
const hardTexts = [
  '{"a":1,"a":2}',
  `${'['.repeat(62)}1${']'.repeat(62)}`,
  `${'['.repeat(500)}1${']'.repeat(500)}`,
  '"\\ud800"',
  'no JSON at all',
  '\ufeff{}',
  '',
]

export function reporting(make: Make): void {
  it('a result is kept byte for byte, and settles delivery and message', async () => {
    const { stage, node, open } = await begun(make)
    expect(await node.conclude(open, done)).toEqual({
      id: open.id,
      ok: true,
      epoch: 1,
      state: 'delivered',
      attempt: 1,
      outcome: 'result',
    })
    const view = await stage.shown((hub) => hub.delivery(open.id))
    expect(view.attempts).toEqual([
      {
        id: open.attempt,
        status: 'done',
        node: 'a/n1',
        incarnation: 1,
        begunAt: expect.any(Number),
        settledAt: expect.any(Number),
        outcome: 'result',
        result: '{"n":1}',
      },
    ])
    expect(view.settledAt).toBeDefined()
    expect(await stage.shown((hub) => hub.why(open.id))).toMatchObject({ reason: 'done' })
    expect(await stage.shown((hub) => hub.counts())).toMatchObject({ done: 1, delivered: 1 })
  })

  it('results and error bodies come out as they went in, digit for digit', async () => {
    const stage = await make()
    const node = await stage.join()
    for (const text of exactTexts) {
      const [one, two, three] = [
        await node.open(await node.takeOne('delivered')),
        await node.open(await node.takeOne('delivered')),
        await node.open(await node.takeOne('delivered')),
      ]
      const answers = await node.report(
        { id: one.attempt, grant: one.grant, key: 'k1', outcome: { kind: 'result', result: text } },
        { id: two.attempt, grant: two.grant, key: 'k2', outcome: { ...terminal, errorJson: text } },
        { id: three.attempt, grant: three.grant, key: 'k3', outcome: { ...unknown, errorJson: text } },
      )
      expect(answers.every(({ ok }) => ok)).toBe(true)
      const views = await Promise.all(
        [one, two, three].map(({ id }) => stage.shown((hub) => hub.delivery(id))),
      )
      expect(views[0]?.attempts[0]).toMatchObject({ status: 'done', result: text })
      expect(views[1]?.attempts[0]).toMatchObject({ status: 'terminal', errorCode: 'gone', errorJson: text })
      expect(views[2]?.attempts[0]).toMatchObject({ status: 'executing', errorJson: text })
    }
  })

  it('no outcome is lost for its form, nor are those that travel with it', async () => {
    const stage = await make()
    const node = await stage.join()
    for (const text of hardTexts) {
      const [one, two, other] = [
        await node.open(await node.takeOne('delivered')),
        await node.open(await node.takeOne('delivered')),
        await node.open(await node.takeOne('delivered')),
      ]
      const answers = await node.report(
        { id: one.attempt, grant: one.grant, key: 'k1', outcome: { kind: 'result', result: text } },
        { id: two.attempt, grant: two.grant, key: 'k2', outcome: { ...terminal, errorJson: text } },
        { id: other.attempt, grant: other.grant, key: 'k3', outcome: done },
      )
      expect(answers, text.slice(0, 40)).toMatchObject([
        { ok: true, outcome: 'result' },
        { ok: true, outcome: 'terminal' },
        { ok: true, outcome: 'result' },
      ])
    }
  })

  it('an empty error body is none', async () => {
    const { stage, node, open } = await begun(make)
    await node.conclude(open, { ...terminal, errorJson: '' })
    const [attempt] = (await stage.shown((hub) => hub.delivery(open.id))).attempts
    expect(attempt).not.toHaveProperty('errorJson')
  })

  it('a terminal ends it for good, with code and body', async () => {
    const { stage, node, open } = await begun(make)
    expect(await node.conclude(open, terminal)).toMatchObject({ ok: true, outcome: 'terminal' })
    expect((await stage.shown((hub) => hub.delivery(open.id))).attempts).toMatchObject([
      { status: 'terminal', outcome: 'terminal', errorCode: 'gone', errorJson: '{"why":1}' },
    ])
    await itemRefused(stage, 'ALREADY_SETTLED', () => node.begin({ id: open.id, epoch: 1, grant: 'other' }))
  })

  it('an unknown outcome is listed and stays open, until the result comes', async () => {
    const { stage, node, open } = await begun(make)
    const answer = await node.conclude(open, { ...unknown, errorJson: '{"at":1}' })
    expect(answer).toMatchObject({ ok: true, attempt: 1, outcome: 'outcome_unknown' })
    expect(await stage.shown((hub) => hub.unknown())).toEqual([
      {
        id: open.attempt,
        sinceMs: expect.any(Number),
        reason: 'timeout',
        host: 'a',
        node: 'a/n1',
        begunAt: expect.any(Number),
      },
    ])
    await itemRefused(stage, 'GRANT_OPEN', () => node.begin({ id: open.id, epoch: 1, grant: 'other' }))
    expect(await node.conclude(open, done)).toMatchObject({ ok: true, outcome: 'result' })
    expect(await stage.shown((hub) => hub.unknown())).toEqual([])
    const before = await stage.record.dump()
    expect(await node.conclude(open, { ...unknown, errorJson: '{"at":1}' })).toMatchObject({
      ok: true,
      outcome: 'outcome_unknown',
      replayed: true,
    })
    expect(await stage.record.dump()).toEqual(before)
  })

  it.each([done, terminal, notSent, unknown])(
    'a duplicate of $kind is answered as recorded; other content under its key is refused',
    async (outcome) => {
      const { stage, node, open } = await begun(make)
      const first = await node.conclude(open, outcome, { key: 'same' })
      const before = await stage.record.dump()
      expect(await node.conclude(open, outcome, { key: 'same' })).toEqual({ ...first, replayed: true })
      expect(await stage.record.dump()).toEqual(before)
      const others: Outcome[] = [
        { kind: 'result', result: '"other"' },
        { kind: 'terminal', errorCode: 'other' },
        { kind: 'not_sent', errorCode: 'other' },
        { kind: 'outcome_unknown', errorCode: 'other' },
      ]
      for (const other of others) {
        await itemRefused(stage, 'IDEMPOTENCY_MISMATCH', async () => [
          await node.conclude(open, other, { key: 'same' }),
        ])
      }
    },
  )

  it('a late report is counted and kept, and overwrites nothing', async () => {
    const { stage, node, open } = await begun(make)
    await node.conclude(open, done)
    expect(await node.conclude(open, terminal)).toEqual({
      id: open.attempt,
      ok: false,
      code: 'ALREADY_SETTLED',
      epoch: 1,
      state: 'delivered',
      owner: 'n1',
      detail: 'result',
    })
    await itemRefused(stage, 'ALREADY_SETTLED', async () => [await node.conclude(open, terminal)])
    expect((await stage.shown((hub) => hub.delivery(open.id))).attempts).toMatchObject([
      { status: 'done', result: '{"n":1}', lateReports: 1 },
    ])
    expect((await stage.shown((hub) => hub.counts()))['late_reports']).toBe(1)
  })

  it('finds an attempt by delivery and grant, where its number was never learned', async () => {
    const { stage, node, open } = await begun(make)
    await itemRefused(stage, 'NOT_BEGUN', async () => [
      await node.conclude(open, notSent, { id: open.id, grant: 'never asked for' }),
    ])
    expect(await node.conclude(open, done, { id: open.id })).toMatchObject({
      id: open.id,
      ok: true,
      attempt: 1,
      outcome: 'result',
    })
  })

  it('refuses another grant, another node, and what is not there; the batch keeps its order', async () => {
    const { stage, node, open } = await begun(make)
    const other = await stage.join({ node: 'n2' })
    await itemRefused(stage, 'NOT_OWNER', async () => [await other.conclude(open, done)])
    const report = { id: open.attempt, grant: open.grant, outcome: done }
    const answers = await node.report(
      { ...report, key: 'k1', grant: 'stolen' },
      { ...report, key: 'k2', id: `${open.id}/2` },
      { ...report, key: 'k3', id: `${never}/1` },
      { ...report, key: 'k4' },
      { ...report, key: 'k5', id: `${open.id}/0` },
      { ...report, key: 'k4' },
    )
    expect(answers.map((each) => (each.ok ? (each.replayed ?? false) : each.code))).toEqual([
      'NOT_OWNER',
      'ATTEMPT_NOT_FOUND',
      'DELIVERY_NOT_FOUND',
      false,
      'ATTEMPT_NOT_FOUND',
      true,
    ])
    for (const bad of [{ grant: '' }, { key: '' }, { key: 'two words' }, { id: 'x' }]) {
      await refused(stage, 'INVALID_ARGUMENT', () => node.report({ ...report, key: 'k', ...bad }))
    }
    await refused(stage, 'INVALID_ARGUMENT', () =>
      node.report({ ...report, key: 'k', outcome: { kind: 'terminal', errorCode: '' } }),
    )
    await refused(stage, 'INVALID_ARGUMENT', () => node.report())
  })

  it('refuses a body over max_result_bytes, item by item, however large', async () => {
    const { stage, node, open } = await begun(make, { max_result_bytes: 256 })
    const result = (length: number): Outcome => ({ kind: 'result', result: `"${'x'.repeat(length - 2)}"` })
    const large: Outcome = { ...unknown, errorJson: `"${'x'.repeat(1_500_000)}"` }
    await itemRefused(stage, 'RESULT_TOO_LARGE', async () => [await node.conclude(open, result(257))])
    await itemRefused(stage, 'RESULT_TOO_LARGE', async () => [await node.conclude(open, large)])
    expect(await node.conclude(open, result(256))).toMatchObject({ ok: true })
  })

  it('takes a full batch of the largest results', async () => {
    const stage = await make()
    const node = await stage.join()
    await stage.acceptMany(8)
    const opened: OpenAttempt[] = []
    for (const each of await node.deliverAll()) opened.push(await node.open(each))
    const outcome: Outcome = { kind: 'result', result: `"${'x'.repeat(262_142)}"` }
    const answers = await node.report(
      ...opened.map(({ attempt, grant }) => ({ id: attempt, grant, key: grant, outcome })),
    )
    expect(answers.map(({ ok }) => ok)).toEqual(opened.map(() => true))
  })

  it('not_sent of anyone but the live owner sends it back to the queue, once', async () => {
    const { stage, node, open } = await begun(make)
    const later = await stage.join({ incarnation: 2 })
    expect(await node.conclude(open, notSent)).toMatchObject({ ok: true, state: 'queued', epoch: 2 })
    const before = await stage.record.dump()
    expect(await node.conclude(open, notSent)).toMatchObject({ ok: true, replayed: true })
    expect(await stage.record.dump()).toEqual(before)
    const [again] = await later.deliverAll()
    expect(again).toMatchObject({ id: open.id, epoch: 3, how: 'new', attempts: 1 })
    const second = await later.open(again ?? { id: '', epoch: 0 })
    expect(second.attempt).toBe(`${open.id}/2`)
    expect(await later.conclude(second, done)).toMatchObject({ ok: true, attempt: 2 })
    expect((await stage.shown((hub) => hub.delivery(open.id))).attempts).toMatchObject([
      { status: 'not_sent', errorCode: 'busy' },
      { status: 'done' },
    ])
  })
}
