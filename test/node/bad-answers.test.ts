import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { AttemptView } from '../../src/contract/delivery-views.js'
import type { Outcome } from '../../src/contract/outcomes.js'
import type { Prober } from '../../src/node/executor.js'
import {
  attemptsOf,
  crashedAttempt,
  doneAttempt,
  leftIn,
  restart,
  unknownReports,
  workFlows,
} from '../support/crashes.js'
import { startHubServer } from '../support/http.js'
import { startNode, stopNodes } from '../support/nodes.js'
import { makeRecord, settlement, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

// What an executor or a prober of one's own answers that is no outcome, or a badly formed one.

let server: TestServer
let record: TestRecord
let hub: Awaited<ReturnType<typeof startHubServer>>
let names = 0

beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server?.stop())
beforeEach(async () => {
  names += 1
  record = await makeRecord(server, `answers${names}`, { heartbeat_ms: 100, max_result_bytes: 1000 })
  hub = await startHubServer(record)
})
afterEach(async () => {
  await stopNodes()
  await hub.close()
  await record.checkInvariants()
  await record.close()
})

const unreadable = {
  get kind() {
    throw new Error('no')
  },
}

/** What was answered, and the attempt that comes of it. */
const answers: readonly [name: string, answer: unknown, attempt: object][] = [
  ['umlaut', { kind: 'terminal', errorCode: 'nö' }, { status: 'terminal', errorCode: 'n?' }],
  ['long', { kind: 'terminal', errorCode: 'x'.repeat(300) }, { errorCode: 'x'.repeat(255) }],
  ['no-code', { kind: 'terminal' }, { status: 'terminal', errorCode: 'error' }],
  ['doubt', { kind: 'outcome_unknown', errorCode: 'ü'.repeat(300) }, { unknownReason: '?'.repeat(255) }],
  [
    'body',
    { kind: 'terminal', errorCode: 'e', errorJson: '{no' },
    { errorJson: omitted('errorJson was no') },
  ],
  ['no-json', { kind: 'result', result: '{no' }, { status: 'done', result: omitted('result was no JSON') }],
  ['half', { kind: 'result', result: '"\ud800"' }, { status: 'done', result: omitted('result was no JSON') }],
  ['object', { kind: 'result', result: { a: 1 } }, { status: 'done', result: omitted('was an object') }],
  ['none', { kind: 'result' }, { status: 'done', result: omitted('was undefined') }],
  ['large', { kind: 'result', result: `"${'x'.repeat(2000)}"` }, { status: 'done', result: omitted('2002') }],
  ['good', { kind: 'result', result: '{"n":1.10}' }, { status: 'done', result: '{"n":1.10}' }],
  ...[undefined, null, 'done', 7, {}, { kind: 'ok' }, { kind: 'constructor' }, unreadable].map(
    (answer, at): [string, unknown, object] => [`nothing-${at}`, answer, noOutcome('executor_answer')],
  ),
]

function omitted(why: string): unknown {
  return expect.stringMatching(new RegExp(`^\\{"omitted":".*${why}.*"\\}$`))
}

function noOutcome(code: string): object {
  return { status: 'executing', unknownReason: code, endedAt: expect.any(Number) }
}

describe.each(['redis', 'http'] as const)('an executor, over %s', (transport) => {
  it('each answer in its form, all of one batch; the next process starts', async () => {
    const reach = transport === 'http' ? { http: { url: hub.url } } : { redis: server.url }
    const options = { ...reach, hub: record.name, host: 'h1', node: 'a', concurrency: answers.length }
    const inLine: (() => void)[] = []
    /** All of them end in the same turn. */
    const together = () =>
      new Promise<void>((resolve) => {
        inLine.push(resolve)
        if (inLine.length === answers.length) for (const go of inLine) go()
      })
    const byName = new Map(answers.map(([name, answer]) => [name, answer]))
    const executor = {
      run: async ({ payload }: { payload: Buffer }) => {
        await together()
        return byName.get(payload.toString()) as Outcome
      },
    }
    const { node } = await startNode({ ...options, executor })
    const ids = new Map<string, string>()
    for (const [name] of answers) {
      const { deliveries } = await record.accept({ conversation: name, to: [{ host: 'h1' }], payload: name })
      ids.set(name, deliveries[0]?.id ?? '')
    }
    const attempts: [string, AttemptView | undefined][] = []
    for (const [name, , attempt] of answers) {
      const id = ids.get(name) ?? ''
      if ('unknownReason' in attempt) await unknownReports(record, { id }, 1)
      else await settlement(record, id)
      attempts.push([name, (await attemptsOf(record, { id }))[0]])
    }
    expect(attempts).toEqual(answers.map(([name, , attempt]) => [name, expect.objectContaining(attempt)]))
    const doubts = answers.filter(([, , attempt]) => 'unknownReason' in attempt)
    expect(await record.hub.unknown()).toHaveLength(doubts.length)
    await node.stop()
  })
})

describe('a prober', () => {
  it.each([
    ['a code that is not printable', { kind: 'terminal', errorCode: 'nö' }, { status: 'terminal' }],
    [
      'a result that is no JSON',
      { kind: 'result', result: 'x' },
      { status: 'done', result: omitted('no JSON') },
    ],
    ['nothing', undefined, noOutcome('probe_answer')],
    ['a word', 'done', noOutcome('probe_answer')],
  ])('that answers %s', async (_, answer, expected) => {
    const crash = await crashedAttempt(record)
    const prober: Prober = { ask: async () => answer as Outcome }
    const { node } = await restart(server, record, crash, { probe: prober })
    if ('unknownReason' in expected) await unknownReports(record, crash, 1)
    else await settlement(record, crash.id)
    expect((await attemptsOf(record, crash))[0]).toMatchObject(expected)
    await node.stop()
  })
})

describe.each(['redis', 'http'] as const)(
  'a mirror that holds badly formed outcomes, over %s',
  (transport) => {
    it('the node starts; they are unknown, with evidence, and the others are as they were', async () => {
      const bad = await crashedAttempt(record, { unsent: { kind: 'terminal', errorCode: 'nö' } })
      const message = { conversation: 'c2' }
      const good = await crashedAttempt(
        record,
        { message, unsent: { kind: 'result', result: '1' } },
        bad.mirror,
      )
      const doubt = await crashedAttempt(
        record,
        {
          message: { conversation: 'c3' },
          unsent: { kind: 'outcome_unknown', errorCode: 'x'.repeat(300) },
        },
        bad.mirror,
      )
      const reach = transport === 'http' ? { redis: undefined, http: { url: hub.url } } : {}
      // The first start says what is stored as well; each says again what is unknown.
      for (const reports of [2, 3]) {
        const { node } = await restart(server, record, bad, reach)
        await workFlows(record, `later-${reports}`)
        expect(await doneAttempt(record, good)).toMatchObject({ result: '1' })
        for (const crash of [bad, doubt]) {
          const attempt = await unknownReports(record, crash, reports)
          expect(attempt).toMatchObject(noOutcome('report_refused'))
          expect(JSON.parse(attempt.errorJson ?? '')).toMatchObject({
            refused: expect.stringContaining('printable ASCII'),
            outcome: crash === bad ? { kind: 'terminal', errorCode: 'nö' } : { kind: 'outcome_unknown' },
          })
        }
        await node.stop()
      }
      expect(await record.hub.unknown()).toHaveLength(2)
      expect(await leftIn(record, bad)).toEqual({ copy: true, grants: 2, reports: 0 })
    })
  },
)
