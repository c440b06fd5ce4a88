// Scheduled sweeps in a process of their own. It runs the built code. Its one argument is JSON: `redis`, `hub`, `lockMs`.
// The line `stop in <sweep>` on its stdin makes it send itself SIGSTOP when the next call of that sweep has been
// answered, and say so before; not in its first round, for which no other process waits. `go on` takes that back, and is
// answered; `end` ends it. It prints one line of JSON when it works.
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'

const built = (/** @type {string} */ path) => import(new URL(`../../dist/${path}`, import.meta.url).href)
const { openHubParts } = await built('hub/open-hub.js')
const { startSchedule } = await built('sweeps/schedule.js')

const { redis, hub, lockMs } = JSON.parse(process.argv[2] ?? '{}')

/** @param {object} line */
const say = (line) => void writeSync(1, `${JSON.stringify(line)}\n`)

/** Which functions a sweep calls that say which it is. */
const tells = /** @type {Record<string, (name: string, args: unknown[]) => boolean>} */ ({
  'fan-out': (name) => name === 'fanOut' || name === 'move',
  retention: (name) => name === 'prune',
  audit: (name) => name === 'reconcile',
})
let armed = ''
/** Sweeps that have run here: what runs again was given by BullMQ. */
const ran = new Set()

const opened = await openHubParts({ redis, hub })
const functions = new Proxy(opened.functions, {
  get:
    (target, name) =>
    async (/** @type {unknown[]} */ ...args) => {
      const answer = await target[name](...args)
      const [swept, run] = /** @type {[string, { by: string }]} */ (args)
      if (name === 'noteSweep' && run.by !== 'claims') ran.add(swept)
      const isIt = tells[armed] ?? ((called) => called.startsWith('sweep') && args[0] === armed)
      if (ran.has(armed) && isIt(String(name), args)) {
        say({ stopped: armed })
        armed = ''
        process.kill(process.pid, 'SIGSTOP')
      }
      return answer
    },
})
const quiet = { info: () => undefined, warn: () => undefined }
const schedule = await startSchedule({ redis, parts: { ...opened, functions }, log: quiet, lockMs })
createInterface({ input: process.stdin }).on('line', async (line) => {
  if (line.startsWith('stop in ')) armed = line.slice('stop in '.length)
  if (line === 'go on') {
    armed = ''
    say({ goesOn: true })
  }
  if (line !== 'end') return
  await schedule.stop()
  await opened.hub.close()
  process.exit(0)
})
say({ up: process.pid })
