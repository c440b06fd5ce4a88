import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import type { ChildIdentity } from '../../src/node/executor.js'
import {
  groupAlive,
  identify,
  isAlive,
  parseProcStat,
  parsePs,
  psTable,
  treeAlive,
} from '../../src/node/process-identity.js'

const groups: number[] = []

afterEach(() => {
  for (const group of groups.splice(0)) kill(-group)
})

function kill(target: number): void {
  try {
    process.kill(target, 'SIGKILL')
  } catch {}
}

function start(program: string, ...args: string[]): { child: ChildProcess; identity: ChildIdentity } {
  const child = spawn(program, args, { detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
  if (child.pid === undefined) throw new Error(`${program} did not start`)
  groups.push(child.pid)
  const identity = identify(child.pid)
  if (identity === undefined) throw new Error(`${program} has no identity`)
  return { child, identity }
}

it('identifies a child and sees it end', async () => {
  const { child, identity } = start('sleep', '60')
  expect(identity).toMatchObject({ pid: child.pid, group: child.pid })
  expect(identity.startTime).toMatch(/\d/)
  expect(identify(identity.pid)).toEqual(identity)
  expect([isAlive(identity), groupAlive(identity), treeAlive(identity)]).toEqual([true, true, true])

  child.kill('SIGKILL')
  await once(child, 'exit')
  expect([isAlive(identity), groupAlive(identity), treeAlive(identity)]).toEqual([false, false, false])
  expect(identify(identity.pid)).toBeUndefined()
})

it('counts a zombie as gone, alone and as the last of its group', async () => {
  // The outer shell becomes a sleep, which never waits for its child in another group.
  const { child } = start('bash', '-c', 'set -m; sleep 60 & echo $!; exec sleep 61')
  const [line] = child.stdout ? await once(child.stdout, 'data') : []
  const identity = identify(Number(line))
  if (identity === undefined) throw new Error('the inner child has no identity')
  expect(identity.group).toBe(identity.pid)
  expect(treeAlive(identity)).toBe(true)
  await vi.waitFor(() => expect(readFileSync(`/proc/${child.pid}/comm`, 'utf8')).toBe('sleep\n'))
  process.kill(identity.pid, 'SIGKILL')
  await vi.waitFor(() => expect(isAlive(identity)).toBe(false))
  expect(groupAlive(identity)).toBe(false)
  expect(process.kill(identity.pid, 0)).toBe(true) // a zombie it is
})

it('knows a group whose leader has left', async () => {
  const { child, identity } = start('sh', '-c', 'sleep 60 & exit 0')
  await once(child, 'exit')
  expect([isAlive(identity), groupAlive(identity), treeAlive(identity)]).toEqual([false, true, true])
  kill(-identity.group)
  await vi.waitFor(() => expect(treeAlive(identity)).toBe(false))
})

it('tells another boot and a reused number apart', () => {
  const { identity } = start('sleep', '60')
  const otherBoot = { ...identity, bootId: '00000000-0000-0000-0000-000000000000' }
  expect(treeAlive(otherBoot)).toBe(false)
  expect(isAlive({ ...identity, startTime: '1' })).toBe(false)
})

it('reads a name with parentheses and spaces', () => {
  const directory = mkdtempSync(join(tmpdir(), 'hf-identity-'))
  try {
    const program = join(directory, 'a) Z 1 (b')
    copyFileSync('/bin/sleep', program)
    const { identity } = start(program, '60')
    expect(identity.group).toBe(identity.pid)
    expect(treeAlive(identity)).toBe(true)
  } finally {
    rmSync(directory, { recursive: true })
  }
})

it('takes a leader that ended before its threads for alive', () => {
  const stat = (state: string, threads: number) =>
    `7 (x) y) ${state} 1 5 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 ${threads} 0 82868 0 0`
  expect(parseProcStat(stat('S', 1))).toEqual({ group: 5, startTime: '82868', zombie: false })
  expect(parseProcStat(stat('Z', 1)).zombie).toBe(true)
  expect(parseProcStat(stat('Z', 2)).zombie).toBe(false)
  expect(() => parseProcStat('7 (x')).toThrow('unreadable')
})

it('reads the table of ps', () => {
  expect(parsePs('  501 Ss   Mon Jan  1 10:00:00 2024    \n 7 Z+ Tue Jan  2 11:00:00 2024\n')).toEqual([
    { group: 501, startTime: 'Mon Jan  1 10:00:00 2024', zombie: false },
    { group: 7, startTime: 'Tue Jan  2 11:00:00 2024', zombie: true },
  ])
  const { identity } = start('sleep', '60')
  expect(psTable.row(identity.pid)).toMatchObject({ group: identity.group, zombie: false })
  expect([...psTable.rows()].some((row) => row.group === identity.group)).toBe(true)
  expect(psTable.row(2 ** 22)).toBeUndefined()
})

it('takes a process of another namespace of ids for alive until the machine starts anew', async () => {
  const { child, identity } = start('sleep', '60')
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect([isAlive(identity), groupAlive(identity), treeAlive(identity)]).toEqual([false, false, false])
  const elsewhere = { ...identity, namespace: 'pid:[1]' }
  expect([isAlive(elsewhere), groupAlive(elsewhere), treeAlive(elsewhere)]).toEqual([true, true, true])
  const otherBoot = { ...elsewhere, bootId: '00000000-0000-0000-0000-000000000000' }
  expect([isAlive(otherBoot), groupAlive(otherBoot), treeAlive(otherBoot)]).toEqual([false, false, false])
  // Where the system has no namespaces, the number is all there is.
  expect(treeAlive({ ...identity, namespace: '' })).toBe(false)
})

it.runIf(mayUnshare())('does so for a real one, whatever has the same number here', async () => {
  const built = new URL('../../dist/node/process-identity.js', import.meta.url).href
  const inside = `import { identify } from '${built}'; console.log(JSON.stringify(identify(process.pid))); setInterval(() => {}, 60_000)`
  const { child } = start(
    'unshare',
    '--pid',
    '--fork',
    '--mount-proc',
    process.execPath,
    '--input-type=module',
    '-e',
    inside,
  )
  const [line] = child.stdout ? await once(child.stdout, 'data') : []
  const identity = JSON.parse(String(line)) as ChildIdentity
  // Number 1 there, which here is another process: by its number alone it would be gone.
  expect(identity.pid).toBe(1)
  expect(identity.namespace).not.toBe(identify(process.pid)?.namespace)
  expect(treeAlive({ ...identity, namespace: identify(process.pid)?.namespace ?? '', group: 2 ** 22 })).toBe(
    false,
  )
  expect([isAlive(identity), groupAlive(identity), treeAlive(identity)]).toEqual([true, true, true])
})

/** Another namespace takes rights that not every machine gives. */
function mayUnshare(): boolean {
  return spawnSync('unshare', ['--pid', '--fork', '--mount-proc', 'true']).status === 0
}
