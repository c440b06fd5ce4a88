import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { bytes, duration, number, plural, quoted } from '../../src/dashboard/format.js'
import { hex, laidOut } from '../../src/dashboard/payload-text.js'

const built = fileURLToPath(new URL('../../dist/dashboard', import.meta.url))

describe('the page', () => {
  it('is under 150 kB for whoever loads all of it, compressed', () => {
    const files = readdirSync(built, { recursive: true }).map((name) => join(built, String(name)))
    const sources = files.filter((path) => statSync(path).isFile() && !/\.(gz|br)$/.test(path))
    expect(sources.length).toBeGreaterThan(2)
    const total = sources.reduce((sum, path) => sum + gzipSync(readFileSync(path)).length, 0)
    expect(total).toBeLessThan(150_000)
  })

  it('loads nothing from anywhere else', () => {
    const text = readFileSync(join(built, 'index.html'), 'utf8')
    expect(text).not.toMatch(/(src|href)="(https?:|\/\/|\/)/)
  })
})

describe('what it writes', () => {
  it.each([
    [850, '850 ms'],
    [4240, '4.2 s'],
    [59_400, '59 s'],
    [60_000, '1 min'],
    [185_000, '3 min 5 s'],
    [7_800_000, '2 h 10 min'],
    [273_600_000, '3 d 4 h'],
    [Number.POSITIVE_INFINITY, '–'],
  ])('a duration of %d ms is %s', (ms, text) => {
    expect(duration(ms)).toBe(text)
  })

  it('counts with their words', () => {
    expect(plural(1, 'delivery', 'deliveries')).toBe('1 delivery')
    expect(plural(1200, 'delivery', 'deliveries')).toBe('1,200 deliveries')
    expect(number(1_000_000)).toBe('1,000,000')
    expect([bytes(12), bytes(2048), bytes(3 * 1024 * 1024)]).toEqual(['12 B', '2 KiB', '3 MiB'])
  })

  it('one word of a shell, whatever is in it', () => {
    expect(quoted('build-1')).toBe('build-1')
    expect(quoted('{hf}:delivery:1.1')).toBe("'{hf}:delivery:1.1'")
    expect(quoted("it's $HOME")).toBe("'it'\\''s $HOME'")
  })
})

describe('a payload', () => {
  it('as JSON keeps its words: no digit, escape or order changes', () => {
    expect(laidOut('{"b":130775545883395173,"a":[1.10,"x, {y}: \\"z\\"\\u00e9"],"e":{},"l":[]}')).toBe(
      [
        '{',
        '  "b": 130775545883395173,',
        '  "a": [',
        '    1.10,',
        '    "x, {y}: \\"z\\"\\u00e9"',
        '  ],',
        '  "e": {},',
        '  "l": []',
        '}',
      ].join('\n'),
    )
    expect(laidOut('"{}"')).toBe('"{}"')
    expect(laidOut(' [ "[" , "]" ] ')).toBe('[\n  "[",\n  "]"\n]')
  })

  it('as bytes shows each of them, and those that can be read', () => {
    const text = hex(Uint8Array.from([0, 1, 0x41, 0x7f, 0xff, ...Buffer.from('sixteen and more')]))
    expect(text.split('\n')).toEqual([
      '00000000  00 01 41 7f ff 73 69 78 74 65 65 6e 20 61 6e 64  ..A..sixteen and',
      '00000010  20 6d 6f 72 65                                    more',
    ])
  })
})
