import type { HubCalls } from '../contract/hub.js'
import type { SweepName } from '../contract/sweeps.js'
import { auditSchema, type SweepRunView } from '../contract/upkeep-views.js'
import { sweepRunsReply, sweepsReply } from '../contract/wire.js'
import type { Calls } from './calls.js'
import { part } from './paths.js'

export interface SweepCalls extends Pick<HubCalls, 'sweeps' | 'audit'> {
  /** Runs a sweep now, or all of them; harmless beside the scheduled ones. */
  runSweep(name: SweepName | 'all'): Promise<SweepRunView[]>
}

/** A sweep of a large record takes its time. Milliseconds. */
const longMs = 300_000

export function sweepCalls(calls: Calls, headers: Readonly<Record<string, string>>): SweepCalls {
  return {
    sweeps: async () =>
      (await calls.repeat({ method: 'GET', path: '/v1/sweeps', reply: sweepsReply })).value.sweeps,
    audit: async () => {
      const call = { method: 'GET', path: '/v1/audit', reply: auditSchema } as const
      return (await calls.repeat({ ...call, deadlineMs: longMs, waits: true })).value
    },
    runSweep: async (name) => {
      const call = {
        method: 'POST',
        path: `/v1/sweeps/${part(name)}/run`,
        headers,
        reply: sweepRunsReply,
      } as const
      return (await calls.call({ ...call, deadlineMs: longMs, waits: true })).value.runs
    },
  }
}
