// @ts-check
// Processes of an item's own: each ends with its item, or with the process that measures.
import { fork, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const killAfterMs = 5000
const repository = new URL('../../../', import.meta.url)

/** @typedef {import('node:child_process').ChildProcess} ChildProcess */
/** @typedef {{ pid: number, stop: () => Promise<void> }} Process */

/**
 * A script beside this file, as a process with a channel. It gets its options as JSON in its one argument, and
 * says `ready` once it is.
 * @param {string} script @param {object} options
 * @returns {Promise<Process & { ask: (question: object) => Promise<any>, ready: any }>}
 */
export async function startScript(script, options) {
  const file = fileURLToPath(new URL(script, import.meta.url))
  const child = fork(file, [JSON.stringify(options)], { execArgv: [], serialization: 'advanced' })
  const held = heldProcess(child)
  const answer = () =>
    new Promise((resolve, reject) => {
      const onMessage = (/** @type {any} */ message) => {
        child.removeListener('exit', onExit)
        if (message.error === undefined) resolve(message)
        else reject(new Error(`${script}: ${message.error}`))
      }
      const onExit = () => {
        child.removeListener('message', onMessage)
        reject(new Error(`${script} ended`))
      }
      child.once('message', onMessage)
      child.once('exit', onExit)
    })
  return {
    ...held,
    ready: await orStop(held, answer()),
    ask: (question) => {
      const answered = answer()
      child.send(question)
      return answered
    },
  }
}

/** `holdfast serve` on a free port of loopback, as its users start it. @param {string} redis @param {readonly string[]} [more] */
export async function startHub(redis, more = []) {
  const file = fileURLToPath(new URL('dist/cli/main.js', repository))
  const args = [file, 'serve', '--json', '--redis', redis, '--listen', '127.0.0.1:0', ...more]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  const held = heldProcess(child)
  /** @type {string[]} */
  const said = []
  const lines = createInterface({ input: child.stderr })
  const serving = new Promise((resolve, reject) => {
    child.once('exit', () => reject(new Error(`serve ended: ${said.slice(-5).join('\n')}`)))
    lines.on('line', (line) => {
      said.push(line)
      const { msg, url } = jsonOf(line)
      if (msg === 'serving') resolve(url)
    })
  })
  const url = await orStop(held, serving)
  return {
    ...held,
    port: Number(new URL(url).port),
    /** What it logged above `info`. */
    complaints: () => said.filter((line) => jsonOf(line).level > 30),
  }
}

/** @param {Process} held @param {Promise<any>} starting */
async function orStop(held, starting) {
  try {
    return await starting
  } catch (error) {
    await held.stop()
    throw error
  }
}

/** @param {string} line @returns {any} */
function jsonOf(line) {
  try {
    return JSON.parse(line)
  } catch {
    return {}
  }
}

/** @param {ChildProcess} child @returns {Process} */
function heldProcess(child) {
  const { pid } = child
  if (pid === undefined) throw new Error('a process cannot be started')
  const kill = () => void child.kill('SIGKILL')
  process.once('exit', kill)
  return {
    pid,
    stop: async () => {
      process.removeListener('exit', kill)
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGTERM')
      const timer = setTimeout(kill, killAfterMs)
      await ended
      clearTimeout(timer)
    },
  }
}
