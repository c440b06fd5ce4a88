import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { calls, optionsOf, optionsPage, pageFile } from '../../scripts/options-page.mjs'
import { defaultLimits } from '../../src/http/limits.js'
import { checkedOptions } from '../../src/node/node-options.js'

// docs/options.md against the docstrings it is made of, and the numbers of these against those that the code takes.

const root = fileURLToPath(new URL('../../', import.meta.url))
const page = readFileSync(pageFile, 'utf8')

it('docs/options.md is what scripts/options-page.mjs writes', () => {
  expect(page, 'run node scripts/options-page.mjs').toBe(optionsPage())
})

it('every call is exported by the entry that it is said to come from', () => {
  const { exports } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
    exports: Record<string, { default: string }>
  }
  for (const { call, from } of calls) {
    const entry = exports[from.replace('holdfast', '.')]?.default ?? ''
    const text = readFileSync(root + entry.replace('dist/', 'src/').replace('.js', '.ts'), 'utf8')
    const name = call === 'effects.run' ? 'createEffects' : call
    expect(text, `${call} in ${from}`).toMatch(new RegExp(`(?:\\{|,|function)\\s+${name}\\b`))
  }
})

it('says the numbers that a node, and a hub over HTTP, work by', () => {
  const settings = checkedOptions({
    host: 'h',
    redis: 'redis://127.0.0.1',
    mirror: 'm',
    execute: () => undefined,
  })
  const node = calls.find(({ call }) => call === 'createNode')
  const numbers = (node === undefined ? [] : optionsOf(node)).filter(({ default: text }) =>
    /^[\d,]+$/.test(text),
  )
  const shown = numbers.map(({ name, default: text }) => [name, Number(text.replaceAll(',', ''))])
  expect(shown.length).toBeGreaterThanOrEqual(5)
  expect(settings).toMatchObject(Object.fromEntries(shown))

  const [, limits = ''] = page.split('### Limits\n')
  const rows = [...limits.matchAll(/^\| `(\w+)` +\| `number` \| ([\d,]+) /gm)]
  const said = rows.map(([, name, text = '']) => [name, Number(text.replaceAll(',', ''))])
  expect(Object.fromEntries(said)).toEqual(defaultLimits)
})

it('an option of which nothing says what it means, or a call that is not there, is not passed over', () => {
  const none = (call: string, file: string) => () => optionsOf({ call, from: 'holdfast', file })
  expect(none('openNode', 'node/create-node.ts')).toThrow('node/create-node.ts has no openNode')
  expect(none('hubNames', 'contract/hub-set.ts')).toThrow('takes no options')
  expect(none('startSchedule', 'sweeps/schedule.ts')).toThrow('no docstring says what redis means')
})
