// @ts-check
// NATS with JetStream on files, from the system's nats-server.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from './built.mjs'
import { findProgram, startProgram } from './program.mjs'

const program = 'nats-server'
const ensure = fileURLToPath(new URL('../scripts/ensure-server.mjs', import.meta.url))

/** Installs it where there is none and this user may; says what it did or what to run. */
export function ensureNats() {
  if (findProgram(program) !== undefined) return true
  return spawnSync(process.execPath, [ensure, program], { stdio: ['ignore', 2, 2] }).status === 0
}

/** What there is; only versions from 2.10 can be told to fsync before each answer. */
export function natsFacts() {
  const path = pathOf()
  const { stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' })
  return {
    version: /\d+\.\d+\.\d+/.exec(stdout)?.[0] ?? 'of unknown version',
    syncsAlways: syncsAlways(path),
  }
}

function pathOf() {
  const path = findProgram(program)
  if (path === undefined) throw new Error(`no ${program} here: run node scripts/ensure-server.mjs ${program}`)
  return path
}

/** @param {string} path */
function syncsAlways(path) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
  try {
    const file = writeConfig(folder, 4222, true)
    return spawnSync(path, ['-t', '-c', file], { stdio: 'ignore' }).status === 0
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** @param {string} folder @param {number} port @param {boolean} always */
function writeConfig(folder, port, always) {
  const file = join(folder, 'nats.conf')
  const jetstream = [`store_dir: ${JSON.stringify(folder)}`, ...(always ? ['sync_interval: always'] : [])]
  writeFileSync(file, `listen: "127.0.0.1:${port}"\njetstream { ${jetstream.join(', ')} }\n`)
  return file
}

/** Says whether a folder below `dir` can be told to write everything through at once. @param {string} dir */
export function canWriteThrough(dir) {
  const folder = mkdtempSync(join(dir, 'holdfast-bench-'))
  try {
    return writeThrough(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Every write to a file made in it from now on is on the disk before it returns. @param {string} folder */
function writeThrough(folder) {
  return spawnSync('chattr', ['+S', folder], { stdio: 'ignore' }).status === 0
}

/**
 * A new server on a new folder below `dir` that goes with it.
 * @param {string} dir @param {{ writeThrough?: boolean }} [how] @returns {Promise<import('./server.mjs').Server>}
 */
export async function startNats(dir, how = {}) {
  const path = pathOf()
  const port = await freePort()
  const always = syncsAlways(path)
  const started = await startProgram(dir, async (folder) => {
    if (how.writeThrough === true && !writeThrough(folder)) throw new Error('chattr +S is not possible here')
    const file = writeConfig(folder, port, always)
    return { path, args: ['-c', file], ready: /Server is ready/, stopSignal: 'SIGKILL' }
  })
  return { url: `nats://127.0.0.1:${port}`, port, ...started }
}
