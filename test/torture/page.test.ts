import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { pageFile, reliabilityPage } from '../../scripts/reliability-page.mjs'
import type { Result } from '../../torture/campaign/file.mjs'
import { pageOf } from '../../torture/page/page.mjs'
import { groups } from '../../torture/page/scenarios.mjs'

// docs/reliability.md, against what it is made of and what it names.

const root = fileURLToPath(new URL('../../', import.meta.url))
const scenarios = groups.flatMap((group) => group.scenarios)
const faultFiles = [
  'torture/schedule.mjs',
  ...[...new Set(scenarios.flatMap(({ faults }) => faults))].map((name) => `torture/faults/${name}.mjs`),
]
const sources = faultFiles
  .filter((file) => existsSync(`${root}${file}`))
  .map((file) => readFileSync(`${root}${file}`, 'utf8'))

const campaign: Result = {
  first: 1,
  seeds: 2,
  seconds: 30,
  atOnce: 2,
  rate: 100,
  fanOut: 4,
  names: ['power-cut'],
  at: '2026-01-02T03:04:05.678Z',
  complete: false,
  version: '0.1.0',
  builds: ['def'],
  machine: { node: 'v20', server: 'redis-server 7', kernel: '6', cores: 2, cpu: 'a cpu', memoryGiB: 4 },
  totals: {
    seeds: 1,
    green: 1,
    red: 0,
    inconclusive: 0,
    repeated: 1,
    faults: 5,
    powerCuts: 5,
    mirrorPowerCuts: 0,
    minutes: 1,
    messages: 1000,
    deliveries: 3000,
    lost: 0,
    twice: 0,
    unknown: 0,
    explained: 0,
  },
  faults: {
    'power-cut': {
      runs: 1,
      struck: 5,
      messages: 1000,
      deliveries: 3000,
      lost: 0,
      twice: 0,
      unknown: 0,
      explained: 0,
    },
  },
  notCounted: ['aof-cut'],
  leftOut: { partition: 'no root' },
  records: [
    {
      seed: '1',
      kind: 'green',
      repeated: 'too slow',
      probe: true,
      faults: ['power-cut'],
      struck: { 'power-cut': 5 },
      messages: 1000,
      deliveries: 3000,
      lost: 0,
      twice: 0,
      unknown: 0,
      explained: 0,
      tookMs: 60_000,
      load: 2,
    },
  ],
}

it('the page is what scripts/reliability-page.mjs writes', () => {
  const there = existsSync(pageFile) ? readFileSync(pageFile, 'utf8') : ''
  expect(there, 'run node scripts/reliability-page.mjs').toBe(reliabilityPage())
})

describe('the scenarios', () => {
  it.each(scenarios.flatMap(({ tests }) => tests).map(({ file, name }) => [file, name] as const))(
    '%s has "%s"',
    (file, name) => {
      expect(existsSync(`${root}${file}`), `${file} is not there`).toBe(true)
      expect(readFileSync(`${root}${file}`, 'utf8')).toContain(name)
    },
  )

  it.each([...new Set(scenarios.flatMap(({ faults }) => faults))])('there is a fault %s', (name) => {
    const role = /^(kill|stop)-(hub|node|producer)$/.exec(name)
    const wanted = role === null ? `'${name}'` : `${role[1] === 'kill' ? 'killed' : 'frozen'}('${role[2]}'`
    expect(sources.some((source) => source.includes(wanted))).toBe(true)
  })

  it('are each covered by a test or a fault, and told once', () => {
    for (const { what, tests, faults } of scenarios)
      expect(tests.length + faults.length, what).toBeGreaterThan(0)
    const said = scenarios.map(({ what }) => what)
    expect(new Set(said).size).toBe(said.length)
    expect(said).toHaveLength(31)
  })
})

describe('the page of a campaign', () => {
  const template = readFileSync(`${root}torture/page/template.md`, 'utf8')
  const mutant = {
    name: 'm',
    broken: 'A safeguard is gone.',
    isControl: false,
    ok: true,
    kind: 'caught' as const,
    by: [],
    noticed: [],
    fault: 'kill-node',
    under: ['kill-node'],
    faults: 1,
    seed: '3',
    seconds: 1,
    acknowledged: 1,
    lost: 0,
    twice: 1,
    unknown: 0,
    first: '',
    tried: [],
  }
  const page = pageOf(template, {
    campaign,
    mutants: { at: '2026-01-02T03:04:05Z', right: 1, of: 1, mutants: [mutant] },
    mirrorPower: {
      at: '2026-01-02T03:04:05Z',
      cuts: 200,
      whileOpening: 50,
      acknowledged: 70_000,
      compared: 9000,
      lost: 0,
      returned: 0,
      wrong: 0,
      torn: 0,
      corrupt: 0,
    },
    groups,
  })

  it('has the figures, what they allow to say, and what was not made', () => {
    expect(page).toMatch(/\| deliveries acknowledged +\| +3,000 \|/)
    expect(page).toContain('below 3 in 3,000 (1.0e-3)')
    expect(page).toContain('1 of 2 seeds (it was ended before the rest)')
    expect(page).toMatch(/\| `power-cut` +\| +1 \| +5 \| +3,000 \|/)
    expect(page).toContain('- without `partition`: no root')
    expect(page).toContain('`aof-cut`')
  })

  it('names every seed that was not green at once, with the command for it', () => {
    expect(page).toContain('| too slow (at first) | green')
    expect(page).toContain(
      'npm run torture -- --seed 1 --seconds 30 --rate 100 --fan-out 4 --faults power-cut',
    )
  })

  it('has the mutants, and leaves no place open', () => {
    expect(page).toContain('200 cuts (50 while the mirror was being opened), 70,000 writes acknowledged')
    expect(page).toMatch(/\| A safeguard is gone\. +\| caught/)
    expect(page.match(/<!-- [a-z]+ -->/g)).toBeNull()
  })

  it('says so where nothing was run', () => {
    const none = { campaign: undefined, mutants: undefined, mirrorPower: undefined }
    const empty = pageOf(template, { ...none, groups })
    expect(empty).toContain('Not run yet.')
  })
})
