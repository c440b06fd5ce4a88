import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type Case, judge } from '../../examples/demo/judge.mjs'
import type { Mark } from '../../examples/demo/marks.mjs'
import type { AttemptView, DeliveryView } from '../../src/contract/delivery-views.js'

// The judge must bite: a record that is wrong in one point is found wrong in that point.

const id = '1764430000000-000000.1'
const payload = Buffer.from('hello')
const digest = createHash('sha256').update(payload).digest('hex')
const result = JSON.stringify({ stdout: digest })

const begin: Mark = { kind: 'begin', attempt: `${id}/1`, delivery: id, epoch: 1, node: 'h/n', digest: '' }
const end: Mark = { ...begin, kind: 'end', digest }
const done: AttemptView = {
  id: `${id}/1`,
  status: 'done',
  node: 'h/n',
  incarnation: 1,
  begunAt: 1,
  outcome: 'result',
  result,
}

function rowOf(row: Partial<DeliveryView>): DeliveryView {
  return {
    id,
    message: '1764430000000-000000',
    host: 'h',
    conversation: 'c1',
    state: 'delivered',
    epoch: 1,
    takeovers: 0,
    attempts: [],
    timeline: [],
    ...row,
  }
}

function judged(row: Partial<DeliveryView> | undefined, more: Partial<Case> = {}) {
  const sent = {
    key: 'k',
    conversation: 'c1',
    payload,
    hosts: ['h'],
    message: '1764430000000-000000',
    deliveries: [{ id, host: 'h' }],
  }
  const rows = row === undefined ? [] : [rowOf(row)]
  const verdict = judge({ sent: [sent], rows, unknown: [], marks: [], killed: [], blocked: [], ...more })
  return { ...verdict, kinds: verdict.findings.map(({ kind }) => kind), state: verdict.states.get(id)?.state }
}

test('done once, with the right digest, is as promised', () => {
  const verdict = judged({ attempts: [done] }, { marks: [begin, end] })
  expect(verdict).toMatchObject({ kinds: [], state: 'done', blocked: 0 })
})

test.each([
  ['no row', undefined, {}, 'lost'],
  ['no outcome, in no list', { state: 'queued' }, {}, 'lost'],
  ['held without a reason', { state: 'held' }, {}, 'lost'],
  ['begun twice', { attempts: [done] }, { marks: [begin, end, { ...begin, attempt: `${id}/2` }] }, 'twice'],
  ['done without marks', { attempts: [done] }, {}, 'wrong'],
  ['another digest', { attempts: [done] }, { marks: [begin, { ...end, digest: 'f'.repeat(64) }] }, 'wrong'],
] satisfies [string, Partial<DeliveryView> | undefined, Partial<Case>, string][])(
  '%s is found',
  (...given) => {
    const [, row, more, kind] = given
    expect(judged(row, more).kinds).toEqual([kind])
  },
)

describe('failed under a block', () => {
  const failed = { state: 'failed', reason: 'blocked block:conversation:c1' } as const

  test('is neither lost nor unfinished, and counted', () => {
    expect(judged(failed, { blocked: ['c1'] })).toMatchObject({ kinds: [], state: 'failed', blocked: 1 })
  })

  test('with a begin mark is wrong', () => {
    expect(judged(failed, { blocked: ['c1'], marks: [begin] }).kinds).toEqual(['wrong'])
  })

  test.each([
    ['where no block stood', failed, []],
    ['by another block', { ...failed, reason: 'blocked block:hub' }, ['c1']],
    ['for another reason', { ...failed, reason: 'expired deliver_by' }, ['c1']],
  ])('%s is wrong', (_, row, blocked) => {
    expect(judged(row, { blocked })).toMatchObject({ kinds: ['wrong'], blocked: 0 })
  })
})
