import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Limits } from '../../src/http/limits.js'
import { until } from './until.js'

export interface HubServerOptions {
  readonly redis: string
  readonly hub: string
  readonly limits?: Partial<Limits>
}

/** A hub over HTTP in a process of its own, measured from outside (Linux). */
export interface HubServerProcess {
  readonly url: string
  readonly port: number
  readonly pid: number
  /** What it logged so far, parsed; a line that is no JSON stands under `text`. */
  readonly log: readonly LogLine[]
  residentBytes(): number
  /** Open descriptors: a socket for each client, and a few that stay. */
  descriptors(): number
  /** Asks it to end; its exit code. */
  stop(): Promise<number | null>
}

export interface LogLine {
  readonly level?: number
  readonly msg?: string
  readonly text?: string
}

const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

const script = fileURLToPath(new URL('hub-server.mjs', import.meta.url))

/** Runs the built code: npm test builds first. */
export async function spawnHubServer(options: HubServerOptions): Promise<HubServerProcess> {
  const child = spawn(process.execPath, [script, JSON.stringify(options)], { stdio: 'pipe' })
  running.add(child)
  const ended = new Promise<number | null>((resolve) => {
    child.once('close', (code) => {
      running.delete(child)
      resolve(code)
    })
  })
  const log: LogLine[] = []
  let url: string | undefined
  createInterface({ input: child.stderr }).on('line', (line) => log.push(parsed(line)))
  createInterface({ input: child.stdout }).on('line', (line) => {
    url = (JSON.parse(line) as { url: string }).url
  })
  const { pid } = child
  if (pid === undefined) throw new Error('the hub server did not start')
  const found = await until(() => url ?? (child.exitCode === null ? undefined : 'ended'), {
    timeoutMs: 40_000,
    what: 'the URL of the hub server',
  })
  if (found === 'ended') throw new Error(`the hub server ended: ${JSON.stringify(log)}`)
  return {
    url: found,
    port: Number(new URL(found).port),
    pid,
    log,
    residentBytes: () => {
      const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
      return Number(kilobytes) * 1024
    },
    descriptors: () => readdirSync(`/proc/${pid}/fd`).length,
    stop: async () => {
      child.stdin.write('stop\n')
      return await ended
    },
  }
}

function parsed(line: string): LogLine {
  try {
    return JSON.parse(line) as LogLine
  } catch {
    return { text: line }
  }
}
