import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, closeSync, constants, fstatSync, openSync, readFileSync, realpathSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { Redis } from 'ioredis'
import { HoldfastError } from '../contract/errors.js'

/** A program that is a Redis-compatible server when started under `name`. */
export interface ServerProgram {
  readonly path: string
  readonly name: string
}

/** A server this process started. */
export interface ServerProcess {
  readonly pid: number
  readonly port: number
  isRunning(): boolean
  /** The last lines it logged in this run. */
  logTail(): string
  /** SIGTERM, SIGKILL after 10 s; resolves when it has ended. */
  stop(): Promise<void>
  /** Sends a signal to this process alone. */
  signal(name: NodeJS.Signals): void
  /** Resolves when it has ended. */
  readonly ended: Promise<void>
}

/** What listens on a port: nothing that answers, or a server with its data folder and process id. */
export type ServerState =
  | { readonly kind: 'silent' }
  | { readonly kind: 'loading' | 'ready'; readonly dir: string; readonly pid: number }

/**
 * Debian's valkey-tools and redis-tools hold the server's binary without enabling a service; there it is
 * named after the file checker and is a server when started under another name.
 */
const candidates = [
  { file: 'valkey-server', name: 'valkey-server' },
  { file: 'redis-server', name: 'redis-server' },
  { file: 'valkey-check-rdb', name: 'valkey-server' },
  { file: 'redis-check-rdb', name: 'redis-server' },
] as const

const killAfterMs = 10_000
const askTimeoutMs = 1_000
const logTailBytes = 1_500

/** The server program of this machine; undefined when there is none. */
export function findServer(): ServerProgram | undefined {
  for (const { file, name } of candidates) {
    const path = findProgram(file)
    if (path !== undefined) return { path, name }
  }
  return undefined
}

/** The path of a program of this name in PATH. */
export function findProgram(file: string): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter(Boolean)
  return folders.map((folder) => join(folder, file)).find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The settings the record asks of a server (contract section 9), for one that listens on loopback only. */
function argumentsOf(dir: string, port: number, logFile: string): string[] {
  const settings = {
    port,
    bind: '127.0.0.1',
    'protected-mode': 'yes',
    daemonize: 'no',
    dir,
    logfile: logFile,
    save: '',
    appendonly: 'yes',
    appendfsync: 'always',
    'no-appendfsync-on-rewrite': 'no',
    'maxmemory-policy': 'noeviction',
  }
  return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)])
}

/**
 * Starts a server on the folder. With `ownGroup` the signals of the terminal do not reach it, and this
 * process may end before it. Errors: STORE_UNAVAILABLE when the program cannot be run.
 */
export function launch(
  program: ServerProgram,
  options: { readonly dir: string; readonly port: number; readonly ownGroup: boolean },
): ServerProcess {
  const logFile = join(options.dir, 'server.log')
  const log = openSync(logFile, 'a')
  const logStart = fstatSync(log).size
  const child = spawn(program.path, argumentsOf(options.dir, options.port, logFile), {
    argv0: program.name,
    cwd: options.dir,
    detached: options.ownGroup,
    stdio: ['ignore', log, log],
  })
  closeSync(log)
  const ended = endOf(child)
  if (child.pid === undefined) throw new HoldfastError('STORE_UNAVAILABLE', `${program.path} cannot be run`)
  if (options.ownGroup) child.unref()
  return {
    pid: child.pid,
    port: options.port,
    ended,
    isRunning: () => isRunning(child),
    logTail: () => tailOf(logFile, logStart),
    stop: () => stop(child, ended),
    signal: (name) => {
      child.kill(name)
    },
  }
}

function isRunning(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null
}

function endOf(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once('exit', () => resolve())
    child.once('error', () => resolve())
  })
}

async function stop(child: ChildProcess, ended: Promise<void>): Promise<void> {
  if (!isRunning(child)) return
  child.ref()
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), killAfterMs)
  await ended
  clearTimeout(timer)
}

function tailOf(logFile: string, from: number): string {
  const text = readFileSync(logFile).subarray(from).toString('utf8').trim()
  return text === '' ? 'it logged nothing' : `its log ends: ${text.slice(-logTailBytes)}`
}

/** Says whether a process of this id exists. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

/** Asks a loopback port what listens there. */
export async function serverState(port: number): Promise<ServerState> {
  const client = new Redis({
    port,
    host: '127.0.0.1',
    protocol: 2,
    lazyConnect: true,
    retryStrategy: () => null,
    enableReadyCheck: false,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    disableClientInfo: true,
    connectTimeout: askTimeoutMs,
    commandTimeout: askTimeoutMs,
  })
  client.on('error', () => undefined)
  try {
    await client.connect()
    const config = (await client.call('CONFIG', 'GET', 'dir')) as string[]
    const info = String(await client.call('INFO', 'server'))
    const kind = await client.ping().then(
      () => 'ready' as const,
      () => 'loading' as const,
    )
    return { kind, dir: realpathSync(config[1] ?? ''), pid: Number(/process_id:(\d+)/.exec(info)?.[1]) }
  } catch {
    return { kind: 'silent' }
  } finally {
    client.disconnect()
    client.stream?.destroy()
  }
}
