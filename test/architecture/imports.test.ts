import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  arrowsIn,
  entries,
  entryMayImport,
  exceptions,
  rooms,
  roomsIn,
  takeWordsAlone,
  valuesTakenIn,
  violationsIn,
} from './import-rules.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
const src = join(root, 'src')

it('every import follows the arrows', () => {
  expect(violationsIn(src)).toEqual([])
})

it.each(takeWordsAlone)('%s takes types and words from other rooms, and no package with them', (room) => {
  expect(valuesTakenIn(join(src, room))).toEqual([])
})

describe('ARCHITECTURE.md', () => {
  const page = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')
  const table = [...page.matchAll(/^\| `src\/([a-z]+)` +\|[^|]*\| ([^|]*?) *\|$/gm)]
  const said = Object.fromEntries(table.map(([, room = '', may = '']) => [room, wordsOf(may)]))

  it('has the rooms that there are, each with the rooms that it may import', () => {
    expect(Object.keys(said).sort()).toEqual(roomsIn(src))
    expect(said).toEqual(
      Object.fromEntries(Object.entries(rooms).map(([room, may]) => [room, [...may].sort()])),
    )
  })

  it('allows no arrow that the code has no use for', () => {
    const { 'index.ts': entry, ...arrows } = arrowsIn(src)
    const allowed = { ...rooms, ...entries }
    expect(arrows).toEqual(
      Object.fromEntries(
        Object.entries(allowed).flatMap(([from, into]) =>
          into.length === 0 ? [] : [[from, [...into].sort()]],
        ),
      ),
    )
    expect(entry).toEqual([...entryMayImport].sort())
  })

  it('draws arrows of the code alone, and all files that have one more', () => {
    const [drawing = ''] = /(?<=```\n)contract <-[\s\S]*?(?=```)/.exec(page) ?? []
    const arrows = arrowsIn(src)
    for (const line of drawing.trim().split('\n')) {
      const chain = line
        .replace(/\(.*$/, '')
        .split('<-')
        .map((each) => each.trim().replace(/[{}]/g, '').split(', '))
      expect(chain.length, line).toBeGreaterThan(1)
      for (const [at, into] of chain.slice(1).entries())
        for (const to of into)
          expect(arrows[to], `${line}: ${to}`).toEqual(expect.arrayContaining(chain[at] ?? []))
    }
    for (const [file, [into = '']] of Object.entries(exceptions)) {
      const at = drawing.indexOf(file.replace(/\.ts$/, ''))
      expect(at, `${file} is not drawn`).toBeGreaterThan(-1)
      expect(/-> (\w+)/.exec(drawing.slice(at))?.[1], file).toBe(into)
    }
  })

  it('names folders and files that there are', () => {
    const paths = [...page.matchAll(/`((?:src|lua|test|docs|scripts)\/[\w./-]+)`/g)].map(
      ([, path = '']) => path,
    )
    expect(paths.length).toBeGreaterThan(15)
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([])
  })
})

function wordsOf(may: string): string[] {
  return may === 'nothing of ours' ? [] : may.split(', ').sort()
}

/** Each breaks one rule: the file below src, and what it imports. */
const forbidden: readonly (readonly [file: string, imported: string])[] = [
  ['contract/a.ts', '../record/keys.js'],
  ['contract/b.ts', 'ioredis'],
  ['contract/deep/c.ts', '../../node/index.js'],
  ['set/a.ts', '../record/keys.js'],
  ['set/b.ts', '../hub/open-hub.js'],
  ['set/c.ts', '../client/client.js'],
  ['record/d.ts', '../set/hub-set-of.js'],
  ['node/g.ts', '../set/hub-set-of.js'],
  ['record/a.ts', '../hub/open-hub.js'],
  ['record/b.ts', '../node/mirror.js'],
  ['record/c.ts', 'bullmq'],
  ['hub/a.ts', '../node/mirror/store.js'],
  ['hub/b.ts', '../cli/main.js'],
  ['hub/c.ts', '../sweeps/schedule.js'],
  ['hub/d.ts', 'ioredis'],
  ['hub/e.ts', 'fastify'],
  ['sweeps/a.ts', '../http/server.js'],
  ['sweeps/b.ts', 'ioredis'],
  ['sweeps/c.ts', '../cli/serve.js'],
  ['sweeps/d.ts', 'fastify'],
  ['node/f.ts', 'bullmq'],
  ['cli/c.ts', 'bullmq'],
  ['http/a.ts', '../sweeps/schedule.js'],
  ['http/b.ts', 'bullmq'],
  ['node/a.ts', '../record/connections.js'],
  ['node/b.ts', '../hub/open-hub.js'],
  ['node/c.ts', 'libsql'],
  ['node/d.ts', 'node:sqlite'],
  ['node/mirror/a.ts', '../../record/keys.js'],
  ['node/transports/http.ts', '../../record/keys.js'],
  ['node/transports/other.ts', 'ioredis'],
  ['node/executors/a.ts', '@fastify/static'],
  ['node/transports/redis.ts', '../../hub/open-hub.js'],
  ['client/a.ts', '../hub/open-hub.js'],
  ['testing/a.ts', '../cli/main.js'],
  ['testing/b.ts', '../dashboard/main.js'],
  ['testing/c.ts', '../set/hub-set-of.js'],
  ['testing/d.ts', 'ioredis'],
  ['testing/e.ts', '../client/client.js'],
  ['dashboard/a.ts', '../client/client.js'],
  ['cli/a.ts', 'ioredis'],
  ['cli/d.ts', '../testing/index.js'],
  ['cli/e.ts', '../dashboard/hub.js'],
  ['index.ts', './testing/index.js'],
  ['cli/b.ts', 'better-sqlite3'],
  ['index.ts', './cli/main.js'],
  ['other.ts', './http/server.js'],
  ['third.ts', 'fastify'],
  ['fastify.ts', './hub/open-hub.js'],
  ['fastify.ts', './cli/serve.js'],
  ['fastify.ts', 'bullmq'],
  ['fastify.ts', '@fastify/static'],
]

const allowed: typeof forbidden = [
  ['contract/ok.ts', './ids.js'],
  ['record/ok.ts', 'ioredis'],
  ['record/ok2.ts', '../contract/ids.js'],
  ['set/ok.ts', '../contract/hub-set.js'],
  ['hub/ok.ts', '../record/keys.js'],
  ['hub/ok2.ts', '../set/hub-set-of.js'],
  ['client/ok.ts', '../set/hub-set-of.js'],
  ['sweeps/ok.ts', 'bullmq'],
  ['sweeps/ok2.ts', '../hub/audit.js'],
  ['http/ok.ts', '@fastify/static'],
  ['http/ok2.ts', '../hub/open-hub.js'],
  ['node/ok.ts', './transports/redis.js'],
  ['node/mirror/ok.ts', 'libsql'],
  ['node/transports/redis.ts', '../../record/keys.js'],
  ['testing/ok.ts', '../record/keys.js'],
  ['testing/ok2.ts', '../http/server.js'],
  ['testing/ok3.ts', '../sweeps/on-demand.js'],
  ['testing/checker/ok.ts', '../../hub/views.js'],
  ['cli/ok.ts', '../node/index.js'],
  ['cli/ok3.ts', '../sweeps/schedule.js'],
  ['cli/ok2.ts', './node.js'],
  ['fastify.ts', './http/plugin.js'],
  ['fastify.ts', './sweeps/schedule.js'],
]

/** Only the checker that reads the whole tree knows these; biome has no rule for them. */
const beyondBiome: typeof forbidden = [
  ['unheard/a.ts', '../contract/ids.js'],
  ['hub/f.ts', '../index.js'],
]

describe('the rules bite', () => {
  let tree: string

  beforeAll(() => {
    tree = mkdtempSync(join(tmpdir(), 'holdfast-imports-'))
    copyFileSync(join(root, 'biome.json'), join(tree, 'biome.json'))
    for (const [file, imported] of [...allowed, ...forbidden, ...beyondBiome]) plant(file, imported)
  })

  afterAll(() => rmSync(tree, { recursive: true, force: true }))

  /** A file of one import, after those that are there: two of the lists may name one file. */
  function plant(file: string, imported: string): void {
    const path = join(tree, 'src', file)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, `import '${imported}'\n`, { flag: 'a' })
  }

  it('in this suite, for each way to break them', () => {
    const found = violationsIn(join(tree, 'src')).map(({ file, imported }) => [file, imported])
    expect(found.sort()).toEqual([...forbidden, ...beyondBiome].map((each) => [...each]).sort())
  })

  it('for dynamic imports, exports and types too', () => {
    const other = mkdtempSync(join(tmpdir(), 'holdfast-imports-'))
    mkdirSync(join(other, 'contract'))
    const lines = [
      `export { keysOf } from '../record/a.js'`,
      `import type { Keys } from '../record/b.js'`,
      `export const load = () => import('../record/c.js')`,
      `export type Reader = import('../record/d.js').Reader`,
    ]
    writeFileSync(join(other, 'contract', 'a.ts'), lines.join('\n'))
    expect(violationsIn(other).map(({ imported }) => imported)).toEqual(
      ['a', 'b', 'c', 'd'].map((name) => `../record/${name}.js`),
    )
    rmSync(other, { recursive: true })
  })

  it('for values that are imported where words alone may be', () => {
    const other = mkdtempSync(join(tmpdir(), 'holdfast-imports-'))
    const values = [
      "import { a } from '../contract/a.js'",
      "import '../contract/b.js'",
      "export * from '../c.js'",
    ]
    const types = [
      "import type { D } from '../contract/d.js'",
      "import { e } from './e.js'",
      "import 'preact'",
    ]
    writeFileSync(join(other, 'a.tsx'), [...values, ...types].join('\n'))
    expect(valuesTakenIn(other)).toEqual(values.map((line) => `a.tsx: ${line}`))
    rmSync(other, { recursive: true })
  })

  it('in the linter, for the same files', () => {
    const biome = join(root, 'node_modules', '@biomejs', 'biome', 'bin', 'biome')
    const only = ['--only=style/noRestrictedImports', '--vcs-enabled=false', '--max-diagnostics=none']
    const { status, stdout } = spawnSync(
      process.execPath,
      [biome, 'lint', ...only, '--reporter=github', '.'],
      { cwd: tree, encoding: 'utf8' },
    )
    expect(status).toBe(1)
    const reported = [...stdout.matchAll(/noRestrictedImports,file=[^,]*\/src\/([^,]+),line=(\d+)/g)]
    const found = reported.map(([, file = '', line]) => [
      file,
      importOn(join(tree, 'src', file), Number(line)),
    ])
    expect(found.sort()).toEqual(forbidden.map((each) => [...each]).sort())
  })
})

function importOn(path: string, line: number): string {
  return readFileSync(path, 'utf8').split('\n')[line - 1]?.split("'")[1] ?? ''
}
