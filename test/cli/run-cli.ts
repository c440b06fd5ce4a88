import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { until } from '../support/until.js'

const mainFile = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

/** How a command ended. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** A command that runs. */
export interface Running {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  /** Waits until stderr holds the text. */
  said(text: string): Promise<string>
}

export interface CliOptions {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string | Uint8Array
}

/** Starts the built command line. The surrounding environment's HOLDFAST_ names are kept out. */
export function startCli(args: readonly string[], options: CliOptions): Running {
  if (!existsSync(mainFile)) throw new Error(`${mainFile} is not there: run npm run build`)
  const child = spawn(process.execPath, [mainFile, ...args], {
    cwd: options.cwd,
    env: { ...cleanEnvironment(), ...options.env },
    stdio: 'pipe',
  })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  child.stdin.on('error', () => undefined)
  child.stdin.end(options.input ?? '')
  const ended = new Promise<Ended>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
  })
  async function said(text: string): Promise<string> {
    await until(() => stderr.includes(text) || child.exitCode !== null, { timeoutMs: 30_000, what: text })
    if (!stderr.includes(text)) throw new Error(`it ended without saying ${text}: ${stderr}`)
    return stderr
  }
  return { child, ended, said }
}

/** Runs a command to its end. */
export function runCli(args: readonly string[], options: CliOptions): Promise<Ended> {
  return startCli(args, options).ended
}

/** Runs a command that must succeed, with --json; answers its JSON. */
export async function answerOf<Answer>(args: readonly string[], options: CliOptions): Promise<Answer> {
  const ended = await runCli([...args, '--json'], options)
  if (ended.code !== 0) throw new Error(`${args.join(' ')} ended with ${ended.code}: ${ended.stderr}`)
  return JSON.parse(ended.stdout) as Answer
}

/** The error of a command that failed with --json. */
export function errorOf(ended: Ended): { code: string; message: string; next: string } {
  const line = ended.stderr.trim().split('\n').at(-1) ?? ''
  return (JSON.parse(line) as { error: { code: string; message: string; next: string } }).error
}

/** A folder of its own for a test. */
/** The URL of a `serve` or `dev` that logs in JSON, once it answers there. */
export async function servedUrl(running: Running): Promise<string> {
  const lines = (await running.said('"msg":"serving"')).split('\n')
  return String(JSON.parse(lines.find((line) => line.includes('"msg":"serving"')) ?? '{}').url)
}

export function makeFolder(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'holdfast-cli-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

function cleanEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('HOLDFAST_') && name !== 'NO_COLOR' && name !== 'FORCE_COLOR',
  )
  return Object.fromEntries(kept)
}
