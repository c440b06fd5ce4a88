import { execFileSync } from 'node:child_process'
import { GenericContainer, getContainerRuntimeClient, type StartedTestContainer } from 'testcontainers'
import { freePort } from '../../src/record/embedded.js'
import { findProgram } from '../../src/record/server-process.js'
import type { TestServer } from './server.js'
import { until } from './until.js'

/** What a container server needs of this machine; tests of the failures give their own. */
export interface Engine {
  /** Rejects when no engine answers. Answers the host on which the ports of containers appear. */
  connect(): Promise<string>
  /** The path of a command line that steers the engine (`docker`, `podman`); undefined when there is none. */
  commandLine(): string | undefined
}

const thisMachine: Engine = {
  connect: async () => (await getContainerRuntimeClient()).info.containerRuntime.host,
  commandLine: () => findProgram('docker') ?? findProgram('podman'),
}

const defaultImage = 'redis:7.2-bookworm'
const innerPort = 6379
const portTries = 5

/** The settings of server-process.ts; behind a port mapping no client comes from loopback. */
const settings = {
  port: innerPort,
  'protected-mode': 'no',
  dir: '/data',
  save: '',
  appendonly: 'yes',
  appendfsync: 'always',
  'no-appendfsync-on-rewrite': 'no',
  'maxmemory-policy': 'noeviction',
}

/**
 * A test server in a container, on a port of this machine's loopback that it keeps over restarts. Containers
 * of a test run that is killed are removed by testcontainers. `HOLDFAST_TEST_IMAGE` names another image.
 * Fails when no engine answers.
 */
export async function startContainerServer(engine: Engine = thisMachine): Promise<TestServer> {
  const program = await requireEngine(engine)
  const container = await startSomewhere(process.env['HOLDFAST_TEST_IMAGE'] ?? defaultImage)
  const id = container.getId()
  const port = container.getMappedPort(innerPort)
  let running = true

  // Synchronous, as freeze and cli are; testcontainers itself has no pause, kill or start.
  function steer(...args: string[]): string {
    return execFileSync(program, args, {
      encoding: 'utf8',
      timeout: 60_000,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  }

  const cli = (...args: string[]) => steer('exec', id, 'redis-cli', '-p', String(innerPort), ...args).trim()

  async function answering(): Promise<void> {
    await until(() => cli('PING') === 'PONG', { timeoutMs: 20_000, what: 'the test server answering' })
  }

  async function kill9(): Promise<void> {
    if (!running) return
    running = false
    steer('kill', '--signal', 'KILL', id)
    steer('wait', id)
  }

  await answering()
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    dir: settings.dir,
    cli,
    kill9,
    stop: async () => {
      steer('rm', '--force', '--volumes', id)
    },
    restart: async () => {
      if (running) steer('stop', id)
      steer('start', id)
      running = true
      await answering()
    },
    freeze: () => void steer('pause', id),
    thaw: () => {
      if (isPaused()) steer('unpause', id)
    },
  }

  /** A second SIGCONT to a process does nothing; a second unpause is an error. */
  function isPaused(): boolean {
    return steer('inspect', '--format', '{{.State.Paused}}', id).trim() === 'true'
  }
}

/** The engine's command line, once an engine of this machine answered. Errors say what to do. */
async function requireEngine(engine: Engine): Promise<string> {
  const host = await engine.connect().catch((error: unknown) => {
    throw notHere(`no container engine answers (${error instanceof Error ? error.message : error})`)
  })
  if (host !== 'localhost' && host !== '127.0.0.1') {
    throw notHere(`the container engine is on ${host}, and tests connect to 127.0.0.1`)
  }
  const program = engine.commandLine()
  if (program === undefined) throw notHere('there is no docker or podman command line in PATH')
  return program
}

function notHere(what: string): Error {
  return new Error(
    `HOLDFAST_TEST_SERVER=container: ${what}. Start Docker or Podman on this machine (DOCKER_HOST names its socket), or unset HOLDFAST_TEST_SERVER to test against a local server process`,
  )
}

async function startSomewhere(image: string): Promise<StartedTestContainer> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await new LoopbackContainer(image, await freePort()).start()
    } catch (error) {
      if (attempt === portTries || !/port is already allocated|address already in use/i.test(String(error))) {
        throw error
      }
    }
  }
}

/** One redis-server, its port bound to loopback alone: testcontainers by itself binds every address. */
class LoopbackContainer extends GenericContainer {
  constructor(image: string, hostPort: number) {
    super(image)
    this.withExposedPorts({ container: innerPort, host: hostPort })
    this.hostConfig.PortBindings = {
      [`${innerPort}/tcp`]: [{ HostIp: '127.0.0.1', HostPort: String(hostPort) }],
    }
    // A killed server must still be there to be started again.
    this.withAutoRemove(false)
    this.withCommand([
      'redis-server',
      ...Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]),
    ])
  }
}
