import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs'

// Test servers keep `appendfsync always`, and mirrors sync as they do elsewhere: on a disk a run waits minutes for
// that. What a power cut takes is nothing that these tests look at (the torture does), so their folders stand in
// memory where there is room for them. Set TMPDIR to have them anywhere else.

const memory = '/dev/shm'
const prefix = 'holdfast-tests-'
/** Several times what a run was seen to need; a container has 64 MiB unless it is told otherwise. */
const enoughBytes = 2 ** 31
let folder: string | undefined

/** For vitest, before any worker is started: they take the environment from here. */
export function setup(): void {
  if (process.env['TMPDIR'] || !isFit()) return
  sweepAway()
  folder = mkdtempSync(`${memory}/${prefix}${process.pid}-`)
  process.env['TMPDIR'] = folder
}

/** What runs left that were killed themselves: it would stay in memory until the machine starts anew. */
function sweepAway(): void {
  for (const name of readdirSync(memory)) {
    const [, owner] = name.startsWith(prefix) ? (/(\d+)-[^-]*$/.exec(name) ?? []) : []
    if (owner !== undefined && !existsSync(`/proc/${owner}`))
      rmSync(`${memory}/${name}`, { recursive: true, force: true })
  }
}

/** After all of them; what a killed test left behind goes too. */
export function teardown(): void {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
}

/** Whether there is a file system in memory, with room, from which programs may be run. */
function isFit(): boolean {
  try {
    const mount = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .map((line) => line.split(' '))
      .find(([, path]) => path === memory)
    const [, , type, options = ''] = mount ?? []
    const { bavail, bsize } = statfsSync(memory)
    return type === 'tmpfs' && !options.split(',').includes('noexec') && bavail * bsize >= enoughBytes
  } catch {
    return false
  }
}
