import calculateSlot from 'cluster-key-slot'
import { Redis } from 'ioredis'
import type { RedisAddress } from '../contract/redis-address.js'
import { reachOf } from './reach.js'

/** What a connection is left for: its server is no primary any more, or serves the slot no more. The command was not done. */
const leftFor = /^(MOVED|READONLY) /
const disconnectAndSendAgain = 2

/**
 * A connection as BullMQ wants them: it waits for its server for ever, and blocks. It carries nothing but the
 * schedule, which may be lost or run twice.
 */
export function openQueueConnection(url: RedisAddress, tag: string, name: string): Redis {
  const connection = new Redis({
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
