// @ts-check
// The consumer of one system of the item `latency`, in a process of its own. Asked for a number of messages, it
// answers what it executed, and when, once it is so many.
import { open as openFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Worker } from 'bullmq'
import { createNode } from 'holdfast'
import { clockMs } from './clock.mjs'
import { openRedis } from './redis.mjs'
import { answerQuestions, failScript, optionsOfScript } from './script.mjs'

/**
 * @typedef {{ host: string, queue: string, stream: string, group: string }} Names
 * @typedef {{ url: string, port: number, folder: string, names: Names, stepsBeforeExecute: number }} Place
 * @typedef {Place & { system: 'holdfast' | 'bullmq' | 'raw' | 'floor' | 'floor_synced' }} ConsumerOptions
 */
/** @typedef {(payload: string) => void} OnExecute */

const concurrency = 100
const askEveryMs = 2
/** What the mirror keeps of a delivery: a copy with its grant, and then the mark of its start. In bytes. */
const copyBytes = 400
const markBytes = 40

const open = {
  holdfast: openNode,
  bullmq: openWorker,
  raw: (/** @type {Place} */ place, /** @type {OnExecute} */ onExecute) =>
    openReader(place, async (_, payload) => onExecute(payload)),
  floor: openFloor,
  floor_synced: openSyncedFloor,
}

/** @param {Place} place @param {OnExecute} onExecute */
async function openNode({ url, folder, names }, onExecute) {
  const node = createNode({
    host: names.host,
    redis: url,
    mirror: join(folder, 'mirror.db'),
    concurrency,
    execute: ({ payload }) => onExecute(payload.toString()),
  })
  await node.start()
  void node.closed.then((end) => failScript(`the node ended: ${JSON.stringify(end)}`))
}

/** @param {Place} place @param {OnExecute} onExecute */
async function openWorker({ port, names }, onExecute) {
  const connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null }
  const worker = new Worker(names.queue, async (job) => onExecute(job.data.payload), {
    connection,
    concurrency,
  })
  worker.on('error', failScript)
  worker.on('failed', (_, error) => failScript(error))
  await worker.waitUntilReady()
}

/** @param {Place} place @param {OnExecute} onExecute */
async function openFloor(place, onExecute) {
  const steps = openRedis(place.port)
  await openReader(place, async (id, payload) => {
    for (let step = 1; step <= place.stepsBeforeExecute; step += 1)
      await steps.hset(`row:${id}`, 'step', step)
    onExecute(payload)
  })
}

/** The floor, and on the same disk what a mirror has to have durable before the last step, and before `execute`. @param {Place} place @param {OnExecute} onExecute */
async function openSyncedFloor(place, onExecute) {
  const steps = openRedis(place.port)
  const append = await openSynced(join(place.folder, 'copies'))
  await openReader(place, async (id, payload) => {
    for (let step = 1; step <= place.stepsBeforeExecute; step += 1) {
      if (step === place.stepsBeforeExecute) await append(copyBytes)
      await steps.hset(`row:${id}`, 'step', step)
    }
    await append(markBytes)
    onExecute(payload)
  })
}

/** Appends so many bytes, and answers once they are durable: one sync for all that came during the one before it. @param {string} file */
async function openSynced(file) {
  const handle = await openFile(file, 'a')
  /** @type {Promise<void>} */
  let current = Promise.resolve()
  /** @type {Promise<void> | undefined} */
  let next
  let bytes = 0
  return (/** @type {number} */ more) => {
    bytes += more
    next ??= current.then(async () => {
      const size = bytes
      ;[bytes, next] = [0, undefined]
      current = handle.write(Buffer.alloc(size)).then(() => handle.datasync())
      await current
    })
    return next
  }
}

/** @param {Place} place @param {(id: string, payload: string) => Promise<void>} take */
async function openReader({ port, names }, take) {
  const redis = openRedis(port)
  await redis.xgroup('CREATE', names.stream, names.group, '0', 'MKSTREAM')
  const read = ['GROUP', names.group, 'c1', 'COUNT', 100, 'BLOCK', 500, 'STREAMS', names.stream, '>']
  const consume = async () => {
    for (;;) {
      const reply = await redis.call('XREADGROUP', ...read)
      const entries = /** @type {[[string, [string, string[]][]]] | null} */ (reply)?.[0][1] ?? []
      for (const [id, fields] of entries) take(id, fields[1] ?? '').catch(failScript)
    }
  }
  consume().catch(failScript)
}

/** @type {ConsumerOptions} */
const options = optionsOfScript()
/** @type {{ id: string, at: number }[]} */
const executed = []
await open[options.system](options, (payload) => executed.push({ id: payload.trimEnd(), at: clockMs() }))
answerQuestions({}, async ({ count, withinMs }) => {
  const deadlineAt = clockMs() + withinMs
  while (executed.length < count) {
    if (clockMs() > deadlineAt) throw new Error(`executed ${executed.length} of ${count}`)
    await new Promise((done) => setTimeout(done, askEveryMs))
  }
  return { executed }
})
