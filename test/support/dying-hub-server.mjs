// A hub over HTTP that kills itself at a named point, for tests of what the other hubs then do. It runs the built
// code: npm test builds first. Its one argument is JSON: `redis`, `hub`, and `at` as `SignalAt` in child.ts. It
// prints one line of JSON with its URL.
import { writeSync } from 'node:fs'
import { pino } from 'pino'

const { startServer } = await import(new URL('../../dist/http/server.js', import.meta.url).href)
const { sweepsOnDemand: sweeps } = await import(
  new URL('../../dist/sweeps/on-demand.js', import.meta.url).href
)

/** @type {{ redis: string, hub: string, at: import('./child.ts').SignalAt }} */
const { redis, hub, at } = JSON.parse(process.argv[2] ?? '{}')
let reached = 0

/** At the named point this process gets the signal before anything else can happen. */
function onPoint(/** @type {string} */ point) {
  if (at.point !== point) return
  reached += 1
  if (reached === (at.nth ?? 1)) process.kill(process.pid, at.signal)
}

const log = pino({ level: 'error', base: null }, pino.destination({ dest: 2, sync: true }))
// It is to die, not to refuse: that several of these start at once is no overload.
const limits = { lagMs: 0 }
const server = await startServer({
  redis,
  hub,
  sweeps,
  log,
  onPoint,
  limits,
  listen: { host: '127.0.0.1', port: 0 },
})
writeSync(1, `${JSON.stringify({ url: server.url })}\n`)
