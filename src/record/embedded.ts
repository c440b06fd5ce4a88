import { existsSync, mkdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { HoldfastError } from '../contract/errors.js'
import { checkOptions, option, optionsOf, text, whole } from '../contract/options.js'
import { lockFile } from './lock-file.js'
import { findServer, isAlive, launch, type ServerProcess, serverState } from './server-process.js'

/** A Redis server on loopback that keeps its data in a folder (contract section 12). */
export interface EmbeddedServer {
  readonly url: string
  readonly port: number
  readonly pid: number
  /** True when it was running already. */
  readonly attached: boolean
  /**
   * Says that this user needs the server no more. The last living user, whoever started it, shuts it down and
   * waits for its end (10 s at most).
   */
  stop(): Promise<void>
}

/** Options of {@link startEmbedded}. */
export interface EmbeddedOptions {
  /** Its data goes to `redis/` in here, its log to `redis/server.log`. */
  readonly dataDir: string
  /** Where it listens on loopback; a free one when absent. */
  readonly port?: number | undefined
  /** Told what happens, a line at a time. */
  readonly log?: ((line: string) => void) | undefined
  /** Milliseconds to be ready, loading included; 30,000 when absent. */
  readonly readyDeadlineMs?: number | undefined
}

const form = optionsOf<EmbeddedOptions>({
  dataDir: text('the path of a folder'),
  port: whole(1, 65_535).optional(),
  log: option.function.optional(),
  readyDeadlineMs: option.count,
})

/** What `server.json` says. Written before the server is started (pid 0), so that none is ever lost sight of. */
interface Note {
  readonly pid: number
  readonly port: number
  readonly startTime: string
  /** Process ids of those who use it, one each for every start or attachment. */
  readonly users: readonly number[]
}

interface Place {
  readonly dataDir: string
  readonly redisDir: string
  readonly deadlineAt: number
  readonly log: (line: string) => void
}

const defaultReadyMs = 30_000
const portTries = 5
const pollMs = 25
const shutDownMs = 10_000

/**
 * Starts a server on the folder, or attaches to the one that already runs there. Of several processes doing
 * so at once, one starts it. The server outlives this process when that is killed: the next start attaches.
 * Errors: SERVER_NOT_FOUND (no program), STORE_UNAVAILABLE (it ended early, or is not ready in time), INVALID_ARGUMENT.
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedServer> {
  checkOptions('startEmbedded', form, options)
  const redisDir = join(resolve(options.dataDir), 'redis')
  mkdirSync(redisDir, { recursive: true })
  const place: Place = {
    dataDir: realpathSync(options.dataDir),
    redisDir: realpathSync(redisDir),
    deadlineAt: performance.now() + (options.readyDeadlineMs ?? defaultReadyMs),
    log: options.log ?? (() => undefined),
  }
  const unlock = await lockFile(join(place.dataDir, 'server.lock'), place.deadlineAt)
  try {
    return (await attach(place)) ?? (await start(place, options.port))
  } finally {
    unlock()
  }
}

/** The URL of the server that runs on the folder; undefined where none does. It is neither started nor waited for. */
export async function runningServer(dataDir: string): Promise<string | undefined> {
  const note = readNote({ dataDir })
  if (note === undefined) return undefined
  const state = await serverState(note.port)
  if (state.kind !== 'ready' || state.dir !== realpathSync(join(dataDir, 'redis'))) return undefined
  return urlOf(note.port)
}

async function attach(place: Place): Promise<EmbeddedServer | undefined> {
  const note = readNote(place)
  if (note === undefined) return undefined
  const pid = await runningPid(place, note)
  if (pid === undefined) return undefined
  while ((await serverState(note.port)).kind !== 'ready') {
    if (performance.now() > place.deadlineAt) {
      throw new HoldfastError(
        'STORE_UNAVAILABLE',
        `the server on ${place.redisDir} (pid ${pid}) does not get ready`,
      )
    }
    await sleep(pollMs)
  }
  writeNote(place, { ...note, pid, users: [...livingUsers(note), process.pid] })
  place.log(`attached to the server on port ${note.port} (pid ${pid})`)
  return embeddedServer(place, note.port, pid, true)
}

/**
 * The process that serves this folder, or undefined when there is none. One that lives and does not answer
 * is waited for: two servers on one folder would destroy it.
 */
async function runningPid(place: Place, note: Note): Promise<number | undefined> {
  const graceAt = Math.min(place.deadlineAt, performance.now() + 2_000)
  for (;;) {
    const state = await serverState(note.port)
    if (state.kind !== 'silent') return state.dir === place.redisDir ? state.pid : undefined
    if (note.pid === 0) {
      // The starter died between its note and ours: a server it started would listen any moment.
      if (performance.now() > graceAt) return undefined
    } else if (!isAlive(note.pid) || !mayServe(note.pid, place.redisDir)) return undefined
    if (performance.now() > place.deadlineAt) {
      const detail = `a server (pid ${note.pid}) holds ${place.redisDir} and does not answer`
      throw new HoldfastError('STORE_UNAVAILABLE', detail)
    }
    await sleep(pollMs)
  }
}

/** False when the process of this id is known to be another program (its id was used again). */
function mayServe(pid: number, redisDir: string): boolean {
  try {
    return realpathSync(`/proc/${pid}/cwd`) === redisDir
  } catch {
    return process.platform !== 'linux'
  }
}

async function start(place: Place, wantedPort: number | undefined): Promise<EmbeddedServer> {
  const program = findServer()
  if (program === undefined) throw new HoldfastError('SERVER_NOT_FOUND')
  for (let attempt = 1; ; attempt++) {
    const port = wantedPort ?? (await freePort())
    writeNote(place, { pid: 0, port, startTime: '', users: [process.pid] })
    const server = launch(program, { dir: place.redisDir, port, ownGroup: true })
    writeNote(place, { pid: server.pid, port, startTime: new Date().toISOString(), users: [process.pid] })
    const failure = await waitReady(place, server)
    if (failure === undefined) {
      place.log(`started ${program.name} on port ${port} (pid ${server.pid}), data in ${place.redisDir}`)
      return embeddedServer(place, port, server.pid, false)
    }
    forgetNote(place)
    const retry = wantedPort === undefined && attempt < portTries && /Address already in use/i.test(failure)
    if (!retry) throw new HoldfastError('STORE_UNAVAILABLE', `the embedded server did not start: ${failure}`)
  }
}

/** Undefined when ready, else why not (the process is then gone). */
async function waitReady(place: Place, server: ServerProcess): Promise<string | undefined> {
  while (server.isRunning()) {
    const state = await serverState(server.port)
    if (state.kind === 'ready' && state.pid === server.pid) return undefined
    if (performance.now() > place.deadlineAt) {
      await server.stop()
      return `not ready in time; ${server.logTail()}`
    }
    await sleep(pollMs)
  }
  return server.logTail()
}

function embeddedServer(place: Place, port: number, pid: number, attached: boolean): EmbeddedServer {
  let stopping: Promise<void> | undefined
  async function stop() {
    if (!existsSync(place.dataDir)) {
      // The folder was taken away under it: nobody can use the server any more.
      if (!attached) await endProcess(pid)
      return
    }
    const unlock = await lockFile(join(place.dataDir, 'server.lock'), performance.now() + defaultReadyMs)
    try {
      await leave(place, pid)
    } finally {
      unlock()
    }
  }
  return {
    url: urlOf(port),
    port,
    pid,
    attached,
    stop: () => {
      stopping ??= stop()
      return stopping
    },
  }
}

/** Takes one use of this process off the note; ends the server when nobody is left. */
async function leave(place: Place, pid: number): Promise<void> {
  const note = readNote(place)
  if (note?.pid !== pid) return
  const users = livingUsers(note)
  users.splice(users.indexOf(process.pid), 1)
  if (users.length > 0) {
    writeNote(place, { ...note, users })
    place.log(`the server on port ${note.port} goes on: ${users.length} others use it`)
    return
  }
  await shutDown(place, note)
  forgetNote(place)
  place.log(`stopped the server on port ${note.port}`)
}

function livingUsers(note: Note): number[] {
  return note.users.filter(isAlive)
}

/** A clean shutdown by SIGTERM; a server that hangs is killed. Only ever the one that serves this folder. */
async function shutDown(place: Place, note: Note): Promise<void> {
  if (isAlive(note.pid) && mayServe(note.pid, place.redisDir)) await endProcess(note.pid)
}

async function endProcess(pid: number): Promise<void> {
  if (!isAlive(pid)) return
  process.kill(pid, 'SIGTERM')
  const killAt = performance.now() + shutDownMs
  while (isAlive(pid)) {
    if (performance.now() > killAt) process.kill(pid, 'SIGKILL')
    await sleep(pollMs)
  }
}

function urlOf(port: number): string {
  return `redis://127.0.0.1:${port}`
}

function notePath(place: Pick<Place, 'dataDir'>): string {
  return join(place.dataDir, 'server.json')
}

function readNote(place: Pick<Place, 'dataDir'>): Note | undefined {
  try {
    const { pid, port, startTime, users } = JSON.parse(readFileSync(notePath(place), 'utf8')) as Partial<Note>
    if (!Number.isInteger(pid) || !Number.isInteger(port)) return undefined
    return {
      pid: Number(pid),
      port: Number(port),
      startTime: String(startTime),
      users: Array.isArray(users) ? users.filter((user) => Number.isInteger(user)) : [],
    }
  } catch {
    return undefined
  }
}

function writeNote(place: Place, note: Note): void {
  const whole = `${notePath(place)}.${process.pid}`
  writeFileSync(whole, `${JSON.stringify(note)}\n`)
  renameSync(whole, notePath(place))
}

function forgetNote(place: Place): void {
  rmSync(notePath(place), { force: true })
}

/** A loopback port that nobody listens on now. */
export function freePort(): Promise<number> {
  return new Promise((resolvePort, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => resolvePort(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}
