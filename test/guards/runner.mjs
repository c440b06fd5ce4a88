// @ts-check
// Runs a test again and again, each time on another mutant: the library is read anew whenever a test opens its record. A
// test that fails is run on the library as it is before it counts, so that nothing a mutant left behind is taken for a catch.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { VitestTestRunner } from 'vitest/runners'
import { guardsOf, mutantOf, ownLua } from './guards.mjs'

/** @typedef {import('vitest').RunnerTestCase} Test */
/** A line of the results. @typedef {{ guard: number, file: string, test: string, ms: number, said: string, end: 'caught' | 'passed' | 'slow' }} Tried */

/** What is to be tried, by file and name of the test: places in the list of guards. @typedef {Record<string, Record<string, number[]>>} Plan */

const guards = guardsOf()
const FOR_EVER = 1_000_000

export default class extends VitestTestRunner {
  /** @type {Plan} */ #plan = JSON.parse(readFileSync(process.env['HOLDFAST_GUARDS_PLAN'] ?? '', 'utf8'))
  /** @type {number[]} */ #waiting = []
  /** @type {number | undefined} */ #guard
  /** The failure that a run on the whole library is to confirm. @type {Tried | undefined} */ #failure
  #file = ''
  #lua = ''
  #startedAt = 0
  #isOver = false

  /** @override @param {Test} test */
  async onBeforeRunTask(test) {
    await super.onBeforeRunTask(test)
    const [copy = '', ...rest] = test.file.name.split('/')
    this.#file = rest.join('/')
    this.#lua = join(process.env['HOLDFAST_GUARDS_STAGE'] ?? '', copy, 'lua')
    this.#waiting = this.#isOver ? [] : (this.#plan[this.#file]?.[nameOf(test)] ?? []).filter(isOpen)
    if (this.#waiting.length === 0) test.mode = 'skip'
    test.repeats = FOR_EVER
  }

  /** @override @param {Test} test */
  onBeforeTryTask(test) {
    super.onBeforeTryTask(test)
    this.#guard = this.#failure === undefined ? this.#waiting.shift() : undefined
    if (this.#guard !== undefined) this.#write(this.#guard, true)
    this.#startedAt = performance.now()
  }

  /** @param {Test} test */
  async onAfterRetryTask(test) {
    const ms = Math.round(performance.now() - this.#startedAt)
    const [error] = test.result?.state === 'fail' ? (test.result.errors ?? []) : []
    if (this.#guard === undefined) this.#confirm(error === undefined)
    else
      this.#judge(
        this.#guard,
        { file: this.#file, test: nameOf(test), ms, said: error?.message ?? '' },
        error !== undefined,
      )
    while (this.#waiting[0] !== undefined && !isOpen(this.#waiting[0])) this.#waiting.shift()
    test.result = { startTime: 0, retryCount: 0, state: 'run' }
    // Which ends the repeats.
    if (this.#failure === undefined && this.#waiting.length === 0)
      Object.assign(test.result, { pending: true })
  }

  /** @param {number} guard @param {Omit<Tried, 'guard' | 'end'>} tried @param {boolean} hasFailed */
  #judge(guard, tried, hasFailed) {
    this.#write(guard, false)
    if (!hasFailed) tell({ guard, ...tried, end: 'passed' })
    else this.#failure = { guard, ...tried, end: /timed out in \d+ms/.test(tried.said) ? 'slow' : 'caught' }
  }

  /** @param {boolean} isRight */
  #confirm(isRight) {
    const failure = this.#failure
    this.#failure = undefined
    if (isRight && failure !== undefined) tell(failure)
    if (isRight) return
    this.#isOver = true
    this.#waiting = []
  }

  /** @param {number} number @param {boolean} isBroken */
  #write(number, isBroken) {
    const guard = guards[number]
    if (guard === undefined) throw new Error(`no guard ${number}`)
    const text = isBroken ? mutantOf(guard) : readFileSync(join(ownLua, guard.file), 'utf8')
    writeFileSync(join(this.#lua, guard.file), text)
  }
}

/** @param {number} guard */
function isOpen(guard) {
  return !existsSync(`${process.env['HOLDFAST_GUARDS_PLAN']}.${guard}`)
}

/** @param {Tried} tried */
function tell(tried) {
  appendFileSync(`${process.env['HOLDFAST_GUARDS_PLAN']}.told`, `${JSON.stringify(tried)}\n`)
  if (tried.end === 'caught') writeFileSync(`${process.env['HOLDFAST_GUARDS_PLAN']}.${tried.guard}`, '')
}

/** @param {{ name: string, suite?: any }} task @returns {string} */
function nameOf(task) {
  return (task.suite?.name ? `${nameOf(task.suite)} ` : '') + task.name
}
