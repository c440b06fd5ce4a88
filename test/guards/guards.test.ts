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

  it('are found wherever a code is refused with', () => {
    const refusals =
      /(?:hf\.refuse|hf\.item_refused|\brefused)\([^()\n]*?'([A-Z_]{4,})'|\breturn '([A-Z_]{4,})'/g
    const files = new Set(guards.map(({ file }) => file))
    const missing = [...files].flatMap((file) => {
      const source = readFileSync(join(root, 'lua', file), 'utf8').replaceAll(/--.*$/gm, '')
      return [...source.matchAll(refusals)]
        .map(([, code = '', returned]) => returned ?? code)
        .filter(
          (code) => !guards.some((guard) => guard.file === file && guard.name.includes(`: refuses ${code} `)),
        )
        .map((code) => `${file} ${code}`)
    })
    expect(missing).toEqual([])
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

  it('are caught by tests that exist: otherwise npm run guards -- --only NAME', () => {
    const files = new Map<string, (name: string) => boolean>()
    for (const { file } of caught.values()) files.set(file, files.get(file) ?? nameOfFile(file))
    const gone = [...caught.values()].filter(({ file, test }) => !files.get(file)?.(test))
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
    // Every mutant of a file at once, each as the body of a function.
    const loaded = async (mutants: readonly Guard[]) => {
      const bodies = mutants.map((guard) => `do local function _(hf)\n${mutantOf(guard)}\nend end`)
      const code = ['#!lua name=mutants', ...bodies, "redis.register_function('hf_mutants', function() end)"]
      return await store.call(['FUNCTION', 'LOAD', 'REPLACE', code.join('\n')]).catch(String)
    }
    for (const file of new Set(guards.map((guard) => guard.file))) {
      const mutants = guards.filter((guard) => guard.file === file)
      if ((await loaded(mutants)) === 'mutants') continue
      for (const guard of mutants) expect(await loaded([guard]), guard.name).toBe('mutants')
      expect.fail(`the mutants of ${file} load one by one, and not all at once`)
    }
    await expect(loaded([{ ...guards[0], becomes: 'end end' } as Guard])).resolves.toMatch(/Error compiling/)
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
        const { file, tests } = cases[copy] ?? { file: '', tests: [''] }
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

/**
 * Whether the titles of a file can make the full name of a test: some quoted text there, filled in anyhow, is its end; or
 * its beginning, where the rest is a title that is filled in wholly.
 */
function nameOfFile(file: string): (name: string) => boolean {
  const source = readFileSync(join(root, file), 'utf8')
  const quoted = source.matchAll(/'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`|"((?:[^"\\\n]|\\.)*)"/g)
  const patterns = [...quoted].flatMap(([, single, template, double]) => {
    const text = (single ?? template ?? double ?? '').replaceAll(/\\(.)/g, '$1')
    const parts = text.split(/\$\{[^}]*\}|\$[\w.]+|%[sdifjoO#$c]/)
    if (parts.join('').trim().length < 4) return []
    return [parts.map((part) => part.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&')).join('.*')]
  })
  return (name) => patterns.some((pattern) => new RegExp(`(?:^| )${pattern}$|^${pattern} `).test(name))
}
