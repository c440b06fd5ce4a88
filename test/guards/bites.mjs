// @ts-check
// Which guard bites in which test: found by running tests on a library that tells of every bite in the log of its server.
import { chmodSync, existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ownLua } from './guards.mjs'

/** @type {typeof import('../../src/record/server-process.ts')} */
const { findServer } = await import(new URL('../../dist/record/server-process.js', import.meta.url).href)

/** @typedef {import('./guards.mjs').Guard} Guard */
/** @typedef {import('./stage.mjs').Stage} Stage */
/** A test that passes without a mutant, and how many guards bite in it. @typedef {{ file: string, name: string, ms: number, guards: number }} Test */

const BITE = `function hf.bite(number, value)
  if value then redis.log(redis.LOG_WARNING, 'BITE ' .. number) end
  return value
end
function hf.refusal(number, call)
  local answered, value = pcall(call)
  hf.bite(number, not answered)
  if not answered then error(value, 0) end
  return value
end
`
const SETUP = `import { appendFileSync } from 'node:fs'
import { afterEach, beforeEach } from 'vitest'
const log = process.env.HOLDFAST_BITES + '.' + process.env.VITEST_POOL_ID
const nameOf = (task) => (task.suite?.name ? nameOf(task.suite) + ' ' : '') + task.name
beforeEach(({ task }) => appendFileSync(log, 'TEST ' + JSON.stringify([task.file.name, nameOf(task)]) + '\\n'))
afterEach(() => appendFileSync(log, 'DONE\\n'))
`

/** The library with every guard telling of its bites, by its place in the list. @param {readonly Guard[]} guards @returns {Map<string, string>} */
function telling(guards) {
  /** @type {Map<string, string>} */
  const files = new Map([['lib/_bite.lua', BITE]])
  for (const file of new Set(guards.map((guard) => guard.file))) {
    let [text, done] = ['', 0]
    const source = readFileSync(join(ownLua, file), 'utf8')
    for (const { at, put } of marksIn(guards, file)) {
      text += source.slice(done, at) + put
      done = at
    }
    files.set(file, text + source.slice(done))
  }
  return files
}

/** What is put into a file, in order: marks of what stands within another are within its marks. @param {readonly Guard[]} guards @param {string} file */
function marksIn(guards, file) {
  return guards
    .flatMap((guard, number) => {
      if (guard.file !== file) return []
      const [before, after] = guard.marks
      return [
        {
          at: guard.from,
          closes: false,
          inner: -guard.to,
          tie: number,
          put: before.replace('BITE(', `hf.bite(${number}, `).replace('REFUSAL(', `hf.refusal(${number}, `),
        },
        { at: guard.to, closes: true, inner: -guard.from, tie: -number, put: after },
      ]
    })
    .sort((one, other) => {
      return (
        one.at - other.at ||
        Number(other.closes) - Number(one.closes) ||
        one.inner - other.inner ||
        one.tie - other.tie
      )
    })
}

/**
 * Runs test files without a mutant; answers, by the place of each guard, the tests that pass and in which it bites.
 * @param {Stage} stage @param {readonly Guard[]} guards @param {readonly string[]} files @returns {Promise<Map<number, Test[]>>}
 */
export async function bitesIn(stage, guards, files) {
  const log = join(stage.dir, 'bites')
  const program = join(stage.dir, 'redis-server')
  // By a name of its own: one binary is several programs, and goes by its name.
  symlinkSync(findServer()?.path ?? '', `${program}-itself`)
  writeFileSync(
    program,
    `#!/bin/sh\nexec ${program}-itself "$@" --logfile "$HOLDFAST_BITES.$VITEST_POOL_ID"\n`,
  )
  chmodSync(program, 0o755)
  writeFileSync(join(stage.dir, 'setup.mjs'), SETUP)
  stage.setLibrary(0, telling(guards))
  const cases = files.map((file) => ({ copy: 0, file, tests: [] }))
  const ended = await stage.run(cases, {
    testMs: 60_000,
    setup: 'setup.mjs',
    env: { HOLDFAST_BITES: log, HOLDFAST_TEST_REDIS_PROGRAM: program },
    limitMs: 3_600_000,
  })
  for (const { file, name, said } of ended.filter(({ status }) => status === 'failed')) {
    console.error(`fails without a mutant: ${file}: ${name}: ${said.slice(0, 300)}`)
  }
  /** @type {Map<string, Set<number>>} */
  const bites = new Map()
  for (let worker = 1; existsSync(`${log}.${worker}`); worker += 1) {
    readBites(readFileSync(`${log}.${worker}`, 'utf8'), bites)
    rmSync(`${log}.${worker}`)
  }
  /** @type {Map<number, Test[]>} */
  const tests = new Map()
  for (const { file, name, ms, status } of ended) {
    const bitten = bites.get(JSON.stringify([file, name]))
    if (status !== 'passed' || bitten === undefined) continue
    for (const number of bitten) {
      tests.set(number, [...(tests.get(number) ?? []), { file, name, ms, guards: bitten.size }])
    }
  }
  return tests
}

/** @param {string} text @param {Map<string, Set<number>>} bites by file and name of the test */
function readBites(text, bites) {
  /** @type {Set<number> | undefined} */
  let current
  for (const line of text.split('\n')) {
    if (line.startsWith('TEST ')) {
      const [file, name] = JSON.parse(line.slice(5))
      const key = JSON.stringify([file.replace(/^c\d+\//, ''), name])
      current = bites.get(key) ?? new Set()
      bites.set(key, current)
    } else if (line === 'DONE') {
      current = undefined
    } else {
      const bite = /BITE (\d+)$/.exec(line)
      if (bite !== null) current?.add(Number(bite[1]))
    }
  }
}
