import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import type { ChildIdentity } from './executor.js'

/**
 * Tells a process from a later one with the same number, so that a successor of a node can know whether an
 * executor it never saw still acts (contract section 4, rule 6). Every doubt reads as "alive": only proof
 * that a process is gone may license running its work again.
 *
 * Two things are outside its sight: a descendant that left the group (`setsid`), and processes of another
 * machine. Those of another PID namespace read as alive until the machine has started anew.
 */

/** One line of the process table. @internal */
export interface ProcessRow {
  readonly group: number
  readonly startTime: string
  /** It has ended, and only its parent has not looked yet. */
  readonly zombie: boolean
}

/** Where processes are read from. A process that is not there is `undefined`; any other trouble throws. @internal */
export interface ProcessTable {
  bootId(): string
  /** Of this process's ids; empty where there is no such thing. */
  namespace(): string
  row(pid: number): ProcessRow | undefined
  rows(): Iterable<ProcessRow>
}

/** Linux: /proc. @internal */
const procTable: ProcessTable = {
  bootId: () => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim(),
  namespace: () => readlinkSync('/proc/self/ns/pid', 'latin1'),
  row: readProcRow,
  *rows() {
    for (const name of readdirSync('/proc')) {
      const row = /^\d+$/.test(name) ? readProcRow(Number(name)) : undefined
      if (row !== undefined) yield row
    }
  },
}

/** Elsewhere: ps and sysctl. @internal */
export const psTable: ProcessTable = {
  bootId: readSysctlBootId,
  namespace: () => '',
  row: (pid) => psRows('-p', String(pid))[0],
  rows: () => psRows('-A'),
}

const table = process.platform === 'linux' ? procTable : psTable

/**
 * Identifies a running process (or one that has ended but was not yet waited for).
 * @returns undefined when there is no such process, or the system does not tell
 */
export function identify(pid: number): ChildIdentity | undefined {
  try {
    const row = table.row(pid)
    if (row === undefined) return undefined
    return {
      pid,
      group: row.group,
      startTime: row.startTime,
      bootId: table.bootId(),
      namespace: table.namespace(),
    }
  } catch {
    return undefined
  }
}

/** Says whether this very process still lives: same boot, same number, same start time, and no zombie. */
export function isAlive(child: ChildIdentity): boolean {
  return unlessDisproved(() => {
    if (table.bootId() !== child.bootId) return false
    if (isElsewhere(child)) return true
    const row = table.row(child.pid)
    if (row === undefined) return exists(child.pid)
    return row.startTime === child.startTime && !row.zombie
  })
}

/**
 * Says whether any process of the child's group still lives, whoever leads it now. A group number used again
 * within the same boot reads as alive.
 */
export function groupAlive(child: ChildIdentity): boolean {
  return unlessDisproved(
    () => table.bootId() === child.bootId && (isElsewhere(child) || hasLivingMember(child.group)),
  )
}

/** Says whether anything of an executor's process tree still lives: the child, or any member of its group. */
export function treeAlive(child: ChildIdentity): boolean {
  return isAlive(child) || groupAlive(child)
}

/** Whether the process lived under this boot, in this namespace of process ids. */
export function isFromHere(child: ChildIdentity): boolean {
  return unlessDisproved(() => table.bootId() === child.bootId && !isElsewhere(child))
}

/**
 * Says whether the tree may be signalled: it lives, and it is that very tree. Where {@link treeAlive} doubts in
 * favour of "alive", this doubts in favour of sparing strangers.
 */
export function mayEndTree(child: ChildIdentity): boolean {
  try {
    if (table.bootId() !== child.bootId || isElsewhere(child)) return false
    const row = table.row(child.pid)
    // While a group lives, no other process gets its number.
    return (row === undefined || row.startTime === child.startTime) && hasLivingMember(child.group)
  } catch {
    return false
  }
}

/** Processes of another namespace (another container of this machine) are out of sight: no proof. */
function isElsewhere(child: ChildIdentity): boolean {
  return child.namespace !== '' && child.namespace !== table.namespace()
}

// A scan is no snapshot (a member may fork behind it), so the kernel's own answer for the group brackets it.
function hasLivingMember(group: number): boolean {
  if (!exists(-group)) return false
  let seen = false
  for (const row of table.rows()) {
    if (row.group !== group) continue
    if (!row.zombie) return true
    seen = true
  }
  return !seen && exists(-group)
}

function unlessDisproved(lives: () => boolean): boolean {
  try {
    return lives()
  } catch {
    return true
  }
}

/** A process (or with a negative number: a group) is there, whether or not we may signal it. */
function exists(target: number): boolean {
  try {
    return process.kill(target, 0)
  } catch (error) {
    return !hasCode(error, 'ESRCH')
  }
}

function readProcRow(pid: number): ProcessRow | undefined {
  try {
    return parseProcStat(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ESRCH')) return undefined
    throw error
  }
}

/**
 * Reads proc(5) `stat`. The name is in parentheses and may itself hold parentheses and spaces: what follows
 * the last one counts, from field 3 on. A zombie leader with living threads (field 20) is no zombie.
 * @internal
 */
export function parseProcStat(stat: string): ProcessRow {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [state, , group] = fields
  const [threads, startTime] = [fields[17], fields[19]]
  if (group === undefined || startTime === undefined) throw new Error(`unreadable process state: ${stat}`)
  const ended = state === 'Z' || state === 'X' || state === 'x'
  return { group: Number(group), startTime, zombie: ended && Number(threads) <= 1 }
}

function psRows(...selection: string[]): ProcessRow[] {
  const columns = ['-o', 'pgid=', '-o', 'stat=', '-o', 'lstart=']
  return parsePs(runQuietly('ps', [...columns, ...selection]))
}

/** Reads lines of group, state and start time. @internal */
export function parsePs(text: string): ProcessRow[] {
  return [...text.matchAll(/^ *(\d+) +(\S+) +(\S.*?) *$/gm)].map(([, group, state, startTime]) => ({
    group: Number(group),
    startTime: startTime ?? '',
    zombie: state?.startsWith('Z') ?? false,
  }))
}

// kern.boottime moves with the clock, so it is the second choice.
function readSysctlBootId(): string {
  const id = runQuietly('sysctl', ['-n', 'kern.bootsessionuuid']).trim()
  if (id !== '') return id
  const time = /sec = (\d+)/.exec(runQuietly('sysctl', ['-n', 'kern.boottime']))?.[1]
  if (time === undefined) throw new Error('the system states no boot id')
  return time
}

/** What a program prints; one that answers with a failure has nothing to say. Throws when it cannot run. */
function runQuietly(program: string, args: string[]): string {
  const env = { ...process.env, LC_ALL: 'C', TZ: 'UTC0' }
  try {
    return execFileSync(program, args, { encoding: 'utf8', env, stdio: ['ignore', 'pipe', 'ignore'] })
  } catch (error) {
    if (error instanceof Error && 'status' in error && typeof error.status === 'number') return ''
    throw error
  }
}

function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code))
}
