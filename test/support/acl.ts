import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findProgram } from '../../src/record/server-process.js'
import type { TestServer } from './server.js'

export const roles = ['hub', 'node', 'reader', 'operator'] as const
export type AclRole = (typeof roles)[number]

/** The page, and the shell lines of it in order. */
export const aclPage = readFileSync(fileURLToPath(new URL('../../docs/acl.md', import.meta.url)), 'utf8')
const blocks = [...aclPage.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, script = '']) => script)
/** What ends the page: nobody without a password. */
export const lastLine = blocks.at(-1) ?? ''

/**
 * Makes the users of docs/acl.md by the very lines of the page; answers the URL of each. `hub` takes the place of
 * `hf`, and may be a pattern.
 */
export function makeUsers(server: TestServer, hub = 'hf'): Record<AclRole, string> {
  const passwords = roles.map((role) => `"$${role.toUpperCase()}_PASSWORD"`).join(' ')
  const script = `${blocks.slice(0, -1).join('\n').replaceAll('{hf}', `{${hub}}`)}\nprintf 'passwords %s %s %s %s\\n' ${passwords}\n`
  const output = runLines(server, script)
  const told = /^passwords (\w+) (\w+) (\w+) (\w+)$/m.exec(output)?.slice(1) ?? []
  const urls = roles.map((role, at) => [role, urlOf(server, `holdfast-${role}`, told[at] ?? '')])
  return Object.fromEntries(urls) as Record<AclRole, string>
}

function urlOf(server: TestServer, user: string, password: string): string {
  return server.url.replace('redis://', `redis://${user}:${password}@`)
}

/** Runs lines of the page, with `redis-cli` leading to the server; fails where one of them does. */
export function runLines(server: TestServer, script: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-acl-'))
  try {
    const program = findProgram('redis-cli') ?? findProgram('valkey-cli')
    writeFileSync(join(folder, 'redis-cli'), `#!/bin/sh\nexec '${program}' -p ${server.port} "$@"\n`)
    chmodSync(join(folder, 'redis-cli'), 0o755)
    const { status, stdout, stderr } = spawnSync('sh', ['-euc', script], {
      encoding: 'utf8',
      env: { ...process.env, PATH: `${folder}${delimiter}${process.env['PATH']}` },
      timeout: 20_000,
    })
    if (status !== 0 || /\bERR\b/.test(stdout + stderr)) throw new Error(`${stdout}${stderr}`)
    return stdout
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** What was refused to anybody since the log was reset. */
export function refusals(server: TestServer): string {
  return server.cli('ACL', 'LOG')
}
