// @ts-check
// A PostgreSQL cluster of its own, where the machine has the programs. It refuses to run as root: there it runs
// as the user of the package.
import { spawnSync } from 'node:child_process'
import { chownSync, existsSync, readdirSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { freePort } from './built.mjs'
import { findProgram, startProgram } from './program.mjs'

const packaged = '/usr/lib/postgresql'
const users = ['postgres', 'nobody']
export const role = 'bench'

/** The folder of `postgres` and `initdb`; undefined where there is none. */
function findPrograms() {
  const versions = existsSync(packaged) ? readdirSync(packaged) : []
  const newest = versions.sort((a, b) => Number(b) - Number(a)).map((each) => join(packaged, each, 'bin'))
  const found = findProgram('postgres')
  const folders = [...newest, ...(found === undefined ? [] : [dirname(realpathSync(found))])]
  return folders.find((folder) => existsSync(join(folder, 'postgres')) && existsSync(join(folder, 'initdb')))
}

/** Why none can be started below `dir`; undefined where it can. @param {string} dir */
export function whyNoPostgres(dir) {
  if (findPrograms() === undefined) return 'no PostgreSQL server program here'
  if (process.getuid?.() !== 0) return undefined
  const user = unprivileged()
  if (user === undefined) return 'PostgreSQL does not run as root, and there is no other user for it'
  if (spawnSync('test', ['-x', dir], user).status === 0) return undefined
  return 'PostgreSQL does not run as root, and its user may not enter the folder of this run'
}

export function postgresVersion() {
  const folder = findPrograms() ?? ''
  const { stdout } = spawnSync(join(folder, 'postgres'), ['--version'], { encoding: 'utf8' })
  return /\d+(\.\d+)?/.exec(stdout)?.[0] ?? 'of unknown version'
}

/** @param {string} dir a new folder is made below it @returns {Promise<import('./server.mjs').Server>} */
export async function startPostgres(dir) {
  const programs = findPrograms()
  if (programs === undefined) throw new Error('no PostgreSQL here')
  const port = await freePort()
  const user = process.getuid?.() === 0 ? unprivileged() : undefined
  const started = await startProgram(dir, async (folder) => {
    if (user !== undefined) chownSync(folder, user.uid, user.gid)
    const data = join(folder, 'data')
    const made = ['-D', data, '-U', role, '-A', 'trust', '-E', 'UTF8', '--no-locale', '--no-sync']
    const options = /** @type {const} */ ({ cwd: folder, encoding: 'utf8', ...user })
    const { status, stderr } = spawnSync(join(programs, 'initdb'), made, options)
    if (status !== 0) throw new Error(`initdb failed: ${stderr.trim().slice(-300)}`)
    const settings = {
      listen_addresses: '127.0.0.1',
      unix_socket_directories: '',
      port,
      fsync: 'on',
      synchronous_commit: 'on',
    }
    const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    return {
      path: join(programs, 'postgres'),
      args: ['-D', data, ...args],
      ready: /ready to accept connections/,
      stopSignal: 'SIGQUIT',
      ...(user === undefined ? {} : { user }),
    }
  })
  return { url: `postgres://${role}@127.0.0.1:${port}/postgres`, port, ...started }
}

function unprivileged() {
  for (const name of users) {
    const [uid, gid] = ['-u', '-g'].map((which) => spawnSync('id', [which, name], { encoding: 'utf8' }))
    if (uid?.status === 0 && gid?.status === 0) return { uid: Number(uid.stdout), gid: Number(gid.stdout) }
  }
  return undefined
}
