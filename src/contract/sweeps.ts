import type { SettingName } from './settings.js'

/**
 * The sweeps: what puts a hub right without being asked (invariant I7). Each is harmless when doubled, works in bounded
 * slices, and its work grows with the damage, not with the backlog (`audit` excepted, which looks at everything).
 */
export const sweeps = {
  'fan-out': 'completes fan-outs and moves that were cut',
  parked: 'rings for lanes that no pause stops any more; refills lanes that were lost',
  claims: 'makes pending lists, streams and groups agree with the rows',
  stale: 'rings for deliveries of gone nodes; lists hosts that have work and no live node',
  reports: 'lists open attempts of gone executors, and overdue ones, as unknown',
  deadlines: 'fails what was not claimed, or begun, in time',
  effects: 'lists effects that are open for too long as unknown',
  rehome: 'moves sessions of gone hosts, where rehome_on_redrive allows',
  held: 'queues again what holds that stand no more had parked',
  nodes: 'takes consumers that are gone and own nothing out of their groups',
  retention: 'prunes what was settled longer ago than retention_ms',
  audit: 'compares every row with every index, and puts the indexes and counts right',
} as const satisfies Record<string, string>

export type SweepName = keyof typeof sweeps
export const sweepNames = Object.keys(sweeps) as [SweepName, ...SweepName[]]

export function isSweepName(text: string): text is SweepName {
  return Object.hasOwn(sweeps, text)
}

/** The setting that holds how often a sweep runs. Milliseconds; 0 turns it off. */
export function sweepSetting(name: SweepName): SettingName {
  return `sweep_${name.replaceAll('-', '_')}_ms` as SettingName
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
