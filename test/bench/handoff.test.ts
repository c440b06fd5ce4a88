import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'

// How fast anything is stands in docs/benchmarks.md; here only that the bench runs, checks and tells.

const bench = fileURLToPath(new URL('../../bench/', import.meta.url))
const systems = ['raw', 'functions', 'holdfast', 'bullmq', 'nats', 'nats_single', 'nats_synced', 'pgboss']
let dir: string

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'holdfast-bench-test-'))
  chmodSync(dir, 0o755) // PostgreSQL runs as another user, where this one is root
})

afterAll(() => rmSync(dir, { recursive: true, force: true }))

interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
  readonly rounds: readonly number[]
}

interface System extends Spread {
  readonly accept: Spread
  readonly fsync: string
  readonly nodeCpuUsPerMessage: number
}

/** What a reader of `bench/results/latest.json` may count on. */
interface Report {
  readonly handoff: {
    readonly at: string
    readonly quick: boolean
    readonly machine: Record<string, unknown>
    readonly messages: number
    readonly systems: Record<string, System>
    readonly skipped: Record<string, string>
    readonly ratios: Record<string, number>
    readonly functionsRatios: Record<string, number>
    readonly targets: Record<string, number>
    readonly serverTime: Record<string, { name: string; calls: number; usPerMessage: number }[]>
    readonly commandstats: Record<string, { command: string; calls: number }[]>
  }
}

function run(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const options = { encoding: 'utf8', timeout: 110_000 } as const
  return spawnSync(process.execPath, [join(bench, 'run.mjs'), ...args], options)
}

it('runs every system, exactly once each, and states its figures', { timeout: 120_000 }, () => {
  const out = join(dir, 'latest.json')
  const other = { title: 'Measured before', systems: {} }
  writeFileSync(out, JSON.stringify({ other, handoff: other }))
  const few = ['--only', 'handoff', '--messages', '40', '--rounds', '2', '--json', '--dir', dir, '--out', out]
  const { status, stdout, stderr } = run(...few)
  expect(stderr).toContain('round 2 of 2')
  expect(status).toBe(0)
  expect(readFileSync(out, 'utf8')).toBe(stdout)
  const { handoff, ...others } = JSON.parse(stdout) as Report
  expect(others).toEqual({ other })
  expect(handoff).toMatchObject({ quick: false, messages: 40, machine: { node: process.version } })
  expect(Date.parse(handoff.at)).toBeGreaterThan(0)
  const measured = Object.keys(handoff.systems)
  expect([...measured, ...Object.keys(handoff.skipped)].sort()).toEqual([...systems].sort())
  expect(measured).toEqual(expect.arrayContaining(['raw', 'functions', 'holdfast', 'bullmq']))
  for (const { accept, fsync, nodeCpuUsPerMessage, ...whole } of Object.values(handoff.systems)) {
    for (const { median, min, max, rounds } of [whole, accept]) {
      expect(rounds).toHaveLength(2)
      expect([min, median, max]).toEqual([min, median, max].sort((a, b) => a - b))
      expect(min).toBeGreaterThan(0)
    }
    expect(fsync).not.toBe('')
    expect(nodeCpuUsPerMessage).toBeGreaterThan(0)
  }
  const withRatio = measured.filter((name) => name !== 'holdfast' && name !== 'nats_single')
  expect(Object.keys(handoff.ratios)).toEqual(withRatio)
  expect(Object.keys(handoff.functionsRatios)).toEqual(withRatio.filter((name) => name !== 'functions'))
  for (const ratio of [...Object.values(handoff.ratios), ...Object.values(handoff.functionsRatios)]) {
    expect(ratio).toBeGreaterThan(0)
  }
  expect(handoff.targets).toEqual({ bullmq: 2, nats: 1.2, raw: 0.3 })
  const accepts = handoff.commandstats['holdfast']?.find(({ command }) => command === 'fcall')
  expect(accepts?.calls).toBeGreaterThan(0)
  for (const times of Object.values(handoff.serverTime)) {
    expect(times.map(({ name }) => name)).toContain('hf_claim')
    for (const { usPerMessage } of times) expect(usPerMessage).toBeGreaterThan(0)
  }
})

it('refuses what it does not know', () => {
  expect(run('--only', 'everything')).toMatchObject({ status: 2 })
  expect(run('--rounds', '0')).toMatchObject({ status: 2 })
})
