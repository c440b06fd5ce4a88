import { effectBases } from '../contract/effects.js'
import type { Overview } from '../contract/overview.js'
import { deliveryStates } from '../contract/states.js'
import { group, type Keys } from '../record/keys.js'
import { type Reader, timeOf } from '../record/reader.js'
import { readConfiguration } from './configuration.js'
import { hostNames } from './delivery-places.js'
import { countOf, readCounts } from './lists.js'

const atOnce = 500

/** Reads all figures of a hub: a few commands for each host and node, in slices. */
export async function readOverview(reader: Reader, keys: Keys, hub: string): Promise<Overview> {
  const at = timeOf(await reader.one(['TIME']))
  const counts = await readCounts(reader, keys)
  const count = (name: string) => countOf(counts, name)
  const names = await hostNames(reader, keys)
  const lists = await readHosts(reader, keys, names, at)
  const [stranded, fences, executing] = (await reader.all([
    ['ZCARD', keys.stranded],
    ['HLEN', keys.fences],
    ['ZCARD', keys.executing],
  ])) as [number, number, number]
  return {
    hub,
    at,
    recipients: count('recipients'),
    deliveries: mapOf(deliveryStates, count),
    attempts: { done: count('done'), terminal: count('terminal') },
    pruned: count('pruned'),
    takeovers: count('takeovers'),
    lateReports: count('late_reports'),
    attemptReplays: count('attempt_replays'),
    effectTakeovers: mapOf(effectBases, (basis) => count(`effect_takeovers_${basis}`)),
    resolutions: count('resolutions'),
    lists: {
      ...lists,
      held: await sortedSetVitals(reader, keys.held, at),
      unknown: await sortedSetVitals(reader, keys.unknown, at),
      obligations: await sortedSetVitals(reader, keys.obligations, at),
    },
    hosts: names.length,
    strandedHosts: stranded,
    fences,
    effectsExecuting: executing,
    nodes: await readNodes(reader, keys, at),
  }
}

function mapOf<Name extends string>(
  names: readonly Name[],
  of: (name: Name) => number,
): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, of(name)])) as Record<Name, number>
}

async function sortedSetVitals(
  reader: Reader,
  key: string,
  nowMs: number,
): Promise<{ count: number; oldestAgeMs: number }> {
  const [count, first] = (await reader.all([
    ['ZCARD', key],
    ['ZRANGE', key, 0, 0, 'WITHSCORES'],
  ])) as [number, string[]]
  return { count, oldestAgeMs: ageOf(first[1], nowMs) }
}

function ageOf(time: string | undefined, nowMs: number): number {
  return time === undefined ? 0 : Math.max(0, nowMs - Number(time))
}

/** The time in a stream id. */
function timeIn(id: string | undefined): string | undefined {
  return id === undefined ? undefined : id.slice(0, id.indexOf('-'))
}

type HostVitals = Record<'queued' | 'claimed' | 'delivered', { oldestAgeMs: number }>

/** Queued: not handed to any node yet, parked ones left out. Claimed: since it was queued, mirrored ones too. */
async function readHosts(
  reader: Reader,
  keys: Keys,
  names: readonly string[],
  nowMs: number,
): Promise<HostVitals> {
  const oldest: HostVitals = {
    queued: { oldestAgeMs: 0 },
    claimed: { oldestAgeMs: 0 },
    delivered: { oldestAgeMs: 0 },
  }
  const note = (list: keyof HostVitals, time: string | undefined) => {
    oldest[list].oldestAgeMs = Math.max(oldest[list].oldestAgeMs, ageOf(time, nowMs))
  }
  for (let first = 0; first < names.length; first += atOnce) {
    const hosts = names.slice(first, first + atOnce)
    const awaiting = await reader.all(
      hosts.map((host) => ['ZRANGE', keys.awaiting(host), 0, 0, 'WITHSCORES']),
    )
    for (const reply of awaiting) note('delivered', (reply as string[])[1])
    const groups = await readGroups(reader, keys, hosts)
    const streams = [...groups.keys()]
    const pending = await reader.all(streams.map((stream) => ['XPENDING', stream, group, '-', '+', 1]))
    for (const reply of pending) note('claimed', timeIn((reply as [string][])[0]?.[0]))
    const next = await reader.all(
      [...groups].map(([stream, last]) => ['XRANGE', stream, `(${last}`, '+', 'COUNT', 1]),
    )
    for (const reply of next) note('queued', timeIn((reply as [string][])[0]?.[0]))
  }
  return oldest
}

/** Streams that have the group, with the last entry that it handed out. */
async function readGroups(
  reader: Reader,
  keys: Keys,
  hosts: readonly string[],
): Promise<Map<string, string>> {
  const streams = hosts.map((host) => keys.stream(host))
  const types = await reader.all(streams.map((stream) => ['TYPE', stream]))
  const present = streams.filter((_, at) => types[at] === 'stream')
  const infos = await reader.all(present.map((stream) => ['XINFO', 'GROUPS', stream]))
  const found = new Map<string, string>()
  for (const [at, stream] of present.entries()) {
    for (const fields of infos[at] as string[][]) {
      const value = (name: string) => fields[fields.indexOf(name) + 1]
      if (value('name') === group) found.set(stream, String(value('last-delivered-id')))
    }
  }
  return found
}

/** The row of a node by its name, `<host>/<node>`. */
function nodeKey(keys: Keys, name: string): string {
  const end = name.indexOf('/')
  return keys.node(name.slice(0, end), name.slice(end + 1))
}

async function readNodes(reader: Reader, keys: Keys, nowMs: number): Promise<Overview['nodes']> {
  const settings = await readConfiguration(reader, keys)
  const staleAfterMs = settings.find(({ name }) => name === 'stale_after_ms')?.value ?? 0
  const names = await reader.strings(['ZRANGE', keys.nodes, 0, -1])
  const rows = await reader.hashes(names.map((name) => nodeKey(keys, name)))
  const figures = { live: 0, silent: 0, blockingLongestMs: 0, progressAgeMs: 0, mirrorLongestMs: 0 }
  let [commits, mirrorMs] = [0, 0]
  for (const row of rows) {
    const figure = (field: string) => Number(row.get(field) ?? 0)
    if (nowMs - figure('heartbeat_at') > staleAfterMs) {
      figures.silent += 1
      continue
    }
    figures.live += 1
    figures.blockingLongestMs = Math.max(figures.blockingLongestMs, figure('blocking_longest_ms'))
    figures.mirrorLongestMs = Math.max(figures.mirrorLongestMs, figure('mirror_longest_ms'))
    if (row.has('progress_at')) {
      figures.progressAgeMs = Math.max(figures.progressAgeMs, nowMs - figure('progress_at'))
    }
    commits += figure('mirror_commits')
    mirrorMs += figure('mirror_ms')
  }
  return { ...figures, mirrorMeanMs: commits === 0 ? 0 : mirrorMs / commits }
}
