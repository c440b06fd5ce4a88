import { setTimeout as sleep } from 'node:timers/promises'
import { backoffMs } from '../contract/backoff.js'
import { type HoldfastError, isHoldfastError, isRepeatable } from '../contract/errors.js'
import type { NodeLog } from './log.js'

/** Repeats steps that are safe to repeat, for as long as the node lives. */
export interface Persistence {
  /**
   * Calls until there is an answer: the store being away, or its answer being lost, is waited out with
   * backoff; a node that the record has forgotten joins again. Rejects when the node is superseded (and
   * ends it), when it is halted, and with any refusal of the call itself.
   */
  call<Reply>(step: string, attempt: () => Promise<Reply>): Promise<Reply>
}

export interface PersistenceOptions {
  readonly log: NodeLog
  /** Joins again after the record has forgotten this node. */
  rejoin(): Promise<unknown>
  /** Tells the record what this node saw of it, after its server started anew. */
  attest(): Promise<unknown>
  /** Told of an error after which this process must not go on. */
  onFatal(error: HoldfastError): void
  /** Aborted when nothing may be waited for any more. */
  readonly halt: AbortSignal
}

const retry = { leastMs: 50, mostMs: 2000 }

export function createPersistence(options: PersistenceOptions): Persistence {
  const { log, halt } = options

  async function call<Reply>(step: string, attempt: () => Promise<Reply>): Promise<Reply> {
    for (let failures = 1; ; failures += 1) {
      halt.throwIfAborted()
      try {
        return await attempt()
      } catch (error) {
        await recover(step, error, failures)
      }
    }
  }

  async function recover(step: string, error: unknown, failures: number): Promise<void> {
    if (isFinal(error)) {
      options.onFatal(error)
      throw error
    }
    if (isHoldfastError(error, 'NOT_JOINED')) {
      log.warn({ step, error: error.message }, 'the record does not know this node; joining again')
      await options.rejoin().catch((cause: unknown) => rejoinFailed(cause))
    } else if (isHoldfastError(error, 'NOT_ATTESTED')) {
      log.warn({ step, failures, error: error.message }, 'nothing is granted yet; the same call is repeated')
      await options.attest().catch((cause: unknown) => rejoinFailed(cause))
    } else if (isTransient(error)) {
      log.warn({ step, failures, error: error.message }, 'no answer; the same call is repeated')
    } else {
      throw error
    }
    await sleep(backoffMs(retry, failures), undefined, { signal: halt })
  }

  function rejoinFailed(error: unknown): void {
    if (isFinal(error)) options.onFatal(error)
    log.warn({ error: String(error) }, 'joining again failed')
  }

  return { call }
}

/** Errors after which this process must not go on: another has its place, or nobody lets it speak any more. */
export function isFinal(error: unknown): error is HoldfastError {
  return isHoldfastError(error, 'SUPERSEDED', 'MIRROR_CLONED', 'LEFT', 'UNAUTHENTICATED', 'FORBIDDEN')
}

/** Errors that a node waits out: another call, or a hand, may put right what is behind them. */
export function isTransient(error: unknown): error is HoldfastError {
  return isRepeatable(error) || isHoldfastError(error, 'STORE_UNKNOWN', 'LIBRARY_NEWER', 'RECORD_DAMAGED')
}
