// Makes sure that a Redis-compatible server and its command line exist on this machine, before tests and the
// demo need them. Silent when they do. As root it installs them from the system's package manager;
// otherwise it prints the line to run and fails.
//
// On Debian it asks for `redis-tools`, not `redis-server`: the tools hold the same binary (named
// redis-check-rdb, a server when started under the name redis-server), and the server package would enable a
// service on port 6379 where systemd runs.
import { spawnSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

const servers = ['valkey-server', 'redis-server', 'valkey-check-rdb', 'redis-check-rdb']
const commandLines = ['valkey-cli', 'redis-cli']
const managers = [
  { program: 'apt-get', steps: [['update'], ['install', '-y', '--no-install-recommends', 'redis-tools']] },
  { program: 'apk', steps: [['add', '--no-cache', 'redis']] },
  { program: 'dnf', steps: [['install', '-y', 'redis']] },
  { program: 'pacman', steps: [['-Sy', '--noconfirm', 'valkey']] },
  { program: 'brew', steps: [['install', 'redis']], asUser: true },
]

/** @param {string} name */
function isProgram(name) {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter(Boolean)
  return folders.some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

function isComplete() {
  return servers.some(isProgram) && commandLines.some(isProgram)
}

/** The words to put in front of an installing command; undefined when this user may not install. @param {boolean} asUser */
function privilege(asUser) {
  if (asUser || process.getuid?.() === 0) return []
  if (!isProgram('sudo')) return undefined
  return spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0 ? ['sudo', '-n'] : undefined
}

/** @param {string[]} words */
function run(words) {
  const [program = '', ...args] = words
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  // Everything a package manager says goes to stderr: stdout belongs to whoever called this script.
  return spawnSync(program, args, { stdio: ['ignore', 2, 2], env }).status === 0
}

/** @param {string} message */
function fail(message) {
  console.error(`ensure-server: ${message}`)
  process.exit(1)
}

function install() {
  const manager = managers.find(({ program }) => isProgram(program))
  if (manager === undefined) {
    return fail('no valkey-server or redis-server here, and no known package manager: install one by hand')
  }
  const lines = manager.steps.map((step) => [manager.program, ...step])
  const front = privilege(manager.asUser === true)
  if (front === undefined) {
    return fail(
      `no Redis server program here; run: ${lines.map((line) => `sudo ${line.join(' ')}`).join(' && ')}`,
    )
  }
  for (const line of lines) {
    const words = [...front, ...line]
    console.error(`ensure-server: no Redis server program here; running: ${words.join(' ')}`)
    if (!run(words)) return fail(`this failed: ${words.join(' ')}`)
  }
  if (!isComplete()) fail('the package was installed, but it holds no server program or no command line')
}

if (!isComplete()) install()
