import { describe, expect, it } from 'vitest'
import { brokenText } from '../../torture/mutants/build.mjs'
import { mutants } from '../../torture/mutants/list.mjs'
import { loadFaults } from '../../torture/schedule.mjs'

describe('the mutants of the torture', () => {
  it.each(mutants)('$name: applies to the build as it is, under faults that exist', async (mutant) => {
    const known = [...(await loadFaults()).keys()]
    expect(() => brokenText(mutant)).not.toThrow()
    expect(known).toEqual(expect.arrayContaining(mutant.faults))
    expect(mutant.seeds.length).toBeGreaterThan(0)
  })

  it('have names of their own', () => {
    expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length)
  })
})
