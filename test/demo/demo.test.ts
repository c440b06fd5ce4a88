import { spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
const messages = 60
const endsWithinMs = 170_000
const folders: string[] = []

/** The lines of lua/lib that keep a second process from executing the same work. */
const guards = [
  { file: 'deliveries.lua', line: "  if row.epoch ~= epoch then return 'STALE_EPOCH' end\n" },
  {
    file: 'deliveries.lua',
    line: "  if row.owner ~= node.id or row.incarnation ~= node.incarnation then return 'NOT_OWNER' end\n",
  },
  {
    file: 'begin.lua',
    line: "  if hf.is_executing(row) then return hf.item_refused(id, 'GRANT_OPEN', row) end\n",
  },
  {
    file: 'begin.lua',
    line: "  if hf.is_finished(row) then return hf.item_refused(id, 'ALREADY_SETTLED', row) end\n",
  },
]

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

describe('npm run demo', () => {
  test('loses nothing and executes nothing twice', { timeout: 180_000 }, async () => {
    const { code, output } = await runDemo(root)
    expect(lastLine(output), output).toBe('lost 0, executed twice 0')
    expect(code, output).toBe(0)
    expect(output).toMatch(
      / [1-9]\d* deliveries of \S+ are in the held queue, reason "fence hold:conversation:/,
    )
    expect(output).toMatch(/released \S+ by hand: it passed the hold and ran; .* the other [1-9]/)
    expect(output).toMatch(/[1-9]\d* deliveries of \S+ failed, "blocked block:conversation:/)
    expect(output).toMatch(/^failed ([1-9]\d*), of which the block on \S+ was to fail \1$/m)
    expect(output).toMatch(/SIGKILL: [1-9]\d* attempts were begun/)
    expect(output).toMatch(/woke host-3\/b: [1-9]\d* of \d+ refused \(STALE_EPOCH\)/)
  })

  test('exits 1 when the epoch and grant checks are taken out', { timeout: 180_000 }, async () => {
    const { code, output } = await runDemo(copyWithoutGuards())
    expect(lastLine(output), output).toMatch(/^lost \d+, executed twice [1-9]\d*$/)
    expect(code, output).toBe(1)
  })
})

/** A copy of the package as it would be installed, its Lua functions without the guards. */
function copyWithoutGuards(): string {
  const copy = mkdtempSync(join(tmpdir(), 'holdfast-mutant-'))
  folders.push(copy)
  for (const name of ['dist', 'lua', 'examples', 'package.json']) {
    cpSync(join(root, name), join(copy, name), { recursive: true })
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  for (const { file, line } of guards) {
    const path = join(copy, 'lua', 'lib', file)
    const text = readFileSync(path, 'utf8')
    expect(text.split(line), `lua/lib/${file} holds this once: ${line}`).toHaveLength(2)
    writeFileSync(path, text.replace(line, ''))
  }
  return copy
}

function runDemo(folder: string): Promise<{ code: number | null; output: string }> {
  const program = join(folder, 'examples', 'demo', 'demo.mjs')
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program, '--messages', String(messages)])
    const giveUp = setTimeout(() => child.kill('SIGTERM'), endsWithinMs) // it ends what it started
    let output = ''
    child.stdout.on('data', (bytes) => {
      output += bytes
    })
    child.stderr.on('data', (bytes) => {
      output += bytes
    })
    child.once('error', reject)
    child.once('close', (code) => {
      clearTimeout(giveUp)
      resolve({ code, output })
    })
  })
}

function lastLine(output: string): string | undefined {
  return output.trimEnd().split('\n').at(-1)
}
