import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { sweepNames } from '../../src/contract/sweeps.js'
import { makeFolder } from '../cli/run-cli.js'
import { call, startHubServer, type TestHubServer } from '../support/http.js'
import { makeRecord, type TestNode, type TestRecord } from '../support/record.js'
import { startServerProcess, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'
import { commandsIn, problemOfCommand } from './commands.js'
import { expectStaged, openShell, type RecipeShell, recipesOf, runStaged, type Stage } from './recipes.js'

// Runs docs/operations.md, in the order of the page, on a record with two hosts.

const file = fileURLToPath(new URL('../../docs/operations.md', import.meta.url))
const page = readFileSync(file, 'utf8')
const recipes = recipesOf(page)
const folder = makeFolder()

let server: TestServer
let record: TestRecord
let hub: TestHubServer
let shell: RecipeShell
let node: TestNode
let seen: string

beforeAll(async () => {
  server = await startServerProcess()
  shell = openShell({ PORT: String(server.port), DATA: server.dir, BACKUP: join(folder.path, 'backup') })
  record = await makeRecord(server, 'hf', { heartbeat_ms: 600_000 })
  hub = await startHubServer(record)
  node = await record.join('build-1', 'n1')
  for (const host of ['build-1', 'build-2']) await record.accept({ to: [{ host }], conversation: host })
})
afterAll(async () => {
  await hub?.close()
  await record?.close()
  await server?.stop()
  shell?.close()
  folder.remove()
})

async function sweepAll(): Promise<void> {
  for (const name of sweepNames) {
    const { status, text } = await call(hub.url, { method: 'POST', path: `/v1/sweeps/${name}/run` })
    expect(status, text).toBe(200)
  }
}

const stages: readonly Stage[] = [
  { before: 'holdfast doctor', act: sweepAll },
  {
    before: 'mv "$DATA',
    act: async () => {
      seen = (await record.claim(node)).logId
      await server.kill9()
    },
  },
  {
    before: 'rewound_why',
    act: async () => {
      await server.restart()
      await record.functions.join(node, 'i1', [], seen)
      await until(async () => (await record.hub.unknown()).length > 0, { what: 'what is set aside' })
    },
  },
  { before: 'holdfast sweep ls', act: sweepAll },
]

test('every stage has its recipe', () => expectStaged(stages, recipes))

describe('the page, as it is run', { sequential: true }, () => {
  test.each(recipes)('$section, line $line', (recipe) => runStaged(shell, stages, recipe))
})

describe('what the page names', () => {
  const links = [...page.matchAll(/\]\(([^)#]*)(?:#([\w-]+))?\)/g)].map(([, path = '', anchor]) => ({
    path,
    anchor,
  }))

  test.each(links)('$path $anchor is there', ({ path, anchor }) => {
    const target = path === '' ? file : join(dirname(file), path)
    expect(existsSync(target)).toBe(true)
    if (anchor === undefined) return
    const headings = [...readFileSync(target, 'utf8').matchAll(/^##+ (.+)$/gm)].map(([, text = '']) =>
      text
        .toLowerCase()
        .replaceAll(/[^\w -]/g, '')
        .replaceAll(' ', '-'),
    )
    expect(headings).toContain(anchor)
  })

  test('commands are those of the command line', () => {
    const consoles = [...page.matchAll(/^```console\n([\s\S]*?)^```/gm)].map(([, block = '']) => block)
    const commands = [
      ...commandsIn(page),
      ...commandsIn(consoles.map((block) => `\`\`\`sh\n${block}\`\`\`\n`).join('')),
    ]
    expect(commands.length).toBeGreaterThan(12)
    for (const command of commands) expect(problemOfCommand(command), command).toBeUndefined()
  })

  test('Prometheus reads the rules, under the job that they name', () => {
    const [, text = ''] = /^```yaml\n([\s\S]*?)^```/m.exec(page) ?? []
    expect(parse(text)).toMatchObject({
      rule_files: ['alerts.yml'],
      scrape_configs: [{ job_name: 'holdfast' }],
    })
  })
})
