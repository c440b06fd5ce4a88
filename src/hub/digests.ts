import { setTimeout as sleep } from 'node:timers/promises'
import { isWantedEntry, type LogEntry, type LogFilter } from '../contract/log-filter.js'
import type { Digest } from '../contract/wire-log.js'
import { type EventParts, type Found, foundAfter } from './events.js'

/** The entries since the last one in a few words, or a gap; the id is the place of the last entry in it. */
export type DigestEvent =
  | { readonly kind: 'changes'; readonly id: string; readonly digest: Digest }
  | { readonly kind: 'gap'; readonly id: string; readonly gap: NonNullable<Found['gap']> }

/** More hosts than these are not named. */
const hostsAtMost = 100

/** The log after a position as one event in `everyMs` at most, which sums up what the filter wants of it. */
export async function* digestsAfter(
  parts: EventParts,
  {
    start,
    filter,
    everyMs,
  }: { readonly start: string; readonly filter: LogFilter; readonly everyMs: number },
  signal: AbortSignal,
): AsyncGenerator<DigestEvent, void, undefined> {
  let sum: Sum | undefined
  let toldAt = Number.NEGATIVE_INFINITY
  for await (const { gap, entries, position } of foundAfter(parts, start, signal)) {
    if (gap !== undefined) yield { kind: 'gap', id: position, gap }
    for (const entry of entries) if (isWantedEntry(entry, filter)) sum = withEntry(sum, entry)
    const isDue = performance.now() - toldAt >= everyMs
    // A log that never ends must not keep what was found from being told.
    if (sum === undefined || (entries.length > 0 && !isDue)) continue
    if (!isDue) {
      await sleep(everyMs - (performance.now() - toldAt), undefined, { signal }).catch(() => undefined)
      if (signal.aborted) return
    }
    yield { kind: 'changes', id: sum.last, digest: digestOf(sum) }
    toldAt = performance.now()
    sum = undefined
  }
}

interface Sum {
  last: string
  entries: number
  readonly verbs: Map<string, number>
  readonly hosts: Set<string>
  everyHost: boolean
}

function withEntry(given: Sum | undefined, { id, verb, hosts }: LogEntry): Sum {
  const sum = given ?? { last: id, entries: 0, verbs: new Map(), hosts: new Set(), everyHost: false }
  sum.last = id
  sum.entries += 1
  sum.verbs.set(verb, (sum.verbs.get(verb) ?? 0) + 1)
  if (hosts === '*') sum.everyHost = true
  else for (const host of hosts) if (sum.hosts.size <= hostsAtMost) sum.hosts.add(host)
  return sum
}

function digestOf({ entries, verbs, hosts, everyHost }: Sum): Digest {
  const isMany = everyHost || hosts.size > hostsAtMost
  return { entries, verbs: Object.fromEntries(verbs), hosts: isMany ? '*' : [...hosts].sort() }
}
