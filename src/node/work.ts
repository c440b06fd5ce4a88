import { setTimeout as sleep } from 'node:timers/promises'
import { onAbort } from '../contract/abort.js'
import { backoffMs } from '../contract/backoff.js'
import { isHoldfastError, isRepeatable } from '../contract/errors.js'
import { isAfter } from '../contract/log-ids.js'
import type { JoinReply, NodeIdentity } from '../contract/steps.js'
import { type Attempts, createAttempts } from './attempts.js'
import type { BlockingMeter } from './blocking.js'
import { type ClaimLoop, createClaimLoop } from './claim-loop.js'
import type { NodeEnd } from './create-node.js'
import { endingOf } from './ending.js'
import { createHandoff } from './handoff.js'
import { createHeartbeats, type Heartbeats } from './heartbeats.js'
import { createLanes, type Lanes } from './lanes.js'
import type { NodeLog } from './log.js'
import type { Mirror } from './mirror.js'
import type { NodeOptions, NodeSettings } from './node-options.js'
import { createPersistence } from './persistence.js'
import { treeAlive } from './process-identity.js'
import { createRecovery, type Recovery } from './recovery.js'
import { createReports } from './reports.js'
import type { Share } from './share.js'
import { type Steps, stepsOf } from './steps.js'
import type { NodeTransport } from './transport.js'

/** A node at work. */
export interface RunningWork {
  /** How it ended: by this, or by an error before. */
  stop(): Promise<NodeEnd>
}

export interface WorkParts {
  readonly options: NodeOptions
  readonly settings: NodeSettings
  readonly log: NodeLog
  readonly mirror: Mirror
  readonly transport: NodeTransport
  readonly blocking: BlockingMeter
  /** In a node of several hubs: what this one may use of it. */
  readonly share?: Share | undefined
  end(how: NodeEnd): void
  /** Aborted by `stop`: a start that is not done yet gives up. */
  readonly signal: AbortSignal
}

const joinRetry = { leastMs: 100, mostMs: 2000 }

/** What the loops share about how far the node has come, and by what it works. */
interface Progress {
  lastLogId: string
  progressAt: number
  /** As of the last join; undefined before the first. */
  maxResultBytes?: number
}

/**
 * Joins, concludes what an earlier process left, and starts the loops.
 * @throws SUPERSEDED, MIRROR_CLONED, STORE_UNKNOWN, INVALID_ARGUMENT; the parts stay open then
 */
export async function startWork(parts: WorkParts): Promise<RunningWork> {
  const { options, settings, log, mirror, transport } = parts
  const who: NodeIdentity = { host: settings.host, node: settings.node, incarnation: mirror.incarnation }
  const progress: Progress = { lastLogId: mirror.lastLogId(), progressAt: performance.now() }
  const halt = new AbortController()
  let started = false
  onAbort(parts.signal, () => {
    if (!started) halt.abort(parts.signal.reason)
  })

  const rejoin = async () => {
    const joined = await transport.join(who, mirror.instance, options.scopes ?? [], progress.lastLogId)
    progress.maxResultBytes = joined.maxResultBytes
    return joined
  }
  let onFatal: (error: Error) => void = (error) => halt.abort(error)
  const persistence = createPersistence({
    log,
    rejoin,
    // A join presents at once what the next heartbeat would.
    attest: shared(async () => {
      await rejoin()
      await transport.attest?.(who, progress.lastLogId)
    }),
    onFatal: (error) => onFatal(error),
    halt: halt.signal,
  })
  const onLogId = (logId: string) => {
    if (!isAfter(logId, progress.lastLogId)) return
    progress.lastLogId = logId
    mirror.noteLogId(logId)
  }
  const steps = stepsOf(who, transport, persistence, options.onPoint, onLogId)
  const loops = loopsOf(parts, steps, progress, onLogId)
  const heartbeats = heartbeatsOf(parts, { who, progress, rejoin }, (error) => onFatal(error))

  const joined = await join(rejoin, log, halt.signal).catch(async (error: unknown) => {
    if (isHoldfastError(error, 'SUPERSEDED', 'MIRROR_CLONED')) await mirror.startRefused()
    throw error
  })
  log.info({ ...who, storeId: joined.storeId }, 'joined')
  if (joined.badSettings.length > 0)
    log.warn({ settings: joined.badSettings }, 'bad values in :config; defaults are used')
  heartbeats.start(joined)
  try {
    await loops.recovery.conclude()
  } catch (error) {
    await heartbeats.stop()
    throw error
  }
  started = true
  const ending = endingOf(parts, who, loops, heartbeats, halt)
  onFatal = (error) => void ending.fail(error)
  ending.watch(loops.claims.run())
  loops.recovery.settle()
  return { stop: ending.stop }
}

