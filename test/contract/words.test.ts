import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { backoffMs } from '../../src/contract/backoff.js'
import {
  type ErrorCode,
  errorCatalogue,
  HoldfastError,
  isErrorCode,
  isHoldfastError,
} from '../../src/contract/errors.js'
import {
  isDeliveryId,
  isHostId,
  isHubName,
  isId,
  isMessageId,
  messageOf,
  parseAttemptId,
} from '../../src/contract/ids.js'
import { isTypedOutcome, notSent, outcomeKinds, terminal } from '../../src/contract/outcomes.js'
import { settings } from '../../src/contract/settings.js'
import { deliveryStates, transitions } from '../../src/contract/states.js'
import { sweepNames, sweepSetting } from '../../src/contract/sweeps.js'

describe('ids', () => {
  it.each(['a', '0', 'a-b', 'a.b_c-d', 'x'.repeat(63)])('%j is a host and a hub name', (text) => {
    expect([isHostId(text), isHubName(text)]).toEqual([true, true])
  })

  it.each([
    '',
    'A',
    'Example',
    'example.',
    '-a',
    'a-',
    'ex%61mple',
    '{a}',
    'a*',
    'a b',
    'a\0',
    'a\n',
    'é',
    'x'.repeat(64),
  ])('%j is none', (text) => {
    expect([isHostId(text), isHubName(text)]).toEqual([false, false])
  })

  it('others are printable ASCII of 1 to 255 bytes', () => {
    for (const text of ['a', ' ', '~', '/%{}*', 'x'.repeat(255)]) expect(isId(text)).toBe(true)
    for (const text of ['', '\t', 'a\n', 'é', '\x7f', 'x'.repeat(256)]) expect(isId(text)).toBe(false)
  })

  it('of messages, deliveries and attempts hold each other', () => {
    expect(isMessageId('1-000000')).toBe(true)
    expect(isDeliveryId('1-000000.12')).toBe(true)
    expect(messageOf('1-000000.12')).toBe('1-000000')
    expect(parseAttemptId('1-000000.12/3')).toEqual({ delivery: '1-000000.12', number: 3 })
    for (const text of ['', '1', '1-0', '1-0.', '1-0.1/', 'x-0.1/2', '1-0.1/2\n'])
      expect(parseAttemptId(text)).toBeUndefined()
    for (const text of ['1-0.1.1', '1-0', '-0.1']) expect(isDeliveryId(text)).toBe(false)
  })
})

describe('errors', () => {
  it('have a status, a cause and a next step', () => {
    for (const [code, entry] of Object.entries(errorCatalogue)) {
      expect(code).toMatch(/^[A-Z][A-Z_]+$/)
      expect([400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 500, 503], code).toContain(entry.status)
      expect(entry.cause.length, code).toBeGreaterThan(10)
      expect(entry.next.length, code).toBeGreaterThan(10)
    }
  })

  it('start with their code and say what to do', () => {
    for (const code of Object.keys(errorCatalogue) as ErrorCode[]) {
      const error = new HoldfastError(code)
      expect(error.message).toBe(`${code} ${errorCatalogue[code].cause}`)
      expect(error.next).toBe(errorCatalogue[code].next)
    }
    const error = new HoldfastError('HELD', 'it is', { next: 'wait', cause: new Error('x') })
    expect([
      error.message,
      error.next,
      isHoldfastError(error, 'HELD'),
      isHoldfastError(error, 'LEFT'),
    ]).toEqual(['HELD it is', 'wait', true, false])
    expect(isHoldfastError(new Error('HELD x'))).toBe(false)
    expect(isErrorCode('toString')).toBe(false)
  })
})

