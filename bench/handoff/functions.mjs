// @ts-check
// The contract without a node: the typed callers of the functions, consumed in hundreds, with no mirror. What
// Redis alone makes of it. A claimed batch goes through its steps while the next one is claimed.
import { initRecord } from 'holdfast'
import { functionsOf, keysOf, openBlockingReader, openStore, prepareMessage } from '../built.mjs'
import { messageFor } from './message.mjs'
import { createSettling } from './settling.mjs'

/**
 * @typedef {import('../../src/contract/steps.ts').ClaimedDelivery} Claimed
 * @typedef {import('../../src/contract/steps.ts').StepResult} StepResult
 */

const who = { host: 'bench', node: 'bench', incarnation: 1 }
const [atOnce, batchesAtOnce, waitMs] = [100, 4, 500]

/** @param {import('./round.mjs').Place} place @returns {Promise<import('./round.mjs').System>} */
export async function openFunctions({ url, payload, onExecute }) {
  await initRecord({ redis: url })
  const keys = keysOf('hf')
  const [producer, consumer] = await Promise.all([
    openStore({ url, name: 'bench-producer' }),
    openStore({ url, name: 'bench-consumer' }),
  ])
  const reader = openBlockingReader({ url, name: 'bench-wait' })
  const accepting = functionsOf(producer, keys.tag)
  const functions = functionsOf(consumer, keys.tag)
  const settling = createSettling()
  const closing = new AbortController()
  /** @type {Set<Promise<void>>} */
  const working = new Set()
  const joined = await functions.join(who, 'bench', [], '0-0')
  let lastLogId = joined.logId
  const beat = setInterval(() => {
    const blocking = { sumMs: 0, longestMs: 0 }
    functions.heartbeat(who, { lastLogId, progressAgeMs: 0, blocking }).catch(settling.fail)
  }, joined.heartbeatMs)

  async function consume() {
    for (let request = 1; !closing.signal.aborted; request += 1) {
      const reply = await functions.claim(who, request, atOnce)
      lastLogId = reply.logId
      if (reply.deliveries.length > 0) {
        const job = work(reply.deliveries).catch(settling.fail)
        working.add(job)
        void job.then(() => working.delete(job))
        if (working.size >= batchesAtOnce) await Promise.race(working)
      }
      if (reply.more || reply.deliveries.length > 0) continue
      const ends = { [keys.stream(who.host)]: reply.streamId, [keys.bell(who.host)]: reply.bellId }
      await reader.read(ends, waitMs, { signal: closing.signal })
    }
    await Promise.all(working)
  }

  /** @param {readonly Claimed[]} claimed */
  async function work(claimed) {
    const items = claimed.map(({ id, epoch }) => ({ id, epoch, grant: `g-${id}` }))
    const taken = await functions.take(who, items)
    allDone('take', taken.results)
    const begun = allDone('begin', taken.begun)
    for (const each of claimed) onExecute(each.payload.toString())
    const reports = begun.map(({ id, attempt }) => ({
      id: `${id}/${attempt}`,
      grant: `g-${id}`,
      key: `r-${id}`,
      outcome: { kind: /** @type {const} */ ('result'), result: 'null' },
    }))
    allDone('report', await functions.report(who, reports))
    settling.add(claimed.length)
  }
  const consuming = consume().catch(settling.fail)

  return {
    accept: (id) => accepting.accept(prepareMessage(messageFor(id, who.host, payload(id)))),
    finished: settling.reached,
    close: async () => {
      closing.abort()
      clearInterval(beat)
      await consuming
      await Promise.all([producer.close(), consumer.close(), reader.close()])
    },
  }
}

/** @param {string} step @param {readonly StepResult[]} results */
function allDone(step, results) {
  return results.map((result) => {
    if (result.ok) return result
    throw new Error(`${step} of ${result.id} was refused: ${result.code} ${result.detail ?? ''}`)
  })
}
