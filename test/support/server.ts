import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { freePort } from '../../src/record/embedded.js'
import {
  findProgram,
  findServer,
  launch,
  type ServerProcess,
  type ServerProgram,
  serverState,
} from '../../src/record/server-process.js'
import { until } from './until.js'

/** A real server with AOF `always`, in a throwaway folder. Stop it in afterAll. */
export interface TestServer {
  readonly url: string
  readonly port: number
  /** Its data folder: on this machine, or inside the container. */
  readonly dir: string
  /** Runs one command with the server's command line; answers its output, trimmed. */
  cli(...args: string[]): string
  /** Ends it and removes its folder. */
  stop(): Promise<void>
  /** As if it had crashed; `restart` brings it back. */
  kill9(): Promise<void>
  /** Ends it if it runs (cleanly), and starts it on the same port and folder. */
  restart(): Promise<void>
  /** SIGSTOP: connections stay, nothing is answered. */
  freeze(): void
  thaw(): void
}

const portTries = 5

/** What test servers run as. */
export type ServerProvider = 'process' | 'container'

/** The provider that `HOLDFAST_TEST_SERVER` asks for: `process` when it is not set. */
export function serverProvider(asked: string | undefined): ServerProvider {
  if (asked === undefined || asked === '') return 'process'
  if (asked === 'process' || asked === 'container') return asked
  throw new Error(`HOLDFAST_TEST_SERVER is ${JSON.stringify(asked)}: set it to process or container`)
}

/** Starts a server; fails when there is no server program, or no engine where a container was asked for. */
export async function startTestServer(
  asked: string | undefined = process.env['HOLDFAST_TEST_SERVER'],
): Promise<TestServer> {
  if (serverProvider(asked) === 'process') return startServerProcess()
  // Only now: it loads testcontainers, which other runs have no use for.
  const { startContainerServer } = await import('./container-server.js')
  return startContainerServer()
}

/** The server program of this machine, or the one that `HOLDFAST_TEST_REDIS_PROGRAM` names. */
function programOfTests(): ServerProgram {
  const asked = process.env['HOLDFAST_TEST_REDIS_PROGRAM']
  if (asked !== undefined && asked !== '') return { path: asked, name: basename(asked) }
  const program = findServer()
  if (program === undefined) throw new Error('no Redis server program: run node scripts/ensure-server.mjs')
  return program
}

/** Starts this server program; on a copy of `data`, a folder that holds the `appendonlydir` of an earlier run. */
export async function startServerProcess(
  program: ServerProgram = programOfTests(),
  data?: string,
): Promise<TestServer> {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-redis-'))
  if (data !== undefined) cpSync(data, dir, { recursive: true })
  let server = await startSomewhere()
  const { port } = server
  const killAtExit = () => server.signal('SIGKILL')
  process.once('exit', killAtExit)

  async function startSomewhere(): Promise<ServerProcess> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await startOn(await freePort())
      } catch (error) {
        if (attempt === portTries) throw error
      }
    }
  }

  async function startOn(onPort: number): Promise<ServerProcess> {
    const started = launch(program, { dir, port: onPort, ownGroup: false })
    await until(
      async () => {
        const state = await serverState(onPort)
        return !started.isRunning() || (state.kind === 'ready' && state.pid === started.pid)
      },
      { timeoutMs: 20_000, what: 'the test server answering' },
    )
    if (!started.isRunning()) throw new Error(`the test server ended: ${started.logTail()}`)
    return started
  }

  async function kill9() {
    server.signal('SIGKILL')
    await server.ended
  }

  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    dir,
    cli: (...args) => commandLine(port, args),
    kill9,
    stop: async () => {
      process.removeListener('exit', killAtExit)
      await kill9()
      rmSync(dir, { recursive: true, force: true })
    },
    restart: async () => {
      await server.stop()
      server = await startOn(port)
    },
    freeze: () => server.signal('SIGSTOP'),
    thaw: () => server.signal('SIGCONT'),
  }
}

function commandLine(port: number, args: readonly string[]): string {
  const program = findProgram('valkey-cli') ?? findProgram('redis-cli')
  if (program === undefined) throw new Error('no redis-cli here: run node scripts/ensure-server.mjs')
  return execFileSync(program, ['-p', String(port), ...args], { encoding: 'utf8', timeout: 20_000 }).trim()
}
