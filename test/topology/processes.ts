import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { freePort } from '../../src/record/embedded.js'
import { findServer } from '../../src/record/server-process.js'
import { until } from '../support/until.js'

/** One Redis process of a topology, AOF `always`, on a loopback port that it keeps. */
export interface Member {
  readonly port: number
  readonly pid: number
  /** Starts it (again), and waits until it answers. */
  start(): Promise<void>
  /** SIGKILL; resolves when it has ended. */
  kill9(): Promise<void>
  signal(name: NodeJS.Signals): void
  /** One command, on a connection of its own; rejects after 5 s. */
  call(...words: (string | number)[]): Promise<unknown>
  /** Sections of INFO, by field. */
  info(section: string): Promise<ReadonlyMap<string, string>>
}

/** Processes of one topology with their folder; `end` leaves nothing of them. */
export interface Troop {
  readonly dir: string
  /** A server with these settings besides the usual. Not started yet. */
  server(settings?: Readonly<Record<string, string | number>>): Promise<Member>
  /** A Sentinel with this configuration. Not started yet. */
  sentinel(lines: readonly string[]): Promise<Member>
  end(): Promise<void>
}

const startWithinMs = 20_000
const answerWithinMs = 5_000

export function createTroop(): Troop {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-topology-'))
  const children = new Set<ChildProcess>()
  const killAll = () => {
    for (const child of children) child.kill('SIGKILL')
  }
  process.once('exit', killAll)

  function memberOf(port: number, words: readonly string[], own: string): Member {
    let child: ChildProcess | undefined
    async function start(): Promise<void> {
      const program = findServer()
      if (program === undefined)
        throw new Error('no Redis server program: run node scripts/ensure-server.mjs')
      const log = openSync(join(own, 'log'), 'a')
      const started = spawn(program.path, words, {
        argv0: program.name,
        cwd: own,
        stdio: ['ignore', log, log],
      })
      closeSync(log)
      child = started
      children.add(started)
      started.once('exit', () => children.delete(started))
      await until(
        async () => {
          if (started.exitCode !== null) throw new Error(readFileSync(join(own, 'log'), 'utf8').slice(-1500))
          return (await call('PING').catch(() => '')) === 'PONG'
        },
        { timeoutMs: startWithinMs, what: `the server on port ${port} answering` },
      )
    }
    async function call(...words: (string | number)[]): Promise<unknown> {
      const client = new Redis({
        port,
        host: '127.0.0.1',
        lazyConnect: true,
        protocol: 2,
        retryStrategy: () => null,
        commandTimeout: answerWithinMs,
        connectTimeout: answerWithinMs,
        enableReadyCheck: false,
        disableClientInfo: true,
      })
      client.on('error', () => undefined)
      try {
        await client.connect()
        const [name = '', ...args] = words.map(String)
        return await client.call(name.toUpperCase(), ...args)
      } finally {
        client.disconnect()
      }
    }
    return {
      port,
      get pid() {
        return child?.pid ?? 0
      },
      start,
      kill9: async () => {
        const running = child
        if (running === undefined || running.exitCode !== null || running.signalCode !== null) return
        const ended = new Promise((resolve) => running.once('exit', resolve))
        running.kill('SIGKILL')
        await ended
      },
      signal: (name) => void child?.kill(name),
      call,
      info: async (section) => {
        const lines = String(await call('INFO', section)).split('\r\n')
        return new Map(
          lines.flatMap((line) => (line.includes(':') ? [splitAt(line, line.indexOf(':'))] : [])),
        )
      },
    }
  }

  return {
    dir,
    server: async (settings = {}) => {
      const port = await portOfItsOwn(dir)
      const own = join(dir, String(port))
      const all = {
        port,
        bind: '127.0.0.1',
        dir: own,
        save: '',
        appendonly: 'yes',
        appendfsync: 'always',
        'maxmemory-policy': 'noeviction',
        'repl-diskless-sync-delay': 0,
        ...settings,
      }
      return memberOf(
        port,
        Object.entries(all).flatMap(([name, value]) => [`--${name}`, String(value)]),
        own,
      )
    },
    sentinel: async (lines) => {
      const port = await freePort()
      const own = join(dir, `sentinel-${port}`)
      mkdirSync(own)
      const file = join(own, 'sentinel.conf')
      writeFileSync(file, [`port ${port}`, 'bind 127.0.0.1', `dir ${own}`, ...lines, ''].join('\n'))
      return memberOf(port, [file, '--sentinel'], own)
    },
    end: async () => {
      process.removeListener('exit', killAll)
      const ended = [...children].map((child) => new Promise((resolve) => child.once('exit', resolve)))
      killAll()
      await Promise.all(ended)
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

function splitAt(text: string, at: number): [string, string] {
  return [text.slice(0, at), text.slice(at + 1)]
}

/** A free port that no other server of this folder was given: of two that ask at once both may be told the same. */
async function portOfItsOwn(dir: string): Promise<number> {
  for (;;) {
    const port = await freePort()
    try {
      mkdirSync(join(dir, String(port)))
      return port
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}
