// A supervisor process for tests that kill it. It runs the built code. Its one argument is JSON: the options of
// createSupervisor, with `redis` and `record` in place of the hub. It tells how it goes as lines of JSON, and does what
// the lines `stop`, `disable`, `reload` on its stdin say.
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'

const built = (/** @type {string} */ path) => import(new URL(`../../dist/${path}`, import.meta.url).href)
const { openHub } = await built('index.js')
const { createSupervisor } = await built('node/index.js')

const { redis, record, ...options } = JSON.parse(process.argv[2] ?? '{}')

/** @param {object} line */
function say(line) {
  writeSync(1, `${JSON.stringify(line)}\n`)
}

const hub = await openHub({ redis, hub: record })
const supervisor = createSupervisor({ hub, ...options })
const reasons = /** @type {const} */ ({ stop: 'restart', disable: 'disable' })
createInterface({ input: process.stdin }).on('line', (word) => {
  if (word === 'reload') void supervisor.again('reload').then(() => say({ again: 'reload' }))
  else void supervisor.stop(reasons[/** @type {keyof typeof reasons} */ (word)])
})
await supervisor.start()
say({ started: process.pid })
const end = await supervisor.closed
say({ end: end.kind, session: end.session, error: end.error?.code })
await hub.close()
process.exit(0)
