import type { FenceView, NodeView } from '../contract/host-views.js'
import { livenessOf } from '../contract/liveness.js'
import { deliveryStates } from '../contract/states.js'
import { visible } from './output.js'
import type { ScreenLine } from './screen.js'
import { isoTime, shortDuration } from './times.js'
import type { Snapshot } from './top-reading.js'

/** What `top` may show. */
export const viewNames = ['overview', 'hosts', 'held', 'unknown'] as const
export type ViewName = (typeof viewNames)[number]

/** The lines of a view, in about so many rows: lists are cut, and say so. */
export function viewLines(view: ViewName, snapshot: Snapshot, rows: number): ScreenLine[] {
  if (view === 'hosts') return hostLines(snapshot, rows)
  if (view === 'held') return heldLines(snapshot, rows)
  if (view === 'unknown') return unknownLines(snapshot, rows)
  return overviewLines(snapshot, rows)
}

const whole = new Intl.NumberFormat('en-US')
const compact = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 })
const count = (value: number) => whole.format(value)
const age = (ms: number) => (ms === 0 ? '-' : shortDuration(ms))

function perSecond(value: number | undefined): string {
  return value === undefined ? '-' : `${value < 100 ? value.toFixed(1) : compact.format(value)}/s`
}

type Cells = readonly (readonly [name: string, value: string])[]

function overviewLines(snapshot: Snapshot, rows: number): ScreenLine[] {
  const { overview, rates } = snapshot
  const { deliveries, attempts, lists, nodes } = overview
  // A screen has columns to keep; text for a file has not.
  const count = (value: number) => (rows < Infinity && value >= 100_000 ? compact : whole).format(value)
  const head = [
    ...section('states', [
      ...deliveryStates.map((state): [string, string] => [state, count(deliveries[state])]),
      ['pruned', count(overview.pruned)],
    ]),
    ...section('rates', [
      ['accepted', perSecond(rates?.accepted)],
      ['done', perSecond(rates?.done)],
      ['terminal', perSecond(rates?.terminal)],
    ]),
    ...section('totals', [
      ['accepted', count(overview.recipients)],
      ['done', count(attempts.done)],
      ['terminal', count(attempts.terminal)],
      ['takeovers', count(overview.takeovers)],
      ['owed', count(lists.obligations.count ?? 0)],
      ['effects', count(overview.effectsExecuting)],
      ['late', count(overview.lateReports)],
      ['resolved', count(overview.resolutions)],
    ]),
    ...section('oldest', [
      ['queued', age(lists.queued.oldestAgeMs)],
      ['claimed', age(lists.claimed.oldestAgeMs)],
      ['delivered', age(lists.delivered.oldestAgeMs)],
      ['owed', age(lists.obligations.oldestAgeMs)],
      ['held', age(lists.held.oldestAgeMs)],
      ['unknown', age(lists.unknown.oldestAgeMs)],
    ]),
    ...section('nodes', [
      ['live', count(nodes.live)],
      ['silent', count(nodes.silent)],
      ['progress', age(nodes.progressAgeMs)],
      ['blocking', age(nodes.blockingLongestMs)],
      ['hosts', count(overview.hosts)],
      ['stranded', count(overview.strandedHosts)],
      ['mirror', age(nodes.mirrorMeanMs)],
      ['longest', age(nodes.mirrorLongestMs)],
    ]),
  ]
  const isStuck = deliveries.held + (lists.unknown.count ?? 0) > 0
  const left = Math.max(2, rows - head.length)
  const fences = cutList(
    [
      { text: `FENCES ${count(overview.fences)}`, style: 'bold' },
      ...snapshot.fences.map(fenceLine(overview.at)),
    ],
    Math.max(2, Math.floor(left / 2)),
  )
  const waits = cutList(
    [{ text: 'WAITS FOR SOMEONE', style: isStuck ? 'yellow' : 'bold' }, ...waiting(snapshot)],
    Math.max(2, left - fences.length),
  )
  return [...head, ...fences, ...waits]
}

const cellsARow = 4
const cellWidth = 16

/** Names and values in columns of a width that four of fit into eighty. */
function section(name: string, cells: Cells): ScreenLine[] {
  const lines: ScreenLine[] = []
  for (let at = 0; at < cells.length; at += cellsARow) {
    const row = cells
      .slice(at, at + cellsARow)
      .map(([own, value]) => `${own} ${value.padStart(cellWidth - 1 - own.length)}`)
    lines.push({ text: `${(at === 0 ? name.toUpperCase() : '').padEnd(8)}${row.join('  ')}` })
  }
  return lines
}

function fenceLine(now: number): (fence: FenceView) => ScreenLine {
  return ({ fence, known, missing, reason, actor, at, until }) => {
    const words = [
      fence,
      reason,
      actor && `by ${actor}`,
      at !== undefined && `for ${shortDuration(now - at)}`,
      until !== undefined && `until ${isoTime(until)}`,
      !known && 'no rule reads this field',
      missing && `not on ${missing.join(', ')}`,
    ]
    return { text: visible(`  ${words.filter(Boolean).join('  ')}`) }
  }
}

