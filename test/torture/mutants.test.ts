import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { brokenFiles } from '../../torture/mutants/build.mjs'
import { controls, mutants } from '../../torture/mutants/list.mjs'
import { faultOf, timeOf } from '../../torture/mutants/moment.mjs'
import { lineOf, resultOf } from '../../torture/mutants/result.mjs'
import { loadFaults } from '../../torture/schedule.mjs'

describe('the mutants of the torture', () => {
  it.each([...controls, ...mutants])(
    '$name: applies to the build as it is, under faults that exist',
    async (mutant) => {
      const known = [...(await loadFaults()).keys()]
      expect(() => brokenFiles(mutant)).not.toThrow()
      expect(known).toEqual(expect.arrayContaining(mutant.faults))
      expect(mutant.seeds.length).toBeGreaterThan(0)
    },
  )

  it('break something, and say which promise is missed by it; the controls break nothing', () => {
    for (const mutant of mutants) {
      expect(brokenFiles(mutant).size).toBeGreaterThan(0)
      expect(mutant.by.length).toBeGreaterThan(0)
    }
    for (const control of controls) expect(control.edits).toHaveLength(0)
  })

  it('have names of their own', () => {
    const names = [...controls, ...mutants].map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
  })

  it('refuse a text that the package no longer has', () => {
    const [mutant] = mutants
    const edits = [{ file: 'package.json', text: 'no such text', becomes: '' }]
    expect(() => brokenFiles({ ...mutant, edits } as typeof mutant & object)).toThrow('stands 0 times')
  })
})

describe('what a mutant was caught by', () => {
  const evidence = (...lines: string[]) => ({ invariant: 'I2', id: 'm.1', text: 'twice', evidence: lines })

  it('has the time at which its evidence was complete', () => {
    expect(timeOf(evidence('marks-a1-1.jsonl:3 {"t":"70"}', 'marks-a1-1.jsonl:9 {"t":"90"}'))).toBe(90)
    expect(timeOf(evidence('record m.1 held epoch 2'))).toBe(Number.POSITIVE_INFINITY)
  })

  it('has it on one clock, also where only the log tells of it', () => {
    const now = Number(process.hrtime.bigint())
    const told = timeOf(evidence(`log ${Date.now()}-0 claim by a/a1 m.1 queued>claimed`))
    expect(Math.abs(told - now)).toBeLessThan(1e9)
  })

  it('is told with the last fault that had begun by then, or with the one that took what is lost', () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-mutants-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const faults = [
      { t: '10', kind: 'fault', type: 'begin', name: 'kill-node', target: { role: 'node', name: 'a1' } },
      { t: '20', kind: 'fault', type: 'end', name: 'kill-node', target: { role: 'node', name: 'a1' } },
      { t: '30', kind: 'fault', type: 'begin', name: 'power-cut', target: { role: 'redis', name: 'redis' } },
    ]
    writeFileSync(
      join(folder, 'conductor-run-1.jsonl'),
      faults.map((line) => `${JSON.stringify(line)}\n`).join(''),
    )
    const at = (t: number) => evidence(`marks-a1-1.jsonl:3 {"t":"${t}"}`)
    expect(faultOf(folder, at(5))).toBe('none yet')
    expect(faultOf(folder, at(25))).toBe('kill-node node a1')
    expect(faultOf(folder, evidence('record m.1'))).toBe('power-cut redis')
    expect(faultOf(folder, { ...at(25), means: 'lost' })).toBe('power-cut redis')
    expect(faultOf(folder, { ...at(35), means: 'lost' })).toBe('power-cut redis')
  })

  it('is a line that names the invariants, the fault, the seed and what was lost', () => {
    const [control] = controls
    const [mutant] = mutants
    if (control === undefined || mutant === undefined) throw new Error('there are none')
    const counts = { acknowledged: 10, lost: 3, twice: 0, unknown: 0 }
    const found = {
      by: [{ invariant: 'I8', ids: 3 }],
      noticed: [],
      fault: 'power-cut redis',
      first: '',
      counts,
      faults: 2,
    }
    const run = { seed: '7', seconds: 31.5, isControl: false }
    const caught = resultOf(mutant, { ...run, found: { ...found, kind: 'caught' } })
    expect(caught.ok).toBe(true)
    expect(lineOf(caught)).toContain('| yes | I8 (3) | power-cut redis | 7 | 31.5 | acknowledged 10, lost 3,')
    const other = resultOf(mutant, { ...run, found: { ...found, kind: 'other' } })
    expect(other.ok).toBe(false)
    expect(lineOf(other)).toContain('| NO (other) |')
    const green = resultOf(control, {
      ...run,
      isControl: true,
      found: { ...found, by: [], fault: '', kind: 'green' },
    })
    expect(green.ok).toBe(true)
    expect(
      lineOf({
        ...green,
        tried: [
          { seed: '1', kind: 'green' },
          { seed: '2', kind: 'green' },
        ],
      }),
    ).toContain('| 1 2 |')
  })
})
