import { afterEach, describe, expect, test, vi } from 'vitest'
import { shortLine } from '../../src/cli/log.js'
import { fields, table, visible, wantsColour } from '../../src/cli/output.js'

afterEach(() => {
  vi.unstubAllEnvs()
})

describe('colour', () => {
  test('on a terminal only', () => {
    vi.stubEnv('NO_COLOR', undefined)
    vi.stubEnv('TERM', 'xterm')
    expect(wantsColour({ isTTY: true })).toBe(true)
    expect(wantsColour({ isTTY: false })).toBe(false)
    expect(wantsColour({})).toBe(false)
  })

  test('never against NO_COLOR, nor on a dumb terminal', () => {
    vi.stubEnv('TERM', 'xterm')
    vi.stubEnv('NO_COLOR', '1')
    expect(wantsColour({ isTTY: true })).toBe(false)
    vi.stubEnv('NO_COLOR', undefined)
    vi.stubEnv('TERM', 'dumb')
    expect(wantsColour({ isTTY: true })).toBe(false)
  })
})

test('a table aligns, and leaves out columns without content', () => {
  const text = table(
    ['id', 'session', 'state'],
    [
      ['a', undefined, 'queued'],
      ['bcd', '', 'held'],
    ],
  )
  expect(text).toBe('ID   STATE\na    queued\nbcd  held')
})

test('fields leave out what is undefined', () => {
  expect(
    fields([
      ['a', 1],
      ['long name', 'x'],
      ['none', undefined],
    ]),
  ).toBe('a          1\nlong name  x')
})

test('control characters of the record are shown, not sent to the terminal', () => {
  expect(visible('a\u001b[31mb\nc\u009b\u202ed é')).toBe('a\\u001b[31mb\\u000ac\\u009b\\u202ed é')
  expect(table(['reason'], [['\u001b]0;title\u0007']])).not.toContain('\u001b')
})

test('a line of the log for people', () => {
  const line = JSON.stringify({ level: 40, time: 3_723_000, msg: 'no server yet', host: 'b 1', failures: 2 })
  expect(shortLine(line)).toBe('01:02:03 warn no server yet host="b 1" failures=2')
})
