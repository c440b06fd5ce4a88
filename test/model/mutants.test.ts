import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openStore, type Store } from '../../src/record/connections.js'
import { loadLibrary } from '../../src/record/library.js'
import { type Mutant, makeMutant, mutants } from '../support/mutants.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { newCoverage } from './coverage.js'
import { type Plan, plans } from './generate.js'
import { play } from './run.js'

/** Faults of the steps that are taken in one call. */
const takeMutants: readonly Mutant[] = [
  {
    name: 'a take of what is not its own',
    file: 'lib/take.lua',
    text: '  if code then return hf.item_refused(id, code, row) end\n',
    becomes: '',
    caughtBy: 0,
  },
  {
    name: 'a take that leaves the entry pending',
    file: 'lib/take.lua',
    text: '  hf.leave_stream(ctx, row.host, row.entry)\n',
    becomes: '',
    caughtBy: 0,
  },
  {
    name: 'a take that nobody waits for',
    file: 'lib/take.lua',
    text: '  hf.await(ctx, row.host, row.id)\n',
    becomes: '',
    caughtBy: 0,
  },
  {
    name: 'a handoff that is not written where nothing is begun',
    file: 'lib/take.lua',
    text: '  hf.write_pending(ctx, row)\n',
    becomes: '',
    caughtBy: 0,
  },
  {
    name: 'a handoff that is written over what a fence did',
    file: 'lib/begin.lua',
    text: '    hf.write_pending(ctx, row)\n    hf.stop_by(',
    becomes: '    hf.stop_by(',
    caughtBy: 78,
  },
  {
    name: 'a handoff that is written over what a deadline did',
    file: 'lib/begin.lua',
    text: '    hf.write_pending(ctx, row)\n    hf.fail_delivery(',
    becomes: '    hf.fail_delivery(',
    caughtBy: 2,
  },
  {
    name: 'what was handed off and stopped in one call is waited for',
    file: 'lib/context.lua',
    text: "  apply_lists(ctx.awaiting_remove, 'ZREM', hf.key.awaiting, ctx.tag)\n",
    becomes: '',
    caughtBy: 0,
  },
]

/** The same sequences every time. Where a mutant names one that caught it, the search begins there. */
const sequences = fc.sample(plans, { seed: 20_250_101, numRuns: 120 })

describe('the model test', () => {
  let server: TestServer
  let store: Store
  const caught: string[] = []

  beforeAll(async () => {
    server = await startTestServer()
    store = await openStore({ url: server.url, name: 'mutants' })
    await store.call(['CONFIG', 'SET', 'appendonly', 'no'])
  })
  afterAll(async () => {
    console.log(caught.join('\n'))
    await store?.close()
    await server?.stop()
  })

  /** The first words of the failure, or undefined when every sequence passed. */
  async function search(mutant: Mutant): Promise<string | undefined> {
    const made = makeMutant(mutant)
    try {
      await loadLibrary(store, { luaDir: made.luaDir })
      for (let looked = 0; looked < sequences.length; looked += 1) {
        const at = (mutant.caughtBy + looked) % sequences.length
        const said = await failureOf(sequences[at] ?? [])
        if (said !== undefined) return `by sequence ${at}: ${said}`
      }
      return undefined
    } finally {
      made.remove()
    }
  }

  async function failureOf(sequence: readonly Plan[]): Promise<string | undefined> {
    try {
      await play(store, sequence, newCoverage())
      return undefined
    } catch (error) {
      const [said = ''] = String(error).split('\nafter these calls:')
      return said.replaceAll(/\s+/g, ' ').slice(0, 160)
    }
  }

  it.each([...mutants, ...takeMutants])('catches: $name', async (mutant) => {
    const found = await search(mutant)
    caught.push(`${mutant.name}: ${found ?? 'NOT CAUGHT'}`)
    expect(found, `${mutant.name} passed ${sequences.length} sequences`).toBeDefined()
  })
})
