import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createWriteStream, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../src/record/embedded.js'
import { findServer, serverState } from '../../src/record/server-process.js'
import { type OpenRecord, openRecord } from '../support/record.js'
import type { TestServer } from '../support/server.js'
import { until } from '../support/until.js'
import {
  expectStaged,
  openShell,
  type RecipeShell,
  recipesOfSections,
  runStaged,
  type Stage,
} from './recipes.js'

// The recipes of docs/redis-cli.md for a server whose disk is full: its files may not grow beyond a size any more,
// which it takes as it takes a full disk.

const recipes = recipesOfSections('After a full disk')

let dir: string
let port: number
let server: ChildProcess
let record: OpenRecord
let shell: RecipeShell

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'holdfast-disk-'))
  port = await freePort()
  await start()
  shell = openShell({ PORT: String(port), DATA: dir })
  record = await openRecord({ url: `redis://127.0.0.1:${port}` } as TestServer, { name: 'hf' })
  await record.acceptMany(3)
  fill()
  await record.send('SET', 'too-much', 'x'.repeat(100_000)).catch(() => undefined)
  await until(() => server.exitCode !== null, { what: 'the server ending itself' })
})
afterAll(async () => {
  await record?.close()
  server?.kill('SIGKILL')
  shell?.close()
  rmSync(dir, { recursive: true, force: true })
})

/** A server that is told of a full disk by an error, not by a signal; its log is not on that disk. */
async function start(): Promise<void> {
  const program = findServer()
  if (program === undefined) throw new Error('no Redis server program: run node scripts/ensure-server.mjs')
  const path = join(dir, program.name)
  rmSync(path, { force: true })
  symlinkSync(program.path, path)
  const settings = ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--save', '']
  const durable = ['--appendonly', 'yes', '--appendfsync', 'always']
  const started = spawn('sh', ['-c', 'trap "" XFSZ; exec "$0" "$@"', path, ...settings, ...durable], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  started.stdout.pipe(createWriteStream(join(dir, 'server.log'), { flags: 'a' }))
  server = started
  await until(async () => (await serverState(port)).kind === 'ready', { what: 'the server answering' })
}

const limit = (bytes: number | 'unlimited') =>
  execFileSync('prlimit', ['--pid', String(server.pid), `--fsize=${bytes}:`])

/** From now on no file takes more than a few bytes beyond what the append-only file holds. */
function fill(): void {
  const folder = join(dir, 'appendonlydir')
  const appended = readdirSync(folder).filter((name) => name.endsWith('.incr.aof'))
  limit(Math.max(...appended.map((name) => statSync(join(folder, name)).size)) + 7)
}
const makeRoom = () => limit('unlimited')

const stages: readonly Stage[] = [
  { before: 'aof_enabled', act: start },
  {
    before: 'HGETALL',
    act: () => record.checkInvariants(),
  },
  {
    before: '|| true',
    act: async () => {
      await until(async () =>
        /aof_rewrite_in_progress:0/.test(String(await record.send('INFO', 'persistence'))),
      )
      await record.send('CONFIG', 'SET', 'appendfsync', 'everysec')
      fill()
      await until(() =>
        record.send('SET', 'more', 'x').then(
          () => false,
          (error) => /MISCONF/.test(String(error)),
        ),
      )
    },
  },
]

test('every stage has its recipe', () => expectStaged(stages, recipes))

describe('recipes', { sequential: true }, () => {
  test.each(recipes)('$section, line $line', (recipe) => runStaged(shell, stages, recipe))

  test('with everysec it goes on by itself once there is room', async () => {
    makeRoom()
    await until(() => record.accept())
    expect(server.exitCode).toBeNull()
    await record.checkInvariants()
  })
})
