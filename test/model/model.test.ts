import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openStore, type Store } from '../../src/record/connections.js'
import { loadLibrary } from '../../src/record/library.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { newCoverage } from './coverage.js'
import { plans } from './generate.js'
import { meetEveryAnswer, meetEveryGate, meetEveryLimit, reachCell } from './recipes.js'
import { inWorld, play } from './run.js'

/** Sequences of 40 to 90 steps. More of them: HOLDFAST_MODEL_RUNS=2000. One again: HOLDFAST_SEED=<seed>. */
const runs = Number(process.env['HOLDFAST_MODEL_RUNS'] ?? 140)
const seed = Number(process.env['HOLDFAST_SEED'] ?? Math.trunc(Math.random() * 2 ** 31))

describe('the record and its model', () => {
  let server: TestServer
  let store: Store

  beforeAll(async () => {
    server = await startTestServer()
    store = await openStore({ url: server.url, name: 'model' })
    await loadLibrary(store)
    await store.call(['CONFIG', 'SET', 'appendonly', 'no'])
  })
  afterAll(async () => {
    await store?.close()
    await server?.stop()
  })

  it(
    'answer every sequence of calls alike, and reach every cell',
    async () => {
      console.log(`model: HOLDFAST_SEED=${seed} HOLDFAST_MODEL_RUNS=${runs}`)
      const coverage = newCoverage()
      await fc.assert(
        fc.asyncProperty(plans, (sequence) => play(store, sequence, coverage)),
        { seed, numRuns: runs, endOnFailure: process.env['HOLDFAST_SHRINK'] === undefined },
      )
      const reached = coverage.table()
      for (const run of [meetEveryGate, meetEveryLimit, meetEveryAnswer]) await inWorld(store, coverage, run)
      const directed = coverage.missing().filter((each) => each.includes(' × '))
      for (const cell of directed) await inWorld(store, coverage, (world) => reachCell(world, cell))
      console.log(`${reached}\nreached by directed steps only: ${directed.join(', ') || 'none'}`)
      console.log(
        [...coverage.answers]
          .map(([answer, times]) => `${answer} ${times}`)
          .sort()
          .join(', '),
      )
      expect(coverage.missing(), 'cells and answers that no sequence reached').toEqual([])
    },
    10 * 60_000,
  )
})
