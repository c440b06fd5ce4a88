// Makes sure that a Redis-compatible server and its command line exist on this machine, before tests and the
// demo need them. Silent when they do. As root it installs them from the system's package manager;
// otherwise it prints the line to run and fails. Words behind it are programs wanted as well, from packages of
// their names: `curl`, with which the tests run the README's tour, `python3`, which runs a node of examples/,
// `nats-server`, which the benchmark measures, and `postgres` (its package has another name); `npm run test:beside`
// runs both.
//
// On Debian it asks for `redis-tools`, not `redis-server`: the tools hold the same binary (named
// redis-check-rdb, a server when started under the name redis-server), and the server package would enable a
// service on port 6379 where systemd runs. Its nats-server and PostgreSQL have services too (ports 4222 and 5432):
// the installation starts neither, but systemd does when the machine starts anew, until they are disabled.
import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const servers = ['valkey-server', 'redis-server', 'valkey-check-rdb', 'redis-check-rdb']
const commandLines = ['valkey-cli', 'redis-cli']
const alsoWanted = process.argv.slice(2)
/** Where Debian keeps PostgreSQL, a folder for each version. */
const postgresFolder = '/usr/lib/postgresql'
/** Servers may be kept where PATH does not look. */
const systemFolders = ['/usr/local/sbin', '/usr/sbin']
/** A mirror that hiccups is asked again; another apt at work is waited for, for so many seconds. */
const aptPatience = ['-o', 'Acquire::Retries=5', '-o', 'DPkg::Lock::Timeout=180']
const managers = [
  {
    program: 'apt-get',
    before: [[...aptPatience, 'update']],
    install: [...aptPatience, 'install', '-y', '--no-install-recommends'],
    server: 'redis-tools',
    startsServices: true,
  },
  { program: 'apk', install: ['add', '--no-cache'], server: 'redis' },
  { program: 'dnf', install: ['install', '-y'], server: 'redis', postgres: 'postgresql-server' },
  { program: 'pacman', install: ['-Sy', '--noconfirm'], server: 'valkey' },
  { program: 'brew', install: ['install'], server: 'redis', asUser: true },
]

/** Runs the words behind it while Debian's packages may start no service; a policy that is there already decides. */
const withoutServices = `
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\\nexit 101\\n' > "$policy" && chmod 755 "$policy" || exit 1
fi
"$@"`

/** @param {string} name @param {readonly string[]} [alsoIn] */
function isProgram(name, alsoIn = []) {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter(Boolean)
  return [...folders, ...alsoIn].some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

function hasServer() {
  return servers.some((name) => isProgram(name)) && commandLines.some((name) => isProgram(name))
}

function missingOthers() {
  const folders = [...systemFolders, ...postgresFolders()]
  return alsoWanted.filter((name) => !isProgram(name, folders))
}

function postgresFolders() {
  if (!existsSync(postgresFolder)) return []
  return readdirSync(postgresFolder).map((version) => join(postgresFolder, version, 'bin'))
}

/** What is not here, in words. */
function missing() {
  return [...(hasServer() ? [] : ['Redis server program']), ...missingOthers()].join(' and no ')
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

/** The words that run a line without its services. @param {readonly string[]} front @param {readonly string[]} line */
function quiet(front, line) {
  return [...front, 'sh', '-c', withoutServices, 'sh', ...line]
}

/** @param {string} message */
function fail(message) {
  console.error(`ensure-server: ${message}`)
  process.exit(1)
}

function install() {
  const what = missing()
  const manager = managers.find(({ program }) => isProgram(program))
  if (manager === undefined) return fail(`no ${what} here, and no known package manager: install by hand`)
  const { program, server, postgres = 'postgresql', before = [] } = manager
  const others = missingOthers().map((name) => (name === 'postgres' ? postgres : name))
  const packages = [...(hasServer() ? [] : [server]), ...others]
  const lines = [...before, [...manager.install, ...packages]].map((step) => [program, ...step])
  const front = privilege(manager.asUser === true)
  if (front === undefined) {
    return fail(`no ${what} here; run: ${lines.map((line) => `sudo ${line.join(' ')}`).join(' && ')}`)
  }
  for (const line of lines) {
    const words = [...front, ...line]
    console.error(`ensure-server: no ${what} here; running: ${words.join(' ')}`)
    if (!run(manager.startsServices === true ? quiet(front, line) : words))
      return fail(`this failed: ${words.join(' ')}`)
  }
  if (missing() !== '') fail(`the packages were installed, but there is still no ${missing()}`)
}

if (missing() !== '') install()
