import { settingIn } from '../contract/settings.js'
import { type SweepName, sweepNames, sweepSetting, sweeps } from '../contract/sweeps.js'
import type { SweepView } from '../contract/upkeep-views.js'
import type { Keys } from '../record/keys.js'
import { type Reader, timeOf } from '../record/reader.js'
import { present } from '../record/replies.js'
import { readConfiguration } from './configuration.js'

const lateAfterIntervals = 3

/** Every sweep with how its last run went. */
export async function readSweeps(reader: Reader, keys: Keys): Promise<SweepView[]> {
  const intervals = await readIntervals(reader, keys)
  const rows = await reader.hashes(sweepNames.map((name) => keys.sweep(name)))
  const nowMs = timeOf(await reader.one(['TIME']))
  return sweepNames.map((name, at) => sweepView(name, intervals[name], rows[at] ?? new Map(), nowMs))
}

/** How often each sweep runs. Milliseconds; 0: not by itself. */
export async function readIntervals(reader: Reader, keys: Keys): Promise<Record<SweepName, number>> {
  const settings = await readConfiguration(reader, keys)
  return Object.fromEntries(
    sweepNames.map((name) => [name, settingIn(settings, sweepSetting(name))]),
  ) as Record<SweepName, number>
}

function sweepView(
  name: SweepName,
  everyMs: number,
  row: ReadonlyMap<string, string>,
  nowMs: number,
): SweepView {
  const number = (field: string) => (row.has(field) ? Number(row.get(field)) : undefined)
  const succeededAt = number('last_succeeded_at')
  const ageMs = succeededAt === undefined ? undefined : Math.max(0, nowMs - succeededAt)
  return {
    name,
    meaning: sweeps[name],
    everyMs,
    runs: number('runs') ?? 0,
    ...present('failures', number('failures')),
    ...present('lastRunAt', number('last_run_at')),
    ...present('lastSucceededAt', succeededAt),
    ...present('ageMs', ageMs),
    late: everyMs > 0 && (ageMs ?? Number.POSITIVE_INFINITY) > lateAfterIntervals * everyMs,
    ...present('durationMs', number('duration_ms')),
    ...present('found', number('found')),
    ...present('repaired', number('repaired')),
    ...present('left', number('left')),
    ...present('foundTotal', number('found_total')),
    ...present('repairedTotal', number('repaired_total')),
    notes: notesOf(row.get('notes')),
    unfinished: (row.get('cursor') ?? '') !== '',
    ...present('error', row.get('error') || undefined),
    ...present('by', row.get('by')),
  }
}

function notesOf(text: string | undefined): string[] {
  try {
    const notes: unknown = JSON.parse(text ?? '[]')
    return Array.isArray(notes) ? notes.map(String) : []
  } catch {
    return []
  }
}