/** The oldest that nothing but a person can end: unknown outcomes and what is held, each by its age. */
function waiting({ overview, held, unknown }: Snapshot): ScreenLine[] {
  const entries = [
    ...unknown.map((each) => ({ list: 'unknown', detail: each.node, ...each })),
    ...held.map((each) => ({ list: 'held', detail: each.conversation, ...each })),
  ].sort((one, other) => one.sinceMs - other.sinceMs)
  if (entries.length === 0) return [{ text: '  nothing', style: 'dim' }]
  return tableLines(
    undefined,
    entries.map(({ list, id, sinceMs, host, reason }) => [
      `  ${list}`,
      id,
      shortDuration(overview.at - sinceMs),
      host,
      reason,
    ]),
  )
}

function hostLines({ hosts, more, staleAfterMs }: Snapshot, rows: number): ScreenLine[] {
  const lines = hosts.flatMap(({ hub, host, entries, awaiting, nodes, joined, retiredAt }) => {
    const note = retiredAt !== undefined ? 'retired' : joined ? 'no node' : 'never joined'
    const name = hub === undefined ? host : `${hub}:${host}`
    const first = [name, count(entries), count(awaiting)]
    if (nodes.length === 0) return [[...first, '', note]]
    return nodes.map((node, at) => [...(at === 0 ? first : ['', '', '']), ...nodeCells(node, staleAfterMs)])
  })
  const head = ['HOST', 'QUEUE', 'OPEN', 'NODE', 'STATE', 'HEARD', 'PROGRESS', 'BLOCKING', 'MIRROR']
  return cutList(tableLines(head, lines), rows, more.includes('hosts'))
}

function nodeCells(node: NodeView, staleAfterMs: number): string[] {
  const { heartbeatAgeMs, progressAgeMs, blockingLongestMs, mirrorLongestMs } = node
  const ages = [heartbeatAgeMs, progressAgeMs, blockingLongestMs, mirrorLongestMs]
  return [
    node.node,
    livenessOf(node, staleAfterMs),
    ...ages.map((ms) => (ms === undefined ? '' : shortDuration(ms))),
  ]
}

function heldLines({ overview, held, more }: Snapshot, rows: number): ScreenLine[] {
  const lines = held.map(({ id, sinceMs, host, conversation, attempts, reason }) => {
    return [id, shortDuration(overview.at - sinceMs), host, conversation, count(attempts), reason]
  })
  const head = ['DELIVERY', 'AGE', 'HOST', 'CONVERSATION', 'ATTEMPTS', 'REASON']
  return cutList(tableLines(head, lines), rows, more.includes('held'))
}

function unknownLines({ overview, unknown, more }: Snapshot, rows: number): ScreenLine[] {
  const lines = unknown.map(({ id, sinceMs, host, node = '', reason }) => {
    return [id, shortDuration(overview.at - sinceMs), host, node, reason]
  })
  return cutList(tableLines(['ID', 'AGE', 'HOST', 'NODE', 'REASON'], lines), rows, more.includes('unknown'))
}

/** A column is no wider than this, so that one long name does not push the others off. */
const cellAtMost = 40

function tableLines(head: readonly string[] | undefined, rows: readonly (readonly string[])[]): ScreenLine[] {
  const shown = [...(head === undefined ? [] : [head]), ...rows].map((row) => row.map(visible))
  const widths: number[] = []
  for (const row of shown) {
    for (const [at, cell] of row.entries())
      widths[at] = Math.max(widths[at] ?? 0, Math.min(cell.length, cellAtMost))
  }
  const lines = shown.map((row): ScreenLine => {
    const cells = row.map((cell, at) => {
      const isLast = at === row.length - 1
      const short = cell.length > cellAtMost && !isLast ? `${cell.slice(0, cellAtMost - 1)}…` : cell
      return isLast ? short : short.padEnd(widths[at] ?? 0)
    })
    return { text: cells.join('  ').trimEnd() }
  })
  const [first, ...others] = lines
  if (head === undefined || first === undefined) return lines
  return rows.length === 0 ? [{ text: 'nothing', style: 'dim' }] : [{ ...first, style: 'bold' }, ...others]
}

/** The first of the lines, and how many are left out. */
function cutList(lines: readonly ScreenLine[], rows: number, isMore = false): ScreenLine[] {
  const fits = lines.length <= rows && !isMore
  if (fits) return [...lines]
  const kept = lines.slice(0, Math.max(1, rows - 1))
  const left = lines.length - kept.length
  const text = isMore ? `  … ${left > 0 ? `${left} and ` : ''}more` : `  … ${left} more`
  return [...kept, { text, style: 'dim' }]
}
