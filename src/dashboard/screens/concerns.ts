import type { Overview } from '../../contract/overview.js'
import type { SweepView } from '../../contract/upkeep-views.js'
import { duration, plural, words } from '../format.js'
import { link } from '../route.js'
import type { Ready } from './overview.js'

/** Something that somebody has to see to. */
export interface Concern {
  /** `bad`: nothing moves until somebody acts. */
  readonly tone: 'bad' | 'warn'
  readonly text: string
  /** Where it is seen to. */
  readonly to: string
  /** Milliseconds that the oldest of it waits. */
  readonly since?: number
}

const waitsLongMs = 60_000
const blocksLongMs = 1000
const stuckMs = 120_000

/** What the figures of a hub say, the most urgent first. */
export function concernsOf(
  value: Overview,
  ready: Ready | undefined,
  sweeps: readonly SweepView[],
): Concern[] {
  const { lists, nodes } = value
  const concerns: Concern[] = []
  const note = (isSo: boolean, concern: Concern) => isSo && concerns.push(concern)

  for (const [name, { ok, why }] of Object.entries(ready?.checks ?? {})) {
    note(!ok, {
      tone: 'bad',
      text: `not ready: ${words(name)}${why === undefined ? '' : `: ${why}`}`,
      to: link([]),
    })
  }
  const unknown = lists.unknown?.count ?? 0
  note(unknown > 0, {
    tone: 'bad',
    text: `${plural(unknown, 'outcome is', 'outcomes are')} unknown: find out, and resolve`,
    to: link(['unknown']),
    since: lists.unknown?.oldestAgeMs ?? 0,
  })
  const held = lists.held?.count ?? 0
  note(held > 0, {
    tone: 'bad',
    text: `${plural(held, 'delivery is', 'deliveries are')} held: release or reject`,
    to: link(['held']),
    since: lists.held?.oldestAgeMs ?? 0,
  })
  note(value.strandedHosts > 0, {
    tone: 'bad',
    text: `${plural(value.strandedHosts, 'host has', 'hosts have')} work and no live node`,
    to: link(['hosts'], { only: 'stranded' }),
  })
  note(nodes.silent > 0, {
    tone: 'bad',
    text: `${plural(nodes.silent, 'node is', 'nodes are')} silent: not left, and not heard from`,
    to: link(['hosts'], { only: 'silent' }),
  })
  for (const sweep of sweeps) {
    note(sweep.error !== undefined || sweep.late, {
      tone: 'bad',
      text: `sweep ${sweep.name} ${sweep.error === undefined ? 'is late' : `failed: ${sweep.error}`}`,
      to: link(['sweeps']),
    })
  }
  note(value.fences > 0, {
    tone: 'warn',
    text: `${plural(value.fences, 'fence stands', 'fences stand')}`,
    to: link(['fences']),
  })
  const obligations = lists.obligations
  note((obligations?.oldestAgeMs ?? 0) > waitsLongMs, {
    tone: 'warn',
    text: `${plural(obligations?.count ?? 0, 'message is', 'messages are')} not fanned out`,
    to: link(['sweeps']),
    since: obligations?.oldestAgeMs ?? 0,
  })
  for (const name of ['queued', 'claimed', 'delivered'] as const) {
    const since = lists[name]?.oldestAgeMs ?? 0
    note(since > waitsLongMs, {
      tone: 'warn',
      text: `deliveries are ${name} for long`,
      to: link(['deliveries'], { state: name }),
      since,
    })
  }
  note(nodes.blockingLongestMs > blocksLongMs, {
    tone: 'warn',
    text: `a node was blocked for ${duration(nodes.blockingLongestMs)}`,
    to: link(['hosts']),
  })
  note(nodes.progressAgeMs > stuckMs, {
    tone: 'warn',
    text: `a live node made no progress for ${duration(nodes.progressAgeMs)}`,
    to: link(['hosts']),
  })
  return concerns
}
