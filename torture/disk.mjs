// @ts-check
// An ext4 file system in a file, on a loop device: a disk whose power can be cut, and that can be full. Root only.
import { spawnSync } from 'node:child_process'
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { atEnd } from './endings.mjs'

/**
 * @typedef {object} Disk
 * @property {string} dir where it is mounted
 * @property {() => void} mount mounts it (again); its journal is replayed
 * @property {() => Promise<void>} umount once nobody uses it any more; waits for processes that are just dying
 * @property {(stopped?: number) => Promise<void>} cut the power fails: what was not brought to the disk is gone, every access
 *   fails until it is unmounted and mounted again. Its user, by process id, has got SIGSTOP before, is waited for, and is to
 *   be killed: Linux may answer a sync that the cut overtakes as if it had succeeded, and who goes on would pass that on
 * @property {(file: string, share: number, seed: number) => void} writeBack brings this share of a file's pages to the disk, in
 *   no order and without a flush, as the system may at any time; nothing where there is no perl
 * @property {() => () => void} fill fills it to the last block; what it returns gives the room back
 * @property {() => Promise<void>} remove unmounts it and deletes it
 */

const umountWaitMs = 5_000
const umountRetryMs = 20
const haltWaitMs = 1_000

/** EXT4_IOC_SHUTDOWN, and its flag for "without writing the journal out": what a power cut leaves. */
const shutdownRequest = 0x8004587d
const noLogFlush = 2

/** Ways to make that call; Debian has the first on every system (perl-base is essential there). */
const callers = [
  {
    program: 'perl',
    words: [
      '-e',
      'open(my $d, "<", $ARGV[0]) or die "$!\\n"; ioctl($d, $ARGV[1], pack("L", $ARGV[2])) or die "$!\\n"',
    ],
  },
  {
    program: 'python3',
    words: [
      '-c',
      'import fcntl,os,struct,sys; fcntl.ioctl(os.open(sys.argv[1],os.O_RDONLY),int(sys.argv[2]),struct.pack("I",int(sys.argv[3])))',
    ],
  },
]

/** Those mounted now, by folder, each with what leaves it out at the end. @type {Map<string, () => void>} */
const mounted = new Map()

/** @type {{ why: string | undefined } | undefined} */
let judged

/** Why no such disk can be made here, in words; undefined when it can. Tries it once. @returns {string | undefined} */
export function diskNeeds() {
  judged ??= { why: whyNot() }
  return judged.why
}

/** @returns {string | undefined} */
function whyNot() {
  if (process.platform !== 'linux') return 'a power cut needs Linux (ext4 on a loop device)'
  if (process.getuid?.() !== 0)
    return 'a power cut needs root (it mounts a loop device): sudo npm run torture'
  for (const [program, debian] of [
    ['mkfs.ext4', 'e2fsprogs'],
    ['mount', 'mount'],
    ['fallocate', 'util-linux'],
  ]) {
    if (!canRun(String(program))) return `a power cut needs ${program}: apt-get install -y ${debian}`
  }
  if (caller() === undefined) return 'a power cut needs perl or python3: apt-get install -y perl-base'
  return whyTrialFails()
}

