import type { Attempt } from '../executor.js'
import type { Commits } from './commits.js'
import { checked, type Store, type Value } from './store.js'

/** A delivery as the node keeps it. */
export interface Copy {
  readonly delivery: string
  readonly epoch: number
  readonly session?: string
  /** Kept as JSON, so members beyond these survive too. */
  readonly message: Attempt['message']
  /** Must not be changed before {@link CopyBook.storeCopies} resolves. */
  readonly payload: Buffer
}

/** A copy as it is read back. */
export interface StoredCopy extends Copy {
  /** The start of this node that stored it last. */
  readonly incarnation: number
  /** Tries that ended as `not_sent`, as last told to {@link CopyBook.putOff}. */
  readonly tries: number
  /** Wall clock; 0 when it was never put off. */
  readonly notBeforeMs: number
  readonly storedAtMs: number
}

/** The part of the mirror that keeps deliveries with their payloads. */
export interface CopyBook {
  /** Stores copies, all in one transaction. A delivery kept already gets the new ones' words, but keeps tries and notBeforeMs. */
  storeCopies(copies: readonly Copy[]): Promise<void>
  /** Forgets copies; those unknown are passed over. */
  dropCopies(deliveryIds: readonly string[]): Promise<void>
  /** Forgets a copy, unless a later epoch than this one has stored it anew. Not at once: a crash may bring it back. */
  dropCopy(deliveryId: string, epoch: number): Promise<void>
  /** Forgets copies stored by earlier incarnations that no grant refers to; resolves to how many. */
  dropCopiesBefore(incarnation: number): Promise<number>
  /** The copy as last committed, with its payload byte for byte. Synchronous. */
  copy(deliveryId: string): StoredCopy | undefined
  /** Notes that the delivery is to be tried again, not before `notBeforeMs` (wall clock). Without a copy: nothing. */
  putOff(delivery: string, tries: number, notBeforeMs: number): Promise<void>
}

interface CopyRow {
  delivery: string
  epoch: number
  incarnation: number
  session: string | null
  message: string
  payload: Buffer
  tries: number
  not_before_ms: number
  stored_at_ms: number
}

const upsert = `insert into copies (delivery, epoch, incarnation, session, message, payload, stored_at_ms)
  values (?, ?, ?, ?, ?, ?, ?)
  on conflict (delivery) do update set epoch = excluded.epoch, incarnation = excluded.incarnation,
    session = excluded.session, message = excluded.message, payload = excluded.payload,
    stored_at_ms = excluded.stored_at_ms`

export function copyBook(store: Store, commits: Commits, incarnation: number, now: () => number): CopyBook {
  return {
    async storeCopies(copies) {
      const rows = copies.map((copy) => copyValues(copy, incarnation, now()))
      const bytes = copies.reduce((sum, copy) => sum + copy.payload.length, 0)
      await commits.submit(() => changeAll(store, upsert, rows), bytes)
    },
    async dropCopies(deliveryIds) {
      const rows = deliveryIds.map((delivery) => checked(delivery))
      await commits.submit(() => changeAll(store, 'delete from copies where delivery = ?', rows))
    },
    async dropCopy(deliveryId, epoch) {
      const values = checked(deliveryId, epoch)
      await commits.submitLater(() => {
        store.change('delete from copies where delivery = ? and epoch <= ?', values)
      })
    },
    async dropCopiesBefore(before) {
      const values = checked(before)
      const sql = `delete from copies where incarnation < ?
        and not exists (select delivery from grants where grants.delivery = copies.delivery)`
      return await commits.submit(() => store.change(sql, values))
    },
    async putOff(delivery, tries, notBeforeMs) {
      const values = checked(tries, notBeforeMs, delivery)
      const sql = 'update copies set tries = ?, not_before_ms = ? where delivery = ?'
      await commits.submit(() => store.change(sql, values))
    },
    copy: (deliveryId) => readCopy(store, deliveryId),
  }
}

function changeAll(store: Store, sql: string, rows: readonly Value[][]): void {
  for (const row of rows) store.change(sql, row)
}

function copyValues(copy: Copy, incarnation: number, storedAtMs: number): Value[] {
  const { delivery, epoch, session = null, message, payload } = copy
  return checked(delivery, epoch, incarnation, session, JSON.stringify(message), payload, storedAtMs)
}

function readCopy(store: Store, deliveryId: string): StoredCopy | undefined {
  const row = store.first<CopyRow>('select * from copies where delivery = ?', checked(deliveryId))
  if (row === undefined) return undefined
  return {
    delivery: row.delivery,
    epoch: row.epoch,
    ...(row.session === null ? {} : { session: row.session }),
    message: JSON.parse(row.message) as Attempt['message'],
    payload: row.payload,
    incarnation: row.incarnation,
    tries: row.tries,
    notBeforeMs: row.not_before_ms,
    storedAtMs: row.stored_at_ms,
  }
}
