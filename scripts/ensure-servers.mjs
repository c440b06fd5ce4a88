// Brings the other servers that the topology tests run on beside the system's own: Redis 8.0 and Valkey 8.1, out
// of Debian 13. Silent when they are there. Nothing is installed and no rights are needed: apt reads the index of
// Debian 13 from the mirror that this machine is set up with, into a folder of its own, and checks its signature;
// the packages are unpacked there (24 MB are loaded), and start with their own C library. The folder is
// $HOLDFAST_SERVERS_DIR, or else ~/.cache/holdfast/servers. On other systems put the programs there by hand.
import { spawnSync } from 'node:child_process'
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const release = 'trixie'
const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg'

/**
 * The servers by the names that tests give them. `file` is the program in the package: the tools of either hold the
 * server's own binary, a server when started under the name of one; the server packages would enable a service.
 */
const servers = [
  { file: 'redis-check-rdb', name: 'redis-server', version: '8.0', from: 'redis-tools' },
  { file: 'valkey-check-rdb', name: 'valkey-server', version: '8.1', from: 'valkey-tools' },
]

/** Where the programs are kept. @param {NodeJS.ProcessEnv} [env] */
export function serversFolder(env = process.env) {
  const cache = env['XDG_CACHE_HOME'] || join(homedir(), '.cache')
  return env['HOLDFAST_SERVERS_DIR'] || join(cache, 'holdfast', 'servers')
}

/** The path of a server in the folder. @param {string} name @param {string} version */
export function serverPath(name, version) {
  return join(serversFolder(), 'bin', `${name}-${version}`)
}

/** What is missing, each with where it is looked for, in words. */
export function missingServers() {
  return servers
    .filter(({ name, version }) => !runs(serverPath(name, version), version))
    .map(({ name, version }) => `${name} ${version} (${serverPath(name, version)})`)
}

/** @param {string} path @param {string} version */
function runs(path, version) {
  if (!existsSync(path)) return false
  const { stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' })
  return new RegExp(`v=${version.replace('.', '\\.')}\\.`).test(stdout ?? '')
}

/** @param {string} message @returns {never} */
function fail(message) {
  console.error(`ensure-servers: ${message}`)
  process.exit(1)
}

/** @param {string} program @param {readonly string[]} args */
function run(program, args) {
  // What the package manager says goes to stderr: stdout belongs to whoever called this script.
  const { status } = spawnSync(program, args, { stdio: ['ignore', 2, 2], env: aptEnv })
  if (status !== 0) fail(`this failed: ${[program, ...args].join(' ')}`)
}

const aptEnv = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' }

/** @param {string} name */
function hasProgram(name) {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/** The mirror of this machine's own release; undefined where apt has no index of it. @param {readonly string[]} options */
function mirror(options) {
  const codename = /^VERSION_CODENAME=(.*)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? ''
  const format = '$(REPO_URI) $(RELEASE) $(COMPONENT)'
  const words = [...options, 'indextargets', '--format', format, 'Created-By: Packages']
  const { stdout } = spawnSync('apt-get', words, { encoding: 'utf8', env: aptEnv })
  for (const line of (stdout ?? '').split('\n')) {
    const [uri, of, component] = line.split(' ')
    if (of === codename && component === 'main') return uri
  }
  return undefined
}

/** The same where this machine's own lists were cleared, as in images of containers. @param {string} at */
function mirrorByUpdate(at) {
  const lists = join(at, 'own-lists')
  mkdirSync(join(lists, 'partial'), { recursive: true })
  const options = optionsOf({ ...aptSettings, 'Dir::State::Lists': lists, 'Dir::Cache': at })
  run('apt-get', [...options, 'update'])
  return mirror(options) ?? fail('apt of this machine names no mirror of its own release')
}

const aptSettings = {
  'APT::Sandbox::User': '', // the folder may be closed to it
  'Debug::NoLocking': 'true',
  'APT::Update::Error-Mode': 'any',
}

/** @param {Readonly<Record<string, string>>} settings */
function optionsOf(settings) {
  return Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])
}

