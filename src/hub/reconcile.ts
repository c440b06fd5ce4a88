import type { Swept } from '../contract/sweeps.js'
import type { ReconciledDelivery } from '../record/sweep-functions.js'
import type { HubParts } from './parts.js'
import { piecesOf, scanKeys } from './scan.js'

export interface ReconcileOptions {
  readonly repair: boolean
  readonly signal?: AbortSignal | undefined
  /** Told of every row that was looked at. */
  readonly onRow?: ((row: ReconciledDelivery) => void) | undefined
}

export interface Reconciled extends Swept {
  /** Rows with problems, after repairing where that was asked for. */
  readonly rows: readonly ReconciledDelivery[]
}

const idsACall = 50

/**
 * Compares every delivery row with the indexes that should name it. A first walk looks; what it found is put right in
 * the order of the streams, so that those that lost their entries come back as they stood.
 */
export async function reconcileRows(parts: HubParts, options: ReconcileOptions): Promise<Reconciled> {
  const { functions, reader, keys } = parts
  const damaged: ReconciledDelivery[] = []
  const prefix = keys.delivery('')
  for await (const names of scanKeys(reader, prefix)) {
    if (options.signal?.aborted) break
    const ids = names.map((name) => name.slice(prefix.length)).filter((id) => /^\d+-\d+\.\d+$/.test(id))
    for (const piece of piecesOf(ids, idsACall)) {
      for (const row of await functions.reconcile(piece, { repair: false, lanes: false })) {
        options.onRow?.(row)
        if (row.problems.length > 0) damaged.push(row)
      }
    }
  }
  if (!options.repair) return reconciledOf(damaged)
  damaged.sort(byEntry)
  const repaired: ReconciledDelivery[] = []
  for (const piece of piecesOf(damaged, idsACall)) {
    repaired.push(
      ...(await functions.reconcile(
        piece.map(({ id }) => id),
        { repair: true, lanes: false },
      )),
    )
  }
  return reconciledOf(repaired.filter((row) => row.problems.length > 0))
}

function reconciledOf(rows: readonly ReconciledDelivery[]): Reconciled {
  const problems = rows.flatMap(({ id, problems: each }) => each.map((problem) => ({ id, ...problem })))
  const repaired = problems.filter((problem) => problem.repaired).length
  return {
    rows,
    found: problems.length,
    repaired,
    left: problems.length - repaired,
    notes: problems.slice(0, 20).map(({ id, what }) => `${id}: ${what}`),
  }
}

/** Stream ids in their order; ids of deliveries where there is none. */
function byEntry(one: ReconciledDelivery, other: ReconciledDelivery): number {
  const [ms = 0, sequence = 0] = one.entry.split('-').map(Number)
  const [otherMs = 0, otherSequence = 0] = other.entry.split('-').map(Number)
  return ms - otherMs || sequence - otherSequence || (one.id < other.id ? -1 : 1)
}

const entriesASlice = 50

/**
 * Fills lanes that lost their lists again, from the streams of the hosts that park anything: the rows say which lane an
 * entry waits in. Latest first, for each is put at the head.
 */
export async function refillLanes(
  parts: HubParts,
  signal: AbortSignal | undefined,
): Promise<{ readonly lanes: number; readonly notes: readonly string[] }> {
  const { functions, reader, keys } = parts
  const notes: string[] = []
  let lanes = 0
  for (const host of await reader.strings(['SMEMBERS', keys.hosts])) {
    let end = '+'
    while (!signal?.aborted) {
      const entries = (await reader.one([
        'XREVRANGE',
        keys.stream(host),
        end,
        '-',
        'COUNT',
        entriesASlice,
      ])) as [string, string[]][]
      const ids = entries.map(([, fields]) => fields[1] ?? '').filter((id) => /^\d+-\d+\.\d+$/.test(id))
      if (ids.length > 0) {
        for (const { id, problems } of await functions.reconcile(ids, { repair: true, lanes: true })) {
          lanes += problems.some(({ code }) => code === 'lane_unlisted') ? 1 : 0
          notes.push(...problems.map(({ what }) => `${id}: ${what}`))
        }
      }
      const last = entries.at(-1)?.[0]
      if (last === undefined || entries.length < entriesASlice) break
      end = `(${last}`
    }
  }
  return { lanes, notes }
}
