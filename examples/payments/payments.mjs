// @ts-check
// A service that charges cards, and is killed between the gateway's charge and the note of it: every order is charged
// once, however often and by whatever process it is tried.
// node examples/payments/payments.mjs   (in a clone after npm run build)
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { initRecord, openHub, startEmbedded } from 'holdfast'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-payments-'))
/** What is to be ended, the last first. @type {(() => unknown)[]} */
const closers = [() => rmSync(folder, { recursive: true, force: true })]

try {
  process.exitCode = await story()
} finally {
  for (const close of closers.reverse()) await close()
}

async function story() {
  const redis = await startEmbedded({ dataDir: folder })
  closers.push(() => redis.stop())
  await initRecord({ redis: redis.url })
  const hub = await openHub({ redis: redis.url })
  closers.push(() => hub.close())
  await hub.configure({ recovery_age_ms: 500 }, 'kim') // a minute, where nobody waits for an example to end

  const gateway = await start('gateway.mjs')
  let service = await start('service.mjs', redis.url, gateway.url)

  /** @returns {Promise<string[]>} */
  const journal = async () =>
    /** @type {Promise<string[]>} */ ((await fetch(`${gateway.url}/journal`)).json())
  /** How often the gateway did so for an order. @param {string} order @param {string} what */
  const count = async (order, what) =>
    (await journal()).filter((line) => line.startsWith(`${order}/`) && line.includes(`: ${what}`)).length

  /** One request to the service. @param {string} order @param {{card: string, cents: number}} payment */
  async function pay(order, payment) {
    const init = { method: 'POST', body: JSON.stringify(payment) }
    const reply = await fetch(`${service.url}/orders/${order}/payment`, init)
    return `${reply.status} ${await reply.text()}`
  }

  /** As every caller of the service does: as long as it is not there, or cannot say, the same again. */
  const paid = /** @param {Parameters<typeof pay>} request */ (...request) =>
    until(`${request[0]} being paid`, async () => {
      const answer = await pay(...request).catch(() => '503')
      return !answer.startsWith('503') && answer
    })

  const one = { card: 'fine', cents: 1250 }
  console.log('order-1, the gateway is busy:', await pay('order-1', one))
  const answers = await Promise.all(Array.from({ length: 5 }, () => paid('order-1', one)))
  console.log('order-1, five at the same time:', [...new Set(answers)].join(' and '))
  console.log('order-1 for another amount:', await paid('order-1', { ...one, cents: 9900 }))
  console.log('order-2:', await paid('order-2', { card: 'declined', cents: 700 }))
  console.log('order-2 again:', await paid('order-2', { card: 'declined', cents: 700 }))

  const charged = paid('order-3', { card: 'never answers', cents: 300 })
  const late = paid('order-4', { card: 'comes late', cents: 400 })
  await until('both being under way', async () => {
    return (await count('order-3', 'charged')) > 0 && (await count('order-4', 'on its way')) > 0
  })
  service.child.kill('SIGKILL')
  await once(service.child, 'exit')
  console.log('order-3 is charged, order-4 is on its way, and the service is killed')

  service = await start('service.mjs', redis.url, gateway.url)
  console.log('a new process of the service; its callers go on asking')
  console.log('order-3:', await charged)
  console.log('order-4:', await late)

  console.log('\nwhat the gateway did:')
  for (const line of (await journal()).sort(byOrder)) console.log(`  ${line}`)
  const orders = ['order-1', 'order-2', 'order-3', 'order-4']
  const charges = await Promise.all(orders.map((order) => count(order, 'charged')))
  console.log(`charged: ${orders.map((order, at) => `${order} ${charges[at]}`).join(', ')}`)
  return charges.join() === '1,0,1,1' ? 0 : 1
}

/** A program of this folder; it says its URL in its first line. @param {string} program @param {string[]} args */
async function start(program, ...args) {
  const file = fileURLToPath(new URL(program, import.meta.url))
  const child = spawn(process.execPath, [file, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  closers.push(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGTERM')
    await once(child, 'exit')
  })
  const ended = once(child, 'exit').then(() => Promise.reject(new Error(`${program} ended before it was up`)))
  const [line] = await Promise.race([once(child.stdout.setEncoding('utf8'), 'data'), ended])
  return { child, url: String(line).trim() }
}

/** @param {string} one @param {string} other */
function byOrder(one, other) {
  return one.slice(0, 7).localeCompare(other.slice(0, 7))
}

/** @template T @param {string} what @param {() => Promise<T | false>} check @returns {Promise<T>} */
async function until(what, check) {
  const deadline = performance.now() + 30_000
  while (performance.now() < deadline) {
    const found = await check()
    if (found !== false) return found
    await sleep(20)
  }
  throw new Error(`${what} did not come within 30 s`)
}
