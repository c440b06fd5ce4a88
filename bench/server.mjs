// @ts-check
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findServer, freePort, launch, serverState } from './built.mjs'

/** @typedef {{ url: string, port: number, folder: string, pid: number, stop: () => Promise<void> }} Server */

const answersWithinMs = 20_000
const askEveryMs = 20

/**
 * A new real server with AOF `always` and no snapshots, on a new folder below `dir` that goes with it.
 * @param {string} dir @returns {Promise<Server>}
 */
export async function startServer(dir) {
  const program = findServer()
  if (program === undefined) throw new Error('no Redis server program: run node scripts/ensure-server.mjs')
  const folder = mkdtempSync(join(dir, 'holdfast-bench-'))
  const port = await freePort()
  const server = launch(program, { dir: folder, port, ownGroup: false })
  const remove = () => rmSync(folder, { recursive: true, force: true })
  const atExit = () => {
    server.signal('SIGKILL')
    remove()
  }
  process.once('exit', atExit)
  const stop = async () => {
    process.removeListener('exit', atExit)
    server.signal('SIGKILL')
    await server.ended
    remove()
  }
  const deadlineAt = performance.now() + answersWithinMs
  while ((await serverState(port)).kind !== 'ready') {
    if (!server.isRunning() || performance.now() > deadlineAt) {
      const why = server.logTail()
      await stop()
      throw new Error(`the server does not answer: ${why}`)
    }
    await sleep(askEveryMs)
  }
  return { url: `redis://127.0.0.1:${port}`, port, folder, pid: server.pid, stop }
}
