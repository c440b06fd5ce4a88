// @ts-check
// The server of a run: real, with AOF `always`, started again by itself unless somebody keeps it down.
import { spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findServer, openStore, serverState } from './built-record.mjs'

/**
 * @typedef {object} RedisServer
 * @property {string} url of the server itself, whatever stands between it and the others
 * @property {number} port
 * @property {number} pid of the process that runs now, or of the last one; 0 before the first
 * @property {string} dir where its data is; may be changed before its first start
 * @property {string[]} args beside what the record asks of a server
 * @property {boolean} isRunning
 * @property {boolean} mayEnd set by a fault while it may end by itself
 * @property {() => import('./keeper.mjs').Target} target
 * @property {() => Promise<void>} start resolves when it answers; from then on it is started again when it ends
 * @property {() => Promise<void>} kill9 and it stays down until `start`
 * @property {() => Promise<void>} stop a clean shutdown, and it stays down until `start`
 * @property {(signal: NodeJS.Signals) => boolean} kill
 * @property {(args: readonly (string | number)[], deadlineMs?: number) => Promise<unknown>} call one command to the server itself
 * @property {() => Promise<void>} dispose
 */

/**
 * @typedef {object} ServerOptions
 * @property {string} dir
 * @property {number} port
 * @property {string} logDir
 * @property {() => Record<string, string>} env
 * @property {import('../src/testing/history.ts').History} history
 * @property {(how: { target: import('./keeper.mjs').Target, code: number | null, signal: string | null }) => void} onUnexpectedEnd
 */

const answersWithinMs = 20_000
const endsWithinMs = 10_000
const againAfterMs = 300
const askEveryMs = 20

/** @param {ServerOptions} given @returns {RedisServer} */
export function createServer(given) {
  const { port, history } = given
  const program = findServer()
  if (program === undefined) throw new Error('no Redis server program: run node scripts/ensure-server.mjs')
  const url = `redis://127.0.0.1:${port}`
  const target = () => ({ role: 'redis', name: 'redis', pid: server.pid })
  /** @type {import('node:child_process').ChildProcess | undefined} */
  let child
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  /** @type {Promise<Awaited<ReturnType<typeof openStore>>> | undefined} */
  let store
  let [isWanted, isEndMeant] = [false, false]

  function launch() {
    clearTimeout(timer)
    if (child !== undefined || !isWanted) return
    try {
      spawnServer()
    } catch (error) {
      // Its folder may be out of reach for a while.
      history.write({ kind: 'server', type: 'refused', why: String(error) })
      timer = setTimeout(launch, againAfterMs)
    }
  }

  function spawnServer() {
    mkdirSync(server.dir, { recursive: true })
    const log = openSync(join(given.logDir, 'redis.log'), 'a')
    const started = spawn(program?.path ?? '', [...settings(server.dir, port), ...server.args], {
      argv0: program?.name,
      cwd: server.dir,
      env: { ...process.env, ...given.env() },
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    child = started
    server.pid = started.pid ?? 0
    isEndMeant = false
    history.write({ kind: 'server', type: 'start', target: target() })
    started.once('error', () => onExit(started, null, null))
    started.once('exit', (code, signal) => onExit(started, code, signal))
  }

  /** @param {import('node:child_process').ChildProcess} ended @param {number | null} code @param {string | null} signal */
  function onExit(ended, code, signal) {
    if (child !== ended) return
    child = undefined
    const expected = isEndMeant || server.mayEnd
    history.write({ kind: 'server', type: 'exit', target: target(), code, signal, expected })
    if (!expected) given.onUnexpectedEnd({ target: target(), code, signal })
    if (isWanted) timer = setTimeout(launch, againAfterMs)
  }

  /** @param {NodeJS.Signals} signal */
  function kill(signal) {
    if (child === undefined) return false
    if (signal === 'SIGKILL' || signal === 'SIGTERM') isEndMeant = true
    return child.kill(signal)
  }

  async function whenGone() {
    const deadlineAt = performance.now() + endsWithinMs
    while (child !== undefined) {
      if (performance.now() > deadlineAt) throw new Error(`the server (pid ${server.pid}) does not end`)
      await sleep(askEveryMs)
    }
  }

  /** @param {NodeJS.Signals} signal */
  async function down(signal) {
    isWanted = false
    clearTimeout(timer)
    if (kill(signal)) await whenGone()
  }

  /** @type {RedisServer} */
  const server = {
    url,
    port,
    pid: 0,
    dir: given.dir,
    args: [],
    mayEnd: false,
    get isRunning() {
      return child !== undefined
    },
    target,
    start: async () => {
      isWanted = true
      launch()
      const deadlineAt = performance.now() + answersWithinMs
      while ((await serverState(port)).kind !== 'ready') {
        if (!isWanted) return
        if (performance.now() > deadlineAt) throw new Error(`the server (pid ${server.pid}) does not answer`)
        await sleep(askEveryMs)
      }
    },
    kill9: () => down('SIGKILL'),
    stop: async () => {
      kill('SIGCONT')
      await down('SIGTERM').catch(() => down('SIGKILL'))
    },
    kill,
    call: async (args, deadlineMs = 1000) => {
      store ??= openStore({ url, name: 'torture', deadlineMs: 1000 })
      const open = await store.catch((error) => {
        store = undefined
        throw error
      })
      return await open.call(args, { deadlineMs })
    },
    dispose: async () => {
      isWanted = false
      clearTimeout(timer)
      await store?.then((open) => open.close()).catch(() => {})
      kill('SIGCONT')
      await down('SIGKILL')
    },
  }
  return server
}

/** @param {string} dir @param {number} port */
function settings(dir, port) {
  const given = {
    port,
    bind: '127.0.0.1',
    'protected-mode': 'yes',
    daemonize: 'no',
    dir,
    save: '',
    appendonly: 'yes',
    appendfsync: 'always',
    'no-appendfsync-on-rewrite': 'no',
    'maxmemory-policy': 'noeviction',
  }
  return Object.entries(given).flatMap(([name, value]) => [`--${name}`, String(value)])
}
