import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { cliPage } from '../../scripts/cli-page.mjs'
import { variables } from '../../src/cli/config.js'
import { makeProgram } from '../../src/cli/program.js'

// What docs/cli.md says of commands and flags. That the flags do what it says is test/cli.

const page = readFileSync(fileURLToPath(new URL('../../docs/cli.md', import.meta.url)), 'utf8')
const program = await makeProgram()

test('cli.md is what scripts/cli-page.mjs writes', () => {
  expect(page, 'run npm run build && node scripts/cli-page.mjs').toBe(cliPage(page, program, variables))
})

test('a page that lacks a flag, or has one too many, is another page', () => {
  const flag = '`--after-loss`'
  expect(page).toContain(flag)
  for (const other of [
    page.replace(flag, '`--after-all`'),
    page.replace(/^### holdfast audit$/m, '### holdfast'),
  ]) {
    expect(cliPage(other, program, variables)).toBe(page)
  }
  expect(() => cliPage(page.replace('<!-- /options -->', ''), program, variables)).toThrow(
    'no place for options',
  )
})

test('every command is named once where the page says what goes through a hub', () => {
  const [, section = ''] = /^## Through a hub\n([\s\S]*?)^- /m.exec(page) ?? []
  const rows = section.split('\n').filter((line) => line.startsWith('| `'))
  const named = rows.flatMap((row) =>
    [...(row.split('|')[1] ?? '').matchAll(/`([\w-]+)`/g)].map(([, name]) => name),
  )
  const shown = program.createHelp().visibleCommands(program)
  const nouns = shown.filter((each) => program.commands.includes(each)).map((each) => each.name())
  expect(named.sort()).toEqual(nouns.sort())
})

test('links within the page lead somewhere', () => {
  const headings = [...page.matchAll(/^##+ (.+)$/gm)].map(([, text = '']) =>
    text
      .toLowerCase()
      .replaceAll(/[^\w -]/g, '')
      .replaceAll(' ', '-'),
  )
  const links = [...page.matchAll(/\]\(#([\w-]+)\)/g)].map(([, anchor = '']) => anchor)
  expect(links.length).toBeGreaterThan(5)
  expect(links.filter((anchor) => !headings.includes(anchor))).toEqual([])
})
