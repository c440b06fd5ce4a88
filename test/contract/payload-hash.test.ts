import { describe, expect, it } from 'vitest'
import { isHoldfastError } from '../../src/contract/errors.js'
import { type HashOptions, hashPayload } from '../../src/contract/payload-hash.js'
import { sha256 } from '../support/record.js'

function expectInvalid(value: unknown, options?: HashOptions): void {
  let caught: unknown
  try {
    hashPayload(value, options)
  } catch (error) {
    caught = error
  }
  expect(isHoldfastError(caught, 'INVALID_ARGUMENT'), String(caught)).toBe(true)
}

describe('hashPayload', () => {
  it('is SHA-256 of the canonical text, lower-case hex', () => {
    expect(hashPayload({ b: [1, 'x', null, true], a: { d: 0.1, c: 'é\n' } })).toBe(
      sha256('{"a":{"c":"é\\n","d":0.1},"b":[1,"x",null,true]}'),
    )
  })

  it('takes no notice of the order of members, at any depth', () => {
    const one = { a: 1, b: { x: [{ p: 1, q: 2 }], y: 2 } }
    const other = { b: { y: 2, x: [{ q: 2, p: 1 }] }, a: 1 }
    expect(hashPayload(one)).toBe(hashPayload(other))
  })

  it('sorts members by UTF-16 code units', () => {
    expect(hashPayload({ '\u{1F600}': 1, '\uFB33': 2, é: 3, '10': 4, '9': 5 })).toBe(
      sha256('{"10":4,"9":5,"é":3,"\u{1F600}":1,"\uFB33":2}'),
    )
  })

  it('takes notice of the order of items, of types, and of every value', () => {
    const values = [[1, 2], [2, 1], '1', 1, true, null, {}, [], '', 0, [[]], { a: null }, { a: 1 }, { A: 1 }]
    expect(new Set(values.map((value) => hashPayload(value))).size).toBe(values.length)
  })

  it('has one zero', () => {
    expect(hashPayload({ n: -0 })).toBe(hashPayload({ n: 0 }))
    expect(hashPayload(1e21)).toBe(sha256('1e+21'))
  })

  it('takes an undefined member as absent, an undefined item as null', () => {
    expect(hashPayload({ a: 1, b: undefined })).toBe(hashPayload({ a: 1 }))
    expect(hashPayload([undefined, 1])).toBe(hashPayload([null, 1]))
  })

  it('takes what states itself as JSON by what it states', () => {
    const at = new Date(0)
    expect(hashPayload({ at })).toBe(hashPayload({ at: '1970-01-01T00:00:00.000Z' }))
    expect(hashPayload({ toJSON: () => ({ b: 1, a: 2 }) })).toBe(hashPayload({ a: 2, b: 1 }))
  })

  it('hashes bytes as they are', () => {
    const bytes = Uint8Array.of(0, 255, 10)
    expect(hashPayload(bytes)).toBe(sha256(Buffer.from(bytes)))
    expect(hashPayload(Buffer.from('{"a": 1}'))).not.toBe(hashPayload({ a: 1 }))
  })

  it('leaves members out by pointer, and no others', () => {
    const leaveOut = ['/sentAt', '/items/0/at', '/a~1b/c~0d']
    const one = {
      sentAt: 1,
      items: [{ at: 1, n: 1 }, { at: 5 }],
      'a/b': { 'c~d': 1, e: 1 },
      x: { sentAt: 1 },
    }
    const other = {
      sentAt: 2,
      items: [{ at: 2, n: 1 }, { at: 5 }],
      'a/b': { 'c~d': 2, e: 1 },
      x: { sentAt: 1 },
    }
    expect(hashPayload(one, { leaveOut })).toBe(hashPayload(other, { leaveOut }))
    expect(hashPayload(one)).not.toBe(hashPayload(other))
    expect(hashPayload({ ...one, x: { sentAt: 2 } }, { leaveOut })).not.toBe(hashPayload(one, { leaveOut }))
    expect(hashPayload({ a: 1, sentAt: 1 }, { leaveOut: ['/sentAt'] })).toBe(hashPayload({ a: 1 }))
  })

  it.each(['sentAt', '', '#/sentAt', ' /a'])('refuses the pointer %j', (pointer) => {
    expectInvalid({}, { leaveOut: [pointer] })
  })

  it.each([Number.NaN, Number.POSITIVE_INFINITY, undefined, 10n, Symbol('x'), () => 1])(
    'refuses %s, alone and as a member',
    (value) => {
      expectInvalid(value)
      if (value !== undefined) expectInvalid({ a: [value] })
    },
  )

  it('refuses what holds itself, and what nests too deep', () => {
    const loop: Record<string, unknown> = {}
    loop['self'] = loop
    expectInvalid(loop)
    const states = { toJSON: (): unknown => ({ again: states }) }
    expectInvalid(states)
    let deep: unknown = 1
    for (let n = 0; n < 300; n += 1) deep = [deep]
    expectInvalid(deep)
  })

  it('takes the same object twice where it does not hold itself', () => {
    const shared = { a: 1 }
    expect(hashPayload([shared, shared])).toBe(hashPayload([{ a: 1 }, { a: 1 }]))
  })
})
