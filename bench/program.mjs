// @ts-check
// Server programs of peers: found, started on a new folder that goes with them, and what they used of the processor.
import { spawn } from 'node:child_process'
import {
  accessSync,
  constants,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * How a program is started on its folder.
 * @typedef {object} Launch
 * @property {string} path
 * @property {string[]} args
 * @property {RegExp} ready what its log says once it serves
 * @property {NodeJS.Signals} stopSignal ends it at once
 * @property {{ uid: number, gid: number }} [user]
 */

const readyWithinMs = 20_000
const askEveryMs = 10

/** The path of a program in PATH, or where systems keep what serves. @param {string} name */
export function findProgram(name) {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/local/sbin', '/usr/sbin']
  return folders
    .filter(Boolean)
    .map((folder) => join(folder, name))
    .find(isExecutable)
}

/** @param {string} path */
function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/**
 * @param {string} dir its folder is made below this one
 * @param {(folder: string) => Promise<Launch>} prepare
 */
export async function startProgram(dir, prepare) {
  const folder = mkdtempSync(join(dir, 'holdfast-bench-'))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  try {
    const started = await startOn(folder, await prepare(folder), remove)
    return { folder, ...started }
  } catch (error) {
    remove()
    throw error
  }
}

/** @param {string} folder @param {Launch} launch @param {() => void} remove */
async function startOn(folder, { path, args, ready, stopSignal, user }, remove) {
  const logFile = join(folder, 'program.log')
  writeFileSync(logFile, '')
  const log = openSync(logFile, 'a')
  const child = spawn(path, args, { cwd: folder, stdio: ['ignore', log, log], ...user })
  const ended = new Promise((resolve) => {
    child.once('exit', resolve)
    child.once('error', resolve)
  })
  const atExit = () => {
    child.kill(stopSignal)
    remove()
  }
  process.once('exit', atExit)
  const stop = async () => {
    process.removeListener('exit', atExit)
    child.kill(stopSignal)
    await ended
    remove()
  }
  const deadlineAt = performance.now() + readyWithinMs
  while (!ready.test(readFileSync(logFile, 'utf8'))) {
    if (child.pid === undefined || child.exitCode !== null || performance.now() > deadlineAt) {
      const why = readFileSync(logFile, 'utf8').trim().slice(-500)
      await stop()
      throw new Error(`${path} does not serve: ${why}`)
    }
    await sleep(askEveryMs)
  }
  return { pid: child.pid ?? 0, stop }
}

/**
 * Microseconds of processor time of a process and its children, by all threads that live; undefined where the
 * system does not tell (it has no /proc).
 * @param {number} pid @returns {number | undefined}
 */
export function cpuUsOf(pid) {
  try {
    return [pid, ...childrenOf(pid)].reduce((sum, each) => sum + threadsUsOf(each), 0)
  } catch {
    return undefined
  }
}

/** @param {number} pid */
function threadsUsOf(pid) {
  const nanoseconds = readdirSync(`/proc/${pid}/task`).map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]),
  )
  return nanoseconds.reduce((sum, each) => sum + each, 0) / 1000
}

/** @param {number} pid */
function childrenOf(pid) {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
}
