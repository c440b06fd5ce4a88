import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { environmentWithout, patternOf, runBlocks, type Session, sectionOf } from '../docs/blocks.js'
import { until } from '../support/until.js'
import { packInto, root } from './pack.js'

// The packed tarball in an empty folder of a machine that has Node and a Redis server program, and nothing else of
// ours: "Twenty lines" of README.md as printed, then the command line, and what a program gets.

/** What a producer loads with `holdfast/client`: of this package alone, and with all that it needs. */
const clientBudget = { ownBytes: 220_000, allBytes: 1_150_000 }

const { blocks, files } = sectionOf(readFileSync(join(root, 'README.md'), 'utf8'), 'Twenty lines')

let folder: string
let env: NodeJS.ProcessEnv
let session: Session
let dev: ChildProcess | undefined

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-installed-'))
  packInto(folder)
  env = {
    // `npm test` tells its scripts where their package is; a shell of its own would not have that.
    ...environmentWithout(/^(HOLDFAST_|NODE_ENV$|npm_(?!config_)|npm_config_(local_)?prefix$)/i),
    npm_config_prefer_offline: 'true',
    npm_config_update_notifier: 'false',
  }
  for (const { name, text } of files) writeFileSync(join(folder, name), text)
  session = await runBlocks(blocks, { folder, env, timeoutMs: 100_000 })
}, 120_000)
afterAll(async () => {
  dev?.kill('SIGKILL')
  await session?.end()
  rmSync(folder, { recursive: true, force: true })
})

test('the section installs the tarball and runs a program', () => {
  const all = blocks.map(({ script }) => script).join('')
  expect(all).toMatch(/npm install \.\/holdfast-\S+\.tgz/)
  expect(files.length).toBeGreaterThan(0)
  for (const { name } of files) expect(all).toContain(`node ${name}`)
  expect(blocks.some(({ expected }) => expected !== undefined)).toBe(true)
})

for (const [at, { title, expected }] of blocks.entries()) {
  test(`README, ${at + 1}: ${title}`, () => {
    const whole = session.printed.join('\n')
    expect(session.printed.length, `the session ended within this: ${whole}`).toBeGreaterThan(at + 1)
    if (expected !== undefined) expect(session.printed[at], whole).toMatch(patternOf(expected))
  })
}

test('the README leaves nothing running', () => {
  expect(session.status, session.printed.join('\n')).toBe(0)
  expect(session.leftRunning()).toBe(false)
})

function npx(...words: string[]): string {
  const { status, stdout, stderr } = spawnSync('npx', ['--no-install', 'holdfast', ...words], {
    cwd: folder,
    env,
    encoding: 'utf8',
    timeout: 60_000,
  })
  expect(status, stderr).toBe(0)
  return stdout
}

test('npx holdfast: a record, a hub with a node, a message, its outcome', async () => {
  rmSync(join(folder, '.holdfast'), { recursive: true, force: true })
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  expect(npx('--version')).toBe(`${version}\n`)
  expect(npx('init')).toMatch(/^record +made$/m)

  // Not through npx, which hands no signal on.
  const program = join(folder, 'node_modules', '.bin', 'holdfast')
  const words = ['dev', '--host', 'build-1', '--exec', 'sha256sum', '--json']
  dev = spawn(program, words, { cwd: folder, env, stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  dev.stderr?.on('data', (bytes: Buffer) => {
    said += bytes.toString()
  })
  await until(() => said.includes('"msg":"ready"'), { timeoutMs: 30_000, what: 'holdfast dev' })

  const sent = npx('send', '--conversation', 'c1', '--to', 'host:build-1', '--key', 'k1', '--wait', 'hello')
  const [, id = ''] = /^(\d+-\d+)\.1 /m.exec(sent) ?? []
  const shown = JSON.parse(npx('message', 'show', id, '--json')) as {
    readonly deliveries: readonly { readonly attempts: readonly { readonly result?: string }[] }[]
  }
  expect(shown.deliveries[0]?.attempts[0]?.result, sent).toContain('2cf24dba5fb0a30e26e83b2ac5b9e29e')

  dev.kill('SIGTERM')
  await until(() => dev?.exitCode !== null, { timeoutMs: 20_000, what: 'the end of holdfast dev' })
  expect(dev.exitCode, said).toBe(0)
}, 120_000)

/** The files that a program loaded, by what V8 says that it saw. */
function loadedBy(program: string): string[] {
  const seen = join(folder, 'seen')
  mkdirSync(seen)
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: folder,
    env: { ...env, NODE_V8_COVERAGE: seen },
    encoding: 'utf8',
  })
  expect(status, stderr).toBe(0)
  return readdirSync(seen)
    .flatMap((name) => {
      const { result } = JSON.parse(readFileSync(join(seen, name), 'utf8')) as { result: { url: string }[] }
      return result.map(({ url }) => url)
    })
    .filter((url) => url.startsWith('file:') && url.includes('/node_modules/'))
    .map((url) => fileURLToPath(url))
}

