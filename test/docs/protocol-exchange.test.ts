import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestServer, type TestServer } from '../support/server.js'
import { environmentWithout, patternOf, runBlocks, type Session, sectionOf } from './blocks.js'
import { redisCli } from './recipes.js'

// Runs the exchange that docs/protocol.md prints, in one shell on an empty server, and compares every reply.

const root = fileURLToPath(new URL('../../', import.meta.url))
const { blocks } = sectionOf(readFileSync(join(root, 'docs/protocol.md'), 'utf8'), 'One delivery, by hand')

let folder: string
let server: TestServer
let session: Session
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-exchange-'))
  server = await startTestServer()
  const program = (name: string, line: string) => {
    writeFileSync(join(folder, name), `#!/bin/sh\n${line}\n`)
    chmodSync(join(folder, name), 0o755)
  }
  program('redis-cli', `exec '${redisCli()}' -p ${server.port} "$@"`)
  program('holdfast', `exec '${process.execPath}' '${root}dist/cli/main.js' "$@"`)
  session = await runBlocks(blocks, {
    folder,
    env: {
      ...environmentWithout(/^HOLDFAST_/),
      HOLDFAST_REDIS: `redis://127.0.0.1:${server.port}`,
      PATH: `${folder}${delimiter}${process.env['PATH']}`,
    },
    timeoutMs: 50_000,
  })
})
afterAll(async () => {
  await session?.end()
  await server?.stop()
  rmSync(folder, { recursive: true, force: true })
})

test('it shows each call of a delivery, a refused item and a refused call', () => {
  const calls = blocks.flatMap(({ script }) =>
    [...script.matchAll(/FCALL hf_(\w+)/g)].map(([, verb]) => verb),
  )
  expect(calls).toEqual(['join', 'claim', 'claim', 'take', 'report', 'report', 'claim', 'leave'])
})

for (const [at, { title, expected = '' }] of blocks.entries()) {
  test(`${at + 1}: ${title}`, () => {
    const whole = session.printed.join('\n')
    expect(session.printed.length, `the session ended before this: ${whole}`).toBeGreaterThan(at + 1)
    expect(session.printed[at], whole).toMatch(patternOf(expected))
  })
}

test('the session ends with 0', () => {
  expect(session.status, session.printed.join('\n')).toBe(0)
})
