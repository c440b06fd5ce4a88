import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'

// How fast anything is stands in docs/benchmarks.md; here only that the bench runs, checks and tells.

const bench = fileURLToPath(new URL('../../bench/', import.meta.url))
const systems = ['raw', 'functions', 'holdfast', 'bullmq']
let dir: string

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'holdfast-bench-test-'))
})

afterAll(() => rmSync(dir, { recursive: true, force: true }))

interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
  readonly rounds: readonly number[]
}

/** What a reader of `bench/results/latest.json` may count on. */
interface Report {
  readonly machine: Record<string, unknown>
  readonly handoff: {
    readonly messages: number
    readonly systems: Record<string, Spread & { readonly accept: Spread }>
    readonly ratios: Record<string, number>
    readonly functionsRatios: Record<string, number>
    readonly commandstats: Record<string, { command: string; calls: number }[]>
  }
}

function run(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const options = { encoding: 'utf8', timeout: 55_000 } as const
  return spawnSync(process.execPath, [join(bench, 'run.mjs'), ...args], options)
}

it('runs every system, exactly once each, and states its figures', () => {
  const out = join(dir, 'latest.json')
  const few = ['--only', 'handoff', '--messages', '40', '--rounds', '2', '--json', '--dir', dir, '--out', out]
  const { status, stdout, stderr } = run(...few)
  expect(stderr).toContain('round 2 of 2')
  expect(status).toBe(0)
  expect(readFileSync(out, 'utf8')).toBe(stdout)
  const { machine, handoff } = JSON.parse(stdout) as Report
  expect(machine).toMatchObject({ node: process.version, cores: expect.any(Number) })
  expect(handoff.messages).toBe(40)
  expect(Object.keys(handoff.systems)).toEqual(systems)
  for (const { accept, ...whole } of Object.values(handoff.systems)) {
    for (const { median, min, max, rounds } of [whole, accept]) {
      expect(rounds).toHaveLength(2)
      expect([min, median, max]).toEqual([min, median, max].sort((a, b) => a - b))
      expect(min).toBeGreaterThan(0)
    }
  }
  expect(Object.keys(handoff.ratios)).toEqual(['bullmq', 'raw', 'functions'])
  expect(Object.keys(handoff.functionsRatios)).toEqual(['bullmq', 'raw'])
  for (const ratio of [...Object.values(handoff.ratios), ...Object.values(handoff.functionsRatios)]) {
    expect(ratio).toBeGreaterThan(0)
  }
  const accepts = handoff.commandstats['holdfast']?.find(({ command }) => command === 'fcall')
  expect(accepts?.calls).toBeGreaterThanOrEqual(40)
})

it('refuses what it does not know', () => {
  expect(run('--only', 'everything')).toMatchObject({ status: 2 })
  expect(run('--rounds', '0')).toMatchObject({ status: 2 })
})

it('finds what was executed never, twice or unasked', async () => {
  const { checkExactlyOnce } = (await import(join(bench, 'handoff', 'item.mjs'))) as {
    checkExactlyOnce(accepted: string[], executed: ReadonlyMap<string, number>): void
  }
  const once = new Map([
    ['m-1', 1],
    ['m-2', 1],
  ])
  expect(() => checkExactlyOnce(['m-1', 'm-2'], once)).not.toThrow()
  expect(() => checkExactlyOnce(['m-1', 'm-2', 'm-3'], once)).toThrow('1 never (m-3)')
  expect(() => checkExactlyOnce(['m-1'], new Map([['m-1', 2]]))).toThrow('1 twice (m-1)')
  expect(() => checkExactlyOnce(['m-1'], once)).toThrow('1 unasked (m-2)')
})
