// @ts-check
// BullMQ as its users run it: a job id for dedup, finished jobs kept (else the dedup ends with the job).
import { Queue, Worker } from 'bullmq'
import { createSettling } from './settling.mjs'

const name = 'work'
const concurrency = 100

/** @param {import('./round.mjs').Place} place @returns {Promise<import('./round.mjs').System>} */
export async function openBullmq({ port, payload, onExecute }) {
  const connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null }
  const settling = createSettling()
  const queue = new Queue(name, { connection })
  const worker = new Worker(name, async (job) => onExecute(job.data.payload), { connection, concurrency })
  worker.on('completed', () => settling.add(1))
  worker.on('failed', (_, error) => settling.fail(error))
  worker.on('error', settling.fail)
  worker.on('stalled', (id) => settling.fail(new Error(`job ${id} stalled`)))
  await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()])

  return {
    accept: (id) => queue.add('message', { payload: payload(id).toString() }, { jobId: id }),
    finished: settling.reached,
    close: async () => {
      await worker.close()
      await queue.close()
    },
  }
}
