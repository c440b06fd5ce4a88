import { group } from '../record/keys.js'
import type { Reader } from '../record/reader.js'

/** An entry that Redis has handed to a node and that is not acknowledged. */
export interface Pending {
  readonly entry: string
  readonly consumer: string
  readonly idleMs: number
  /** Absent where the entry is gone from the stream. */
  readonly delivery: string | undefined
}

type PendingRow = [entry: string, consumer: string, idleMs: number, deliveries: number]

/** The pending list of a stream after an entry, with the delivery that each names: two round trips for all of them. */
export async function pendingEntries(
  reader: Reader,
  stream: string,
  after: string,
  count: number,
): Promise<Pending[]> {
  if (!(await hasGroup(reader, stream))) return []
  const from = after === '' ? '-' : `(${after}`
  const rows = (await reader.one(['XPENDING', stream, group, from, '+', count])) as PendingRow[]
  const streamed = await reader.all(rows.map(([entry]) => ['XRANGE', stream, entry, entry]))
  return rows.map(([entry, consumer, idleMs], at) => {
    const [found] = streamed[at] as [string, string[]][]
    return { entry, consumer, idleMs, delivery: found?.[1][1] }
  })
}

async function hasGroup(reader: Reader, stream: string): Promise<boolean> {
  if ((await reader.one(['EXISTS', stream])) !== 1) return false
  const groups = (await reader.one(['XINFO', 'GROUPS', stream])) as string[][]
  return groups.some((fields) => fields[1] === group)
}
