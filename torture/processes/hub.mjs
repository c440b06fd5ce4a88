// @ts-check
// A hub over HTTP, as `holdfast serve` starts one: with the schedule of its sweeps, which it shares with the other.
// Its one argument is JSON: { history, name, redis, hub, port }. What it logs goes to stderr.
import { pino } from 'pino'
import { openHistory } from '../built.mjs'
import { endAtCrash, followConductor, optionsOfThis, say, signalAtPoint, startPatiently } from './shared.mjs'

/** @type {{ history: string, name: string, redis: string, hub: string, port: number }} */
const { history: dir, name, redis, hub, port } = optionsOfThis()
/** A sweep whose process was killed is run by the other hub after so long. */
const lockMs = 2000

/** @param {string} path @returns {Promise<any>} */
const built = (path) => import(new URL(`../../dist/${path}`, import.meta.url).href)
/** @type {[typeof import('../../src/http/server.ts'), typeof import('../../src/sweeps/schedule.ts')]} */
const [{ startServer }, { startSchedule }] = await Promise.all([
  built('http/server.js'),
  built('sweeps/schedule.js'),
])

const history = openHistory(dir, 'hub', name)
const log = pino({ level: 'info', base: null }, pino.destination({ dest: 2, sync: true }))
const atPoint = signalAtPoint(history)

/** @type {Awaited<ReturnType<typeof startServer>> | undefined} */
let server
let stopping = false
process.on('SIGTERM', () => void stop())
endAtCrash(history)
followConductor((message) => {
  if (message.arm !== undefined) atPoint.arm(message.arm)
})

server = await startPatiently(() =>
  startServer({
    redis,
    hub,
    log,
    listen: { host: '127.0.0.1', port },
    limits: { ratePerSecond: 0 },
    sweeps: (parts) => startSchedule({ redis, parts, log, lockMs }),
    onPoint: atPoint.onPoint,
  }),
)
history.write({ kind: 'up', url: server.url })
say({ up: true })

async function stop() {
  if (stopping) return
  stopping = true
  await server?.close().catch((error) => log.error({ err: error }, 'could not close'))
  history.write({ kind: 'end', how: 'stopped' })
  process.exit(0)
}
