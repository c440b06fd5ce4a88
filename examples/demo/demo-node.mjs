// @ts-check
// One node of the demo: a process of its own, so that it can be killed and stopped for real.
// Usage: node demo-node.mjs <host> <node> <redis url> <folder> <concurrency>
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { commandExecutor, createNode } from 'holdfast/node'

const [host = '', node = '', redis = '', folder = '', concurrency = ''] = process.argv.slice(2)
const name = `${host}-${node}`

/** @param {string} level */
function writer(level) {
  /** @param {object} particulars @param {string} message */
  return (particulars, message) => {
    appendFileSync(join(folder, `${name}.log`), `${JSON.stringify({ level, message, ...particulars })}\n`)
  }
}

const running = createNode({
  host,
  node,
  redis,
  mirror: join(folder, `${name}.db`),
  concurrency: Number(concurrency),
  buffer: 16,
  executor: commandExecutor({
    command: '. "$DEMO_WORK"',
    env: {
      ...process.env,
      DEMO_WORK: fileURLToPath(new URL('work.sh', import.meta.url)),
      DEMO_MARKS: join(folder, `${name}.marks`),
      DEMO_SLOW_S: '0.7',
    },
  }),
  log: { debug: () => undefined, info: writer('info'), warn: writer('warn'), error: writer('error') },
})

process.on('SIGINT', () => undefined) // the terminal tells everyone; the demo decides
process.on('SIGTERM', () => void running.stop())
process.stdin.on('end', () => process.exit(3)).resume() // the demo is gone

await running.start()
process.stdout.write('started\n')
const end = await running.closed
process.exit(end.kind === 'left' ? 0 : 1)
