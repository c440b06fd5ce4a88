// @ts-check
// One process of a run, started again whenever it dies.
import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { crashCode } from './processes/shared.mjs'

/** @typedef {import('node:child_process').ChildProcess} ChildProcess */
/** @typedef {{ role: string, name: string, pid: number }} Target */

/**
 * @typedef {object} Keeper
 * @property {string} role
 * @property {string} name
 * @property {string} logFile what its processes say
 * @property {number} pid of the process that runs now, or of the last one
 * @property {boolean} isUp it runs and has said that it works
 * @property {boolean} mayEnd set by a fault while its process may end by itself; a crash is none of its business
 * @property {() => Target} target as the history names it
 * @property {() => Promise<void>} start and from now on whenever it dies; resolves when it works
 * @property {() => Promise<void>} restart ended at once where it runs, and started
 * @property {(signal: NodeJS.Signals) => boolean} kill a signal to the process that runs now; false where none does. It is started again after a while
 * @property {(withinMs: number) => Promise<void>} whenUp rejects when it does not work in time
 * @property {(withinMs: number) => Promise<number | null>} nextEnd the exit code of the process that runs now, once it has ended
 * @property {(message: object) => void} tell
 * @property {(point: string, nth: number, signal?: 'SIGKILL' | 'SIGSTOP') => void} arm it kills itself there, or stops
 * @property {() => boolean} disarm true where it killed itself
 * @property {(withinMs: number) => Promise<void>} goOn disarmed, and continued where it stopped itself
 * @property {() => Promise<void>} end ends it at once; it is not started again
 * @property {(withinMs: number) => Promise<void>} stop asks it to end, and ends it where it does not; it is not started again
 */

/**
 * @typedef {object} KeptOptions
 * @property {string} role
 * @property {string} name
 * @property {string} script in processes/
 * @property {(start: number) => object} options for its so-manieth start: its one argument, as JSON
 * @property {() => Record<string, string>} env added to the environment
 * @property {() => string[]} wrap words before those that start it
 * @property {string} logFile
 * @property {import('./random.mjs').Random} random
 * @property {import('../src/testing/history.ts').History} history
 * @property {(message: any) => void} [onMessage]
 * @property {(how: { target: Target, code: number | null, signal: string | null }) => void} onUnexpectedEnd
 */

const restartMs = { least: 50, most: 1500 }
/** What begins to end may take so long. */
const endingMs = 3000
const nudgeMs = 20
const startedWithinMs = 60_000

