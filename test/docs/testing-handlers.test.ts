import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { environmentWithout, sectionOf } from './blocks.js'

// The programs of docs/testing-handlers.md, as printed, with the test runner of Node.

const root = fileURLToPath(new URL('../../', import.meta.url))
const page = readFileSync(join(root, 'docs/testing-handlers.md'), 'utf8')
const files = ['A record for each test', 'Crash points'].flatMap((heading) => sectionOf(page, heading).files)
let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-handlers-'))
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(root, join(folder, 'node_modules', 'holdfast'))
  for (const { name, text } of files) writeFileSync(join(folder, name), text)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function run(name: string): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--test', join(folder, name)], {
    cwd: folder,
    encoding: 'utf8',
    env: environmentWithout(/^(HOLDFAST_|NODE_TEST)/),
    timeout: 120_000,
  })
  return { status, output: `${stdout}${stderr}` }
}

it('prints a test of its own for a record, and one for crash points with its handler', () => {
  expect(files.map(({ name }) => name)).toEqual(['orders.test.mjs', 'charge.mjs', 'charge.test.mjs'])
})

it('the test of a record passes', { timeout: 130_000 }, () => {
  const { status, output } = run('orders.test.mjs')
  expect(output).toMatch(/^# pass 1$/m)
  expect(status, output).toBe(0)
})

it('the crash test passes, at the two points that it would be worst at', { timeout: 130_000 }, () => {
  // All points take half a minute; which there are is a test of crashTest itself.
  const name = 'charge.test.mjs'
  const text = files.find((file) => file.name === name)?.text ?? ''
  const few = text.replace('effects:', "points: ['handler.charged', 'execute.left'],\n    effects:")
  expect(few).not.toBe(text)
  writeFileSync(join(folder, name), few)
  const { status, output } = run(name)
  expect(output).toMatch(/^# pass 1$/m)
  expect(status, output).toBe(0)
})
