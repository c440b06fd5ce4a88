// @ts-check
// pg-boss: an id for dedup, jobs kept when they are done; fetched and completed in hundreds by its own calls,
// since its workers poll at most twice a second.
import { setTimeout as sleep } from 'node:timers/promises'
import PgBoss from 'pg-boss'
import { createSettling } from './settling.mjs'

const queue = 'work'
const [atOnce, askEveryMs] = [100, 2]

/** @param {import('./round.mjs').Place} place @returns {Promise<import('./round.mjs').System>} */
export async function openPgBoss({ url, payload, onExecute }) {
  const settling = createSettling()
  const boss = new PgBoss({ connectionString: url, schedule: false, supervise: false })
  boss.on('error', settling.fail)
  await boss.start()
  await boss.createQueue(queue)
  let closing = false

  async function consume() {
    while (!closing) {
      const jobs = /** @type {import('pg-boss').Job<{ payload: string }>[]} */ (
        await boss.fetch(queue, { batchSize: atOnce })
      )
      if (jobs.length === 0) await sleep(askEveryMs)
      if (jobs.length === 0) continue
      for (const { data } of jobs) onExecute(data.payload)
      await boss.complete(
        queue,
        jobs.map(({ id }) => id),
      )
      settling.add(jobs.length)
    }
  }
  const consuming = consume().catch(settling.fail)

  return {
    accept: (id) => boss.send(queue, { payload: payload(id).toString() }, { id: uuidOf(id) }),
    finished: settling.reached,
    close: async () => {
      closing = true
      await consuming
      await boss.stop({ graceful: false })
    },
  }
}

/** The same for the same id: it has to be a UUID. @param {string} id */
const uuidOf = (id) => `00000000-0000-4000-8000-${id.slice(2).padStart(12, '0')}`