/** @param {KeptOptions} given @returns {Keeper} */
export function keep(given) {
  const { role, name, script, random, history, logFile } = given
  const file = fileURLToPath(new URL(`processes/${script}`, import.meta.url))
  /** @type {ChildProcess | undefined} */
  let child
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  /** @type {Set<() => void>} */
  const changed = new Set()
  let [starts, lastPid] = [0, 0]
  let mayEndUntil = Number.NEGATIVE_INFINITY
  /** @type {number | null} */
  let lastCode = null
  let ends = 0
  let [isWanted, isUp, isEndMeant, wasArmed, hit, isDisarmed] = [false, false, false, false, false, false]

  function launch() {
    clearTimeout(timer)
    if (child !== undefined) return
    starts += 1
    const log = openSync(logFile, 'a')
    const own = [process.execPath, file, JSON.stringify(given.options(starts))]
    const [program = '', ...words] = [...given.wrap(), ...own]
    const started = spawn(program, words, {
      env: { ...process.env, ...given.env() },
      stdio: ['ignore', log, log, 'ipc'],
    })
    closeSync(log)
    child = started
    lastPid = started.pid ?? 0
    isEndMeant = wasArmed = false
    started.on('message', (/** @type {any} */ message) => {
      if (message.up === true) {
        isUp = true
        tellAll()
      }
      if (message.disarmed === true) {
        isDisarmed = true
        tellAll()
      }
      given.onMessage?.(message)
    })
    // A channel that breaks with the process is no error of its own.
    started.on('error', () => {})
    started.once('exit', (code, signal) => onExit(started, code, signal))
  }

  /** @param {ChildProcess} ended @param {number | null} code @param {string | null} signal */
  function onExit(ended, code, signal) {
    if (child !== ended) return
    if (wasArmed && signal === 'SIGKILL' && !isEndMeant) hit = true
    const wasAllowed = performance.now() < mayEndUntil
    const expected = code !== crashCode && (isEndMeant || (wasArmed && hit) || wasAllowed)
    history.write({ kind: 'exit', target: target(), code, signal, expected })
    child = undefined
    isUp = false
    lastCode = code
    ends += 1
    if (!expected) given.onUnexpectedEnd({ target: target(), code, signal })
    if (isWanted) timer = setTimeout(launch, random.int(restartMs.least, restartMs.most))
    tellAll()
  }

  function tellAll() {
    for (const tell of [...changed]) tell()
  }

  /** @param {() => boolean} isTrue @param {number} withinMs @param {string} what @returns {Promise<void>} */
  function until(isTrue, withinMs, what) {
    return new Promise((resolve, reject) => {
      const look = () => {
        if (!isTrue()) return
        clearTimeout(limit)
        changed.delete(look)
        resolve()
      }
      const limit = setTimeout(() => {
        changed.delete(look)
        reject(new Error(`${role} ${name} (pid ${lastPid}) ${what} within ${withinMs} ms`))
      }, withinMs)
      changed.add(look)
      look()
    })
  }

  const target = () => ({ role, name, pid: lastPid })
  /** @param {NodeJS.Signals} signal */
  const send = (signal) => {
    if (child === undefined) return false
    if (signal === 'SIGKILL' || signal === 'SIGTERM') isEndMeant = true
    return child.kill(signal)
  }
  /** @param {number} withinMs */
  const whenUp = (withinMs) => until(() => isUp, withinMs, 'does not work')
  const whenGone = (/** @type {number} */ withinMs) =>
    until(() => child === undefined, withinMs, 'does not end')

  async function start() {
    isWanted = true
    launch()
    await whenUp(startedWithinMs)
  }

  async function end() {
    isWanted = false
    clearTimeout(timer)
    if (send('SIGKILL')) await whenGone(startedWithinMs)
  }

  /** @param {number} withinMs */
  async function stop(withinMs) {
    isWanted = false
    clearTimeout(timer)
    // A stopped process would not hear that it shall end.
    send('SIGCONT')
    if (!send('SIGTERM')) return
    await whenGone(withinMs).catch(async () => {
      history.write({ kind: 'forced', target: target() })
      send('SIGKILL')
      await whenGone(withinMs)
    })
  }

  /** It may come to its point until it has heard that it shall not stop there. @param {number} withinMs */
  async function goOn(withinMs) {
    const stopped = child
    if (stopped?.connected !== true) return
    isDisarmed = false
    stopped.send({ arm: null }, () => {})
    const nudge = setInterval(() => stopped.kill('SIGCONT'), nudgeMs)
    stopped.kill('SIGCONT')
    await until(() => isDisarmed || child !== stopped, withinMs, 'does not go on').finally(() =>
      clearInterval(nudge),
    )
  }

  return {
    role,
    name,
    logFile,
    get mayEnd() {
      return performance.now() < mayEndUntil
    },
    set mayEnd(may) {
      mayEndUntil = may ? Number.POSITIVE_INFINITY : performance.now() + endingMs
    },
    get pid() {
      return lastPid
    },
    get isUp() {
      return isUp
    },
    target,
    start,
    restart: async () => {
      await end()
      await start()
    },
    kill: send,
    whenUp,
    nextEnd: async (withinMs) => {
      const before = ends
      await until(() => ends > before, withinMs, 'does not end')
      return lastCode
    },
    tell: (message) => {
      if (child?.connected) child.send(message, () => {})
    },
    arm: (point, nth, signal = 'SIGKILL') => {
      if (child?.connected !== true) return
      wasArmed = signal === 'SIGKILL'
      hit = false
      child.send({ arm: { point, nth, signal } }, () => {})
    },
    disarm: () => {
      if (child?.connected) child.send({ arm: null }, () => {})
      return hit
    },
    goOn,
    end,
    stop,
  }
}
