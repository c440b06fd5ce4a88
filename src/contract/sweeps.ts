import type { AuditView } from './upkeep-views.js'

/**
 * The sweeps: what puts a hub right without being asked (invariant I7). Each is harmless when doubled, works in bounded
 * slices, and its work grows with the damage, not with the backlog (`audit` excepted, which looks at everything).
 */
export const sweeps = {
  'fan-out': { everyMs: 15_000, meaning: 'completes fan-outs and moves that were cut' },
  parked: {
    everyMs: 15_000,
    meaning: 'rings for lanes that no pause stops any more; refills lanes that were lost',
  },
  claims: { everyMs: 30_000, meaning: 'makes pending lists, streams and groups agree with the rows' },
  stale: {
    everyMs: 10_000,
    meaning: 'rings for deliveries of gone nodes; lists hosts that have work and no live node',
  },
  reports: {
    everyMs: 15_000,
    meaning: 'lists open attempts of gone executors, and overdue ones, as unknown',
  },
  deadlines: { everyMs: 5_000, meaning: 'fails what was not claimed, or begun, in time' },
  effects: { everyMs: 30_000, meaning: 'lists effects that are open for too long as unknown' },
  rehome: { everyMs: 30_000, meaning: 'moves sessions of gone hosts, where rehome_on_redrive allows' },
  held: { everyMs: 15_000, meaning: 'queues again what holds that stand no more had parked' },
  nodes: { everyMs: 300_000, meaning: 'takes consumers that are gone and own nothing out of their groups' },
  retention: { everyMs: 60_000, meaning: 'prunes what was settled longer ago than retention_ms' },
  audit: {
    everyMs: 3_600_000,
    meaning: 'compares every row with every index, and puts the indexes and counts right',
  },
} as const satisfies Record<string, { readonly everyMs: number; readonly meaning: string }>

export type SweepName = keyof typeof sweeps
export const sweepNames = Object.keys(sweeps) as [SweepName, ...SweepName[]]

export function isSweepName(text: string): text is SweepName {
  return Object.hasOwn(sweeps, text)
}

/** The setting that holds how often a sweep runs. Milliseconds; 0 turns it off. */
export function sweepSetting<Name extends SweepName>(name: Name) {
  return `sweep_${name.replaceAll('-', '_')}_ms`
}

/** What one run of a sweep did. */
export interface Swept {
  readonly found: number
  readonly repaired: number
  /** Found, and not to be put right by a sweep: somebody has to look. */
  readonly left: number
  /** The first of what was found, each with its key or id. */
  readonly notes: readonly string[]
}

/** One disagreement in the record. */
export type Disagreement = AuditView['disagreements'][number]
