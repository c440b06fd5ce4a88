// @ts-check
// The limit: a stream and a group, nothing else. No dedup, no owner, no outcome, no second copy.
import { Redis } from 'ioredis'
import { createSettling } from './settling.mjs'

const [stream, group] = ['work', 'workers']
const read = ['GROUP', group, 'c1', 'COUNT', 100, 'BLOCK', 500, 'STREAMS', stream, '>']

/** @param {import('./round.mjs').Place} place @returns {Promise<import('./round.mjs').System>} */
export async function openRaw({ port, payload, onExecute }) {
  const producer = new Redis({ port, protocol: 2 })
  const consumer = new Redis({ port, protocol: 2 })
  const settling = createSettling()
  let closing = false
  await producer.xgroup('CREATE', stream, group, '0', 'MKSTREAM')

  async function consume() {
    while (!closing) {
      const reply = await consumer.call('XREADGROUP', ...read)
      const entries = /** @type {[[string, [string, string[]][]]] | null} */ (reply)?.[0][1] ?? []
      if (entries.length === 0) continue
      for (const [, fields] of entries) onExecute(fields[1] ?? '')
      const ids = entries.map(([id]) => id)
      await Promise.all([consumer.xack(stream, group, ...ids), consumer.xdel(stream, ...ids)])
      settling.add(entries.length)
    }
  }
  const consuming = consume().catch(settling.fail)

  return {
    accept: (id) => producer.xadd(stream, '*', 'payload', payload(id)),
    finished: settling.reached,
    close: async () => {
      closing = true
      await consuming
      await Promise.all([producer.quit(), consumer.quit()])
    },
  }
}
