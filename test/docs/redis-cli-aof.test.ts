import { readdirSync, rmSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeRecord, type TestNode, type TestRecord } from '../support/record.js'
import { startServerProcess, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'
import {
  expectStaged,
  openShell,
  type RecipeShell,
  recipesOfSections,
  runStaged,
  type Stage,
} from './recipes.js'

// The recipes of docs/redis-cli.md for a server that was killed and lost the end of its append-only file, then
// for one that lost everything.

const recipes = recipesOfSections('After a lost AOF tail', 'After everything was lost')

let server: TestServer
let record: TestRecord
let shell: RecipeShell
let saw: { readonly node: TestNode; readonly logId: string }[]

beforeAll(async () => {
  server = await startServerProcess()
  shell = openShell({ PORT: String(server.port), DATA: server.dir })
  // Its nodes send no heartbeats: they are waited for until the test lets them speak.
  record = await makeRecord(server, 'hf', { heartbeat_ms: 600_000, stale_after_ms: 3_600_000 })
  saw = await workThatIsCut()
})
afterAll(async () => {
  await record?.close()
  await server?.stop()
  shell?.close()
})

async function queue(host: string, conversation: string): Promise<string> {
  const reply = await record.accept({ to: [{ host }], conversation })
  return reply.deliveries[0]?.id ?? ''
}

/** One begun and two queued, then an accept and a claim that the server loses; answers what each node saw last. */
async function workThatIsCut(): Promise<typeof saw> {
  const n1 = await record.join('build-1', 'n1')
  const n2 = await record.join('build-2', 'n2')
  shell.variables['RUNNING'] = await queue('build-1', 'c1')
  const [running] = await record.deliverAll(n1)
  await record.begin(n1, running ?? { id: '', epoch: 0 })
  shell.variables['DELIVERY'] = await queue('build-1', 'c2')
  shell.variables['OTHER'] = await queue('build-1', 'c3')
  await queue('build-2', 'c4')
  const { logId: whole } = await record.claim(n2)
  const file = liveFile()
  const { size } = statSync(file)
  await record.hub.accept({
    key: 'order-17',
    conversation: 'c42',
    sender: 'kim',
    to: [{ host: 'build-1' }],
    payload: 'hello',
  })
  const { logId: gone } = await record.claim(n1)
  await server.kill9()
  truncateSync(file, size + 20)
  return [
    { node: n1, logId: gone },
    { node: n2, logId: whole },
  ]
}

function liveFile(): string {
  const folder = join(server.dir, 'appendonlydir')
  const name = readdirSync(folder).find((each) => each.endsWith('.incr.aof'))
  return join(folder, name ?? '')
}

const stages: readonly Stage[] = [
  { before: 'master_replid', act: () => server.restart() },
  {
    before: "HGETALL '{hf}:doubted'",
    act: async () => {
      for (const { node, logId } of saw) await record.functions.join(node, 'i1', [], logId)
      await until(
        async () => Number(await record.send('XLEN', record.keys.log)) > 0 && (await named('lost')),
        {
          what: 'the hub naming what was lost',
        },
      )
    },
  },
  {
    before: 'reported_outcome',
    act: async () => {
      await record.checkInvariants()
    },
  },
  {
    before: "EXISTS '{hf}:identity'",
    act: async () => {
      await record.checkInvariants()
      await server.kill9()
      rmSync(join(server.dir, 'appendonlydir'), { recursive: true })
      await server.restart()
    },
  },
]

async function named(verb: string): Promise<boolean> {
  const entries = (await record.send('XRANGE', record.keys.log, '-', '+')) as [string, string[]][]
  return entries.some(([, fields]) => fields[1] === verb)
}

test('every stage has its recipe', () => expectStaged(stages, recipes))

describe('recipes', { sequential: true }, () => {
  test.each(recipes)('$section, line $line', (recipe) => runStaged(shell, stages, recipe))

  test('epochs of the new record are above those of the lost one', async () => {
    const id = await queue('build-1', 'c1')
    const node = await record.join('build-1', 'n1')
    const [claimed] = await record.claimAll(node)
    expect(claimed?.id).toBe(id)
    expect(claimed?.epoch).toBeGreaterThan(1_000_000)
  })
})
