import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { functionOf, libraryFunctions } from '../../scripts/protocol/headers.mjs'
import { groups, protocolPage } from '../../scripts/protocol/page.mjs'
import { currentPage, pageFile } from '../../scripts/protocol-page.mjs'
import { isErrorCode } from '../../src/contract/errors.js'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

// docs/protocol.md against the headers it is made of, and these against the library as a server has it.

const root = fileURLToPath(new URL('../../', import.meta.url))
const page = readFileSync(pageFile, 'utf8')
const functions = libraryFunctions()

let server: TestServer
let record: OpenRecord
beforeAll(async () => {
  server = await startTestServer()
  record = await openRecord(server)
})
afterAll(async () => {
  await record?.close()
  await server?.stop()
})

test('protocol.md is what scripts/protocol-page.mjs writes', () => {
  expect(page, 'run node scripts/protocol-page.mjs').toBe(currentPage())
})

test('every function of the library stands on it, with the flags that the server knows', async () => {
  const reply = await record.send('FUNCTION', 'LIST', 'LIBRARYNAME', 'holdfast')
  const [library] = reply as unknown[][]
  const listed = library?.[library.indexOf('functions') + 1] as [
    string,
    string,
    string,
    string,
    string,
    string[],
  ][]
  for (const [, name, , , , flags] of listed) {
    if (name === 'hf_version') {
      expect(page).toContain(`\`${name}\``)
      continue
    }
    const [part = ''] = page.split(/^### /m).filter((each) => each.startsWith(`${name}\n`))
    expect(part.includes('`FCALL_RO`'), name).toBe(flags.includes('no-writes'))
    expect(part.includes('while memory is full'), name).toBe(flags.includes('allow-oom'))
    expect(part).toMatch(/^KEYS {3}1 tag$[\s\S]*^ARGV [\s\S]*^REPLY [\s\S]*^ERRORS [\s\S]*^STATES /m)
  }
  expect(page.match(/^### hf_/gm)).toHaveLength(listed.length - 1)
})

test('those that may ask for replicas are those of which the library says so', () => {
  const [, list = ''] =
    /^local REPLICATED = \{([^}]*)\}/m.exec(readFileSync(`${root}lua/lib/context.lua`, 'utf8')) ?? []
  const replicated = [...list.matchAll(/(hf_\w+) = true/g)].map(([, name]) => name)
  expect(replicated.length).toBeGreaterThan(10)
  expect(functions.filter((each) => each.replicated).map(({ name }) => name)).toEqual(replicated.toSorted())
})

test('what a node does at a code is said of every code that a node can be refused with', () => {
  const [, chapter = ''] = page.split('## What to do at each code\n')
  const [told = ''] = chapter.split('\n# Functions\n')
  const verbs = groups.find(({ title }) => title === 'Nodes')?.verbs ?? []
  expect(verbs).toContain('begin')
  const codes = functions
    .filter(({ name }) => verbs.includes(name.slice('hf_'.length)))
    .flatMap(({ parts }) => [...(parts.get('ERRORS') ?? []), ...(parts.get('ITEMS') ?? [])])
    .flatMap((line) => line.match(/[A-Z][A-Z_]{3,}/g) ?? [])
  expect(codes.filter((code) => !isErrorCode(code))).toEqual([])
  for (const code of new Set(codes)) expect(told).toContain(`\`${code}\``)
})

test('links lead somewhere', () => {
  const anchors = [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading.toLowerCase().replaceAll(' ', '-'),
  )
  for (const [, path = '', anchor] of page.matchAll(/\]\(([^)#]*)(?:#([^)]+))?\)/g)) {
    if (path === '') expect(anchors).toContain(anchor)
    else expect(existsSync(`${root}docs/${path}`), path).toBe(true)
  }
})

test('a function in no group, and a group without its function, are not passed over', () => {
  const stranger = functionOf("-- hf_new: does.\n-- KEYS   1 tag\nhf.register('hf_new', {}, function() end)")
  expect(() => protocolPage('', [...functions, stranger])).toThrow('in no group of the page: hf_new')
  expect(() => protocolPage('', functions.slice(1))).toThrow('no function hf_accept')
})
