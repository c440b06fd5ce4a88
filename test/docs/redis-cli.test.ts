import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { messageOf } from '../../src/contract/ids.js'
import { type OpenRecord, openRecord, type TestNode } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import {
  allRecipes,
  expectStaged,
  openShell,
  type RecipeShell,
  runStaged,
  type Stage,
  sectionsOfLosses,
} from './recipes.js'

// Runs the recipes of docs/redis-cli.md in the order of the page, on a record that is brought into the state a
// recipe is for. Those of lost servers have tests of their own beside this one.

const recipes = allRecipes.filter(({ section }) => !sectionsOfLosses.some((each) => each === section))

let server: TestServer
let record: OpenRecord
let node: TestNode
let recipeShell: RecipeShell
const shell: Record<string, string> = { HOST: 'build-1', CONVERSATION: 'c42', SESSION: 'agent-7' }

beforeAll(async () => {
  server = await startTestServer()
  shell['PORT'] = String(server.port)
  recipeShell = openShell(shell)
  record = await openRecord(server, { name: 'hf' })
  await record.config('heartbeat_ms', 600_000) // its nodes send none: nobody is to be excused for that
})
afterAll(async () => {
  await record?.close()
  await server?.stop()
  recipeShell?.close()
})

async function queue(host: string, conversation: string): Promise<string> {
  const reply = await record.accept({ to: [{ host }], conversation, payload: 'hello' })
  return reply.deliveries[0]?.id ?? ''
}

/** A delivery of the conversation, queued and then offered to the node. */
async function offered(): Promise<string> {
  const id = await queue('build-1', 'c42')
  await record.claimAll(node)
  return id
}

const stages: readonly Stage[] = [
  {
    before: "HGETALL '{hf}:counts'",
    act: async () => {
      node = await record.join('build-1', 'n1')
      shell['RUNNING'] = await queue('build-1', 'c1')
      const [running] = await record.deliverAll(node)
      await record.begin(node, running ?? { id: '', epoch: 0 }, 'grant-1')
      for (const conversation of ['c2', 'c2', 'c42']) await queue('build-1', conversation)
      await record.claim(node, 2)
      shell['DELIVERY'] = await queue('build-2', 'c42')
      shell['MESSAGE'] = messageOf(shell['DELIVERY'])
    },
  },
  {
    before: "SMEMBERS '{hf}:parked'",
    act: async () => {
      shell['DELIVERY'] = await offered()
    },
  },
  {
    before: 'hf_hold 1',
    act: async () => {
      expect(await record.deliverAll(node), 'what the lifted pauses had parked').toHaveLength(2)
    },
  },
  {
    before: "ZRANGE '{hf}:held' 0 -1",
    act: async () => {
      shell['DELIVERY'] = await offered()
      shell['OTHER'] = await offered()
      await offered()
    },
  },
  {
    before: 'hf_hold_delivery 1',
    act: async () => {
      shell['DELIVERY'] = await queue('build-2', 'c2')
    },
  },
  {
    before: 'state attempts failed_code failed_detail',
    act: async () => {
      shell['DELIVERY'] = await offered()
    },
  },
  {
    before: "HSET '{hf}:config' stale_after_ms soon",
    act: async () => {
      expect(await staleAfterMs()).toBe(15_000)
    },
  },
  {
    before: "HDEL '{hf}:config' stale_after_ms",
    act: async () => {
      expect(await record.send('HGET', record.keys.config, 'stale_after_ms')).toBe('soon')
      expect(await staleAfterMs()).toBe(10_000)
    },
  },
  {
    before: "ZRANGE '{hf}:unknown'",
    act: async () => {
      const outcome = { kind: 'outcome_unknown', errorCode: 'connection_lost' } as const
      const item = { id: `${shell['RUNNING']}/1`, grant: 'grant-1', key: 'key-1', outcome }
      expect(await record.functions.report(node, [item])).toMatchObject([{ ok: true }])
    },
  },
  {
    before: "HGETALL '{hf}:sweep:claims'",
    act: async () => {
      const did = { found: 1, repaired: 1, left: 0, notes: ['an entry'], cursor: '', by: 'hub-1' }
      await record.functions.noteSweep('claims', { ...did, durationMs: 3 })
    },
  },
]

async function staleAfterMs(): Promise<number> {
  return (await record.functions.join(node, 'i1', [], '0-0')).staleAfterMs
}

test('every stage has its recipe', () => {
  expect(recipes.filter(({ expected }) => expected.length > 0).length).toBeGreaterThan(20)
  expectStaged(stages, recipes)
})

describe('recipes', { sequential: true }, () => {
  test.each(recipes)('$section, line $line', (recipe) => runStaged(recipeShell, stages, recipe))
})