/** What works in a node, and is stopped with it. */
export interface Loops {
  readonly claims: ClaimLoop
  readonly lanes: Lanes
  readonly attempts: Attempts
  readonly recovery: Recovery
}

function loopsOf(
  parts: WorkParts,
  steps: Steps,
  progress: Progress,
  onLogId: (logId: string) => void,
): Loops {
  const { options, settings, log, mirror, blocking, share } = parts
  const { onPoint } = options
  const reports = createReports({ mirror, report: steps.report, log, onPoint })
  const lanes = createLanes({
    concurrency: settings.concurrency,
    run: (work, leave) => attempts.run(work, leave),
    onRoom: () => {
      claims.room()
      share?.roomMade()
    },
    share,
  })
  const attempts = createAttempts({
    ...settings,
    mirror,
    blocking,
    reports,
    begin: steps.begin,
    maxResultBytes: () => progress.maxResultBytes,
    raise: lanes.raise,
    tryAgain: lanes.add,
    log,
    onPoint,
  })
  const claims = createClaimLoop({
    buffer: settings.buffer,
    lanes,
    handoff: createHandoff({ mirror, lanes, steps, log, onPoint }),
    claim: steps.claim,
    onLogId,
    onProgress: () => {
      progress.progressAt = performance.now()
    },
    onResumed: async () => {
      await mirror.dropCopiesBefore(mirror.incarnation)
    },
    share,
    log,
  })
  share?.attach({ active: lanes.active, turn: lanes.pump, room: () => claims.room() })
  const recovery = createRecovery({
    ...settings,
    concurrency: share?.even ?? settings.concurrency,
    mirror,
    reports,
    maxResultBytes: () => progress.maxResultBytes,
    mayAct: (grant) => grant.children.some(treeAlive),
    beginAgain: (work) => {
      if ((lanes.epochOf(work.id) ?? -1) < work.epoch) lanes.add(work)
    },
    log,
  })
  return { claims, lanes, attempts, recovery }
}

/** What heartbeats tell. */
interface Presence {
  readonly who: NodeIdentity
  readonly progress: Progress
  rejoin(): Promise<unknown>
}

function heartbeatsOf(
  parts: WorkParts,
  { who, progress, rejoin }: Presence,
  onFatal: (error: Error) => void,
): Heartbeats {
  const { transport, log } = parts
  return createHeartbeats({
    beat: async () => {
      const reply = await transport.heartbeat(who, {
        lastLogId: progress.lastLogId,
        progressAgeMs: performance.now() - progress.progressAt,
        blocking: parts.blocking.take(),
        mirror: parts.blocking.takeMirror(),
      })
      return reply
    },
    rejoin,
    onFatal,
    log,
  })
}

/** A server that is away is waited for; a refusal is the caller's to know. */
async function join(ask: () => Promise<JoinReply>, log: NodeLog, signal: AbortSignal): Promise<JoinReply> {
  for (let failures = 1; ; failures += 1) {
    signal.throwIfAborted()
    try {
      return await ask()
    } catch (error) {
      // A server or hub that is away, as opposed to one that refuses.
      if (!isRepeatable(error)) throw error
      log.warn({ error: error.message, failures }, 'joining again')
      await sleep(backoffMs(joinRetry, failures), undefined, { signal })
    }
  }
}

/** One at a time: who asks meanwhile waits for the same. */
function shared(action: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  return () => {
    running ??= action().finally(() => {
      running = undefined
    })
    return running
  }
}
