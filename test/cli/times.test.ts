import { describe, expect, test } from 'vitest'
import { isoTime, parseDuration, parseTime, shortDuration } from '../../src/cli/times.js'

describe('parseDuration', () => {
  test.each([
    ['500ms', 500],
    ['30s', 30_000],
    ['1.5s', 1500],
    ['5m', 300_000],
    ['2h', 7_200_000],
    ['1d', 86_400_000],
    ['1200', 1200],
  ])('%s is %d ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms)
  })

  test.each(['', 's', '5 m', '-5s', '5w', '1e3', '99999999999999999d'])('%j is none', (text) => {
    expect(parseDuration(text)).toBeUndefined()
  })
})

describe('parseTime', () => {
  test.each([
    ['2030-01-02T03:04:05Z', 1_893_553_445_000],
    ['2030-01-02T03:04:05.250+02:00', 1_893_546_245_250],
    ['1893553445000', 1_893_553_445_000],
    ['5m', 300_007],
  ])('%s', (text, ms) => {
    expect(parseTime(text, 7)).toBe(ms)
  })

  test.each(['', 'tomorrow', '2030-01-02', '2030-01-02T03:04:05', '2030-13-02T03:04:05Z', '-1'])(
    '%j is none',
    (text) => {
      expect(parseTime(text, 7)).toBeUndefined()
    },
  )
})

test.each([
  [0, '0ms'],
  [-3, '0ms'],
  [999, '999ms'],
  [1540, '1.5s'],
  [59_990, '59.9s'],
  [61_000, '1m1s'],
  [3_720_000, '1h2m'],
  [90_000_000, '1d1h'],
])('%d ms reads %s', (ms, text) => {
  expect(shortDuration(ms)).toBe(text)
})

test('isoTime shows what is no time as it is', () => {
  expect(isoTime(0)).toBe('1970-01-01T00:00:00.000Z')
  expect(isoTime(Number.NaN)).toBe('NaN')
})
