import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { makeFolder, startCli } from './run-cli.js'

// A command loads what it works with, and no more: server and schedule are most of what there is, then what connects
// to Redis and what a node keeps its mirror with.

const folder = makeFolder()
afterAll(folder.remove)

const heavy = ['bullmq', 'fastify', 'prom-client', 'libsql']
/** What works on the record itself. */
const ofTheRecord = ['ioredis', '@opentelemetry/api']
/** What only a completion, or a terminal, has a use for. */
const seldom = ['@bomb.sh/tab', 'cli-progress']

/** The packages that a command loaded, by what V8 says that it saw. */
async function loadedBy(args: readonly string[]): Promise<Set<string>> {
  const seen = join(folder.path, args.join('-').replaceAll('/', '_'))
  mkdirSync(seen)
  const { ended } = startCli(args, { cwd: folder.path, env: { NODE_V8_COVERAGE: seen } })
  await ended
  const texts = readdirSync(seen).map((name) => readFileSync(join(seen, name), 'utf8'))
  const urls = texts.flatMap((text) =>
    (JSON.parse(text) as { result: { url: string }[] }).result.map(({ url }) => url),
  )
  expect(urls.some((url) => url.endsWith('dist/cli/main.js'))).toBe(true)
  const packages = urls.map((url) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? '')
  return new Set(packages.filter(Boolean))
}

test.concurrent('a completion loads neither server nor schedule', async () => {
  const loaded = await loadedBy(['complete', '--', 'sweep', ''])
  expect([...loaded]).toContain('@bomb.sh/tab')
  expect([...heavy, 'cli-progress'].filter((name) => loaded.has(name))).toEqual([])
})

test.concurrent.each([
  [['--version']],
  [['sweep', '--help']],
  [['sweep', 'ls']], // there is no record: it fails, but only when all of it is loaded
  [['sweep', 'run', 'claims']],
  [['audit']],
  [['doctor']],
  [['top', '--once']],
  [['tail', '--no-follow']],
])('holdfast %j loads neither server nor schedule', async (args) => {
  const loaded = await loadedBy(args)
  expect([...loaded]).toContain('commander')
  expect([...heavy, ...seldom].filter((name) => loaded.has(name))).toEqual([])
})

test.concurrent.each([
  [['fence', 'ls', '--help']],
  [['node', '--help']],
  [['fence', 'ls', '--url', 'http://127.0.0.1:1']], // nobody listens
  [['complete', '--', 'fence', 'ls', '--']],
])('holdfast %j loads nothing that connects to a server', async (args) => {
  const loaded = await loadedBy(args)
  expect([...loaded]).toContain('commander')
  expect([...heavy, ...ofTheRecord].filter((name) => loaded.has(name))).toEqual([])
})

test('holdfast functions verify loads what connects: the tests above can fail', async () => {
  const loaded = await loadedBy(['functions', 'verify'])
  expect(ofTheRecord.filter((name) => !loaded.has(name))).toEqual([])
})
