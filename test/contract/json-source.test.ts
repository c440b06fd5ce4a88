import { deepStrictEqual } from 'node:assert'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HoldfastError } from '../../src/contract/errors.js'
import { type JsonLimits, jsonPointer, parseJsonSource } from '../../src/contract/json-source.js'

type Path = readonly (string | number)[]

/** A document as text, with every part of it as it was written. */
interface Written {
  readonly text: string
  readonly parts: readonly { readonly path: Path; readonly text: string }[]
}

function source(text: string, limits?: JsonLimits) {
  return parseJsonSource(Buffer.from(text), limits)
}

function refusal(body: string | Buffer, limits?: JsonLimits): string {
  try {
    parseJsonSource(Buffer.from(body), limits)
  } catch (error) {
    if (error instanceof HoldfastError && error.code === 'INVALID_ARGUMENT') return error.message
    throw error
  }
  throw new Error('was taken')
}

function parsed(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((at, key) => Object.getOwnPropertyDescriptor(at, key)?.value, value)
}

/** Found another way: a duplicate hides a member, so the text has more colons than the value has members. */
function hasDuplicates(text: string): boolean {
  const colons = text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '').split(':').length - 1
  let members = 0
  JSON.parse(text, (_key, value) => {
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      members += Object.keys(value).length
    }
    return value
  })
  return colons !== members
}

const shortEscapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '/': '\\/',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
}
const awkwardNames = ['', 'a/b', '~', '~1', '__proto__', 'constructor', 'toString', '0', '1', 'a"b', '\ud800']

/** One character in one of its spellings. A lone surrogate has no UTF-8 form: it is always escaped. */
function spelled(unit: string, style: 'plain' | 'short' | 'lower' | 'upper'): string {
  const short = shortEscapes[unit]
  if (style === 'short' && short !== undefined) return short
  const bare = unit >= ' ' && unit !== '"' && unit !== '\\' && unit.isWellFormed()
  if (bare && (style === 'plain' || style === 'short')) return unit
  return unit
    .split('')
    .map((half) => half.charCodeAt(0).toString(16).padStart(4, '0'))
    .map((digits) => `\\u${style === 'upper' ? digits.toUpperCase() : digits}`)
    .join('')
}

const blanks = fc.string({ unit: fc.constantFrom(' ', '\t', '\n', '\r'), maxLength: 2 })
const style = fc.constantFrom('plain', 'short', 'lower', 'upper')
const character = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  fc.constantFrom(
    '"',
    '\\',
    '/',
    '\b',
    '\n',
    '\t',
    '\u0000',
    '\u2028',
    '\ufeff',
    '\ufffd',
    '😀',
    '\ud800',
    '\udc00',
  ),
)

/** The text of a string whose value is `characters`, in random spellings. */
function quoted(characters: fc.Arbitrary<string[]>): fc.Arbitrary<string> {
  return characters.chain((units) =>
    fc
      .array(style, { minLength: units.length, maxLength: units.length })
      .map((styles) => `"${units.map((unit, index) => spelled(unit, styles[index] ?? 'plain')).join('')}"`),
  )
}

const stringText = quoted(fc.array(character, { maxLength: 8 }))
const nameText = fc.oneof(stringText, quoted(fc.constantFrom(...awkwardNames).map((name) => [...name])))
const numberText = fc.stringMatching(/^-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,9})?([eE][+-]?[0-9]{1,3})?$/)
const scalar = fc
  .oneof(stringText, numberText, fc.constantFrom('true', 'false', 'null'))
  .map((text): Written => ({ text, parts: [{ path: [], text }] }))

function container(
  [open, close]: readonly [string, string],
  inside: string,
  children: readonly { readonly key: string | number; readonly before: string; readonly written: Written }[],
): Written {
  const body = children.map(({ before, written }) => before + written.text + inside).join(',')
  const text = open + (children.length === 0 ? inside : body) + close
  const parts = children.flatMap(({ key, written }) =>
    written.parts.map((part) => ({ path: [key, ...part.path], text: part.text })),
  )
  return { text, parts: [{ path: [], text }, ...parts] }
}

