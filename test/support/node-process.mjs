// A node process for tests that kill, stop or freeze it. It runs the built code: npm test builds first.
// Its one argument is JSON, see `NodeProcessOptions` in child.ts. It tells what happens as lines of JSON.
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'

const built = (/** @type {string} */ path) => import(new URL(`../../dist/${path}`, import.meta.url).href)
const { commandExecutor, createNode, notSent } = await built('node/index.js')

/** @type {import('./child.ts').NodeProcessOptions} */
const options = JSON.parse(process.argv[2] ?? '{}')
const marks = openSync(options.marks, 'a')

/** @param {object} line */
function say(line) {
  writeSync(1, `${JSON.stringify(line)}\n`)
}

let reached = 0

/** Told of every point; at the named one this process gets the signal before anything else can happen. */
function onPoint(/** @type {string} */ point) {
  if (options.at?.point !== point) return
  reached += 1
  if (reached !== (options.at.nth ?? 1)) return
  say({ hit: point })
  process.kill(process.pid, options.at.signal)
}

/** A mark outside the record, on disk before the handler goes on. */
function mark(/** @type {string} */ what, /** @type {{id: string, deliveryId: string}} */ attempt) {
  const at = Number(process.hrtime.bigint() / 1000n)
  const entry = { what, attempt: attempt.id, delivery: attempt.deliveryId, pid: process.pid, at }
  writeSync(marks, `${JSON.stringify(entry)}\n`)
  fsyncSync(marks)
}

let open = () => {}
const opened = new Promise((resolve) => {
  open = () => resolve(undefined)
})

/** @param {{id: string, deliveryId: string, number: number, payload: Buffer}} attempt */
async function execute(attempt) {
  if (attempt.number <= (options.notSentTimes ?? 0)) return notSent('not yet')
  mark('begin', attempt)
  say({ executing: attempt.id })
  if (options.inHandler !== undefined) process.kill(process.pid, options.inHandler)
  if (options.gated) await opened
  if (options.handlerMs !== undefined) await new Promise((resolve) => setTimeout(resolve, options.handlerMs))
  mark('end', attempt)
  return { bytes: attempt.payload.length }
}

/** @param {string} level */
function logger(level) {
  return (/** @type {object} */ particulars, /** @type {string} */ log) => say({ level, log, ...particulars })
}

const { redis, hub, hubs, host, node: name, mirror, concurrency, buffer, idempotent } = options
const node = createNode({
  redis,
  hub,
  hubs,
  host,
  node: name,
  mirror,
  concurrency,
  buffer,
  idempotent,
  onPoint,
  log: { debug: logger('debug'), info: logger('info'), warn: logger('warn'), error: logger('error') },
  ...(options.exec === undefined ? { execute } : { executor: commandExecutor({ command: options.exec }) }),
})

createInterface({ input: process.stdin }).on('line', (line) => {
  if (line === 'go') open()
  if (line === 'stop') void node.stop()
})
node.closed.then((/** @type {{kind: string, error?: Error}} */ end) => {
  say({ ended: end.kind, error: end.error?.message })
  closeSync(marks)
  process.exit(0)
})
await node.start()
say({ started: true, pid: process.pid })
