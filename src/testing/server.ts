import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type EmbeddedServer, startEmbedded } from '../record/embedded.js'
import { isAlive, serverState } from '../record/server-process.js'

/** The one server of this process, and the folder for everything its tests leave. */
export interface TestingServer {
  readonly url: string
  readonly dir: string
}

const prefix = 'holdfast-testing-'
/** A suite opens one record after the other: the server outlives each of them for so long. */
const lingerMs = 2000

interface Running extends TestingServer {
  readonly embedded: EmbeddedServer
  readonly killAtExit: () => void
}

let starting: Promise<Running> | undefined
let users = 0
let ending: NodeJS.Timeout | undefined
let stopping: Promise<void> = Promise.resolve()

/**
 * The Redis server of this process, AOF `always`, in a throwaway folder; the first user starts it. Ended some seconds
 * after its last user, with the process at the latest; of one that was killed, by the next process that starts a server.
 * @throws SERVER_NOT_FOUND, STORE_UNAVAILABLE
 */
export async function useServer(): Promise<TestingServer> {
  clearTimeout(ending)
  users += 1
  await stopping
  starting ??= start()
  try {
    return await starting
  } catch (error) {
    starting = undefined
    users -= 1
    throw error
  }
}

/** Its user is done with it. */
export function leaveServer(): void {
  users -= 1
  if (users > 0) return
  ending = setTimeout(() => {
    const started = starting
    starting = undefined
    stopping = stop(started).catch(() => undefined)
  }, lingerMs)
  // A process that has nothing else to do ends, and takes the server with it.
  ending.unref()
}

async function start(): Promise<Running> {
  await sweepAway()
  const dir = mkdtempSync(join(tmpdir(), `${prefix}${process.pid}-`))
  const embedded = await startEmbedded({ dataDir: dir }).catch((error: unknown) => {
    rmSync(dir, { recursive: true, force: true })
    throw error
  })
  const killAtExit = () => {
    kill(embedded.pid)
    rmSync(dir, { recursive: true, force: true })
  }
  process.once('exit', killAtExit)
  return { url: embedded.url, dir, embedded, killAtExit }
}

async function stop(started: Promise<Running> | undefined): Promise<void> {
  if (started === undefined) return
  const { embedded, dir, killAtExit } = await started
  await embedded.stop()
  process.removeListener('exit', killAtExit)
  rmSync(dir, { recursive: true, force: true })
}

/** What processes left that were killed: their server, which the note in its folder names, and the folder. */
async function sweepAway(): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    const owner = Number(new RegExp(`^${prefix}(\\d+)-`).exec(name)?.[1])
    if (!Number.isInteger(owner) || isAlive(owner)) continue
    const dir = join(tmpdir(), name)
    const pid = await serverOf(dir)
    if (pid !== undefined) kill(pid)
    rmSync(dir, { recursive: true, force: true })
  }
}

/** The process that serves the folder; undefined where none does. An id that was used again belongs to somebody else. */
async function serverOf(dir: string): Promise<number | undefined> {
  try {
    const { port } = JSON.parse(readFileSync(join(dir, 'server.json'), 'utf8')) as { port: number }
    const state = await serverState(port)
    return state.kind !== 'silent' && state.dir === realpathSync(join(dir, 'redis')) ? state.pid : undefined
  } catch {
    return undefined // it never had one, or somebody else took it away meanwhile
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It is gone.
  }
}
