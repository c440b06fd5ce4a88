import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { auditPage } from '../../scripts/audit-page.mjs'
import { problemCodeOf } from '../../src/contract/problem-codes.js'
import { problems } from '../../src/contract/problems.js'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** What the library and the hub name themselves; `other` stands for what they do not know. */
function codesInTheCode(): Set<string> {
  const lua = readdirSync(`${root}lua/lib`).map((name) => readFileSync(`${root}lua/lib/${name}`, 'utf8'))
  const hub = readFileSync(`${root}src/hub/audit.ts`, 'utf8')
  const named = [
    ...lua.flatMap((text) => [...text.matchAll(/hf\.note\(found, '(\w+)'/g)]),
    ...hub.matchAll(/\bcode: '(\w+)'/g),
  ]
  return new Set(['other', ...named.map(([, code = '']) => code)])
}

test('audit.md is what scripts/audit-page.mjs writes', () => {
  const page = readFileSync(`${root}docs/audit.md`, 'utf8')
  expect(page, 'run npm run build && node scripts/audit-page.mjs').toBe(auditPage(problems))
})

test('every problem that is told of has its code in the contract, and every code is told of', () => {
  expect([...codesInTheCode()].sort()).toEqual(Object.keys(problems).sort())
})

test('no problem is told of without a code', () => {
  for (const name of readdirSync(`${root}lua/lib`)) {
    const text = readFileSync(`${root}lua/lib/${name}`, 'utf8')
    const calls = text.match(/hf\.note\(/g) ?? []
    const coded = text.match(/hf\.note\(found, (?:code,|'\w+')/g) ?? []
    expect(calls.length, name).toBe(coded.length)
  }
})

test('a code that only a newer library knows is other', () => {
  expect(problemCodeOf('row_missing')).toBe('row_missing')
  expect(problemCodeOf('invented_later')).toBe('other')
  expect(problemCodeOf('toString')).toBe('other')
  expect(problemCodeOf(undefined)).toBe('other')
})
