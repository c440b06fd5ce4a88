import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { serverPath } from '../../scripts/ensure-servers.mjs'
import { findServer, type ServerProgram } from '../../src/record/server-process.js'
import { startServerProcess, type TestServer } from '../support/server.js'

/** A server that the record is tested on. */
export interface NamedServer {
  readonly name: 'redis-7.0' | 'redis-8.0' | 'valkey-8.1'
  readonly program: ServerProgram
  /** As it says itself, such as `8.0.2`. */
  readonly version: string
}

/**
 * The three servers, each asked for its version. The first is whatever the system has, 7.0 on Debian 12.
 * Fails, saying how to get it, where one is missing or is not the version that it should be.
 */
export function serversOf(): Record<NamedServer['name'], NamedServer> {
  return {
    'redis-7.0': systemServer(),
    'redis-8.0': unpacked('redis-8.0', 'redis-server', '8.0'),
    'valkey-8.1': unpacked('valkey-8.1', 'valkey-server', '8.1'),
  }
}

function systemServer(): NamedServer {
  const program = findServer()
  if (program === undefined) throw new Error('no Redis server program: run node scripts/ensure-server.mjs')
  const version = versionOf(program)
  if (!version.startsWith('7.0.')) console.info(`in place of Redis 7.0: ${program.path}, ${version}`)
  return { name: 'redis-7.0', program, version }
}

function unpacked(name: NamedServer['name'], file: string, wanted: string): NamedServer {
  const program = { path: serverPath(file, wanted), name: file }
  if (!existsSync(program.path)) {
    throw new Error(`no ${name} at ${program.path}: run node scripts/ensure-servers.mjs`)
  }
  const version = versionOf(program)
  if (!version.startsWith(`${wanted}.`)) {
    throw new Error(`${program.path} is ${version}: remove it and run node scripts/ensure-servers.mjs`)
  }
  return { name, program, version }
}

function versionOf({ path, name }: ServerProgram): string {
  const { stdout, stderr } = spawnSync(path, ['--version'], { argv0: name, encoding: 'utf8' })
  const said = `${stdout}${stderr}`
  const version = /\bv=(\S+)/.exec(said)?.[1]
  if (version === undefined) throw new Error(`${path} --version says no version: ${said}`)
  return version
}

export function startServerOf({ program }: Pick<NamedServer, 'program'>): Promise<TestServer> {
  return startServerProcess(program)
}
