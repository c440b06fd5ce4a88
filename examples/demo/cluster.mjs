// @ts-check
// What the demo runs on: a throwaway folder, a real Redis server, a hub, and nodes that are real processes.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { initRecord, openHub, startEmbedded } from 'holdfast'

/**
 * @typedef {object} NodeProcess
 * @property {string} name `<host>/<node>`
 * @property {string} host
 * @property {string} node
 * @property {string} marksFile
 * @property {(name: NodeJS.Signals) => void} signal
 * @property {() => Promise<number | null>} ended its exit code, when it has ended
 * @property {() => Record<string, unknown>[]} log what it logged so far
 *
 * @typedef {Awaited<ReturnType<typeof openCluster>>} Cluster
 */

export const hosts = ['host-1', 'host-2', 'host-3']
const program = fileURLToPath(new URL('demo-node.mjs', import.meta.url))
const config = { heartbeat_ms: 250, stale_after_ms: 1500 }
/** A disk that stalls stalls the server, for it syncs every write: no reason to break off. */
const storyPatienceMs = 60_000
const startWithinMs = 60_000
const endWithinMs = 60_000

/** @param {{ keep: boolean }} options */
export async function openCluster({ keep }) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-demo-'))
  /** @type {Set<NodeProcess>} */
  const nodes = new Set()
  /** @type {string | undefined} */
  let failure
  /** @type {Promise<void> | undefined} */
  let closing
  /** @type {(() => Promise<unknown>)[]} */
  const closers = [
    () => (keep ? Promise.resolve() : rm(folder, { recursive: true, force: true, maxRetries: 10 })),
  ]
  try {
    const server = await startEmbedded({ dataDir: folder })
    closers.push(() => server.stop())
    await initRecord({ redis: server.url })
    configure(server.port)
    const hub = await openHub({ redis: server.url, deadlineMs: storyPatienceMs })
    closers.push(() => hub.close())
    closers.push(endNodes)
    return { folder, server, hub, startNode, stopNodes, failure: () => failure, close }

    /**
     * Resolves when the node has joined.
     * @param {string} host @param {string} node @param {number} concurrency
     * @returns {Promise<NodeProcess>}
     */
    async function startNode(host, node, concurrency) {
      const args = [program, host, node, server.url, folder, String(concurrency)]
      const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
      /** @type {Promise<number | null>} */
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.stdin.on('error', () => undefined)
      const logFile = join(folder, `${host}-${node}.log`)
      /** @type {NodeProcess} */
      const started = {
        name: `${host}/${node}`,
        host,
        node,
        marksFile: join(folder, `${host}-${node}.marks`),
        signal: (name) => {
          if (name === 'SIGKILL' || name === 'SIGTERM') nodes.delete(started)
          child.kill(name)
        },
        ended: () => ended,
        log: () => readLog(logFile),
      }
      nodes.add(started)
      void ended.then((code) => {
        if (nodes.delete(started))
          failure = `node ${started.name} ended by itself (exit ${code})${lastError(started)}`
      })
      const joined = new Promise((resolve) => child.stdout.once('data', () => resolve(true)))
      if (
        !(await Promise.race([joined, ended.then(() => false), sleep(startWithinMs, false, { ref: false })]))
      ) {
        throw new Error(`node ${started.name} did not start`)
      }
      return started
    }
  } catch (error) {
    await close()
    throw error
  }

  /** Asks every node to finish and leave. */
  async function stopNodes() {
    const leaving = [...nodes]
    for (const node of leaving) node.signal('SIGTERM')
    const codes = await Promise.all(
      leaving.map((node) => Promise.race([node.ended(), sleep(endWithinMs, 'still there', { ref: false })])),
    )
    for (const [at, node] of leaving.entries()) {
      if (codes[at] !== 0)
        throw new Error(`node ${node.name} did not leave cleanly (${codes[at]})${lastError(node)}`)
    }
  }

  async function endNodes() {
    const left = [...nodes]
    for (const node of left) node.signal('SIGKILL') // ends a stopped process too
    await Promise.all(left.map((node) => node.ended()))
  }

  /** Ends everything, once, however often it is asked to. */
  function close() {
    closing ??= closeAll()
    return closing
  }

  async function closeAll() {
    for (let closer = closers.pop(); closer !== undefined; closer = closers.pop()) await closer()
  }
}

/** The record's tunables are a hash that operators change with bare redis-cli. @param {number} port */
function configure(port) {
  const words = ['-p', String(port), 'HSET', '{hf}:config', ...Object.entries(config).flat().map(String)]
  const done = ['redis-cli', 'valkey-cli'].some(
    (cli) => spawnSync(cli, words, { stdio: 'ignore' }).status === 0,
  )
  if (!done) throw new Error('neither redis-cli nor valkey-cli could set {hf}:config')
}

/** @param {NodeProcess} node */
function lastError(node) {
  const entry = node.log().findLast((each) => each['level'] === 'error')
  return entry === undefined ? '' : `: ${entry['message']}: ${entry['error']}`
}

/** @param {string} file @returns {Record<string, unknown>[]} */
function readLog(file) {
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((text) => JSON.parse(text))
}
