import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '../../src/record/embedded.js'
import { environmentWithout, patternOf, runBlocks, type Session, sectionOf } from './blocks.js'

// Runs "Five minutes with curl" of docs/tour.md in one shell, as it is printed but for the port, and compares what
// every block prints: nothing, where no text follows. The program of the section is run as well.

const root = fileURLToPath(new URL('../../', import.meta.url))
const printedAddress = '127.0.0.1:8090'
const { blocks, files } = sectionOf(
  readFileSync(join(root, 'docs/tour.md'), 'utf8'),
  'Five minutes with curl',
)

let folder: string
let session: Session

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-tour-'))
  putHoldfastInto(folder)
  session = await runBlocks(blocks, {
    folder,
    env: {
      ...environmentWithout(/^(HOLDFAST_|.*_proxy$)/i),
      PATH: `${join(folder, 'bin')}${delimiter}${process.env['PATH']}`,
    },
    timeoutMs: 100_000,
    instead: { [printedAddress]: `127.0.0.1:${await freePort()}` },
  })
}, 120_000)
afterAll(async () => {
  await session?.end()
  rmSync(folder, { recursive: true, force: true })
})

test('the section shows a whole delivery, and a program', () => {
  const all = blocks.map(({ script }) => script).join('')
  const words =
    'init|serve|readyz|/v1/messages|/why|/claim|/mirror|/ack|/begin|/delivery-report|principal add'
  for (const word of words.split('|')) expect(all).toContain(word)
  expect(all).toContain(printedAddress)
  expect(files.map(({ name }) => name)).toEqual(['client.mjs'])
  for (const { name } of files) expect(all).toContain(`node ${name}`)
})

for (const [at, { title, expected = '' }] of blocks.entries()) {
  test(`${at + 1}: ${title}`, () => {
    const whole = session.printed.join('\n')
    expect(session.printed.length, `the session ended before this: ${whole}`).toBeGreaterThan(at + 1)
    expect(session.printed[at], whole).toMatch(patternOf(expected))
  })
}

test('the session ends with 0, and leaves nothing running', async () => {
  expect(session.status, session.printed.join('\n')).toBe(0)
  expect(session.leftRunning()).toBe(false)
  expect(readFileSync(join(folder, 'tour', 'serve.log'), 'utf8')).toContain('stopped the server')
})

/** `holdfast` on the PATH, the package where programs find it, and the section's programs. */
function putHoldfastInto(path: string): void {
  mkdirSync(join(path, 'bin'))
  const wrapper = join(path, 'bin', 'holdfast')
  writeFileSync(wrapper, `#!/bin/sh\nexec '${process.execPath}' '${root}dist/cli/main.js' "$@"\n`)
  chmodSync(wrapper, 0o755)
  mkdirSync(join(path, 'node_modules'))
  symlinkSync(root, join(path, 'node_modules', 'holdfast'))
  mkdirSync(join(path, 'tour'))
  for (const { name, text } of files) writeFileSync(join(path, 'tour', name), text)
}
