import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import type { MessageInput } from '../../src/contract/message.js'
import { type FaultyProxy, startProxy } from '../support/proxy.js'
import { type OpenRecord, openRecord } from '../support/record.js'
import type { TestServer } from '../support/server.js'
import { until } from '../support/until.js'

/** How a node process is started: with these values, it has to serve the host and run the command for each delivery. */
export interface NodeRun {
  readonly redis: string
  readonly hub: string
  readonly host: string
  readonly node: string
  readonly mirror: string
  readonly exec: string
}

/** Program and arguments of a node. */
export type NodeCommand = (run: NodeRun) => readonly [program: string, ...args: string[]]

/** A node process under test. */
export interface NodeUnderTest {
  signal(name: NodeJS.Signals): void
  /** Ends it at once; resolves when it is gone. */
  kill(): Promise<void>
  /** The signal it ended by, or its exit code. */
  readonly ended: Promise<NodeJS.Signals | number | null>
  /** What it wrote to stderr. */
  said(): string
}

/** A record of its own, the folder of one node on host `a`, and the marks that its commands leave. */
export interface NodeStage {
  readonly record: OpenRecord
  readonly proxy: FaultyProxy
  /** Starts a process of the node; by way of the proxy where it says so. The mirror is the same every time. */
  start(way?: 'direct' | 'proxy'): NodeUnderTest
  /** Resolves when a process of this incarnation has joined. */
  joined(incarnation: number): Promise<void>
  /** Accepts one message; answers the id of its delivery. */
  send(payload: MessageInput['payload'], conversation?: string): Promise<string>
  /** Waits until the field of the delivery's row is so. */
  field(id: string, name: string, value: string): Promise<void>
  done(id: string): Promise<void>
  /** Attempts that left this mark, in order. */
  marks(what: 'busy' | 'begin' | 'end'): string[]
  /** Lets the commands end that wait. */
  go(): void
  /** The invariants hold, and the marks say what the rows say. */
  check(): Promise<void>
  close(): Promise<void>
}

/** Five scenarios at a time start processes: on a busy machine that takes a while. */
export const signalMs = 60_000

const handler = fileURLToPath(new URL('any-node-handler.sh', import.meta.url))
const host = 'a'
const node = 'n1'

export async function nodeStage(server: TestServer, command: NodeCommand): Promise<NodeStage> {
  const record = await openRecord(server)
  await record.config('heartbeat_ms', 100)
  await record.config('stale_after_ms', 60_000)
  const proxy = await startProxy(server.port)
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-any-node-'))
  const processes: NodeUnderTest[] = []

  function start(way: 'direct' | 'proxy' = 'direct'): NodeUnderTest {
    const redis = way === 'proxy' ? proxy.url : server.url
    const run = { redis, hub: record.name, host, node, mirror: join(folder, 'mirror.db') }
    const [program, ...args] = command({ ...run, exec: `exec sh '${handler}' '${folder}'` })
    const started = watched(spawn(program, args, { cwd: folder, env: environment(), stdio: 'pipe' }))
    processes.push(started)
    return started
  }

  async function send(payload: MessageInput['payload'], conversation = 'c1'): Promise<string> {
    const { deliveries } = await record.accept({ payload, conversation, to: [{ host }] })
    return deliveries[0]?.id ?? ''
  }

  async function field(id: string, name: string, value: string): Promise<void> {
    await until(async () => (await record.fields(id))[name] === value, {
      timeoutMs: signalMs,
      everyMs: 25,
      what: `${name} ${value} of ${id}; the node said ${processes.map((each) => each.said()).join('\n')}`,
    })
  }

  const marks: NodeStage['marks'] = (what) => {
    const file = join(folder, 'marks')
    const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []
    return lines.filter((line) => line.startsWith(`${what} `)).map((line) => line.slice(what.length + 1))
  }

  /** Every attempt was executed as often as its row says, and nothing else was. */
  async function compareMarks(): Promise<void> {
    const wanted = { busy: [] as string[], begin: [] as string[], end: [] as string[] }
    for (const [key, value] of Object.entries(await record.dump())) {
      if (!key.startsWith(':delivery:') || value.type !== 'hash') continue
      for (let n = 1; n <= Number(value.value['attempts'] ?? 0); n += 1) {
        const attempt = `${key.slice(':delivery:'.length)}/${n}`
        const status = value.value[`attempt_${n}_status`]
        const ran = status !== 'not_sent'
        if (ran) wanted.begin.push(attempt)
        if (status === 'done' || status === 'terminal') wanted.end.push(attempt)
        if (!ran && value.value[`attempt_${n}_error_code`] === 'exit_75') wanted.busy.push(attempt)
      }
    }
    expect(marks('busy').toSorted()).toEqual(wanted.busy.toSorted())
    expect(marks('begin').toSorted()).toEqual(wanted.begin.toSorted())
    // What is unknown may have come to its end, and nobody could say so.
    expect(marks('end')).toEqual(expect.arrayContaining(wanted.end))
    expect(wanted.begin).toEqual(expect.arrayContaining(marks('end')))
  }

  function go(): void {
    writeFileSync(join(folder, 'go'), '')
  }

  return {
    record,
    proxy,
    start,
    joined: async (incarnation) => {
      const row = () => record.send('HGET', record.keys.node(host, node), 'incarnation')
      const what = `the join of incarnation ${incarnation}; it said ${processes.at(-1)?.said()}`
      await until(async () => (await row()) === String(incarnation), { timeoutMs: signalMs, what })
    },
    send,
    field,
    done: (id) => field(id, 'attempt_status', 'done'),
    marks,
    go,
    check: async () => {
      await record.checkInvariants()
      await compareMarks()
    },
    close: async () => {
      go()
      await Promise.all(processes.map((each) => each.kill()))
      await proxy.close()
      await record.close()
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

function watched(child: ChildProcess): NodeUnderTest {
  let said = ''
  child.stderr?.on('data', (bytes: Buffer) => {
    said += bytes.toString()
  })
  child.stdout?.resume()
  child.stdin?.end()
  const killAtExit = () => child.kill('SIGKILL')
  process.once('exit', killAtExit)
  const ended = new Promise<NodeJS.Signals | number | null>((resolve, reject) => {
    child.once('error', reject)
    // Not `close`: a command that outlives its node holds the pipes.
    child.once('exit', (code, signal) => {
      process.removeListener('exit', killAtExit)
      resolve(signal ?? code)
    })
  })
  return {
    signal: (name) => void child.kill(name),
    kill: async () => {
      child.kill('SIGKILL')
      await ended
    },
    ended,
    said: () => said,
  }
}

function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('HOLDFAST_')))
}
