import { HoldfastError } from '../../contract/errors.js'
import type { Outcome } from '../../contract/outcomes.js'
import type { ChildIdentity } from '../executor.js'
import type { Commits } from './commits.js'
import { checked, type Store, type Value } from './store.js'

/** A grant about to be asked for. */
export interface Grant {
  readonly grant: string
  readonly delivery: string
  readonly epoch: number
}

/** A grant that is not settled yet. */
export interface StoredGrant extends Grant {
  /** The start of this node that minted it. */
  readonly incarnation: number
  readonly mintedAtMs: number
  /** Absent: no start mark, which is proof that no executor's first byte ran. */
  readonly attempt?: number
  readonly startedAtMs?: number
  /** Its executor has ended without anybody knowing how it went. */
  readonly endedAtMs?: number
  /** What was last said of it, where that is that nobody knows. */
  readonly unknown?: Outcome
  /** Every child process recorded for it, oldest first. */
  readonly children: readonly ChildIdentity[]
}

/** The part of the mirror that keeps grants, their start marks and their child processes. */
export interface GrantBook {
  /**
   * Notes a grant; to be durable before the grant is sent. Repeated with the same words it is a no-op.
   * @throws HoldfastError GRANT_OPEN when the delivery has an unsettled grant here
   */
  mintGrant(grant: Grant): Promise<void>
  /**
   * Puts the start mark; to be durable before the executor's first byte.
   * @throws HoldfastError WRONG_STATE when the mirror does not hold the grant: nothing may start then
   */
  markStarted(grant: string, attempt: number): Promise<void>
  /**
   * Puts a start mark anew, for an attempt that an earlier process began; to be durable before the first byte.
   * @throws HoldfastError WRONG_STATE when the mirror does not hold the grant: nothing may start then
   */
  markRestarted(grant: string, attempt: number, epoch: number): Promise<void>
  /**
   * Notes a child process; to be durable before it runs its command.
   * @throws HoldfastError WRONG_STATE when the mirror does not hold the grant
   */
  recordChild(grant: string, child: ChildIdentity): Promise<void>
  /** Whether the mirror holds the grant: it is not settled yet. Synchronous. */
  holdsGrant(grant: string): boolean
  /** Forgets a grant that opened no attempt, and its children. */
  dropGrant(grant: string): Promise<void>
}

interface GrantRow {
  grant_id: string
  delivery: string
  epoch: number
  incarnation: number
  minted_at_ms: number
  attempt: number | null
  started_at_ms: number | null
  ended_at_ms: number | null
  unknown: string | null
}

interface ChildRow {
  grant_id: string
  pid: number
  process_group: number
  start_time: string
  boot_id: string
  namespace: string
}

/** `onChild` is told when the first child may be there. */
export function grantBook(
  store: Store,
  commits: Commits,
  incarnation: number,
  now: () => number,
  onChild: () => void,
): GrantBook {
  return {
    async mintGrant(grant) {
      const values = checked(grant.grant, grant.delivery, grant.epoch, incarnation, now())
      await commits.submit(() => insertGrant(store, grant, values))
    },
    async markStarted(grant, attempt) {
      const values = checked(attempt, now(), grant)
      const sql = 'update grants set attempt = ?, started_at_ms = ? where grant_id = ?'
      await commits.submit(() => {
        if (store.change(sql, values) === 0) throw noGrant(grant)
      })
    },
    async markRestarted(grant, attempt, epoch) {
      const values = checked(attempt, epoch, incarnation, now(), grant)
      const sql = `update grants set attempt = ?, epoch = ?, incarnation = ?, started_at_ms = ?, ended_at_ms = null,
        unknown = null where grant_id = ?`
      await commits.submit(() => {
        if (store.change(sql, values) === 0) throw noGrant(grant)
      })
    },
    async recordChild(grant, child) {
      onChild()
      const values = checked(grant, child.pid, child.group, child.startTime, child.bootId, child.namespace)
      await commits.submit(() => insertChild(store, grant, values))
    },
    holdsGrant: (grant) => knowsGrant(store, grant),
    async dropGrant(grant) {
      checked(grant)
      await commits.submit(() => deleteGrant(store, grant))
    },
  }
}

/** Forgets a grant and its children; inside a transaction. */
function deleteGrant(store: Store, grant: string): void {
  store.change('delete from grants where grant_id = ?', [grant])
  deleteChildren(store, grant)
}

function deleteChildren(store: Store, grant: string): void {
  store.change('delete from children where grant_id = ?', [grant])
}

export function hasChildren(store: Store): boolean {
  return store.first<{ pid: number }>('select pid from children limit 1', []) !== undefined
}

/** Every unsettled grant, oldest first. */
export function readGrants(store: Store): StoredGrant[] {
  const children = groupChildren(store)
  const rows = store.all<GrantRow>('select * from grants order by rowid', [])
  return rows.map((row) => storedGrant(row, children.get(row.grant_id) ?? []))
}

function insertGrant(store: Store, { grant, delivery, epoch }: Grant, values: readonly Value[]): void {
  const insert = `insert into grants (grant_id, delivery, epoch, incarnation, minted_at_ms) values (?, ?, ?, ?, ?)
    on conflict do nothing`
  if (store.change(insert, values) === 1) return
  const sql = 'select * from grants where delivery = ? or grant_id = ?'
  const open = store.first<GrantRow>(sql, [delivery, grant])
  if (open === undefined || (open.grant_id === grant && open.delivery === delivery && open.epoch === epoch))
    return
  const detail = `delivery ${open.delivery} has the unsettled grant ${open.grant_id} of epoch ${open.epoch}`
  throw new HoldfastError('GRANT_OPEN', detail)
}

function insertChild(store: Store, grant: string, values: readonly Value[]): void {
  if (!knowsGrant(store, grant)) throw noGrant(grant)
  const sql = `insert into children (grant_id, pid, process_group, start_time, boot_id, namespace)
    values (?, ?, ?, ?, ?, ?)`
  store.change(sql, values)
}

function knowsGrant(store: Store, grant: string): boolean {
  return store.first<GrantRow>('select grant_id from grants where grant_id = ?', [grant]) !== undefined
}

function noGrant(grant: string): HoldfastError {
  return new HoldfastError('WRONG_STATE', `the mirror holds no grant ${grant}`, {
    next: 'start nothing under it',
  })
}

function groupChildren(store: Store): Map<string, ChildIdentity[]> {
  const groups = new Map<string, ChildIdentity[]>()
  for (const row of store.all<ChildRow>('select * from children order by rowid', [])) {
    const group = groups.get(row.grant_id) ?? []
    group.push({
      pid: row.pid,
      group: row.process_group,
      startTime: row.start_time,
      bootId: row.boot_id,
      namespace: row.namespace,
    })
    groups.set(row.grant_id, group)
  }
  return groups
}

function storedGrant(row: GrantRow, children: readonly ChildIdentity[]): StoredGrant {
  return {
    grant: row.grant_id,
    delivery: row.delivery,
    epoch: row.epoch,
    incarnation: row.incarnation,
    mintedAtMs: row.minted_at_ms,
    ...(row.attempt === null ? {} : { attempt: row.attempt }),
    ...(row.started_at_ms === null ? {} : { startedAtMs: row.started_at_ms }),
    ...(row.ended_at_ms === null ? {} : { endedAtMs: row.ended_at_ms }),
    ...(row.unknown === null ? {} : { unknown: JSON.parse(row.unknown) as Outcome }),
    children,
  }
}