/** apt on folders of its own, with nothing installed: it answers a package and all that it needs. @param {string} at */
function aptOptions(at) {
  return optionsOf({
    ...aptSettings,
    'Dir::Etc::SourceList': join(at, 'sources.list'),
    'Dir::Etc::SourceParts': '/dev/null',
    'Dir::Etc::Preferences': '/dev/null',
    'Dir::Etc::PreferencesParts': '/dev/null',
    'Dir::State::Lists': join(at, 'lists'),
    'Dir::State::status': join(at, 'status'),
    'Dir::State::extended_states': join(at, 'extended_states'),
    'Dir::Cache': at,
    'Dir::Cache::Archives': join(at, 'archives'),
    'APT::Get::Assume-Yes': 'true',
    'APT::Install-Recommends': 'false',
  })
}

/** Loads the packages of the servers and what they need; answers their files. @param {string} at */
function download(at) {
  for (const folder of ['lists/partial', 'archives/partial']) mkdirSync(join(at, folder), { recursive: true })
  const signedBy = existsSync(keyring) ? `[signed-by=${keyring}] ` : ''
  writeFileSync(
    join(at, 'sources.list'),
    `deb ${signedBy}${mirror([]) ?? mirrorByUpdate(at)} ${release} main\n`,
  )
  writeFileSync(join(at, 'status'), '')
  const options = aptOptions(at)
  run('apt-get', [...options, 'update'])
  run('apt-get', [...options, '--download-only', 'install', ...servers.map(({ from }) => from)])
  const archives = join(at, 'archives')
  return readdirSync(archives)
    .filter((name) => name.endsWith('.deb'))
    .map((name) => join(archives, name))
}

/** The dynamic loader below a folder of libraries. @param {string} root */
function loaderIn(root) {
  for (const triplet of readdirSync(join(root, 'usr', 'lib'))) {
    if (!triplet.includes('-linux-')) continue
    const loader = readdirSync(join(root, 'usr', 'lib', triplet)).find((name) => /^ld-linux.*\.so/.test(name))
    if (loader !== undefined)
      return { libraries: `usr/lib/${triplet}`, loader: `usr/lib/${triplet}/${loader}` }
  }
  return fail(`the packages of ${release} brought no dynamic loader`)
}

/** Unpacks beside its place, and puts it there in one step; nothing else in the folder is touched. */
function make() {
  const folder = serversFolder()
  const made = join(folder, `${release}.${process.pid}`)
  mkdirSync(made, { recursive: true })
  try {
    const apt = join(made, 'apt')
    for (const file of download(apt)) run('dpkg-deb', ['-x', file, made])
    rmSync(apt, { recursive: true })
    rmSync(join(folder, release), { recursive: true, force: true })
    renameSync(made, join(folder, release))
  } finally {
    rmSync(made, { recursive: true, force: true })
  }
  writePrograms(folder)
}

/** @param {string} folder */
function writePrograms(folder) {
  const { libraries, loader } = loaderIn(join(folder, release))
  mkdirSync(join(folder, 'bin'), { recursive: true })
  for (const { file, name, version } of servers) {
    // `exec`: the process that was started is the server, so that signals reach it.
    const line = `exec "$root/${loader}" --argv0 ${name} --library-path "$root/${libraries}" "$root/usr/bin/${file}" "$@"`
    const path = serverPath(name, version)
    writeFileSync(path, `#!/bin/sh\nroot="\${0%/*}/../${release}"\n${line}\n`)
    chmodSync(path, 0o755)
  }
}

function ensure() {
  const missing = missingServers()
  if (missing.length === 0) return
  if (!hasProgram('apt-get') || !hasProgram('dpkg-deb')) {
    fail(`missing, and no apt to load them with: ${missing.join(', ')}; put executables there`)
  }
  console.error(`ensure-servers: missing: ${missing.join(', ')}; unpacking those of Debian 13`)
  make()
  const still = missingServers()
  if (still.length > 0) fail(`unpacked, and still missing: ${still.join(', ')}`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) ensure()
