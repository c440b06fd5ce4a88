import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Overview } from '../contract/overview.js'
import type { SweepView } from '../contract/upkeep-views.js'
import type { OnCall } from '../record/connections.js'

/** What `/metrics` shows. Units are seconds and bytes; docs/metrics.md describes every name. */
export interface Metrics {
  readonly registry: Registry
  readonly onCall: OnCall
  requestOver(method: string, route: string, status: number, tookMs: number): void
  /** Puts what the record says into the gauges, before they are shown. */
  take(overview: Overview, sweeps: readonly SweepView[]): void
  /** A reading of the record for the gauges failed: they show what was read before. */
  readingFailed(): void
  setLoopAge(loop: string, ageMs: number): void
  /** What `/readyz` says of each check. */
  setReady(checks: Readonly<Record<string, { readonly ok: boolean }>>): void
  setWaiting(count: number): void
  /** So many messages that this hub answered for are gone. */
  lost(count: number): void
}

const fastBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Of one hub in a process; where there are several, `hub` labels the figures, and those of the process are elsewhere. */
export function createMetrics({ hub }: { readonly hub?: string } = {}): Metrics {
  const registry = new Registry()
  if (hub === undefined) collectDefaultMetrics({ register: registry })
  else registry.setDefaultLabels({ hub })
  const registers = [registry]
  const gauge = <Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
    new Gauge<Label>({ name, help, labelNames, registers })
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
    new Counter<Label>({ name, help, labelNames, registers })

  const functions = new Histogram({
    name: 'holdfast_function_duration_seconds',
    help: 'Function calls as this hub saw them, from call to answer',
    labelNames: ['function', 'result'] as const,
    buckets: fastBuckets,
    registers,
  })
  const requests = new Histogram({
    name: 'holdfast_http_request_duration_seconds',
    help: 'HTTP requests, from head to last byte of the answer; waits included',
    labelNames: ['method', 'route', 'status'] as const,
    buckets: fastBuckets,
    registers,
  })
  const deliveries = gauge('holdfast_deliveries', 'Deliveries in the record, by state', ['state'])
  const attempts = counter('holdfast_attempts_total', 'Attempts settled, by outcome', ['outcome'])
  const takeovers = counter('holdfast_takeovers_total', 'Deliveries taken over from a node that was gone')
  const lateReports = counter(
    'holdfast_late_reports_total',
    'Reports refused because the attempt had an outcome',
  )
  const effectTakeovers = counter(
    'holdfast_effect_takeovers_total',
    'Effects taken over after an unknown outcome, by basis',
    ['basis'],
  )
  const replays = counter(
    'holdfast_attempt_replays_total',
    'Attempts begun again by a later process of their node: declared idempotent',
  )
  const resolutions = counter('holdfast_resolutions_total', 'Unknown outcomes that an operator decided')
  const listed = gauge('holdfast_listed', 'Entries of the lists that wait for someone', ['list'])
  const oldest = gauge('holdfast_oldest_age_seconds', 'Age of the oldest entry; 0 where there is none', [
    'list',
  ])
  const nodes = gauge('holdfast_nodes', 'Nodes that have not left: heard within stale_after_ms, or silent', [
    'state',
  ])
  const blocking = gauge(
    'holdfast_node_blocking_seconds',
    'Longest time that synchronous work held a node in its last heartbeat period; the worst node',
  )
  const mirror = gauge(
    'holdfast_node_mirror_commit_seconds',
    'Commits of the mirrors of live nodes in their last heartbeat period: mean, and the longest of all',
    ['figure'],
  )
  const progress = gauge(
    'holdfast_node_progress_age_seconds',
    'Since the work loop of a live node last made progress; the worst node',
  )
  const stranded = gauge('holdfast_stranded_hosts', 'Hosts that have work and no live node')
  const sweepAge = gauge('holdfast_sweep_age_seconds', 'Since a sweep last succeeded', ['sweep'])
  const sweepDuration = gauge('holdfast_sweep_duration_seconds', 'Duration of the last run of a sweep', [
    'sweep',
  ])
  const sweepFound = counter('holdfast_sweep_found_total', 'What a sweep found that was not right', ['sweep'])
  const sweepRepaired = counter('holdfast_sweep_repaired_total', 'What a sweep put right', ['sweep'])
  const sweepFailures = counter('holdfast_sweep_failures_total', 'Runs of a sweep that failed', ['sweep'])
  const loops = gauge('holdfast_loop_age_seconds', 'Since a loop of this hub last succeeded', ['loop'])
  const ready = gauge('holdfast_ready', 'Whether a check of /readyz is right: 1, or 0', ['check'])
  const waiting = gauge('holdfast_http_waiting', 'Requests that wait for something on this hub')
  const lost = counter(
    'holdfast_lost_messages_total',
    'Messages that this hub answered for, and that a server lacked which took over',
  )
  const failures = counter(
    'holdfast_reading_failures_total',
    'Readings of the record for this page that failed',
  )

  function takeSweeps(sweeps: readonly SweepView[]): void {
    for (const each of [sweepAge, sweepDuration, sweepFound, sweepRepaired, sweepFailures]) each.reset()
    for (const { name: sweep, ageMs, durationMs, foundTotal, repairedTotal, failures: failed } of sweeps) {
      // A sweep that never succeeded has no age: /readyz and `sweep ls` name it late.
      if (ageMs !== undefined) sweepAge.set({ sweep }, ageMs / 1000)
      if (durationMs !== undefined) sweepDuration.set({ sweep }, durationMs / 1000)
      sweepFound.inc({ sweep }, foundTotal ?? 0)
      sweepRepaired.inc({ sweep }, repairedTotal ?? 0)
      sweepFailures.inc({ sweep }, failed ?? 0)
    }
  }

  return {
    registry,
    onCall: (name, tookMs, failure) =>
      functions.observe({ function: name, result: failure ?? 'ok' }, tookMs / 1000),
    requestOver: (method, route, status, tookMs) =>
      requests.observe({ method, route, status: String(status) }, tookMs / 1000),
    take: (overview, sweeps) => {
      takeSweeps(sweeps)
      stranded.set(overview.strandedHosts)
      for (const [state, count] of Object.entries(overview.deliveries)) deliveries.set({ state }, count)
      setCounter(takeovers, overview.takeovers)
      setCounter(lateReports, overview.lateReports)
      setCounter(replays, overview.attemptReplays)
      setCounter(resolutions, overview.resolutions)
      effectTakeovers.reset()
      for (const [basis, count] of Object.entries(overview.effectTakeovers))
        effectTakeovers.inc({ basis }, count)
      attempts.reset()
      for (const [outcome, count] of Object.entries(overview.attempts)) attempts.inc({ outcome }, count)
      for (const [list, { count, oldestAgeMs }] of Object.entries(overview.lists)) {
        if (count !== undefined) listed.set({ list }, count)
        oldest.set({ list }, oldestAgeMs / 1000)
      }
      nodes.set({ state: 'live' }, overview.nodes.live)
      nodes.set({ state: 'silent' }, overview.nodes.silent)
      blocking.set(overview.nodes.blockingLongestMs / 1000)
      progress.set(overview.nodes.progressAgeMs / 1000)
      mirror.set({ figure: 'mean' }, overview.nodes.mirrorMeanMs / 1000)
      mirror.set({ figure: 'longest' }, overview.nodes.mirrorLongestMs / 1000)
    },
    readingFailed: () => failures.inc(),
    setLoopAge: (loop, ageMs) => loops.set({ loop }, ageMs / 1000),
    setReady: (checks) => {
      for (const [check, { ok }] of Object.entries(checks)) ready.set({ check }, ok ? 1 : 0)
    },
    setWaiting: (count) => waiting.set(count),
    lost: (count) => lost.inc(count),
  }
}

/** The record counts; this page shows what it says. */
function setCounter(counter: Counter, value: number): void {
  counter.reset()
  counter.inc(value)
}
