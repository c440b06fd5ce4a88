import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { notSent, type Outcome, terminal } from '../../src/contract/outcomes.js'
import type { Attempt, ExecuteFunction } from '../../src/node/executor.js'
import { functionExecutor } from '../../src/node/executors/function.js'

const attempt: Attempt = {
  id: 'd1/1',
  deliveryId: 'd1',
  number: 1,
  replay: false,
  epoch: 1,
  hub: 'hf',
  host: 'h1',
  node: 'n1',
  target: { host: 'h1' },
  message: { id: 'm1', conversation: 'c1', sender: 's1', sha256: '' },
  payload: Buffer.from('x'),
  signal: new AbortController().signal,
}

function run(execute: ExecuteFunction, maxResultBytes?: number): Promise<Outcome> {
  const options = maxResultBytes === undefined ? {} : { maxResultBytes }
  return functionExecutor(execute, options).run(attempt, { childStarted: async () => {} })
}

function thrown(value: unknown): Promise<Outcome> {
  return run(() => {
    throw value
  })
}

describe('a value', () => {
  it.each<[string, unknown, string]>([
    ['an object', { a: [1, '😀'] }, '{"a":[1,"😀"]}'],
    ['undefined', undefined, 'null'],
    ['a function', () => 1, 'null'],
    ['a promise', Promise.resolve('x'), '"x"'],
    ['a lone surrogate', '\ud83d', '"\\ud83d"'],
  ])('%s becomes a result', async (_, value, result) => {
    expect(await run(() => value)).toEqual({ kind: 'result', result })
  })

  it.each<[string, unknown]>([
    ['a BigInt', 1n],
    ['a cycle', cycle()],
    ['a toJSON that throws', { toJSON: () => terminalThrow() }],
  ])('%s executed all the same', async (_, value) => {
    const outcome = await run(() => value)
    expect(outcome).toEqual({ kind: 'result', result: expect.stringContaining('{"omitted":"') })
  })

  it('is left out when its text is over the limit, counted in bytes', async () => {
    expect(await run(() => 'é'.repeat(4), 10)).toEqual({ kind: 'result', result: '"éééé"' })
    expect(await run(() => 'é'.repeat(5), 10)).toEqual({
      kind: 'result',
      result: '{"omitted":"result of 12 bytes is over the limit of 10"}',
    })
  })
})

describe('an error that is returned', () => {
  it.each<[string, unknown]>([
    ['of this realm', new TypeError('cut')],
    ['of another one', runInNewContext(`new TypeError('cut')`)],
    ['of a promise', Promise.resolve(new TypeError('cut'))],
  ])('%s counts as thrown', async (_, value) => {
    expect(await run(() => value)).toEqual({
      kind: 'outcome_unknown',
      errorCode: 'TypeError',
      errorJson: '{"message":"cut","name":"TypeError"}',
    })
  })
})

describe('a typed outcome', () => {
  it('is handed on as a plain object', async () => {
    const outcome = await run(async () => notSent('prompt contention', { retry: true }))
    expect(outcome).toStrictEqual({
      kind: 'not_sent',
      errorCode: 'prompt contention',
      errorJson: '{"retry":true}',
    })
    expect(Object.getOwnPropertySymbols(outcome)).toEqual([])
    expect(await run(() => terminal('target_session_missing'))).toStrictEqual({
      kind: 'terminal',
      errorCode: 'target_session_missing',
    })
  })

  it('keeps its code printable and its particulars within the limit', async () => {
    expect(await run(() => notSent('a\nü'))).toMatchObject({ kind: 'not_sent', errorCode: 'a??' })
    expect(await run(() => terminal(''))).toMatchObject({ kind: 'terminal', errorCode: 'error' })
    expect(await run(() => terminal('x'.repeat(300)))).toMatchObject({ errorCode: 'x'.repeat(255) })
    expect(await run(() => terminal('big', 'y'.repeat(300)), 100)).toMatchObject({
      errorJson: '{"omitted":"result of 302 bytes is over the limit of 100"}',
    })
  })

  it('cannot be imitated by its fields', async () => {
    const outcome = await run(() => ({ kind: 'not_sent', errorCode: 'x' }))
    expect(outcome).toEqual({ kind: 'result', result: '{"kind":"not_sent","errorCode":"x"}' })
  })
})

describe('an exception', () => {
  it('is an unknown outcome, thrown or rejected', async () => {
    const error = Object.assign(new TypeError('broken'), { code: 'E_X' })
    const outcome = {
      kind: 'outcome_unknown',
      errorCode: 'TypeError',
      errorJson: '{"message":"broken","name":"TypeError","code":"E_X"}',
    }
    expect(await thrown(error)).toEqual(outcome)
    expect(await run(() => Promise.reject(error))).toEqual(outcome)
  })

  it('may be thrown as a typed outcome, and still proves nothing', async () => {
    expect(await thrown(notSent('no'))).toMatchObject({ kind: 'outcome_unknown', errorCode: 'error' })
  })

  it.each<[string, unknown, string]>([
    ['text', 'broken', '{"message":"broken"}'],
    ['undefined', undefined, '{"message":"undefined"}'],
    ['a symbol', Symbol('s'), '{"message":"Symbol(s)"}'],
    ['an object without prototype', Object.create(null), '{"message":"what was thrown cannot be read"}'],
  ])('may be %s', async (_, value, errorJson) => {
    expect(await thrown(value)).toEqual({ kind: 'outcome_unknown', errorCode: 'error', errorJson })
  })

  it('has a message cut between characters and a printable code', async () => {
    const error = new Error(`${'m'.repeat(2047)}😀`)
    error.name = 'Fehler Ä\u0000'
    const outcome = await thrown(error)
    expect(outcome).toMatchObject({ kind: 'outcome_unknown', errorCode: 'Fehler ??' })
    expect(JSON.parse(('errorJson' in outcome && outcome.errorJson) || '')).toMatchObject({
      message: 'm'.repeat(2047),
    })
  })
})

function cycle(): unknown {
  const value: { self?: unknown } = {}
  value.self = value
  return value
}

function terminalThrow(): never {
  throw new Error('no JSON')
}
