// The history of a run: one file for every start of a process, one line of JSON for everything it saw.
import { closeSync, fdatasyncSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

export type HistoryRole = 'producer' | 'operator' | 'node' | 'marks' | 'hub' | 'conductor'

/** The file of one process. */
export interface History {
  readonly dir: string
  /** One append, before anything else happens. */
  write(line: { readonly kind: string; readonly [member: string]: unknown }): void
  /** What was written is on disk when it returns. */
  sync(): void
  close(): void
}

/** Opens the file of this process. Each line is stamped with CLOCK_MONOTONIC, which all processes of a machine share. */
export function openHistory(dir: string, role: HistoryRole, name: string): History {
  const { pid } = process
  const file = openSync(join(dir, `${role}-${name}-${pid}.jsonl`), 'a')
  let isOpen = true
  return {
    dir,
    write: (line) => {
      if (!isOpen) return
      const t = String(process.hrtime.bigint())
      writeSync(file, `${JSON.stringify({ t, role, name, pid, ...line })}\n`)
    },
    sync: () => fdatasyncSync(file),
    close: () => {
      if (isOpen) closeSync(file)
      isOpen = false
    },
  }
}

/** A line as it was written. Of which type its members are was not looked at. */
export interface WrittenLine {
  readonly t: string
  readonly kind: string
  // biome-ignore lint/suspicious/noExplicitAny: whoever reads it knows what its process wrote
  readonly [member: string]: any
}

/** What earlier processes of this role and name wrote. A last line that a kill cut is left out. */
export function readEarlier(dir: string, role: HistoryRole, name: string): WrittenLine[] {
  const own = `${role}-${name}-${process.pid}.jsonl`
  const pattern = new RegExp(`^${role}-${name}-\\d+\\.jsonl$`)
  const files = readdirSync(dir).filter((file) => pattern.test(file) && file !== own)
  return files.flatMap((file) => linesOf(join(dir, file))).sort((one, other) => compare(one.t, other.t))
}

function linesOf(file: string): WrittenLine[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => {
      try {
        return [JSON.parse(line) as WrittenLine]
      } catch {
        return []
      }
    })
}

function compare(one: string, other: string): number {
  return one.length - other.length || (one < other ? -1 : 1)
}
