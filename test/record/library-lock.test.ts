import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { assembleLibrary, libraryVersion } from '../../src/record/library.js'

const root = fileURLToPath(new URL('../../', import.meta.url))

it('lua/library.lock.json states the library that lua/ makes', () => {
  const { version, digest } = assembleLibrary()
  const locked: unknown = JSON.parse(readFileSync(join(root, 'lua', 'library.lock.json'), 'utf8'))
  expect(locked, 'the library changed: npm run lock:library').toEqual({ version, digest })
})

describe('lock-library', () => {
  let checkout: string
  let file: string

  beforeEach(() => {
    checkout = mkdtempSync(join(tmpdir(), 'holdfast-lock-'))
    cpSync(join(root, 'lua'), join(checkout, 'lua'), { recursive: true })
    file = join(checkout, 'lua', 'library.lock.json')
    git('init', '--quiet')
    put({ version: libraryVersion, digest: 'of other code' })
  })

  afterEach(() => rmSync(checkout, { recursive: true, force: true }))

  function git(...args: string[]): void {
    const who = ['-c', 'user.name=tests', '-c', 'user.email=tests@localhost']
    const { status, stderr } = spawnSync('git', ['-C', checkout, ...who, ...args], { encoding: 'utf8' })
    if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`)
  }

  function put(lock: object): void {
    writeFileSync(file, JSON.stringify(lock))
  }

  function locked(): unknown {
    return JSON.parse(readFileSync(file, 'utf8'))
  }

  function lock(...args: string[]): { status: number | null; stderr: string } {
    const script = join(root, 'scripts', 'lock-library.mjs')
    return spawnSync(process.execPath, [script, '--root', checkout, ...args], { encoding: 'utf8' })
  }

  it('refuses changed code under the version it had, and changes nothing', () => {
    const { status, stderr } = lock()
    expect(status).toBe(1)
    expect(stderr).toMatch(/raise libraryVersion .* or, while \d+ is unreleased, pass --same-version/)
    expect(locked()).toEqual({ version: libraryVersion, digest: 'of other code' })
  })

  it('keeps the version when told to, while it is unreleased', () => {
    expect(lock('--same-version')).toMatchObject({ status: 0 })
    const { version, digest } = assembleLibrary({ luaDir: join(checkout, 'lua') })
    expect(locked()).toEqual({ version, digest })
    expect(lock()).toMatchObject({ status: 0 })
  })

  it('does not keep a version that a release holds', () => {
    git('add', '.')
    git('commit', '--quiet', '--message', 'release')
    git('tag', 'v0.0.1')
    const { status, stderr } = lock('--same-version')
    expect(status).toBe(1)
    expect(stderr).toContain('was released as v0.0.1')
  })

  it('takes a newer version, never an older one', () => {
    put({ version: libraryVersion - 1, digest: 'of other code' })
    expect(lock()).toMatchObject({ status: 0 })
    put({ version: libraryVersion + 1, digest: 'of other code' })
    expect(lock('--same-version').stderr).toContain('it only ever grows')
  })

  it('makes the lock where there is none', () => {
    rmSync(file)
    expect(lock()).toMatchObject({ status: 0 })
    expect(existsSync(file)).toBe(true)
  })
})
