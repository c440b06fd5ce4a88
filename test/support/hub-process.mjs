// A hub process that accepts one message, for tests that kill it. It runs the built code: npm test builds first.
// Its one argument is JSON, see `HubProcessOptions` in child.ts. It tells what happens as lines of JSON.
import { writeSync } from 'node:fs'

const { openHub } = await import(new URL('../../dist/index.js', import.meta.url).href)

/** @type {import('./child.ts').HubProcessOptions} */
const options = JSON.parse(process.argv[2] ?? '{}')

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

const hub = await openHub({ redis: options.redis, hub: options.hub, onPoint })
if (options.message !== undefined) say({ accepted: await hub.accept(options.message) })
say({ repaired: await hub.repair() })
await hub.close()
