import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { type CrashTestOptions, crashTestOf } from '../../src/testing/crash-test.js'
import type { CrashedDelivery, CrashVerdict } from '../../src/testing/index.js'

// The processes of a crash test run the built code.
const program = fileURLToPath(new URL('../../dist/testing/crash-process.js', import.meta.url))

const one = [{ key: 'order-1', payload: '{"total": 10.00}' }]

function charges({ id, dir }: CrashedDelivery): number {
  const ledger = `${dir}/ledger`
  if (!existsSync(ledger)) return 0
  return readFileSync(ledger, 'utf8')
    .split('\n')
    .filter((line) => line === id).length
}

function crash(
  handler: string,
  points: string[],
  more: Partial<CrashTestOptions> = {},
): Promise<CrashVerdict> {
  const url = new URL(`./handlers/${handler}.mjs`, import.meta.url)
  return crashTestOf(program, { handler: url, messages: one, points, effects: charges, ...more })
}

const invariantsOf = ({ runs }: CrashVerdict) =>
  runs.map(({ verdict }) => [...new Set(verdict.violations.map(({ invariant }) => invariant))].sort())

it('a handler that can be asked is charged once, wherever it is killed, and nothing stays unknown', async () => {
  const points = ['take.sent', 'handler.charged', 'execute.left', 'report.sent']
  const verdict = await crash('charge', points, { concurrency: 4 })
  expect(verdict.ok, verdict.text).toBe(true)
  expect(verdict.runs.map(({ point, executions, unknown }) => [point, executions, unknown])).toEqual(
    ['none', ...points].map((point) => [point, 1, []]),
  )
  // Without `points` these would all have their turn.
  const some = ['claim.before', 'take.answered', 'start.marked', 'handler.charged', 'report.settled']
  expect(verdict.points).toEqual(expect.arrayContaining(some))
})

it('where nobody can be asked it is charged once, and listed as unknown: that is no fault', async () => {
  const verdict = await crash('charge-unasked', ['handler.charged'])
  expect(verdict.ok, verdict.text).toBe(true)
  expect(verdict.runs[1]).toMatchObject({
    reached: true,
    executions: 1,
    unknown: [expect.stringMatching(/\.1\/1$/)],
  })
})

it('a probe that denies what happened, a replay that repeats it and a wrong not_sent are found out', async () => {
  const [denied, printed, repeated, unsent, uncounted] = await Promise.all([
    crash('charge-denied', ['handler.charged', 'execute.left']),
    crash('charge-denied', ['handler.charged'], { messages: undefined }),
    crash('charge-idempotent', ['handler.charged']),
    crash('charge-unsent', []),
    crash('charge-unsent', [], { effects: undefined }),
  ])
  // Before the end of the handler only its effects tell; after it the checker knows by its marks.
  expect(invariantsOf(denied)).toEqual([[], ['effects'], ['I2', 'effects']])
  expect(denied.runs[2]?.verdict.twice).toBe(1)
  expect(denied.text).toContain('its effect happened 2 times')
  expect(invariantsOf(repeated)).toEqual([[], ['effects']])
  expect(invariantsOf(unsent)).toEqual([['effects']])
  expect([denied.ok, repeated.ok, unsent.ok]).toEqual([false, false, false])
  // What each attempt came to names the one that was wrong.
  expect(denied.text).toMatch(
    /^ {2}I2, exclusion: 1 case$[\s\S]*\/1 not_sent \(probe_not_executed\) on .*\/2 result/m,
  )
  expect(repeated.text).toContain('attempts /1 result, begun again as idempotent\n')
  const page = readFileSync(new URL('../../docs/testing-handlers.md', import.meta.url), 'utf8')
  const [, shown = ''] = /^```text\n(not killed: [\s\S]*?)\n```$/m.exec(page) ?? []
  const withoutIds = (text: string) => text.replaceAll(/\d{13}-\d{8}/g, 'ID').replace(/crash-\d/, 'KEY')
  expect(withoutIds(printed.text), 'as docs/testing-handlers.md prints it').toBe(withoutIds(shown))
  expect(unsent.text).toContain('(key order-1): attempts /1 not_sent (busy), /2 result\n')
  expect(unsent.text).not.toContain('effects not counted')
  // Nothing else sees that one: so it is said that nobody looked.
  expect([uncounted.ok, uncounted.text]).toEqual([
    true,
    expect.stringContaining('\neffects not counted: no `effects` option'),
  ])
})

it('a point that is never reached, and a handler that is none, do not pass for a success', async () => {
  const unreached = await crash('charge', ['handler.nowhere'])
  expect(unreached.ok).toBe(false)
  expect(unreached.text).toContain('killed at handler.nowhere: never reached')
  await expect(crash('no-handler', [])).rejects.toThrow(/INVALID_ARGUMENT.*exports no function "execute"/s)
  await expect(crash('missing', [])).rejects.toThrow(/INVALID_ARGUMENT.*ended by itself/s)
  await expect(crash('charge', [], { messages: [] })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
})
