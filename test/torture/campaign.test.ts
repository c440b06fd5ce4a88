import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { figuresByFault, totalsOf } from '../../torture/campaign/figures.mjs'
import {
  beginSeeds,
  keepBuild,
  keepSeed,
  type Result,
  readResult,
  readSeeds,
  writeResult,
} from '../../torture/campaign/file.mjs'
import { dealHands, handSize } from '../../torture/campaign/hands.mjs'
import { judge } from '../../torture/campaign/judgement.mjs'
import type { SeedRecord } from '../../torture/campaign/seed.mjs'
import { replayOf, seedLine, summaryOf, tableOf } from '../../torture/campaign/words.mjs'

const record: SeedRecord = {
  seed: '7',
  kind: 'green',
  probe: true,
  faults: ['power-cut', 'power-cut', 'kill-hub'],
  struck: { 'power-cut': 5, 'kill-hub': 3 },
  messages: 1000,
  deliveries: 2500,
  lost: 0,
  twice: 0,
  unknown: 0,
  explained: 0,
  tookMs: 45_000,
  load: 2.5,
}
const setup = { build: '.', folder: '.', seconds: 30, rate: 100, fanOut: 4 }

describe('the hands of a campaign', () => {
  const names = ['power-cut', ...Array.from({ length: 11 }, (_, at) => `fault-${at}`)]
  const hands = dealHands({ first: 100, seeds: 66, names })

  it('are the same for the same first seed, and others for another', () => {
    expect(dealHands({ first: 100, seeds: 66, names })).toEqual(hands)
    expect(dealHands({ first: 101, seeds: 66, names })).not.toEqual(hands)
  })

  it('are a seed each, with different faults, each of them as often as the others', () => {
    expect(hands.map(({ seed }) => seed)).toEqual(Array.from({ length: 66 }, (_, at) => String(100 + at)))
    const dealt = hands.map(({ faults }) => faults.filter((name) => name !== 'power-cut'))
    for (const hand of dealt) expect(new Set(hand).size).toBe(handSize)
    for (const name of names.slice(1)) {
      expect(
        dealt.filter((hand) => hand.includes(name)),
        name,
      ).toHaveLength((66 * handSize) / 11)
    }
  })

  it('cut the power in every second seed, there half the time; some have no probe', () => {
    const cuts = hands.map(({ faults }) => faults.filter((name) => name === 'power-cut').length)
    expect(cuts).toEqual(hands.map((_, at) => (at % 2 === 0 ? handSize : 0)))
    const without = hands.filter(({ probe }) => !probe).length
    expect(without).toBeGreaterThan(6)
    expect(without).toBeLessThan(30)
  })

  it('are as large as there are faults, and have no power cut where there is none', () => {
    const [hand] = dealHands({ first: 1, seeds: 1, names: ['one', 'two'] })
    expect(hand?.faults.toSorted()).toEqual(['one', 'two'])
    expect(dealHands({ first: 1, seeds: 1, names: ['power-cut'] })[0]?.faults).toEqual(['power-cut'])
  })
})

describe('the judgement of a run', () => {
  const settled = { settled: true, isMoving: false }
  const verdict = { ok: true, violations: [], unexpected: [], isHealed: true, settled }
  const violation = (invariant: string, more: object = {}) => ({
    invariant,
    id: 'x',
    text: 'is wrong',
    evidence: [],
    ...more,
  })
  const kindOf = (bent: object | undefined) =>
    judge({
      code: 1,
      verdict: bent === undefined ? undefined : { ...verdict, ok: false, ...bent },
      stderr: 'torture: it hangs while settling\n',
      tookMs: 1,
    }).kind

  it('is green only where the run says so', () => {
    expect(kindOf({ ok: true })).toBe('green')
  })

  it('is red for whatever is wrong, also in a slow run', () => {
    for (const [invariant, means] of [
      ['I1', 'lost'],
      ['I2', 'twice'],
      ['I3', undefined],
      ['I7', undefined],
      ['unknown', undefined],
    ]) {
      expect(kindOf({ violations: [violation('rate'), violation(String(invariant), { means })] })).toBe('red')
    }
    const slow = { isHealed: false, settled: { settled: false, isMoving: true } }
    expect(kindOf({ ...slow, violations: [violation('I8', { means: 'lost' })] })).toBe('red')
    expect(kindOf({ ...slow, violations: [violation('I7', { means: 'lost' })] })).toBe('red')
    expect(kindOf({ unexpected: ['node a1 ended by itself'], violations: [violation('rate')] })).toBe('red')
  })

  it('is red where it stood still before all was settled', () => {
    expect(kindOf({ settled: { settled: false, isMoving: false } })).toBe('red')
  })

  it('is inconclusive where it was too slow, and nothing else was wrong', () => {
    expect(kindOf({ violations: [violation('rate')] })).toBe('inconclusive')
    expect(kindOf({ settled: { settled: false, isMoving: true }, violations: [violation('I7')] })).toBe(
      'inconclusive',
    )
    expect(kindOf({ isHealed: false, violations: [violation('I7'), violation('unknown')] })).toBe(
      'inconclusive',
    )
    expect(kindOf(undefined)).toBe('inconclusive')
  })

  it('says why', () => {
    const { why } = judge({ code: 1, verdict: undefined, stderr: 'torture: it hangs\n', tookMs: 1 })
    expect(why).toBe('no verdict (exit 1): torture: it hangs')
  })
})

