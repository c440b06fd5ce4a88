import { type ProblemCode, problemCodeOf } from '../contract/problem-codes.js'
import type { SweepName, Swept } from '../contract/sweeps.js'
import type { CallFunction } from './call-function.js'
import { type Fields, listOf, number, text, textOf } from './replies.js'

/** One slice of a sweep. */
export interface Slice extends Swept {
  /** Where to go on; empty at the end. */
  readonly cursor: string
}

/** A row that was compared with its indexes. */
export interface ReconciledDelivery {
  readonly id: string
  /** Empty where there is no row. */
  readonly state: string
  /** How it ended; empty while it has not. */
  readonly settled: '' | 'failed' | 'done' | 'terminal'
  readonly parked: boolean
  readonly host: string
  readonly entry: string
  readonly problems: readonly Problem[]
}

export interface Problem {
  readonly code: ProblemCode
  /** In words, for people. */
  readonly what: string
  readonly repaired: boolean
}

/** The hosts' sweeps take a host and a cursor, the others a cursor. */
export type HostSweep = 'claims' | 'parked' | 'reports' | 'stale' | 'nodes'
export type HubSweep = 'held' | 'effects' | 'rehome' | 'deadlines'

/** What the counts say and what the indexes hold, of one moment. */
export type Tally = Readonly<
  Record<
    | 'recipients'
    | 'pruned'
    | 'finished'
    | 'owed'
    | 'streams'
    | 'pending'
    | 'awaiting'
    | 'heldListed'
    | 'queued'
    | 'claimed'
    | 'mirrored'
    | 'delivered'
    | 'held'
    | 'failed'
    | 'unknown',
    number
  >
> & { readonly logId: string }

export interface SweepRun extends Swept {
  readonly durationMs: number
  readonly cursor: string
  /** Why it failed. */
  readonly error?: string | undefined
  /** Which process ran it. */
  readonly by: string
}

/** How far the comparison of the record with what was seen of it has come. */
export interface Attestation {
  /** Work is granted again. */
  readonly attested: boolean
  /** A slice was done: call again. */
  readonly more: boolean
  readonly generation: number
  /** Nodes that lived and have yet to speak. */
  readonly waitedFor: readonly string[]
  readonly logId: string
  /** Of the server that answered. */
  readonly replicationId: string
}

/** What `CONFIG GET appendfsync` says; `no` without an AOF, `unseen` where it is forbidden. */
export type Appendfsync = 'always' | 'everysec' | 'no' | 'unseen'

export interface SweepFunctions {
  /** One step of proving that this server is not behind what was seen of its record. */
  attest(
    presenter: string,
    lastLogId: string,
    appendfsync: Appendfsync,
    presentedTo?: string,
    configOf?: string,
  ): Promise<Attestation>
  /** Of at most 100 messages that were answered for, those that are gone with what recorded them; the log names them. */
  noteLost(presenter: string, messageIds: readonly string[]): Promise<readonly string[]>
  sweepHost(name: HostSweep, host: string, cursor: string): Promise<Slice>
  /** Of these hosts, at most 1,000, those that hold anything a sweep would look at. */
  busyHosts(hosts: readonly string[]): Promise<string[]>
  sweepHub(name: HubSweep, cursor: string): Promise<Slice>
  reconcile(
    ids: readonly string[],
    options: { repair: boolean; lanes: boolean },
  ): Promise<ReconciledDelivery[]>
  /** Of those where something was found. */
  reconcileMessages(
    ids: readonly string[],
    options: { repair: boolean; relist?: boolean },
  ): Promise<{ id: string; problems: readonly Problem[] }[]>
  reconcileLists(
    what: 'types' | 'held' | 'unknown' | 'effects' | 'sessions' | 'nodes',
    options: { repair: boolean },
    args?: readonly string[],
  ): Promise<{ cursor: string; found: readonly (Problem & { about: string })[] }>
  tally(): Promise<Tally>
  /** False where something moved since: nothing was set. */
  recount(logId: string, counted: Readonly<Record<string, number>>): Promise<boolean>
  noteSweep(name: SweepName, run: SweepRun): Promise<void>
}

const reading = { readOnly: true } as const

