import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { Queue, Worker } from 'bullmq'
import type { RedisAddress } from '../contract/redis-address.js'
import { isSweepName, type SweepName, sweepNames } from '../contract/sweeps.js'
import type { OpenedHub } from '../hub/open-hub.js'
import { readIntervals, readSweeps } from '../hub/sweeps.js'
import { openQueueConnection } from '../record/queue-connection.js'
import type { SweepRun } from '../record/sweep-functions.js'
import { registry } from './registry.js'
import { runSweep } from './run.js'

/** What BullMQ knows of a schedule, where it is there. */
type Known = { readonly next?: number | undefined } | undefined

/**
 * Whether a schedule has a run to come. Each run brings the next one; where the server took no writes just then, a
 * schedule is left that brings none.
 */
function isOnItsWay(schedule: Known, everyMs: number): boolean {
  if (schedule?.next === undefined || isTooFar(schedule, everyMs)) return false
  return schedule.next > Date.now() - Math.max(everyMs, lateMs)
}

/** Whether its next run was set by a clock that was ahead of this one: it would be waited for that long. */
function isTooFar(schedule: Known, everyMs: number): boolean {
  return schedule?.next !== undefined && schedule.next > Date.now() + everyMs + lateMs
}

/** The part of a pino logger that sweeps use. */
export interface SweepLog {
  /** What was found and put right. */
  info(particulars: object, message: string): void
  /** A sweep, or its schedule, that failed; it is tried again. */
  warn(particulars: object, message: string): void
}

export interface ScheduleOptions {
  readonly redis: RedisAddress
  readonly parts: OpenedHub
  readonly log: SweepLog
  /** Milliseconds that a process may be silent within a run before another runs it too; 30,000 when absent. */
  readonly lockMs?: number | undefined
}

/** Sweeps at work in this process. */
export interface Schedule {
  readonly scheduled: true
  /** Runs one now, in this process. */
  run(name: SweepName): Promise<SweepRun & { name: SweepName; notes: string[] }>
  /** Ends the run under way after its slice, and gives up the schedule's connections. */
  stop(): Promise<void>
}

const queueName = 'sweeps'
/** The intervals of the record are looked at this often. */
const lookEveryMs = 5000
/** A run that is later than this, or than its interval, is not on its way any more. */
const lateMs = 1000
const defaultLockMs = 30_000
const retryMs = 2000
/** BullMQ waits for a server that is away for ever. What is cut then is a run that another process does again. */
const closeWithinMs = 5000

/**
 * Schedules the sweeps through BullMQ: any number of hubs share them. The schedules are made again at every start
 * and whenever an interval changes, so that losing BullMQ's keys costs nothing; a first round runs at the start.
 */
export async function startSchedule({
  redis,
  parts,
  log,
  lockMs = defaultLockMs,
}: ScheduleOptions): Promise<Schedule> {
  const halt = new AbortController()
  const by = `${hostname()}#${process.pid}`
  const prefix = `${parts.keys.tag}:bull`
  const commands = openQueueConnection(redis, parts.keys.tag, 'holdfast-sweeps')
  const blocking = openQueueConnection(redis, parts.keys.tag, 'holdfast-sweep-worker')
  const queue = new Queue(queueName, {
    connection: commands,
    prefix,
    defaultJobOptions: { removeOnComplete: { count: 20 }, removeOnFail: { count: 20 }, attempts: 1 },
  })
  const worker = new Worker(queueName, async ({ name }) => await runNamed(name), {
    connection: blocking,
    prefix,
    concurrency: 1,
    lockDuration: lockMs,
    stalledInterval: lockMs,
    maxStalledCount: 3,
    autorun: false,
  })
  const complain = (error: Error) => log.warn({ error: error.message }, 'the schedule of the sweeps')
  queue.on('error', complain)
  worker.on('error', complain)

  async function run(name: SweepName): Promise<SweepRun> {
    const swept = await runSweep(parts, name, { by, signal: halt.signal })
    const { found, repaired, left, notes, error } = swept
    if (error !== undefined) log.warn({ sweep: name, error }, 'a sweep failed')
    else if (found > 0) log.info({ sweep: name, found, repaired, left, notes }, 'swept')
    return swept
  }

  async function runNamed(name: string): Promise<void> {
    if (isSweepName(name)) await run(name)
  }

  /** The schedule as the record's intervals say. */
  async function upsert(before: Partial<Record<SweepName, number>>): Promise<Record<SweepName, number>> {
    const intervals = await readIntervals(parts.reader, parts.keys)
    for (const name of sweepNames) {
      const every = intervals[name]
      const known = await queue.getJobScheduler(name)
      if (before[name] === every && isOnItsWay(known, every)) continue
      // What is made again keeps the time of its next run, unless it was removed.
      if (every === 0 || isTooFar(known, every)) await queue.removeJobScheduler(name)
      if (every !== 0) await queue.upsertJobScheduler(name, { every }, { name })
    }
    return intervals
  }

  async function keepScheduled(): Promise<void> {
    let known: Partial<Record<SweepName, number>> = {}
    while (!halt.signal.aborted) {
      try {
        known = await upsert(known)
      } catch (error) {
        log.warn({ error: String(error) }, 'the sweeps could not be scheduled; tried again')
      }
      await sleep(lookEveryMs, undefined, { signal: halt.signal }).catch(() => undefined)
    }
  }

  /** Every sweep once, whatever the schedule says: what a crash of everything left is put right now. */
  async function firstRound(): Promise<void> {
    for (const name of Object.keys(registry) as SweepName[]) {
      if (name === 'audit' && (await auditedLately())) continue
      while (!halt.signal.aborted) {
        try {
          await run(name)
          break
        } catch (error) {
          log.warn({ sweep: name, error: String(error) }, 'the first round waits for the record')
          await sleep(retryMs, undefined, { signal: halt.signal }).catch(() => undefined)
        }
      }
    }
  }

  /** An audit looks at every row: hubs that come and go need not repeat it. */
  async function auditedLately(): Promise<boolean> {
    const views = await readSweeps(parts.reader, parts.keys).catch(() => [])
    const audit = views.find(({ name }) => name === 'audit')
    return audit?.ageMs !== undefined && !audit.unfinished && audit.ageMs < audit.everyMs
  }

  async function closed(): Promise<void> {
    await worker.close()
    await Promise.allSettled([keeping, working])
    await queue.close()
  }

  const keeping = keepScheduled()
  const working = firstRound().then(() => (halt.signal.aborted ? undefined : worker.run()))
  working.catch((error: unknown) => log.warn({ error: String(error) }, 'the sweeps stopped'))

  return {
    scheduled: true,
    run: async (name) => {
      const swept = await run(name)
      return { ...swept, name, notes: [...swept.notes] }
    },
    stop: async () => {
      halt.abort(new Error('stopped'))
      await Promise.race([closed(), sleep(closeWithinMs, undefined, { ref: false })])
      commands.drop()
      blocking.drop()
    },
  }
}
