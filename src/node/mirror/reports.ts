import { HoldfastError } from '../../contract/errors.js'
import type { Outcome } from '../../contract/outcomes.js'
import type { Commits } from './commits.js'
import { checked, type Store, type Value } from './store.js'

/** How an attempt went, to be told to the hub until it answers. */
export interface Report {
  /** Scoped to the node, one per report. */
  readonly key: string
  readonly grant: string
  readonly delivery: string
  readonly attempt?: number
  readonly outcome: Outcome
  /** The executor is done: nothing further will be known by itself. */
  readonly final: boolean
}

/** A report the hub has not answered yet. */
export interface StoredReport extends Report {
  readonly createdAtMs: number
}

/** The part of the mirror that keeps unsent reports. */
export interface ReportBook {
  /**
   * Keeps a report. One of an unknown outcome leaves its words on the grant and, where it is final, that it has ended. Repeated with the same words it is a no-op.
   * @throws HoldfastError IDEMPOTENCY_MISMATCH when the key stands for other content
   */
  recordReport(report: Report): Promise<void>
  /**
   * Forgets a report that the hub has answered; when that settled its attempt, the grant and its children
   * too. The copy stays. Not at once: after a crash it may be there again.
   */
  reportAnswered(key: string, answer: { readonly settled: boolean }): Promise<void>
}

interface ReportRow {
  key: string
  grant_id: string
  delivery: string
  attempt: number | null
  outcome: string
  final: number
  created_at_ms: number
}

/** `anyChildren`: whether there can be children of a grant at all. */
export function reportBook(
  store: Store,
  commits: Commits,
  now: () => number,
  anyChildren: () => boolean,
): ReportBook {
  return {
    async recordReport(report) {
      const outcome = outcomeJson(report.outcome)
      const content = reportValues(report, outcome)
      const createdAtMs = now()
      await commits.submit(() => insertReport(store, report, content, createdAtMs), outcome.length)
    },
    async reportAnswered(key, { settled }) {
      checked(key)
      await commits.submitLater(() => deleteReport(store, key, { settled, children: anyChildren() }))
    },
  }
}

/** Every report without an answer, in the order they were recorded. */
export function readReports(store: Store): StoredReport[] {
  return store.all<ReportRow>('select * from reports order by rowid', []).map(storedReport)
}

function reportValues({ key, grant, delivery, attempt, final }: Report, outcome: string): Value[] {
  return checked(key, grant, delivery, attempt ?? null, outcome, final ? 1 : 0)
}

/** The members of the contract in a fixed order, so that equal outcomes are equal texts. */
function outcomeJson(outcome: Outcome): string {
  if (outcome.kind === 'result') return JSON.stringify({ kind: outcome.kind, result: outcome.result })
  const { kind, errorCode, errorJson } = outcome
  return JSON.stringify({ kind, errorCode, errorJson })
}

function insertReport(store: Store, report: Report, content: readonly Value[], createdAtMs: number): void {
  const sql = `insert into reports (key, grant_id, delivery, attempt, outcome, final, created_at_ms)
    values (?, ?, ?, ?, ?, ?, ?) on conflict (key) do nothing`
  if (store.change(sql, [...content, createdAtMs]) === 0) {
    requireSame(store, report, content)
  } else if (report.outcome.kind === 'outcome_unknown') {
    store.change('update grants set unknown = ? where grant_id = ?', [content[4] ?? null, report.grant])
    const end = 'update grants set ended_at_ms = ? where grant_id = ? and ended_at_ms is null'
    if (report.final) store.change(end, [createdAtMs, report.grant])
  }
}

function requireSame(store: Store, report: Report, content: readonly Value[]): void {
  const known = store.first<ReportRow>('select * from reports where key = ?', [report.key])
  if (known === undefined) return
  const same = [known.key, known.grant_id, known.delivery, known.attempt, known.outcome, known.final]
  if (same.every((value, index) => value === content[index])) return
  throw new HoldfastError('IDEMPOTENCY_MISMATCH', `the report key ${report.key} stands for other content`)
}

function deleteReport(
  store: Store,
  key: string,
  { settled, children }: { readonly settled: boolean; readonly children: boolean },
): void {
  if (settled) {
    const ofGrant = 'delete from children where grant_id = (select grant_id from reports where key = ?)'
    if (children) store.change(ofGrant, [key])
    store.change('delete from grants where grant_id = (select grant_id from reports where key = ?)', [key])
  }
  store.change('delete from reports where key = ?', [key])
}

function storedReport(row: ReportRow): StoredReport {
  return {
    key: row.key,
    grant: row.grant_id,
    delivery: row.delivery,
    ...(row.attempt === null ? {} : { attempt: row.attempt }),
    outcome: JSON.parse(row.outcome) as Outcome,
    final: row.final === 1,
    createdAtMs: row.created_at_ms,
  }
}
