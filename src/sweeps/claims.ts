import type { HubParts } from '../hub/parts.js'
import { disagreementsOf } from '../hub/tally.js'
import { timeOf } from '../record/reader.js'
import { auditSweep } from './audit.js'
import { sweepHosts } from './by-host.js'
import { type Sweep, sumOf } from './sweep.js'

/** An audit that damage calls for runs after a minute at the earliest, and takes a twentieth of the time at most. */
const auditAfterMs = 60_000
const auditShare = 20

/**
 * Pending lists against rows, both ways: ghosts, stolen reads, leftovers. And where the totals of one moment do not
 * add up (a group, a stream, an index or an entry was taken away), an audit, which looks at every row: so that walk is
 * made only when there is damage.
 */
export const claimsSweep: Sweep = {
  name: 'claims',
  run: async (given) => {
    const { hub, signal } = given
    const sum = sumOf()
    const pending = await sweepHosts('claims', given)
    sum.add(pending)
    if (pending.cursor !== '' || signal.aborted) return sum.run(pending.cursor)
    const totals = disagreementsOf(await hub.functions.tally())
    if (totals.length > 0 && (await mayAudit(hub))) sum.add(await audit(hub, signal))
    return sum.run('')
  },
}

async function audit(hub: HubParts, signal: AbortSignal) {
  const startedAt = performance.now()
  const run = await auditSweep.run({ hub, cursor: '', signal })
  await hub.functions.noteSweep('audit', {
    ...run,
    by: 'claims',
    durationMs: performance.now() - startedAt,
  })
  return run
}

async function mayAudit({ reader, keys }: HubParts): Promise<boolean> {
  const nowMs = timeOf(await reader.one(['TIME']))
  const [repaired, lastAt, tookMs] = await reader.strings([
    'HMGET',
    keys.sweep('audit'),
    'repaired',
    'last_run_at',
    'duration_ms',
  ])
  // What the last one put right, it may have to again: damage is under way.
  if (Number(repaired) > 0) return true
  const ageMs = nowMs - (Number(lastAt) || 0)
  return ageMs >= Math.max(auditAfterMs, auditShare * (Number(tookMs) || 0))
}
