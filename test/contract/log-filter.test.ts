import { expect, test } from 'vitest'
import {
  acceptedIn,
  checkedLogFilter,
  entryOfMessage,
  isWantedEntry,
  type LogEntry,
} from '../../src/contract/log-filter.js'

// Which entries of the log a filter wants.

const entry = (more: Partial<LogEntry> = {}): LogEntry => ({
  id: '1700-2',
  verb: 'claim',
  actor: 'a/n1',
  changes: [],
  hosts: [],
  details: {},
  ...more,
})

const moved = (...ids: string[]) => entry({ changes: [{ ids, from: 'queued', to: 'claimed' }] })

test.each([
  [{}, entry(), true],
  [{ verbs: ['ack', 'claim'] }, entry(), true],
  [{ verbs: ['ack'] }, entry(), false],
  [{ actor: 'a/n1' }, entry(), true],
  [{ actor: 'a' }, entry(), false],
  [{ host: 'a' }, entry(), true],
  [{ host: 'b' }, entry(), false],
  [{ host: 'b' }, entry({ hosts: ['a', 'b'] }), true],
  [{ host: 'b' }, entry({ hosts: '*' }), true],
  [{ host: 'b' }, entry({ details: { host: 'b' } }), true],
  [{ host: 'b' }, entry({ verb: 'pause', details: { scope: 'host:b' } }), true],
  [{ host: 'b' }, entry({ verb: 'lift', details: { fence: 'hold:host:b' } }), true],
  [{ host: 'b' }, entry({ verb: 'lift', details: { fence: 'hold:host:bb' } }), false],
  [{ about: '17-1' }, moved('17-1.1'), true],
  [{ about: '17-1' }, moved('17-1.1/2'), true],
  [{ about: '17-1' }, moved('17-10.1'), false],
  [{ about: '17-1.1' }, moved('17-1.1/2'), true],
  [{ about: '17-1.1/2' }, moved('17-1.1'), true],
  [{ about: '17-1.1' }, moved('17-1.10'), false],
  [{ about: 's 1' }, moved('session:s%201'), true],
  [{ about: 's 1' }, entry({ verb: 'rehome', details: { session: 's%201' } }), true],
  [{ about: 'e/1' }, moved('effect:e%2F1'), true],
  [{ about: 'host:b' }, entry({ verb: 'lift', details: { fence: 'hold:host:b' } }), true],
  [{ about: 'hold:host:b' }, entry({ verb: 'hold', details: { scope: 'host:b' } }), true],
  [{ about: 'hold:host:b' }, entry({ verb: 'pause', details: { scope: 'host:b' } }), false],
  [{ about: '1700-00000200' }, entry({ verb: 'accept', details: { key: 'k' } }), true],
  [{ about: '1700-00000200.7' }, entry({ verb: 'accept', details: { key: 'k' } }), true],
  [{ about: '1700-00000201' }, entry({ verb: 'accept', details: { key: 'k' } }), false],
  [{ about: '1700-00000201' }, entry({ verb: 'accept', details: { messages: '2' } }), true],
  [{ about: '17-1' }, entry({ verb: 'lost', details: { messages: '16-1 17-1' } }), true],
])('%j of %j: %s', (filter, given, wanted) => {
  expect(isWantedEntry(given, filter)).toBe(wanted)
})

test('messages and the entries that record them are found by each other', () => {
  expect(acceptedIn(entry())).toEqual([])
  expect(acceptedIn(entry({ verb: 'accept' }))).toEqual([])
  const ids = acceptedIn(entry({ verb: 'accept', details: { messages: '64' } }))
  expect(ids).toHaveLength(64)
  expect(ids.at(-1)).toBe('1700-00000263')
  for (const id of ids) expect(entryOfMessage(id)).toBe('1700-2')
})

test('a filter that names nothing is refused', () => {
  const good = { verbs: ['accept'], actor: 'kim', host: 'a', about: '1-0' }
  expect(checkedLogFilter(good)).toBe(good)
  for (const bad of [{ verbs: [] }, { verbs: ['A'] }, { host: 'A' }, { actor: '' }, { about: '\ud800' }]) {
    expect(() => checkedLogFilter(bad)).toThrow(/^INVALID_ARGUMENT/)
  }
})
