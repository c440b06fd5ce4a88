import { afterAll, beforeAll, describe, test } from 'vitest'
import { makeRecord, type TestNode, type TestRecord } from '../support/record.js'
import type { TestServer } from '../support/server.js'
import { until } from '../support/until.js'
import type { Member } from '../topology/processes.js'
import { startSentinels, type TestSentinels } from '../topology/sentinel-of.js'
import {
  expectStaged,
  openShell,
  type RecipeShell,
  recipesOfSections,
  runStaged,
  type Stage,
} from './recipes.js'

// The recipes of docs/redis-cli.md for a primary that died, and a replica that was promoted without its last writes.

const recipes = recipesOfSections('After a failover')

let group: TestSentinels
let old: Member
let record: TestRecord
let shell: RecipeShell
let saw: { readonly node: TestNode; readonly logId: string }[]

beforeAll(async () => {
  group = await startSentinels(1)
  shell = openShell({ SENTINEL: String(group.sentinels[0]?.port), MASTER: 'holdfast' })
  record = await makeRecord({ url: group.url } as TestServer, 'hf', {
    heartbeat_ms: 600_000,
    stale_after_ms: 3_600_000,
  })
  saw = await workThatIsCut()
  shell.variables['PORT'] = String((await group.whenReplaced(old)).port)
  await until(() => record.hub.counts(), { timeoutMs: 20_000, what: 'the record on the new primary' })
})
afterAll(async () => {
  await record?.close()
  await group?.end()
  shell?.close()
})

/** An accept and a claim that the replica does not get, then the end of the primary; answers what each node saw. */
async function workThatIsCut(): Promise<typeof saw> {
  const n1 = await record.join('build-1', 'n1')
  const n2 = await record.join('build-2', 'n2')
  for (const host of ['build-1', 'build-2']) await record.accept({ to: [{ host }], conversation: 'c1' })
  const { logId: whole } = await record.claim(n2)
  old = await group.primary()
  await until(async () => Number(await old.call('WAIT', 1, 1000)) === 1, {
    what: 'the replica having all of it',
  })
  await until(async () => (await offsets()).size === 1, { what: 'the replica having all of it' })
  await group.cutReplicas()
  const { id } = await record.hub.accept({
    key: 'order-17',
    conversation: 'c42',
    sender: 'kim',
    to: [{ host: 'build-1' }],
    payload: 'hello',
  })
  shell.variables['MESSAGE'] = id
  const { logId: gone } = await record.claim(n1)
  await old.kill9()
  for (const server of group.servers) server.signal('SIGCONT')
  return [
    { node: n1, logId: gone },
    { node: n2, logId: whole },
  ]
}

/** How far each server is. */
async function offsets(): Promise<Set<string | undefined>> {
  const infos = await Promise.all(group.servers.map((server) => server.info('replication')))
  return new Set(infos.map((info) => info.get('master_repl_offset')))
}

const stages: readonly Stage[] = [
  {
    before: 'rewound_why',
    act: async () => {
      for (const { node, logId } of saw) await record.functions.join(node, 'i1', [], logId)
      await until(async () => {
        const entries = (await record.send('XRANGE', record.keys.log, '-', '+')) as [string, string[]][]
        return entries.some(([, fields]) => fields[1] === 'lost')
      })
    },
  },
  {
    before: 'slave0',
    act: async () => {
      await record.checkInvariants()
      await old.start()
      await group.whenInStep()
    },
  },
]

test('every stage has its recipe', () => expectStaged(stages, recipes))

describe('recipes', { sequential: true }, () => {
  test.each(recipes)('$section, line $line', (recipe) => runStaged(shell, stages, recipe))
})