/** Typed callers of the functions that sweeps and audits use. */
export function sweepFunctionsOf(call: CallFunction): SweepFunctions {
  return {
    attest: async (presenter, lastLogId, appendfsync, presentedTo = '', configOf = '') => {
      const reply = await call('attest', [presenter, lastLogId, appendfsync, presentedTo, configOf])
      return {
        attested: number(reply, 'attested') === 1,
        more: number(reply, 'more') === 1,
        generation: number(reply, 'generation'),
        waitedFor: text(reply, 'waited_for').split(' ').filter(Boolean),
        logId: text(reply, 'log_id'),
        replicationId: text(reply, 'replication_id'),
      }
    },
    noteLost: async (presenter, messageIds) =>
      listOf(await call('note_lost', [presenter, ...messageIds]), 'lost').map(textOf),
    sweepHost: async (name, host, cursor) => sliceOf(await call(`sweep_${name}`, [host, cursor])),
    busyHosts: async (hosts) => listOf(await call('busy_hosts', hosts, reading), 'hosts').map(textOf),
    sweepHub: async (name, cursor) => sliceOf(await call(`sweep_${name}`, [cursor])),
    reconcile: async (ids, { repair, lanes }) => {
      const reply = await call('reconcile', [repair ? 1 : 0, lanes ? 1 : 0, ...ids])
      return listOf(reply, 'rows').map(reconciledOf)
    },
    reconcileMessages: async (ids, { repair, relist = false }) => {
      const reply = await call('reconcile_messages', [relist ? 2 : repair ? 1 : 0, ...ids])
      return listOf(reply, 'rows').map((row) => {
        const [id = '', ...problems] = wordsOf(row)
        return { id, problems: problemsOf(problems) }
      })
    },
    reconcileLists: async (what, { repair }, args = []) => {
      const reply = await call('reconcile_lists', [what, repair ? 1 : 0, ...args])
      const words = listOf(reply, 'found').map(String)
      const found = []
      for (let at = 0; at + 3 < words.length; at += 4) {
        const [about = '', ...problem] = words.slice(at, at + 4)
        found.push({ about, ...problemOf(problem) })
      }
      return { cursor: text(reply, 'cursor'), found }
    },
    tally: async () => tallyOf(await call('tally', [], reading)),
    recount: async (logId, counted) =>
      number(await call('recount', [logId, ...Object.entries(counted).flat()]), 'done') === 1,
    noteSweep: async (name, { durationMs, found, repaired, left, cursor, error = '', by, notes }) => {
      const args = [
        name,
        Math.round(durationMs),
        found,
        repaired,
        left,
        cursor,
        error,
        by,
        JSON.stringify(notes),
      ]
      await call('note_sweep', args)
    },
  }
}

function sliceOf(reply: Fields): Slice {
  return {
    found: number(reply, 'found'),
    repaired: number(reply, 'repaired'),
    left: number(reply, 'left'),
    cursor: text(reply, 'cursor'),
    notes: listOf(reply, 'notes').map(String),
  }
}

function reconciledOf(reply: unknown): ReconciledDelivery {
  const [id = '', state = '', settled, parked, host = '', entry = '', ...problems] = wordsOf(reply)
  return {
    id,
    state,
    settled: (settled ?? '') as ReconciledDelivery['settled'],
    parked: parked === '1',
    host,
    entry,
    problems: problemsOf(problems),
  }
}

function problemsOf(words: readonly string[]): Problem[] {
  const problems: Problem[] = []
  for (let at = 0; at + 2 < words.length; at += 3) problems.push(problemOf(words.slice(at, at + 3)))
  return problems
}

function problemOf([code, what = '', repaired]: readonly string[]): Problem {
  return { code: problemCodeOf(code), what, repaired: repaired === '1' }
}

function wordsOf(reply: unknown): string[] {
  return Array.isArray(reply) ? reply.map(String) : []
}

function tallyOf(reply: Fields): Tally {
  return {
    logId: text(reply, 'log_id'),
    recipients: number(reply, 'recipients'),
    pruned: number(reply, 'pruned'),
    finished: number(reply, 'finished'),
    owed: number(reply, 'owed'),
    streams: number(reply, 'streams'),
    pending: number(reply, 'pending'),
    awaiting: number(reply, 'awaiting'),
    heldListed: number(reply, 'held_listed'),
    queued: number(reply, 'queued'),
    claimed: number(reply, 'claimed'),
    mirrored: number(reply, 'mirrored'),
    delivered: number(reply, 'delivered'),
    held: number(reply, 'held'),
    failed: number(reply, 'failed'),
    unknown: number(reply, 'unknown'),
  }
}