describe('outcomes', () => {
  it('are four, and a typed one is made only by its maker', () => {
    expect(outcomeKinds).toEqual(['result', 'terminal', 'not_sent', 'outcome_unknown'])
    expect(notSent('busy')).toMatchObject({ kind: 'not_sent', errorCode: 'busy' })
    expect(terminal('gone', { a: 1 })).toMatchObject({
      kind: 'terminal',
      errorCode: 'gone',
      errorJson: '{"a":1}',
    })
    expect(isTypedOutcome(notSent('busy'))).toBe(true)
    expect(isTypedOutcome(terminal('gone'))).toBe(true)
    for (const value of [
      { kind: 'not_sent', errorCode: 'x' },
      JSON.parse(JSON.stringify(terminal('x'))),
      null,
      'x',
    ]) {
      expect(isTypedOutcome(value)).toBe(false)
    }
  })
})

describe('states', () => {
  it('each transition is of known states, named once', () => {
    const names = transitions.map(({ from, to }) => `${from} > ${to}`)
    expect(new Set(names).size).toBe(names.length)
    for (const { from, to, by } of transitions) {
      expect(['none', ...deliveryStates]).toContain(from)
      expect(deliveryStates).toContain(to)
      expect(by).not.toBe('')
    }
  })

  it.each([
    ['queued', 'held', 'a claim under a hold, an operator, a retired host'],
    ['claimed', 'held', 'poison, a corrupt payload, an operator, a retired host'],
    ['mirrored', 'held', 'the same'],
    ['delivered', 'held', 'a begin under a hold, exhausted redrives'],
    ['claimed', 'failed', 'a refusal of the node, a cancel'],
    ['mirrored', 'failed', 'the same'],
    ['delivered', 'failed', 'a block, a deadline, a cancel'],
    ['held', 'queued', 'release, lift'],
    ['held', 'held', 'an operator that holds what is held'],
    ['held', 'failed', 'reject, cancel'],
    ['delivered', 'queued', 'not_sent by anyone but the live owner, a rehome'],
    ['claimed', 'queued', 'a rehome'],
    ['mirrored', 'queued', 'the same'],
    ['unknown', 'queued', 'an operator, with evidence'],
    ['unknown', 'failed', 'the same'],
  ])('%s may become %s: %s', (from, to) => {
    expect(transitions.some((each) => each.from === from && each.to === to)).toBe(true)
  })

  it.each([
    ['failed', 'queued'],
    ['queued', 'delivered'],
    ['delivered', 'claimed'],
    ['unknown', 'delivered'],
    ['unknown', 'claimed'],
    ['held', 'claimed'],
    ['held', 'delivered'],
  ])('%s never becomes %s', (from, to) => {
    expect(transitions.some((each) => each.from === from && each.to === to)).toBe(false)
  })

  it('every state can be reached', () => {
    const reached = new Set<string>(['none'])
    for (let before = -1; before !== reached.size; ) {
      before = reached.size
      for (const { from, to } of transitions) if (reached.has(from)) reached.add(to)
    }
    expect([...reached].sort()).toEqual(['none', ...deliveryStates].sort())
  })
})

it('settings have defaults that they would take', () => {
  for (const [name, { default: value, least, meaning }] of Object.entries(settings)) {
    expect(name).toMatch(/^[a-z_]+$/)
    expect(value, name).toBeGreaterThanOrEqual(least)
    expect(meaning, name).not.toBe('')
  }
  expect(settings.stale_after_ms.default).toBeGreaterThan(2 * settings.heartbeat_ms.default)
})

it('backoff grows to its ceiling, with jitter on the upper half', () => {
  const backoff = { leastMs: 100, mostMs: 1000 }
  const range = (failures: number) => [0, 1].map((random) => backoffMs(backoff, failures, () => random))
  expect([1, 2, 3, 4, 5, 1000].map(range)).toEqual([
    [50, 100],
    [100, 200],
    [200, 400],
    [400, 800],
    [500, 1000],
    [500, 1000],
  ])
})

it('every sweep has its interval among the settings, and is on docs/sweeps.md', () => {
  const page = readFileSync(new URL('../../docs/sweeps.md', import.meta.url), 'utf8')
  const named = Object.keys(settings).filter((name) => name.startsWith('sweep_'))
  expect(named.sort()).toEqual(sweepNames.map(sweepSetting).sort())
  for (const name of sweepNames) {
    expect(page.match(new RegExp(`^\\| \`${name}\` `, 'gm')), name).toHaveLength(1)
  }
})
