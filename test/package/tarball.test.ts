import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join, posix } from 'node:path'
import { checkPackage, createPackageFromTarballData, type Package } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Packed, packInto, root } from './pack.js'

// What is in the package that would be published, and how it presents itself to Node and to TypeScript.

interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>
  readonly bin: Readonly<Record<string, string>>
}

/** What the package may weigh. Raise it on purpose, with what the bytes are for. */
const budget = { packedBytes: 780_000, unpackedBytes: 2_500_000, files: 840 }

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest
/** The entries with code and types. */
const entries = Object.entries(manifest.exports).flatMap(([name, target]) =>
  typeof target === 'string' ? [] : [{ name, ...target }],
)

let folder: string
let packed: Packed
let contents: Package

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-pack-'))
  packed = packInto(folder)
  contents = createPackageFromTarballData(packed.bytes)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function textOf(path: string): string {
  return contents.readFile(`/node_modules/holdfast/${path}`)
}

test('publint has nothing to say, not even a suggestion', async () => {
  const { messages, pkg } = await publint({
    pack: { tarball: packed.bytes.buffer },
    strict: true,
    level: 'suggestion',
  })
  expect(messages.map((message) => formatMessage(message, pkg))).toEqual([])
})

test('every entry resolves with its types wherever ES modules do', async () => {
  const found = await checkPackage(contents)
  if (found.types === false) throw new Error('the package has no types')
  expect(Object.keys(found.entrypoints).sort()).toEqual(Object.keys(manifest.exports).sort())
  // What its command line calls `--profile esm-only`: neither CommonJS nor the resolution of Node 10 is offered.
  const notOffered = ['node10', 'node16-cjs']
  const wrong = found.problems.filter(
    (each) => !('resolutionKind' in each && notOffered.includes(each.resolutionKind)),
  )
  expect(wrong).toEqual([])
})

test('every room with a public index is an entry', () => {
  const rooms = readdirSync(join(root, 'src')).filter((name) =>
    existsSync(join(root, 'src', name, 'index.ts')),
  )
  expect(entries.map(({ name }) => name).sort()).toEqual(
    ['.', './fastify', ...rooms.map((name) => `./${name}`)].sort(),
  )
  for (const { name, types, default: code } of entries) {
    expect(packed.files.has(posix.normalize(types)), `${name}: ${types}`).toBe(true)
    expect(packed.files.has(posix.normalize(code)), `${name}: ${code}`).toBe(true)
  }
})

test('it keeps to its size', () => {
  expect(packed.bytes.length).toBeLessThanOrEqual(budget.packedBytes)
  expect(packed.unpackedSize).toBeLessThanOrEqual(budget.unpackedBytes)
  expect(packed.files.size).toBeLessThanOrEqual(budget.files)
})

test('it holds code with its types, the page, the Lua library, and four files beside', () => {
  const kinds = [
    /^(package\.json|README\.md|LICENSE|CHANGELOG\.md)$/,
    /^lua\/(lib|testing|functions)\/\w+\.lua$/,
    /^lua\/library\.lock\.json$/,
    /^dist\/dashboard\/(index\.html|assets\/[\w.-]+\.(js|css|svg))(\.gz|\.br)?$/,
    /^dist\/(?!dashboard\/)[\w/-]+\.(js|d\.ts)$/,
  ]
  const paths = [...packed.files.keys()]
  expect(paths.filter((path) => !kinds.some((kind) => kind.test(path)))).toEqual([])
  const lua = readdirSync(join(root, 'lua'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(lua|json)$/.test(name))
    .map((name) => `lua/${name}`)
  expect(paths.filter((path) => path.startsWith('lua/')).sort()).toEqual(lua.sort())
  const code = paths.filter((path) => /^dist\/(?!dashboard\/).*\.js$/.test(path))
  const types = paths.filter((path) => path.endsWith('.d.ts'))
  expect(types.sort()).toEqual(code.map((path) => path.replace(/\.js$/, '.d.ts')).sort())
})

/** What a file of the package imports of the package. */
function importsOf(path: string): string[] {
  const found = textOf(path).matchAll(/(?:\bfrom|\bimport)\s*\(?\s*['"](\.[^'"]+)['"]/g)
  return [...found].map(([, name = '']) => posix.join(posix.dirname(path), name))
}

function typesOf(path: string): string {
  return path.replace(/\.js$/, '.d.ts')
}

test('all of its code is reached from an entry or from the command line', () => {
  // Started as a program of its own, and never imported.
  const programs = ['dist/testing/crash-process.js']
  const start = [...entries.map((entry) => entry.default), ...Object.values(manifest.bin), ...programs]
  const reached = new Set<string>()
  const ahead = start.map((path) => posix.normalize(path))
  for (let path = ahead.pop(); path !== undefined; path = ahead.pop()) {
    if (reached.has(path)) continue
    expect(packed.files.has(path), `${path} is not in the package`).toBe(true)
    reached.add(path)
    ahead.push(...importsOf(path), ...importsOf(typesOf(path)))
  }
  const code = [...packed.files.keys()].filter((path) => /^dist\/(?!dashboard\/).*\.js$/.test(path))
  expect(code.filter((path) => !reached.has(path))).toEqual([])
})

test('it names no folder of the machine that packed it, and no place that packages come from', () => {
  const registry = execFileSync('npm', ['config', 'get', 'registry'], { cwd: root, encoding: 'utf8' }).trim()
  const strange = [root, `${homedir()}/`, new URL(registry).host, '/home/', '/Users/', 'file://']
  for (const path of packed.files.keys()) {
    if (/\.(gz|br)$/.test(path)) continue // of files that are looked at themselves
    const text = textOf(path)
    expect(
      [
        ...strange.filter((word) => text.includes(word)),
        ...(text.match(/\bregistry\.[a-z]\w+\.[a-z]+\b/gi) ?? []),
      ],
      path,
    ).toEqual([])
  }
})

test('no source map is promised that is not there', () => {
  const promising = [...packed.files.keys()].filter(
    (path) => /\.(js|css)$/.test(path) && textOf(path).includes('sourceMappingURL='),
  )
  expect(promising).toEqual([])
})
