import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { statesPage } from '../../scripts/states-page.mjs'
import { deliveryStates, transitions } from '../../src/contract/states.js'

const read = (path: string) => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8')

it('docs/states.md is what the transitions say', () => {
  expect(read('docs/states.md'), 'run node scripts/states-page.mjs').toBe(statesPage(transitions))
})

it('says of every state what it means', () => {
  const page = statesPage(transitions)
  for (const state of deliveryStates) expect(page).toMatch(new RegExp(`^\\| \`${state}\` +\\| [a-z]`, 'm'))
})

it('the drawing of README.md shows no arrow that there is not', () => {
  const [drawing = ''] = read('README.md').match(/```mermaid\n[\s\S]*?```/) ?? []
  const arrows = [...drawing.matchAll(/^ {2}(\S+) --> (\w+)/gm)].map(([, from, to]) => `${from} ${to}`)
  const known = transitions.map(({ from, to }) => `${from === 'none' ? '[*]' : from} ${to}`)
  expect(arrows.length).toBeGreaterThan(10)
  expect(known).toEqual(expect.arrayContaining(arrows))
})
