import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { errorsPage } from '../../scripts/errors-page.mjs'
import { errorCatalogue, isErrorCode } from '../../src/contract/errors.js'

// What the docs say of error codes. That Lua, src/ and the catalogue agree is test/record/functions-parity.

const docs = fileURLToPath(new URL('../../docs/', import.meta.url))

/** Names in capitals that are no codes: variables, exit codes of the system, and single words such as GET. */
const otherNames = /^(?:(?:HOLDFAST|NODE|REDISCLI)_\w*|NO_COLOR|EX_\w+|FCALL_RO|[A-Z]+)$/

test('errors.md is what scripts/errors-page.mjs writes', () => {
  const page = readFileSync(`${docs}errors.md`, 'utf8')
  expect(page, 'run npm run build && node scripts/errors-page.mjs').toBe(errorsPage(errorCatalogue))
})

test('no cell of the page is empty or breaks its row', () => {
  const rows = errorsPage(errorCatalogue)
    .split('\n')
    .filter((line) => line.startsWith('| `'))
  expect(rows).toHaveLength(Object.keys(errorCatalogue).length)
  for (const row of rows) expect(row).toMatch(/^\| `[A-Z_]+` *\| [45]\d\d +\| [^ |][^|]+ \| [^ |][^|]+ \|$/)
})

test.each(readdirSync(docs).filter((name) => name.endsWith('.md')))(
  '%s names codes of the catalogue only',
  (name) => {
    const text = readFileSync(`${docs}${name}`, 'utf8')
    const words = [...text.matchAll(/`([A-Z][A-Z_]{2,})\b[^`]*`/g)].map(([, word = '']) => word)
    expect(words.filter((word) => !otherNames.test(word) && !isErrorCode(word))).toEqual([])
  },
)
