// @ts-check
// Where mutants are tried: copies of this checkout, each with a library of its own, and tests run in them.
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Tests of one file that are run in one copy. @typedef {{ copy: number, file: string, tests: readonly string[] }} Case */

/** How a test ended. @typedef {{ copy: number, file: string, name: string, status: string, said: string, ms: number }} Ended */

/** In each file nothing is run after the first failure: a mutant may make every test wait for its timeout. */
const STOPPING = `import { afterEach, beforeEach } from 'vitest'
let isOver = false
beforeEach((context) => { if (isOver) context.skip() })
afterEach(({ task }) => { isOver ||= task.result?.state === 'fail' })
`
const own = fileURLToPath(new URL('../..', import.meta.url))
const copied = ['src', 'test', 'dist', 'lua', 'scripts', 'package.json', 'tsconfig.json']

export class Stage {
  /** @type {string} */ dir
  /** @type {Set<number>} */ #broken = new Set()
  /** @type {Set<number>} */ #running = new Set()

  /** @param {number} copies */
  constructor(copies) {
    this.dir = mkdtempSync(join(tmpdir(), 'holdfast-guards-'))
    symlinkSync(join(own, 'node_modules'), join(this.dir, 'node_modules'))
    writeFileSync(join(this.dir, 'stopping.mjs'), STOPPING)
    for (let copy = 0; copy < copies; copy += 1) this.#make(copy)
  }

  /** @param {number} copy */
  #make(copy) {
    mkdirSync(this.copyDir(copy))
    execFileSync('cp', ['-a', ...copied.map((name) => join(own, name)), this.copyDir(copy)])
  }

  /** @param {number} copy */
  copyDir(copy) {
    return join(this.dir, `c${copy}`)
  }

  /** Puts the library of a copy right again, but for these files. @param {number} copy @param {ReadonlyMap<string, string>} files by name under lua/ */
  setLibrary(copy, files) {
    const lua = join(this.copyDir(copy), 'lua')
    if (this.#broken.has(copy)) {
      rmSync(lua, { recursive: true })
      execFileSync('cp', ['-r', join(own, 'lua'), this.copyDir(copy)])
    }
    this.#broken.add(copy)
    for (const [file, text] of files) writeFileSync(join(lua, file), text)
  }

  /**
   * Runs these tests, and no others of their files: `tests` are full names; all of the file where there are none.
   * @param {readonly Case[]} cases
   * @param {{ workers?: number, testMs?: number, setup?: string, runner?: string, env?: Record<string, string>, limitMs?: number }} [options]
   * @returns {Promise<Ended[]>} those that were run
   */
  async run(
    cases,
    { workers = 2, testMs = 12_000, setup = 'stopping.mjs', runner, env = {}, limitMs = 600_000 } = {},
  ) {
    const out = join(this.dir, `out-${process.hrtime.bigint()}.json`)
    const config = {
      root: this.dir,
      test: {
        include: ['c*/test/**/*.test.ts'],
        testTimeout: testMs,
        hookTimeout: testMs,
        maxWorkers: workers,
        setupFiles: setup === '' ? [] : [join(this.dir, setup)],
        runner,
        reporters: ['json'],
        outputFile: out,
        experimental: { fsModuleCache: true, fsModuleCachePath: join(this.dir, 'modules') },
      },
    }
    const configFile = `${out}.config.mjs`
    writeFileSync(configFile, `export default ${JSON.stringify(config)}\n`)
    const files = cases.map(({ copy, file }) => join(`c${copy}`, file))
    const names = [...new Set(cases.flatMap(({ tests }) => tests))]
    const only = names.length === 0 ? [] : ['-t', `^(?:${names.map(escaped).join('|')})$`]
    const vitest = join(own, 'node_modules/vitest/vitest.mjs')
    await this.#end(
      ['nice', process.execPath, vitest, 'run', '--config', configFile, ...only, ...files],
      env,
      limitMs,
    )
    if (!existsSync(out)) return [] // its time was over
    /** @type {{ testResults: { name: string, message: string, assertionResults: { fullName: string, status: string, duration?: number, failureMessages: string[] }[] }[] }} */
    const report = JSON.parse(readFileSync(out, 'utf8'))
    rmSync(out)
    rmSync(configFile)
    return report.testResults.flatMap((result) => {
      const [folder = '', ...rest] = relative(this.dir, result.name).split('/')
      return result.assertionResults
        .filter(({ status }) => status === 'passed' || status === 'failed')
        .map(({ fullName, status, duration = 0, failureMessages }) => ({
          copy: Number(folder.slice(1)),
          file: rest.join('/'),
          name: fullName,
          status,
          said: failureMessages.join('\n'),
          ms: Math.round(duration),
        }))
    })
  }

  /** Waits for a process; with the servers that it started it is killed when its time is over. @param {string[]} command @param {Record<string, string>} env @param {number} limitMs */
  #end([program = '', ...args], env, limitMs) {
    const own = { VITEST: undefined, VITEST_POOL_ID: undefined, VITEST_WORKER_ID: undefined }
    const child = spawn(program, args, {
      cwd: this.dir,
      detached: true,
      stdio: 'ignore',
      env: { ...process.env, ...env, ...own },
    })
    const pid = child.pid ?? 0
    this.#running.add(pid)
    const timer = setTimeout(() => killGroup(pid), limitMs)
    return new Promise((resolve) => {
      child.once('exit', () => {
        clearTimeout(timer)
        this.#running.delete(pid)
        resolve(undefined)
      })
    })
  }

  /** Ends what runs in it, and takes it away. */
  remove() {
    for (const pid of this.#running) killGroup(pid)
    rmSync(this.dir, { recursive: true, force: true })
  }
}

/** @param {string} text */
function escaped(text) {
  return text.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&')
}

/** @param {number} pid */
function killGroup(pid) {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}
