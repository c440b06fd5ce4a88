// A hub over HTTP in a process of its own, for tests that measure it from outside. It runs the built code: npm
// test builds first. Its one argument is JSON, see `HubServerOptions` in hub-server.ts. It prints one line of JSON
// with its URL; what it logs goes to stderr, as lines of JSON. The line `stop` ends it.
import { createInterface } from 'node:readline'
import { pino } from 'pino'

const { startServer } = await import(new URL('../../dist/http/server.js', import.meta.url).href)
const { sweepsOnDemand: sweeps } = await import(
  new URL('../../dist/sweeps/on-demand.js', import.meta.url).href
)

/** @type {import('./hub-server.ts').HubServerOptions} */
const { redis, hub, limits } = JSON.parse(process.argv[2] ?? '{}')

const log = pino({ level: 'info', base: null }, pino.destination({ dest: 2, sync: true }))
process.on('unhandledRejection', (error) => log.error({ err: error }, 'unhandled rejection'))
process.on('uncaughtExceptionMonitor', (error) => log.fatal({ err: error }, 'uncaught exception'))
process.on('warning', (warning) => log.error({ err: warning }, 'warning'))

const server = await startServer({ redis, hub, sweeps, limits, log, listen: { host: '127.0.0.1', port: 0 } })
process.stdout.write(`${JSON.stringify({ url: server.url })}\n`)

const lines = createInterface({ input: process.stdin })
lines.on('line', async (line) => {
  if (line !== 'stop') return
  await server.close()
  process.stdin.destroy()
})