/** @returns {string | undefined} */
function whyTrialFails() {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-disk-'))
  try {
    const image = join(dir, 'image')
    makeImage(image, 2)
    const made = spawnSync('mount', ['-o', 'loop', image, dir], { encoding: 'utf8' })
    if (made.status !== 0) return `no loop device can be mounted here: ${made.stderr.trim()}`
    const cut = callShutdown(dir)
    spawnSync('umount', [dir])
    return cut === undefined ? undefined : `this kernel cannot cut the power of a file system: ${cut}`
  } catch (error) {
    return `no file system can be made here: ${error instanceof Error ? error.message : error}`
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

/** @param {string} program */
function canRun(program) {
  return spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined
}

function caller() {
  return callers.find(({ program }) => canRun(program))
}

/** @param {string} dir @returns {string | undefined} what went wrong */
function callShutdown(dir) {
  const found = caller()
  if (found === undefined) return 'neither perl nor python3 is here'
  const words = [...found.words, dir, String(shutdownRequest), String(noLogFlush)]
  const call = spawnSync(found.program, words, { encoding: 'utf8' })
  return call.status === 0 ? undefined : call.stderr.trim() || String(call.error ?? call.signal)
}

/** @param {string} program @param {string[]} words */
function run(program, words) {
  const done = spawnSync(program, words, { encoding: 'utf8' })
  if (done.status !== 0) {
    throw new Error(`${program} ${words.join(' ')}: ${done.stderr?.trim() || done.error?.message}`)
  }
}

/** @param {string} image @param {number} sizeMib */
function makeImage(image, sizeMib) {
  writeFileSync(image, '')
  truncateSync(image, sizeMib * 1024 * 1024)
  run('mkfs.ext4', ['-q', '-F', '-m', '0', image])
}

/**
 * Makes an empty disk, mounted on `<dir>/<name>`, in the file `<dir>/<name>.img` (sparse).
 * Unlike a real one it has no write cache of its own: what the system wrote back is there after a cut although nobody
 * asked for it to be brought to the disk. What nobody asked for within about five seconds is gone.
 * @param {string} dir @param {string} name @param {{ sizeMib?: number }} [options] @returns {Disk}
 */
export function makeDisk(dir, name, { sizeMib = 512 } = {}) {
  const at = join(dir, name)
  const image = `${at}.img`
  mkdirSync(at, { recursive: true })
  makeImage(image, sizeMib)
  const disk = diskOn(at, image)
  disk.mount()
  return disk
}

/** @param {string} at @param {string} image @returns {Disk} */
function diskOn(at, image) {
  return {
    dir: at,
    mount: () => {
      run('mount', ['-o', 'loop,noatime', image, at])
      // Lazily: who still uses it then keeps it until it ends.
      mounted.set(
        at,
        atEnd(() => void spawnSync('umount', ['-l', at])),
      )
    },
    umount: () => umount(at),
    cut: async (stopped) => {
      if (stopped !== undefined) await whenStill(stopped)
      const wrong = callShutdown(at)
      if (wrong !== undefined) throw new Error(`the power of ${at} cannot be cut: ${wrong}`)
    },
    writeBack: (file, share, seed) => writeBack(join(at, file), share, seed),
    fill: () => fill(at),
    remove: async () => {
      await umount(at)
      rmSync(image, { force: true })
      rmSync(at, { recursive: true, force: true })
    },
  }
}

/** Resolves when nothing of the process runs any more. @param {number} pid */
async function whenStill(pid) {
  try {
    const deadline = performance.now() + haltWaitMs
    while (!threadStates(pid).every((state) => 'TtZX'.includes(state))) {
      if (performance.now() > deadline) break
      await sleep(1)
    }
  } catch (error) {
    // It has ended.
    if (!(error instanceof Error && 'code' in error && ['ESRCH', 'ENOENT'].includes(String(error.code))))
      throw error
  }
}

/** @param {number} pid @returns {string[]} a letter each; `D` (in the middle of a call to a disk) counts as still */
function threadStates(pid) {
  const folder = `/proc/${pid}/task`
  return readdirSync(folder).map((thread) => {
    const stat = readFileSync(join(folder, thread, 'stat'), 'latin1')
    const state = stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3)
    return state === 'D' ? 'T' : state
  })
}

/** sync_file_range, by the machine, and its flags for "write these now, and wait for them". */
const rangeCalls = new Map([
  ['x64', 277],
  ['arm64', 84],
])
const writeAndWait = 7
const pageBytes = 4096
const writeBackScript = `
  my ($call, $flags, $page, $file, $share, $seed) = @ARGV; srand($seed);
  open(my $f, "<", $file) or exit; my $size = -s $f;
  for (my $at = 0; $at < $size; $at += $page) { syscall($call + 0, fileno($f), $at + 0, $page + 0, $flags + 0) if rand() < $share }`

/** @param {string} file @param {number} share @param {number} seed */
function writeBack(file, share, seed) {
  const call = rangeCalls.get(process.arch)
  if (call === undefined) return
  spawnSync('perl', [
    '-e',
    writeBackScript,
    ...[call, writeAndWait, pageBytes, file, share, seed].map(String),
  ])
}

/** @param {string} at */
async function umount(at) {
  if (!mounted.has(at)) return
  const deadline = performance.now() + umountWaitMs
  for (;;) {
    const done = spawnSync('umount', [at], { encoding: 'utf8' })
    if (done.status === 0 || !isMounted(at)) break
    if (performance.now() > deadline) throw new Error(`${at} cannot be unmounted: ${done.stderr.trim()}`)
    await sleep(umountRetryMs)
  }
  mounted.get(at)?.()
  mounted.delete(at)
}

/** @param {string} at */
function isMounted(at) {
  return readFileSync('/proc/self/mounts', 'utf8').includes(` ${at} `)
}

/** @param {string} at @returns {() => void} */
function fill(at) {
  const file = join(at, 'filler')
  const { bavail, bsize } = statfsSync(at)
  // In one go what is surely free, then block by block, against whoever writes at the same time.
  const rest = 256
  if (bavail > rest) run('fallocate', ['-l', String((bavail - rest) * bsize), `${file}-1`])
  const descriptor = openSync(`${file}-2`, 'w')
  try {
    for (const block = Buffer.alloc(bsize, 1); ; ) writeSync(descriptor, block)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
  return () => {
    for (const name of [`${file}-1`, `${file}-2`]) rmSync(name, { force: true })
  }
}