const { node } = fc.letrec<{ node: Written }>((tie) => {
  const array = fc
    .tuple(blanks, blanks, fc.array(tie('node'), { maxLength: 4 }))
    .map(([before, inside, items]) =>
      container(
        ['[', ']'],
        inside,
        items.map((written, key) => ({ key, before, written })),
      ),
    )
  const members = fc.uniqueArray(fc.tuple(nameText, tie('node')), {
    maxLength: 4,
    selector: ([name]) => String(JSON.parse(name)),
  })
  const object = fc.tuple(blanks, blanks, members).map(([before, inside, entries]) =>
    container(
      ['{', '}'],
      inside,
      entries.map(([name, written]) => ({
        key: String(JSON.parse(name)),
        before: `${before}${name}${inside}:${before}`,
        written,
      })),
    ),
  )
  return { node: fc.oneof({ maxDepth: 4, depthIdentifier: 'json' }, scalar, array, object) }
})
const document = fc.tuple(blanks, node, blanks)

describe('what a document keeps', () => {
  it('gives the value of JSON.parse and every part as it was written', () => {
    fc.assert(
      fc.property(document, ([before, { text, parts }, after]) => {
        const read = source(before + text + after)
        deepStrictEqual(read.value, JSON.parse(text))
        for (const part of parts) {
          const found = read.textAt(part.path)
          expect(found).toEqual(Buffer.from(part.text))
          deepStrictEqual(JSON.parse(String(found)), valueAt(read.value, part.path))
        }
      }),
      { numRuns: 500 },
    )
  })

  it.each([
    '{"id":130775545883395173,"a":[],"f":1.10,"n":null}',
    '{ "b" : 1 ,\n\t"a" : [ 1.0 , -0 , 1E400 ] }',
    '"😀"',
    '"\\ud800"',
    '"\\uD83D\\uDE00 \\/ \\u0000 \u2028"',
    '"\ufeff\ufffd"',
    '-0.0e-0',
    '""',
    'null',
  ])('keeps a payload of %s', (payload) => {
    const body = ` {"conversation":"c", "payload" : ${payload}\r\n, "é":"漢"}\n`
    expect(source(body).textAt(['payload'])).toEqual(Buffer.from(payload))
    expect(source(body).textAt([])).toEqual(Buffer.from(body.trim()))
    expect(source(` ${payload}\n`).textAt([])).toEqual(Buffer.from(payload))
  })

  it('has undefined for what is not there', () => {
    const read = source('{"to":[{"host":"a"}],"0":1,"n":null}')
    for (const path of [
      ['x'],
      [0],
      ['to', '0'],
      ['to', 1],
      ['to', -1],
      ['to', 0.5],
      ['to', 'length'],
      ['to', 0, 'host', 0],
      ['n', 'x'],
      ['toString'],
      ['__proto__'],
    ]) {
      expect(read.textAt(path)).toBeUndefined()
    }
    expect(String(read.textAt(['0']))).toBe('1')
    expect(String(read.textAt(['n']))).toBe('null')
  })

  it('has __proto__ as a member like any other', () => {
    const read = source('{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}}}')
    expect(Object.keys(Object(read.value))).toEqual(['__proto__', 'constructor'])
    expect(Object.getPrototypeOf(read.value)).toBe(Object.prototype)
    expect('admin' in {} || 'admin' in Object(read.value)).toBe(false)
    expect(String(read.textAt(['__proto__', 'admin']))).toBe('true')
    expect(refusal('{"__proto__":1,"\\u005f_proto__":2}')).toContain('duplicate member "/__proto__"')
  })

  it('does not follow later changes of the bytes it was given', () => {
    const bytes = Buffer.from('{"a":[1.10]}')
    const read = parseJsonSource(bytes)
    bytes.fill(0)
    expect(String(read.textAt(['a']))).toBe('[1.10]')
    read.textAt(['a'])?.fill(0)
    expect(String(read.textAt(['a', 0]))).toBe('1.10')
  })
})

