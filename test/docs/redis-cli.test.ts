import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isErrorCode } from '../../src/contract/errors.js'
import { messageOf } from '../../src/contract/ids.js'
import { findProgram } from '../../src/record/server-process.js'
import { type OpenRecord, openRecord, type TestNode } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

// Runs every recipe of docs/redis-cli.md, in the order of the page, on a record that is brought into the
// state a recipe is for. Shell variables stand for ids.

interface Recipe {
  readonly section: string
  readonly line: number
  readonly script: string
  /** The lines that must come in this order, others between them; `…` is anything. */
  readonly expected: readonly string[]
}

const page = readFileSync(fileURLToPath(new URL('../../docs/redis-cli.md', import.meta.url)), 'utf8')
const recipes = recipesOf(page)

let server: TestServer
let record: OpenRecord
let node: TestNode
let folder: string
const shell: Record<string, string> = { HOST: 'build-1', CONVERSATION: 'c42', SESSION: 'agent-7' }

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-recipes-'))
  server = await startTestServer()
  const program = findProgram('redis-cli') ?? findProgram('valkey-cli')
  writeFileSync(join(folder, 'redis-cli'), `#!/bin/sh\nexec '${program}' -e -p ${server.port} "$@"\n`)
  chmodSync(join(folder, 'redis-cli'), 0o755)
  record = await openRecord(server, { name: 'hf' })
  await record.config('heartbeat_ms', 600_000) // its nodes send none: nobody is to be excused for that
})
afterAll(async () => {
  await record?.close()
  await server?.stop()
  rmSync(folder, { recursive: true, force: true })
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

/** What happens before the recipe that holds the text: it brings the record into the state it is about. */
const stages: readonly { readonly before: string; readonly act: () => Promise<void> }[] = [
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
  for (const { before } of stages) {
    expect(
      recipes.filter(({ script }) => script.includes(before)),
      before,
    ).toHaveLength(1)
  }
})

describe('recipes', { sequential: true }, () => {
  test.each(recipes)('$section, line $line', async ({ script, expected }) => {
    for (const { before, act } of stages) if (script.includes(before)) await act()
    const ended = spawnSync('sh', ['-euc', script], {
      encoding: 'utf8',
      env: { ...process.env, ...shell, PATH: `${folder}${delimiter}${process.env['PATH']}` },
      timeout: 20_000,
    })
    const output = ended.stdout + ended.stderr
    const refused = isErrorCode(expected[0]?.split(' ')[0] ?? '')
    expect(ended.status, output).toBe(refused ? 1 : 0)
    expect(firstMissing(output.split('\n'), expected), output).toBeUndefined()
  })
})

/** The expected line that does not come after the ones before it. */
function firstMissing(lines: readonly string[], expected: readonly string[]): string | undefined {
  let at = 0
  for (const line of expected) {
    const found = lines.slice(at).findIndex((each) => patternOf(line).test(each))
    if (found < 0) return line
    at += found + 1
  }
  return undefined
}

function patternOf(line: string): RegExp {
  return new RegExp(`^${line.split('…').map(escaped).join('.+')}$`)
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
}

/** The `sh` blocks of the page; a `text` block right after one is what it prints. */
function recipesOf(text: string): Recipe[] {
  const found: Recipe[] = []
  const blocks = text.matchAll(/^## (.+)$|^```sh\n([\s\S]*?)^```\n(?:\n```text\n([\s\S]*?)^```\n)?/gm)
  let section = 'the start'
  for (const [, heading, script, output = ''] of blocks) {
    if (heading !== undefined) section = heading
    if (script === undefined) continue
    const line = text.slice(0, text.indexOf(script)).split('\n').length
    found.push({ section, line, script, expected: output.split('\n').filter(Boolean) })
  }
  return found
}
