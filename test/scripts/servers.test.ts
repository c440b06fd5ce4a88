import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, it } from 'vitest'

// The scripts that bring other servers, and run the tests on them. What they bring is tried by the tests themselves.

const root = fileURLToPath(new URL('../..', import.meta.url))
let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-servers-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true })
})

function run(script: string, args: readonly string[] = [], env: Record<string, string> = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, 'scripts', script), ...args], {
    encoding: 'utf8',
    env: { ...process.env, HOLDFAST_SERVERS_DIR: folder, ...env },
  })
  return { status, stdout, stderr }
}

function put(name: string, version: string): void {
  mkdirSync(join(folder, 'bin'), { recursive: true })
  const text = `#!/bin/sh\necho 'A server v=${version} sha=0'\n`
  writeFileSync(join(folder, 'bin', name), text, { mode: 0o755 })
}

it('servers that are there: nothing is said or done', () => {
  put('redis-server-8.0', '8.0.9')
  put('valkey-server-8.1', '8.1.9')
  expect(run('ensure-servers.mjs')).toEqual({ status: 0, stdout: '', stderr: '' })
})

it('a server that is missing, or of another version, where nothing can bring it: a failure that names it', () => {
  put('redis-server-8.0', '8.2.1')
  const none = join(folder, 'none')
  mkdirSync(none)
  symlinkSync('/bin/sh', join(none, 'sh')) // the programs are scripts
  const { status, stdout, stderr } = run('ensure-servers.mjs', [], { PATH: none })
  expect([status, stdout]).toEqual([1, ''])
  expect(stderr).toContain(`redis-server 8.0 (${join(folder, 'bin', 'redis-server-8.0')})`)
  expect(stderr).toContain(`valkey-server 8.1 (${join(folder, 'bin', 'valkey-server-8.1')})`)
  expect(stderr).toMatch(/put executables there/)
})

it('test:topology: a name that is none is refused with those there are', () => {
  const { status, stderr } = run('topology.mjs', ['--only', 'nowhere'])
  expect(status).toBe(2)
  expect(stderr).toMatch(/no test is named nowhere; there are: .*\bversions\b/)
  expect(run('topology.mjs', ['--onyl', 'versions']).status).toBe(2)
})
