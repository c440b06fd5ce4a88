import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { until } from '../support/until.js'

const examples = fileURLToPath(new URL('../../examples/', import.meta.url))
/** An example starts many processes, and may share its machine with others. What hangs is ended, with all it started. */
const longestMs = 100_000
/** The time limit of a test that runs one. */
export const exampleMs = 120_000

/** How an example ended. */
export interface EndedExample {
  /** Null when a signal ended it, also at the time limit. */
  readonly code: number | null
  /** Its lines on stdout. */
  readonly lines: readonly string[]
  /** Both streams, as they came. */
  readonly output: string
  /** Processes that it started and did not end, and files for temporary use that it did not remove. */
  readonly left: readonly string[]
}

/** Runs a program of `examples/` to its end, from elsewhere and without any setting of Holdfast. */
export async function runExample(file: string): Promise<EndedExample> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'hf-example-')))
  const child = spawn(file.endsWith('.sh') ? 'sh' : process.execPath, [join(examples, file)], {
    cwd: folder,
    detached: true, // a process group of its own, so that what it leaves behind is found
    stdio: ['ignore', 'pipe', 'pipe'],
    env: environmentIn(folder),
  })
  const group = child.pid ?? 0
  const timer = setTimeout(() => signalGroup(group, 'SIGKILL'), longestMs)
  let stdout = ''
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    output += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  clearTimeout(timer)
  const left = [...(await stillRunning(group)), ...readdirSync(folder)]
  rmSync(folder, { recursive: true, force: true })
  return { code, lines: stdout.trim().split('\n'), output, left }
}

/** What the README of an example says that it prints: its block `text`, in which `…` is anything within a line. */
export function printedBy(example: string): unknown[] {
  const page = readFileSync(join(examples, example, 'README.md'), 'utf8')
  const [, block = 'no block `text` in the README'] = /^```text\n([\s\S]*?)\n```$/m.exec(page) ?? []
  return block.split('\n').map((line) => (line.includes('…') ? expect.stringMatching(patternOf(line)) : line))
}

function patternOf(line: string): RegExp {
  return new RegExp(`^${line.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&').replaceAll('…', '.+')}$`)
}

function environmentIn(folder: string): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^HOLDFAST/.test(name))
  const path = `${dirname(process.execPath)}${delimiter}${process.env['PATH']}`
  return { ...Object.fromEntries(kept), PATH: path, TMPDIR: folder }
}

/** A process that has just ended may still be there for a moment. */
async function stillRunning(group: number): Promise<string[]> {
  try {
    await until(() => !signalGroup(group, 0), { timeoutMs: 2000 })
    return []
  } catch {
    signalGroup(group, 'SIGKILL')
    return [`processes of its group ${group}`]
  }
}

/** False when no process of the group is left. */
function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-group, signal)
    return true
  } catch {
    return false
  }
}
