import { spawn } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '../../src/record/embedded.js'
import { until } from '../support/until.js'

// Runs "Five minutes with curl" of README.md in one shell, as it is printed but for the port, and compares what
// every block prints. The program of the section is run as well.

interface Step {
  readonly title: string
  readonly script: string
  /** All that it prints; `…` is anything within a line. */
  readonly expected: string
}

interface Program {
  readonly file: string
  readonly text: string
}

const root = fileURLToPath(new URL('../../', import.meta.url))
const title = '## Five minutes with curl'
const printedAddress = '127.0.0.1:8090'
const mark = '=== a block has ended ==='
const { steps, programs } = readTour(readFileSync(join(root, 'README.md'), 'utf8'))

let folder: string
let group: number | undefined
let status: number | undefined
let printed: string[] = []

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-tour-'))
  putHoldfastInto(folder)
  const address = `127.0.0.1:${await freePort()}`
  const script = steps.map((step) => `${step.script}printf '%s\\n' '${mark}'\n`).join('')
  writeFileSync(join(folder, 'tour.sh'), script.replaceAll(printedAddress, address))
  status = await runTour()
  printed = readFileSync(join(folder, 'output'), 'utf8').replaceAll('\r', '').split(`${mark}\n`)
}, 120_000)
afterAll(async () => {
  if (group !== undefined) await endGroup(group)
  rmSync(folder, { recursive: true, force: true })
})

test('the section shows a whole delivery, and a program', () => {
  const all = steps.map(({ script }) => script).join('')
  const words =
    'init|serve|readyz|/v1/messages|/why|/claim|/mirror|/ack|/begin|/delivery-report|principal add'
  for (const word of words.split('|')) expect(all).toContain(word)
  expect(all).toContain(printedAddress)
  expect(programs.map(({ file }) => file)).toEqual(['client.mjs'])
  for (const { file } of programs) expect(all).toContain(`node ${file}`)
})

for (const [at, step] of steps.entries()) {
  test(`${at + 1}: ${step.title}`, () => {
    const whole = printed.join('\n')
    expect(printed.length, `the session ended before this: ${whole}`).toBeGreaterThan(at + 1)
    expect(printed[at], whole).toMatch(patternOf(step.expected))
  })
}

test('the session ends with 0, and leaves nothing running', async () => {
  expect(status, printed.join('\n')).toBe(0)
  expect(isAlive(group ?? 0)).toBe(false)
  expect(readFileSync(join(folder, 'tour', 'serve.log'), 'utf8')).toContain('stopped the server')
})

/** `holdfast` on the PATH, the package where programs find it, and the section's programs. */
function putHoldfastInto(path: string): void {
  mkdirSync(join(path, 'bin'))
  const wrapper = join(path, 'bin', 'holdfast')
  writeFileSync(wrapper, `#!/bin/sh\nexec '${process.execPath}' '${root}dist/cli/main.js' "$@"\n`)
  chmodSync(wrapper, 0o755)
  mkdirSync(join(path, 'node_modules'))
  symlinkSync(root, join(path, 'node_modules', 'holdfast'))
  mkdirSync(join(path, 'tour'))
  for (const { file, text } of programs) writeFileSync(join(path, 'tour', file), text)
}

/** In a process group of its own, so that what it leaves behind can be ended. Answers its exit status. */
async function runTour(): Promise<number | undefined> {
  const output = openSync(join(folder, 'output'), 'w')
  const kept = Object.entries(process.env).filter(([name]) => !/^(HOLDFAST_|.*_proxy$)/i.test(name))
  const path = `${join(folder, 'bin')}${delimiter}${process.env['PATH']}`
  const child = spawn('sh', ['-eu', join(folder, 'tour.sh')], {
    cwd: folder,
    detached: true,
    stdio: ['ignore', output, output],
    env: { ...Object.fromEntries(kept), PATH: path },
  })
  group = child.pid
  await until(() => child.exitCode !== null, { timeoutMs: 100_000, what: 'the end of the tour' }).catch(
    () => undefined,
  )
  closeSync(output)
  return child.exitCode ?? undefined
}

async function endGroup(id: number): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (!isAlive(id)) return
    process.kill(-id, signal)
    await until(() => !isAlive(id)).catch(() => undefined)
  }
}

function isAlive(id: number): boolean {
  try {
    process.kill(-id, 0)
    return true
  } catch {
    return false
  }
}

function patternOf(expected: string): RegExp {
  const escaped = expected.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
  return new RegExp(`^${escaped.replaceAll('…', '.+')}$`)
}

/** The section's `sh` blocks, each with the `text` block after it, and its `js` blocks with the file named before. */
function readTour(page: string): { steps: Step[]; programs: Program[] } {
  const start = page.indexOf(`${title}\n`)
  const section = page.slice(start, page.indexOf('\n## ', start))
  const found: Step[] = []
  const files: Program[] = []
  for (const block of section.matchAll(/^```(sh|js)\n([\s\S]*?)^```\n(?:\n```text\n([\s\S]*?)^```\n)?/gm)) {
    const [, kind, text = '', expected = ''] = block
    const before = section.slice(0, block.index)
    if (kind === 'sh') found.push({ title: titleOf(before), script: text, expected })
    else files.push({ file: /`(\w+\.mjs)`[^`]*$/.exec(before)?.[1] ?? '', text })
  }
  return { steps: found, programs: files }
}

/** The first sentence of the paragraph that stands before a block. */
function titleOf(before: string): string {
  const paragraph = before.trimEnd().split('\n').at(-1) ?? ''
  if (paragraph.startsWith('```')) return 'run it'
  return (paragraph.split(/[.:?] | \(|[.:?]$/)[0] ?? '').replaceAll('*', '')
}
