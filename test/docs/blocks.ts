import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/until.js'

// Runs a section of a page as it is printed. Its `sh` blocks go into one shell, in their order; a `text` block right
// behind one is what it prints. A `js`, `mjs` or `ts` block is a file, named in backticks before it.

/** One `sh` block. */
export interface Block {
  /** The first words of what stands before it. */
  readonly title: string
  readonly script: string
  /** All that it prints, when the page says so; `…` is anything within a line. */
  readonly expected: string | undefined
}

/** A file that the section prints. */
export interface PrintedFile {
  readonly name: string
  readonly text: string
}

export interface Section {
  readonly blocks: readonly Block[]
  readonly files: readonly PrintedFile[]
}

/** How a session went. */
export interface Session {
  /** What its shell ended with; undefined when it was ended by a signal. */
  readonly status: number | undefined
  /** What each block printed, stdout and stderr; fewer than there are blocks when one failed. */
  readonly printed: readonly string[]
  /** Whether anything that it started still runs. */
  leftRunning(): boolean
  /** Ends whatever still runs. */
  end(): Promise<void>
}

export interface SessionOptions {
  /** The working directory, to begin with. */
  readonly folder: string
  readonly env: NodeJS.ProcessEnv
  readonly timeoutMs: number
  /** Of the printed text to what is run instead, such as a port that is free. */
  readonly instead?: Readonly<Record<string, string>>
}

const mark = '=== a block has ended ==='

/** The section under a heading of the second level. @throws Error when the page has none */
export function sectionOf(page: string, heading: string): Section {
  const start = `\n${page}`.indexOf(`\n## ${heading}\n`)
  if (start < 0) throw new Error(`there is no section "${heading}"`)
  const end = page.indexOf('\n## ', start + 1)
  return readSection(page.slice(start, end < 0 ? undefined : end))
}

function readSection(text: string): Section {
  const blocks: Block[] = []
  const files: PrintedFile[] = []
  const fences = /^```(sh|js|mjs|ts)\n([\s\S]*?)^```\n(?:\n```text\n([\s\S]*?)^```(?:\n|$))?/gm
  for (const { index, 1: kind, 2: body = '', 3: expected } of text.matchAll(fences)) {
    const before = text.slice(0, index)
    if (kind === 'sh') blocks.push({ title: titleOf(before), script: body, expected })
    else files.push({ name: nameBefore(before), text: body })
  }
  return { blocks, files }
}

/** The file that the paragraph before a block names last. */
function nameBefore(before: string): string {
  const name = /`([\w.-]+\.(?:js|mjs|ts))`/g
  const paragraph = before.trimEnd().split('\n').at(-1) ?? ''
  const found = [...paragraph.matchAll(name)].at(-1)?.[1]
  if (found === undefined) throw new Error(`no file is named in: ${paragraph}`)
  return found
}

/** The first sentence of the paragraph that stands before a block. */
function titleOf(before: string): string {
  const paragraph = before.trimEnd().split('\n').at(-1) ?? ''
  if (paragraph.startsWith('```')) return 'run it'
  return (paragraph.split(/[.:?] | \(|[.:?]$/)[0] ?? '').replaceAll('*', '')
}

/** Runs blocks to their end, in a process group of their own, so that what they leave behind can be ended. */
export async function runBlocks(blocks: readonly Block[], options: SessionOptions): Promise<Session> {
  const { folder, env, timeoutMs, instead = {} } = options
  const [script, record] = [join(folder, '.session.sh'), join(folder, '.session.out')]
  let text = blocks.map((block) => `${block.script}printf '%s\\n' '${mark}'\n`).join('')
  for (const [printed, run] of Object.entries(instead)) text = text.replaceAll(printed, run)
  writeFileSync(script, text)
  const output = openSync(record, 'w')
  const child = spawn('sh', ['-eu', script], {
    cwd: folder,
    detached: true,
    stdio: ['ignore', output, output],
    env,
  })
  const over = () => child.exitCode !== null || child.signalCode !== null
  await until(over, { timeoutMs, what: 'the end of the session' }).catch(() => undefined)
  closeSync(output)
  const group = child.pid ?? 0
  const printed = readFileSync(record, 'utf8').replaceAll('\r', '').split(`${mark}\n`)
  return {
    status: child.exitCode ?? undefined,
    printed,
    leftRunning: () => isAlive(group),
    end: () => endGroup(group),
  }
}

async function endGroup(id: number): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (!isAlive(id)) return
    process.kill(-id, signal)
    await until(() => !isAlive(id)).catch(() => undefined)
  }
}

function isAlive(group: number): boolean {
  try {
    process.kill(-group, 0)
    return true
  } catch {
    return false
  }
}

/** What printed text is held against. */
export function patternOf(expected: string): RegExp {
  const escaped = expected.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
  return new RegExp(`^${escaped.replaceAll('…', '.+')}$`)
}

/** This environment without what would speak to a command of ours. */
export function environmentWithout(names: RegExp): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !names.test(name)))
}
