import type { EffectBasis } from '../contract/effects.js'
import { deliveryStates } from '../contract/states.js'
import { group, type Keys } from '../record/keys.js'
import type { Reader } from '../record/reader.js'
import { readConfiguration } from './configuration.js'
import { hostNames } from './delivery-pages.js'
import { readCounts } from './lists.js'

/** How one list of the record is: how much it holds, and since when the oldest of it waits. Milliseconds. */
export interface ListVitals {
  /** Absent where the deliveries by state tell. */
  readonly count?: number
  /** 0 where there is none. */
  readonly oldestAgeMs: number
}

/** The figures by which a hub is watched. */
export interface Vitals {
  readonly deliveries: Readonly<Record<string, number>>
  readonly attempts: Readonly<Record<'done' | 'terminal', number>>
  readonly takeovers: number
  readonly lateReports: number
  /** What was licensed, or decided, after an outcome that nobody knew. */
  readonly effectTakeovers: Readonly<Record<EffectBasis, number>>
  readonly attemptReplays: number
  readonly resolutions: number
  readonly lists: Readonly<
    Record<'queued' | 'claimed' | 'delivered' | 'held' | 'unknown' | 'obligations', ListVitals>
  >
  readonly nodes: NodeVitals
  /** Hosts that have work and no live node, as the sweep `stale` saw it last. */
  readonly strandedHosts: number
}

interface NodeVitals {
  readonly live: number
  readonly silent: number
  readonly blockingLongestMs: number
  readonly progressAgeMs: number
  readonly mirrorMeanMs: number
  readonly mirrorLongestMs: number
}

const atOnce = 500

/** Reads them all: a few commands for each host and node, in slices. */
export async function readVitals(reader: Reader, keys: Keys): Promise<Vitals> {
  const nowMs = await serverTime(reader)
  const counts = await readCounts(reader, keys)
  const count = (name: string) => counts[name] ?? 0
  const hosts = await readHosts(reader, keys, nowMs)
  return {
    deliveries: Object.fromEntries(deliveryStates.map((state) => [state, count(state)])),
    attempts: { done: count('done'), terminal: count('terminal') },
    takeovers: count('takeovers'),
    lateReports: count('late_reports'),
    effectTakeovers: {
      probe: count('effect_takeovers_probe'),
      idempotent: count('effect_takeovers_idempotent'),
    },
    attemptReplays: count('attempt_replays'),
    resolutions: count('resolutions'),
    lists: {
      ...hosts,
      held: await sortedSetVitals(reader, keys.held, nowMs),
      unknown: await sortedSetVitals(reader, keys.unknown, nowMs),
      obligations: await sortedSetVitals(reader, keys.obligations, nowMs),
    },
    nodes: await readNodes(reader, keys, nowMs),
    strandedHosts: Number(await reader.one(['ZCARD', keys.stranded])),
  }
}

async function serverTime(reader: Reader): Promise<number> {
  const [seconds, micros] = await reader.strings(['TIME'])
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
}

async function sortedSetVitals(reader: Reader, key: string, nowMs: number): Promise<ListVitals> {
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
async function readHosts(reader: Reader, keys: Keys, nowMs: number): Promise<HostVitals> {
  const names = await hostNames(reader, keys)
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

async function readNodes(reader: Reader, keys: Keys, nowMs: number): Promise<NodeVitals> {
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