describe('what is JSON', () => {
  /** Takes what JSON.parse takes, but for duplicates, and says where else. */
  function agrees(text: string): void {
    const native = parsed(text)
    if (native === undefined) expect(refusal(text)).toMatch(/ at line \d+, column \d+ \(byte \d+\)$/)
    else if (hasDuplicates(text)) expect(refusal(text)).toMatch(/^INVALID_ARGUMENT duplicate member "/)
    else deepStrictEqual(source(text).value, native.value)
  }

  it('agrees with JSON.parse on every text of up to four of these characters', () => {
    const alphabet = ['', ...'{}[]",:\\-01.e \nx']
    for (const a of alphabet) {
      for (const b of alphabet) {
        for (const c of alphabet) {
          for (const d of alphabet) agrees(a + b + c + d)
        }
      }
    }
  })

  it('agrees with JSON.parse on every character in a string, escaped and between values', () => {
    const blankElsewhere = [0x1680, 0x2000, 0x200b, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff]
    for (const code of [...Array(0x180).keys(), ...blankElsewhere]) {
      const character = String.fromCharCode(code)
      for (const text of [`"${character}"`, `"\\${character}"`, `"\\u00${character}0"`, `[1,${character}1]`])
        agrees(text)
    }
  })

  it('agrees with JSON.parse on rows of tokens', () => {
    const words =
      '{ } [ ] , : "a" "\\u0061" "b" 1 -0.5e+1 01 1. .1 +1 1e - true nul null NaN \' // \\ "\\x" "\\u12" "'
    const token = fc.constantFrom(
      ...words.split(' '),
      ' ',
      '\t',
      '\f',
      '\u00a0',
      '"\n"',
      '\ufeff',
      '\ud83d\ude00',
    )
    const row = fc.array(token, { minLength: 1, maxLength: 9 }).map((tokens) => tokens.join(''))
    fc.assert(
      fc.property(
        row.filter((text) => !text.startsWith('\ufeff')),
        agrees,
      ),
      { numRuns: 5000 },
    )
  })

  it('agrees with JSON.parse on documents with one change', () => {
    const change = fc.tuple(fc.nat(), fc.nat({ max: 2 }), fc.constantFrom('', ...'{}[]",:\\-0.e \nu'))
    fc.assert(
      fc.property(document, change, ([before, { text }, after], [place, cut, put]) => {
        const whole = [...(before + text + after)]
        whole.splice(place % (whole.length + 1), cut, put)
        const changed = whole.join('')
        if (!changed.startsWith('\ufeff')) agrees(changed)
      }),
      { numRuns: 2000 },
    )
  })

  it.each([
    ['', 'not JSON: expected a value at line 1, column 1 (byte 0)'],
    [' \n ', 'not JSON: expected a value at line 2, column 2 (byte 3)'],
    ['{"é":\n  oops}', 'not JSON: expected a value at line 2, column 3 (byte 9)'],
    ['{"a" 1}', 'not JSON: expected ":" at line 1, column 6 (byte 5)'],
    ['{"a":1,}', 'not JSON: expected a member name at line 1, column 8 (byte 7)'],
    ['{"a":1]', 'not JSON: expected "," or "}" at line 1, column 7 (byte 6)'],
    ['[1 2]', 'not JSON: expected "," or "]" at line 1, column 4 (byte 3)'],
    ['1 2', 'not JSON: expected the end at line 1, column 3 (byte 2)'],
    ['"\\x"', 'not JSON: expected an escape sequence of JSON at line 1, column 2 (byte 1)'],
    [
      '"a\tb"',
      'not JSON: expected the end of the string or a character not of control at line 1, column 3 (byte 2)',
    ],
    ['\ufeff1', 'not JSON: starts with a byte order mark, at byte 0'],
  ])('says where %j is none', (text, message) => {
    expect(refusal(text)).toBe(`INVALID_ARGUMENT ${message}`)
  })

  it.each([
    ['2261ff22', 2],
    ['c3', 0],
    ['22c3a9efbfbdefbf22', 6],
    ['22eda08022', 1],
    ['22c0af22', 1],
    ['22f09f9822', 1],
    ['fffe3100', 0],
  ])('says where the bytes %s are no UTF-8', (hex, at) => {
    expect(refusal(Buffer.from(hex, 'hex'))).toBe(`INVALID_ARGUMENT not JSON: invalid UTF-8 at byte ${at}`)
  })

  it('shows nothing of the body', () => {
    for (const text of [
      '{"a":"s3cret"',
      '{"a":s3cret}',
      's3cret',
      '"s3cret\n"',
      '{s3cret:1}',
      '["s3cret" 1]',
    ]) {
      expect(refusal(text)).not.toContain('s3cret')
    }
    const duplicate = refusal('{"k":["s3cret",{"x":"s3cret","x":"s3cret"}]}')
    expect(duplicate).toContain('duplicate member "/k/1/x"')
    expect(duplicate).not.toContain('s3cret')
  })
})

describe('what is refused beyond that', () => {
  it.each([
    ['{"to":[{"host":"a","host":"b"}]}', '/to/0/host', 19],
    ['{"a":1,"\\u0061":1}', '/a', 7],
    ['{"":{"":1,"":1}}', '//', 10],
    ['[0,[{}],{"x":[],"a/~b":1,"a\\/~b":1}]', '/2/a~1~0b', 25],
    ['{"\\ud83d\\ude00":1,"😀":1}', '/😀', 18],
    ['{"a":{"a":1},"b":{"a":1,"b":2},"b":0}', '/b', 31],
    ['{"toString":1,"toString":1}', '/toString', 14],
  ])('refuses the duplicate in %s', (text, pointer, at) => {
    expect(refusal(text)).toBe(
      `INVALID_ARGUMENT duplicate member "${pointer}" at line 1, column ${
        Buffer.from(text).subarray(0, at).toString().length + 1
      } (byte ${at})`,
    )
  })

  it('takes the same name in different objects', () => {
    expect(source('{"a":{"a":[{"a":1},{"a":1}]},"A":"a"}').value).toHaveProperty('a')
  })

  it('finds every duplicate, wherever it is', () => {
    fc.assert(
      fc.property(document, nameText, node, node, ([before, { text }, after], name, one, other) => {
        const twice = `{"x":[${before}${text}${after}],"y":{${name}:${one.text},"?":0,${name}:${other.text}}}`
        const pointer = jsonPointer(['y', String(JSON.parse(name))])
        const message = refusal(twice)
        expect(message).toContain('duplicate member "/y/')
        if (/^[\w/~ ]*$/.test(pointer)) expect(message).toContain(`duplicate member "${pointer}"`)
      }),
    )
  })

  it('cuts long names and shows no unprintable character', () => {
    const long = '😀'.repeat(100)
    expect(refusal(`{"${long}":1,"${long}":1}`)).toContain(`"/${'😀'.repeat(63)}…" at`)
    const exact = 'x'.repeat(64)
    expect(refusal(`{"${exact}":1,"${exact}":1}`)).toContain(`"/${exact}" at`)
    const odd = '\\u0000\\u001b\u202e\\ud800\u2028\\"'
    expect(refusal(`{"${odd}":1,"${odd}":1}`)).toContain('duplicate member "/?????\\"" at')
  })

  it('refuses deeper nesting than the limit, at the bracket', () => {
    const nested = (depth: number) => '[{"a":'.repeat(depth / 2) + '}]'.repeat(depth / 2)
    const filled = (depth: number) => nested(depth).replace(':}', ':0}')
    expect(source(filled(64)).textAt([0])).toBeDefined()
    expect(refusal(filled(66))).toBe(
      'INVALID_ARGUMENT nested deeper than 64 at line 1, column 193 (byte 192)',
    )
    expect(source('[[],[[1]]]', { maxDepth: 3 }).value).toEqual([[], [[1]]])
    expect(refusal('[[],[[]]]', { maxDepth: 2 })).toContain('nested deeper than 2 at line 1, column 6')
    expect(refusal('[]', { maxDepth: 0 })).toContain('nested deeper than 0')
    expect(source('"[[{"', { maxDepth: 0 }).value).toBe('[[{')
    expect(source(filled(10_000), { maxDepth: 10_000 }).textAt([0, 'a', 0])).toBeDefined()
  })
})

describe('hostile bodies', () => {
  const size = 2 ** 20

  it.each([
    ['open brackets', '['.repeat(size), 'nested deeper'],
    ['open objects', '{"a":'.repeat(size / 5), 'nested deeper'],
    ['white space', `[${'\n'.repeat(size)}`, 'expected a value'],
    ['an open string', `"${'\\\\'.repeat(size / 2)}`, 'end of the string'],
    ['bytes of nothing', Buffer.alloc(size, 0xff), 'invalid UTF-8 at byte 0'],
    [
      'late bad bytes',
      Buffer.concat([Buffer.from('\ufffd'.repeat(size / 4)), Buffer.of(0xff)]),
      'at byte 786432',
    ],
    ['a late duplicate', `{${manyNames(200_000)},"n7":0}`, 'duplicate member "/n7"'],
    ['two giant names', `{"${'x'.repeat(size)}":0,"${'x'.repeat(size)}":0}`, 'duplicate member "/xxx'],
  ])('refuses %s', (_what, body, message) => {
    expect(refusal(body)).toContain(message)
  })

  it.each([
    ['members', `{${manyNames(200_000)}}`],
    ['backslashes', `"${'\\\\'.repeat(size / 2)}"`],
    ['escaped quotes', `"${'\\"'.repeat(size / 2)}"`],
    ['empty arrays', `[${'[],'.repeat(500_000)}[]]`],
    ['objects', `[${'{"a":0},'.repeat(130_000)}{}]`],
    ['digits', '1'.repeat(size)],
    ['fraction', `-0.${'1'.repeat(size)}e5`],
    ['emoji', `"${'😀'.repeat(size / 4)}"`],
  ])('takes a body of many %s', (_what, text) => {
    const read = source(text)
    expect(read.textAt([])?.equals(Buffer.from(text))).toBe(true)
    if (text.startsWith('[')) expect(read.textAt([100_000])?.length).toBeGreaterThan(1)
  })

  it('gives all of many parts without going over the body for each', () => {
    const count = 50_000
    const item = (at: number) => `{"n":${at}.0}`
    const report = (at: number) => `{"attempt":"x","outcome":{"kind":"result","result":${item(at)}}}`
    const read = source(`{"reports":[${Array.from({ length: count }, (_, at) => report(at)).join(',')}]}`)
    for (let at = count - 1; at >= 0; at--) {
      if (String(read.textAt(['reports', at, 'outcome', 'result'])) !== item(at)) expect.fail(`item ${at}`)
    }
  })

  function manyNames(count: number): string {
    return Array.from({ length: count }, (_, at) => `"n${at}":0`).join(',')
  }
})

describe('jsonPointer', () => {
  it('joins and escapes as RFC 6901 says', () => {
    expect(jsonPointer([])).toBe('')
    expect(jsonPointer(['to', 0, 'host'])).toBe('/to/0/host')
    expect(jsonPointer([''])).toBe('/')
    expect(jsonPointer(['a/b', 'm~n', '~1', '/~'])).toBe('/a~1b/m~0n/~01/~1~0')
    expect(jsonPointer([Symbol('s')])).toBe('/Symbol(s)')
  })
})
