import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { patternOf, runBlocks, type Session, sectionOf } from './blocks.js'

const page = `# A page

## One

Not of the section.

\`\`\`sh
false
\`\`\`

## Two

First this. Then that:

\`\`\`sh
word=port-17
\`\`\`

**Say** it: the shell is the same.

\`\`\`sh
echo "$word is $(date +%Y)"
\`\`\`

\`\`\`text
port-17 is 2…
\`\`\`

A program (\`other.ts\`), \`hello.mjs\`:

\`\`\`mjs
console.log(1)
\`\`\`

\`\`\`sh
sleep 600 & exit 3
\`\`\`

## Three
`

let folder: string
let session: Session | undefined

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-blocks-'))
  session = undefined
})
afterEach(async () => {
  await session?.end()
  rmSync(folder, { recursive: true, force: true })
})

test('a section is its blocks, what they print, and its files', () => {
  const { blocks, files } = sectionOf(page, 'Two')
  expect(blocks).toEqual([
    { title: 'First this', script: 'word=port-17\n', expected: undefined },
    { title: 'Say it', script: 'echo "$word is $(date +%Y)"\n', expected: 'port-17 is 2…\n' },
    { title: 'run it', script: 'sleep 600 & exit 3\n', expected: undefined },
  ])
  expect(files).toEqual([{ name: 'hello.mjs', text: 'console.log(1)\n' }])
  expect(() => sectionOf(page, 'Four')).toThrow('no section "Four"')
  expect(() => sectionOf('## A\n\nNameless:\n\n```js\n1\n```\n', 'A')).toThrow(
    'no file is named in: Nameless:',
  )
})

test('one shell runs them, and stops where one fails', async () => {
  const { blocks } = sectionOf(page, 'Two')
  session = await runBlocks(blocks, {
    folder,
    env: process.env,
    timeoutMs: 20_000,
    instead: { 'port-17': 'port-4' },
  })
  expect(session.status).toBe(3)
  expect(session.printed).toEqual(['', expect.stringMatching(/^port-4 is 2\d+\n$/), ''])
  expect(session.leftRunning()).toBe(true)
  await session.end()
  expect(session.leftRunning()).toBe(false)
  expect(readFileSync(join(folder, '.session.sh'), 'utf8')).not.toContain('port-17')
})

test('what is printed is held against the text, line by line', () => {
  expect('a {b} 12\n').toMatch(patternOf('a {b} …\n'))
  for (const other of ['a {b} \n', 'a {b} 12\n13\n', 'x\na {b} 12\n', 'a b 12\n']) {
    expect(other).not.toMatch(patternOf('a {b} …\n'))
  }
})
