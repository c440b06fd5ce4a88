import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openStore, type Store } from '../../src/record/connections.js'
import { assembleLibrary } from '../../src/record/library.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { readCaught } from './caught.mjs'
import { exempt } from './exempt.mjs'
import { type Guard, guardsOf, mutantOf } from './guards.mjs'
import { Stage } from './stage.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const guards = guardsOf()
const caught = readCaught()
const tried = guards.filter(({ name }) => !exempt.has(name))

describe('the guards of lua/', () => {
  it('have names of their own, and are many', () => {
    expect(new Set(guards.map(({ name }) => name)).size).toBe(guards.length)
    expect(guards.length).toBeGreaterThan(400)
  })

  it('are those whose mutants were tried: otherwise npm run guards', () => {
    const names = new Set(tried.map(({ name }) => name))
    expect({
      'not tried yet': tried.filter(({ name }) => !caught.has(name)).map(({ name }) => name),
      'no guards any more': [...caught.keys()].filter((name) => !names.has(name)),
      'in a function that changed': tried
        .filter(({ name, digest }) => (caught.get(name)?.digest ?? digest) !== digest)
        .map(({ name }) => name),
    }).toEqual({ 'not tried yet': [], 'no guards any more': [], 'in a function that changed': [] })
  })

  it('are caught by tests that exist', () => {
    const titles = new Map<string, RegExp[]>()
    for (const { file } of caught.values()) if (!titles.has(file)) titles.set(file, titlesIn(file))
    const gone = [...caught.values()].filter(
      ({ file, test }) => !titles.get(file)?.some((title) => title.test(test)),
    )
    expect(gone).toEqual([])
  })

  it('are few that no test can catch, and each of these exists and says why', () => {
    const names = new Set(guards.map(({ name }) => name))
    expect([...exempt.keys()].filter((name) => !names.has(name))).toEqual([])
    expect([...exempt.values()].every((why) => why.length > 20)).toBe(true)
    expect(exempt.size).toBeLessThan(15)
  })
})

describe('their mutants', () => {
  let server: TestServer
  let store: Store

  beforeAll(async () => {
    server = await startTestServer()
    store = await openStore({ url: server.url, name: 'guards' })
  })
  afterAll(async () => {
    await store?.close()
    await server?.stop()
  })

  it('load', async () => {
    const { code } = assembleLibrary()
    for (const guard of guards) {
      const source = readFileSync(join(root, 'lua', guard.file), 'utf8').trimEnd()
      const mutant = mutantOf(guard).trimEnd()
      expect(code.split(source), guard.file).toHaveLength(2)
      const loaded = await store
        .call(['FUNCTION', 'LOAD', 'REPLACE', code.replace(source, () => mutant)])
        .catch(String)
      expect(loaded, guard.name).toBe('holdfast')
    }
  })

  it('are caught by the tests that are said to catch them: six, others after each change of the library', async () => {
    const stage = new Stage(6)
    try {
      const sample = sampleOf(tried, 6)
      const cases = sample.map((guard, copy) => {
        const entry = caught.get(guard.name)
        if (entry === undefined) throw new Error(`${guard.name} was not tried yet: npm run guards`)
        stage.setLibrary(copy, new Map([[guard.file, mutantOf(guard)]]))
        return { copy, file: entry.file, tests: [entry.test] }
      })
      const ended = await stage.run(cases, { testMs: 60_000 })
      const told = sample.map(({ name }, copy) => {
        const { file, tests } = cases[copy] ?? { file: '', tests: [] }
        const found = ended.find((each) => each.copy === copy && tests.includes(each.name))
        return `${name}, by ${file} ${tests[0]}: ${found?.status ?? 'not run'}`
      })
      expect(told.filter((line) => !line.endsWith(': failed'))).toEqual([])
    } finally {
      stage.remove()
    }
  })
})

/** So many, spread over the list: which ones follows from the digest of the library. */
function sampleOf(list: readonly Guard[], count: number): Guard[] {
  const { digest } = assembleLibrary()
  return Array.from({ length: count }, (_, at) => {
    const part = Number.parseInt(digest.slice(at * 4, at * 4 + 4), 16) / 0x1_0000
    return list[Math.floor(((at + part) * list.length) / count)]
  }).filter((guard) => guard !== undefined)
}

/** The titles of a file's tests, and whatever else is quoted there; what a title is filled with may be anything. */
function titlesIn(file: string): RegExp[] {
  const source = readFileSync(join(root, file), 'utf8')
  const quoted = source.matchAll(/'((?:[^'\\\n]|\\.)+)'|`((?:[^`\\]|\\.)+)`|"((?:[^"\\\n]|\\.)+)"/g)
  return [...quoted].flatMap(([, single, template, double]) => {
    const text = (single ?? template ?? double ?? '').replaceAll(/\\(.)/g, '$1')
    const parts = text.split(/\$\{[^}]*\}|\$[\w.]+|%[sdifjoO#$c]/)
    if (parts.join('').trim().length < 4) return []
    return [
      new RegExp(`(?:^| )${parts.map((part) => part.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&')).join('.*')}$`),
    ]
  })
}
