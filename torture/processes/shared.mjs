// @ts-check
// What every process of a run does: it ends with the one that started it, and says how it is over its channel.
import { setTimeout as sleep } from 'node:timers/promises'
import { isHoldfastError } from '../built.mjs'

/** The options of this process: JSON in its one argument. @returns {any} */
export function optionsOfThis() {
  return JSON.parse(process.argv[2] ?? '{}')
}

/**
 * Ends this process at once when the conductor is gone; hands what it says to `onMessage`.
 * @param {(message: any) => void} onMessage
 */
export function followConductor(onMessage) {
  process.on('disconnect', () => process.exit(0))
  process.on('message', onMessage)
}

/** How a process ends that met an error nobody caught: a bug, whatever was done to it. */
export const crashCode = 70

/** @param {import('../../src/testing/history.ts').History} history */
export function endAtCrash(history) {
  // A rejection that nobody handles comes here as well.
  process.on('uncaughtException', (error) => {
    console.error(error)
    history.write({ kind: 'end', how: `uncaught: ${String(error)}` })
    process.exit(crashCode)
  })
}

/** @param {object} message */
export function say(message) {
  if (process.connected) process.send?.(message)
}

/**
 * Repeats a start for as long as the server or a hub is away, as whoever keeps a service alive would.
 * @template Started @param {() => Promise<Started>} start @returns {Promise<Started>}
 */
export async function startPatiently(start) {
  for (;;) {
    try {
      return await start()
    } catch (error) {
      if (!isHoldfastError(error, 'STORE_UNAVAILABLE', 'DEADLINE_EXCEEDED', 'HUB_UNREACHABLE')) throw error
      console.error(`not started yet: ${error.message}`)
      await sleep(200)
    }
  }
}

/** A logger with the methods of pino, to this process's log file. @param {(level: string, particulars: object, message: string) => void} [onLine] */
export function lineLog(onLine = () => {}) {
  /** @param {string} level */
  const at = (level) => (/** @type {object} */ particulars, /** @type {string} */ message) => {
    if (level !== 'debug') console.error(JSON.stringify({ at: Date.now(), level, message, ...particulars }))
    onLine(level, particulars, message)
  }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/**
 * A point at which this process kills or stops itself before anything else can happen. Armed and disarmed by the
 * conductor, which is told of the latter; the history is told right before the signal.
 * @param {import('../../src/testing/history.ts').History} history
 */
export function signalAtPoint(history) {
  /** @type {{ point: string, left: number, signal: 'SIGKILL' | 'SIGSTOP' } | undefined} */
  let armed
  return {
    /** @param {{ point: string, nth: number, signal: 'SIGKILL' | 'SIGSTOP' } | null} where */
    arm: (where) => {
      armed = where === null ? undefined : { point: where.point, left: where.nth, signal: where.signal }
      if (where === null) say({ disarmed: true })
    },
    /** @param {string} point */
    onPoint: (point) => {
      if (armed?.point !== point) return
      armed.left -= 1
      if (armed.left > 0) return
      const { signal } = armed
      armed = undefined
      if (signal === 'SIGKILL') history.write({ kind: 'end', how: 'killed at a point', point })
      else history.write({ kind: 'stop', point })
      process.kill(process.pid, signal)
    },
  }
}