test('a producer loads a client, and neither Redis, SQLite, a server nor a schedule', () => {
  const loaded = loadedBy(`import { openClient } from 'holdfast/client'
    await openClient({ url: 'http://127.0.0.1:9' }).close()`)
  const packages = new Set(loaded.map((path) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]))
  expect([...packages].sort()).toEqual(['eventsource-parser', 'holdfast', 'zod'])
  const bytesOf = (paths: readonly string[]) => paths.reduce((sum, path) => sum + statSync(path).size, 0)
  const own = loaded.filter((path) => path.includes('/node_modules/holdfast/'))
  expect(bytesOf(own)).toBeLessThanOrEqual(clientBudget.ownBytes)
  expect(bytesOf(loaded)).toBeLessThanOrEqual(clientBudget.allBytes)
})

const consumer = `import { createNode, openHub, type HubCalls } from 'holdfast'
import { openClient } from 'holdfast/client'
import { holdfast } from 'holdfast/fastify'
import { commandExecutor } from 'holdfast/node'
import { startSweeps } from 'holdfast/sweeps'
import { crashTest, openTestRecord, type CrashVerdict } from 'holdfast/testing'

export const kept: Promise<Date> = openTestRecord().then(async (record) => new Date(await record.clock.now()))
export const verdict: Promise<CrashVerdict> = crashTest({ handler: '/h.mjs', effects: ({ id }) => id.length })
export const hub: Promise<HubCalls> = openHub({ redis: 'redis://127.0.0.1' })
export const client: HubCalls = openClient({ url: 'http://127.0.0.1:8090' })
export const executor = commandExecutor({ command: 'true' })
export const node = createNode({ host: 'a', redis: '', mirror: 'a.db', execute: ({ payload }) => payload.length })
export const swept: Promise<void> = startSweeps({ redis: '' }).then((sweeps) => sweeps.stop())
export const plugin: (...words: never[]) => Promise<void> = holdfast
// @ts-expect-error a recipient is a host or a session
export const refused = client.accept({ key: 'k', conversation: 'c', to: [{ queue: 'a' }], payload: '' })
`

test('a strict TypeScript program compiles against it, our own declarations looked at too', () => {
  const file = join(folder, 'consumer.mts')
  writeFileSync(file, consumer)
  const program = ts.createProgram([file], {
    strict: true,
    noEmit: true,
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2023.d.ts'],
    exactOptionalPropertyTypes: true,
    typeRoots: [join(root, 'node_modules', '@types')],
    types: ['node'],
  })
  const ours = program
    .getSourceFiles()
    .filter(({ fileName }) => fileName === file || fileName.includes('/node_modules/holdfast/'))
  expect(ours.length).toBeGreaterThan(10)
  const problems = [
    ...program.getGlobalDiagnostics(),
    ...ours.flatMap((source) => [
      ...program.getSyntacticDiagnostics(source),
      ...program.getSemanticDiagnostics(source),
    ]),
  ]
  const host = { getCanonicalFileName: String, getCurrentDirectory: () => folder, getNewLine: () => '\n' }
  expect(ts.formatDiagnostics(problems, host)).toBe('')
}, 60_000)
