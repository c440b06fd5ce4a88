// @ts-check
// node torture/check.mjs DIR [--json]: judges the history of a run. The package is built before.
// Exit 0: no violation. 1: violations, which it prints with their evidence. 2: the history cannot be judged.
import { parseArgs } from 'node:util'
import { check, DamagedHistory, summaryOf, textOf } from './built-checker.mjs'

const { values, positionals } = parseArgs({ options: { json: { type: 'boolean' } }, allowPositionals: true })
const [dir, ...others] = positionals
if (dir === undefined || others.length > 0) {
  console.error('usage: node torture/check.mjs DIR [--json]')
  process.exit(2)
}
try {
  const verdict = check(dir)
  console.log(values.json ? JSON.stringify(verdict) : [...textOf(verdict), summaryOf(verdict)].join('\n'))
  process.exitCode = verdict.ok ? 0 : 1
} catch (error) {
  if (!(error instanceof DamagedHistory)) throw error
  console.error(`this history cannot be judged: ${error.message}`)
  process.exitCode = 2
}
