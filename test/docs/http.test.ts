import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, test } from 'vitest'
import { httpPage } from '../../scripts/http-page.mjs'
import { errorCatalogue, isErrorCode } from '../../src/contract/errors.js'
import { openApiDocument } from '../../src/http/openapi.js'
import type { OpenApiDocument } from '../../src/http/openapi-document.js'

let document: OpenApiDocument
let page: string
beforeAll(async () => {
  document = await openApiDocument()
  page = httpPage(document)
})

test('http.md is what scripts/http-page.mjs writes', () => {
  const written = readFileSync(fileURLToPath(new URL('../../docs/http.md', import.meta.url)), 'utf8')
  expect(written, 'run npm run build && node scripts/http-page.mjs').toBe(page)
})

test('every route has its part, under its tag', () => {
  const sections = page.split(/^## /m)
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, { tags, summary, operationId }] of Object.entries(methods)) {
      const section = sections.find((text) => text.toLowerCase().startsWith(`${tags[0]}\n`)) ?? ''
      const part = section
        .split(/^### /m)
        .find((text) => text.startsWith(`\`${method.toUpperCase()} ${path}\``))
      expect(part, `${method} ${path}`).toContain(summary)
      expect(part).toMatch(new RegExp(`^(For [a-z, ]+|Public); \`${operationId}\``, 'm'))
      expect(part).toMatch(/^- 2\d\d/m)
    }
  }
})

test('links lead somewhere', () => {
  const anchors = [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading.toLowerCase().replaceAll(' ', '-'),
  )
  const links = [...page.matchAll(/\]\(#([^)]+)\)/g)].map(([, anchor]) => anchor)
  expect(links.length).toBeGreaterThan(50)
  expect(links.filter((anchor) => anchor === undefined || !anchors.includes(anchor))).toEqual([])
})

test('no row is broken, and no member of a row is without a form', () => {
  const tables = page.split(/\n\n/).filter((text) => text.startsWith('| '))
  expect(tables.length).toBeGreaterThan(40)
  for (const table of tables) {
    const cells = table
      .trim()
      .split('\n')
      .map((row) => row.replaceAll('\\|', '').split('|').length)
    expect(new Set(cells).size, table).toBe(1)
  }
  const rows = [...page.matchAll(/^\| (?:path|query|header|body) .*$/gm)].map(([row]) => row.split('|'))
  expect(rows.length).toBeGreaterThan(100)
  for (const [, , , , form] of rows) expect(form?.trim()).not.toBe('')
})

test('the problem that is shown is one that the hub would answer', () => {
  const [, text = ''] = /```json\n([\s\S]*?)```/.exec(page) ?? []
  const { type, title, status, code, next } = JSON.parse(text) as Record<string, unknown>
  if (typeof code !== 'string' || !isErrorCode(code)) throw new Error(`${code} is no code`)
  const entry = errorCatalogue[code]
  expect({ status, cause: title, next }).toEqual(entry)
  expect(type).toBe(`urn:holdfast:problem:${code.toLowerCase()}`)
})