describe('the figures of a campaign', () => {
  const red: SeedRecord = {
    ...record,
    seed: '8',
    kind: 'red',
    faults: ['kill-hub', 'mirror-power-cut'],
    struck: { 'kill-hub': 2, 'mirror-power-cut': 4 },
    lost: 1,
    unknown: 3,
    explained: 2,
  }
  const totals = totalsOf([record, { ...red, repeated: 'slow' }])

  it('are sums over all seeds', () => {
    expect(totals).toMatchObject({
      seeds: 2,
      green: 1,
      red: 1,
      inconclusive: 0,
      repeated: 1,
      deliveries: 5000,
      lost: 1,
      faults: 14,
      powerCuts: 5,
      mirrorPowerCuts: 4,
    })
    expect(summaryOf(totals).at(-1)).toBe(
      'acknowledged 5000, lost 1, executed twice 0, unknown 3 (1 of them unexplained)',
    )
  })

  it('are those of its runs for each fault', () => {
    const figures = figuresByFault([record, red], ['power-cut', 'kill-hub', 'memory'])
    expect(figures['power-cut']).toMatchObject({ runs: 1, struck: 5, deliveries: 2500, lost: 0 })
    expect(figures['kill-hub']).toMatchObject({ runs: 2, struck: 5, deliveries: 5000, lost: 1 })
    expect(figures['memory']).toMatchObject({ runs: 0, struck: 0, deliveries: 0 })
    expect(tableOf(figures)[1]).toMatch(/^power-cut +1 +5 +2,500 +0 +0 +0$/)
  })

  it('are told by seed, with the command that runs it again', () => {
    expect(seedLine({ ...red, why: 'I1 x: gone' })).toContain(
      'seed 8: red (I1 x: gone), acknowledged 2500, lost 1',
    )
    expect(replayOf({ ...record, probe: false }, setup)).toBe(
      'npm run torture -- --seed 7 --seconds 30 --rate 100 --fan-out 4 --faults power-cut,power-cut,kill-hub --no-probe',
    )
  })
})

describe('the files of a campaign', () => {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-campaign-test-'))
  afterAll(() => rmSync(dir, { recursive: true, force: true }))
  const plan = { first: 7, seeds: 2, seconds: 30, atOnce: 2, rate: 100, fanOut: 4, names: ['power-cut'] }

  it('keep each seed as it ends; an interruption loses at most the line it cuts', () => {
    const file = join(dir, 'seeds.jsonl')
    expect(readSeeds(file)).toBeUndefined()
    beginSeeds(file, { ...plan, build: 'b1' })
    keepSeed(file, { ...record, kind: 'inconclusive' })
    keepBuild(file, 'b2')
    keepSeed(file, record)
    writeFileSync(file, `${readFileSync(file, 'utf8')}{"seed":"8","ki`)
    expect(readSeeds(file)).toEqual({
      plan,
      builds: ['b1', 'b2'],
      records: new Map([['7', record]]),
    })
  })

  it('end in a result with a line a seed', () => {
    const result: Result = {
      ...plan,
      at: '2026-01-02T03:04:05.678Z',
      complete: false,
      version: '1',
      builds: ['b1'],
      machine: { cores: 2 },
      totals: totalsOf([record]),
      faults: figuresByFault([record], plan.names),
      notCounted: ['aof-cut'],
      leftOut: {},
      records: [record],
    }
    const file = join(dir, 'made', 'result.json')
    writeResult(file, result)
    expect(readResult(file)).toEqual(result)
    expect(readFileSync(file, 'utf8').split('\n')).toContain(`    ${JSON.stringify(record)}`)
  })
})
