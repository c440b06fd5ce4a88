import { Redis } from 'ioredis'
import { redactUrl } from './link.js'

/**
 * A connection as BullMQ wants them: it waits for its server for ever, and blocks. It carries nothing but the
 * schedule, which may be lost or run twice.
 */
export function openQueueConnection(url: string, name: string): Redis {
  redactUrl(url) // refuses what is no URL of a server, without repeating it
  const connection = new Redis(url, {
    connectionName: name,
    maxRetriesPerRequest: null,
    enableReadyCheck: false,
    lazyConnect: true,
    retryStrategy: (times) => Math.min(50 * 2 ** Math.min(times, 6), 2000),
  })
  connection.on('error', () => undefined)
  return connection
}
