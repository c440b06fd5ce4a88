import calculateSlot from 'cluster-key-slot'
import { Redis, type RedisOptions } from 'ioredis'
import type { RedisAddress } from '../contract/redis-address.js'
import { reachOf } from './reach.js'

/** What a connection is left for: its server is no primary any more, or serves the slot no more. The command was not done. */
const leftFor = /^(MOVED|READONLY) /
const disconnectAndSendAgain = 2

/** A connection that knows those that BullMQ makes of it. */
export class QueueConnection extends Redis {
  readonly #copies: Redis[] = []

  override duplicate(override?: Partial<RedisOptions>): Redis {
    const copy = super.duplicate(override)
    this.#copies.push(copy)
    return copy
  }

  /** Ends it and its copies at once, whatever they wait for: what was asked on them is never answered. */
  drop(): void {
    for (const each of [this, ...this.#copies]) each.disconnect()
  }
}

/**
 * A connection as BullMQ wants them: it waits for its server for ever, and blocks. It carries nothing but the
 * schedule, which may be lost or run twice.
 */
export function openQueueConnection(url: RedisAddress, tag: string, name: string): QueueConnection {
  const connection = new QueueConnection({
    ...reachOf(url).options(calculateSlot(tag), {}),
    connectionName: name,
    maxRetriesPerRequest: null,
    enableReadyCheck: false,
    disableClientInfo: true, // a right more, from 7.2 on
    lazyConnect: true,
    retryStrategy: (times) => Math.min(50 * 2 ** Math.min(times, 6), 2000),
    reconnectOnError: (error) => (leftFor.test(error.message) ? disconnectAndSendAgain : false),
  })
  connection.on('error', () => undefined)
  return connection
}
