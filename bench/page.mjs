// @ts-check
// node bench/page.mjs [--deliveries N] [--pending N] [--rounds N] [--out FILE]
// The page on a large record: how long until the overview is painted and filled, and what a page of each list takes,
// over real HTTP from a hub process of its own, in a real browser. Prints JSON; docs/dashboard.md says what came out.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'
import { functionsOf, initRecord, keysOf, openHubParts, openStore } from './built.mjs'
import { machineFacts } from './machine.mjs'
import { startServer } from './server.mjs'

const { values } = parseArgs({
  options: {
    deliveries: { type: 'string', default: '1000000' },
    pending: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '7' },
    out: { type: 'string' },
  },
})
const [deliveries, pending, rounds] = [
  Number(values.deliveries),
  Number(values.pending),
  Number(values.rounds),
]
const hosts = 1000
/** What is pending is on these. */
const busyHosts = 10
const server = await startServer(tmpdir())
const store = await openStore({ url: server.url, tag: '{hf}', name: 'bench-page', deadlineMs: 60_000 })
const functions = functionsOf(store, keysOf('hf').tag)
const host = (/** @type {number} */ at) => `h${String(at).padStart(4, '0')}`

/** Messages to every host at once, each a delivery; then claims that are not acknowledged. */
async function fill() {
  // It is the record that is measured here, not how it came about.
  await store.call(['CONFIG', 'SET', 'appendfsync', 'no'])
  const { hub } = await openHubParts({ redis: server.url })
  const to = Array.from({ length: hosts }, (_, at) => ({ host: host(at) }))
  const messages = Math.ceil(deliveries / hosts)
  for (let at = 0; at < messages; at += 1) {
    const payload = JSON.stringify({ at, text: 'x'.repeat(150) })
    const given = { key: `m${at}`, conversation: `c${at % 500}`, sender: 'bench', to, payload }
    await hub.accept({ ...given, contentType: 'application/json' })
  }
  for (let at = 0; at < busyHosts; at += 1) {
    const node = { host: host(at), node: 'n', incarnation: 1 }
    await functions.join(node, 'i', [], '0-0')
    for (let request = 1; request <= pending / busyHosts / 100; request += 1) {
      await functions.claim(node, request, 100)
    }
  }
  for (let at = 0; at < 200; at += 1) {
    const { deliveries: page } = await hub.deliveries({ host: host(hosts - 1), limit: 1 })
    await hub.holdDelivery(page[0]?.id ?? '', { actor: 'bench', reason: 'held' })
  }
  await hub.close()
  await store.call(['CONFIG', 'SET', 'appendfsync', 'always'])
}

/** A hub as `holdfast serve` makes it. @returns {Promise<{ url: string, stop: () => Promise<void> }>} */
async function serve() {
  const program = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
  const words = [program, 'serve', '--redis', server.url, '--listen', '127.0.0.1:0', '--json']
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'ignore', 'pipe'] })
  for await (const line of createInterface({ input: child.stderr })) {
    const { url } = JSON.parse(line)
    if (url === undefined) continue
    child.stderr.resume()
    return {
      url,
      stop: async () => {
        child.kill('SIGTERM')
        await once(child, 'exit')
      },
    }
  }
  throw new Error('the hub did not start')
}

const middle = (/** @type {number[]} */ figures) =>
  Math.round([...figures].sort((one, other) => one - other)[Math.floor(figures.length / 2)] ?? 0)
const most = (/** @type {number[]} */ figures) => Math.round(Math.max(...figures))

/** @param {string} url */
async function paints(url) {
  const path = process.env['HOLDFAST_TEST_BROWSER'] ?? '/usr/bin/chromium'
  const args = ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking']
  const browser = await chromium.launch({ executablePath: path, args })
  /** @type {{ first: number[], filled: number[] }} */
  const took = { first: [], filled: [] }
  try {
    for (let at = 0; at < rounds; at += 1) {
      const context = await browser.newContext()
      const page = await context.newPage()
      const startedAt = performance.now()
      await page.goto(url, { waitUntil: 'commit' })
      await page.getByRole('heading', { name: 'Deliveries by state' }).waitFor()
      took.filled.push(performance.now() - startedAt)
      const first = await page.evaluate(
        "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0",
      )
      took.first.push(Number(first))
      await context.close()
    }
  } finally {
    await browser.close()
  }
  return {
    firstPaintMs: { middle: middle(took.first), most: most(took.first) },
    overviewFilledMs: { middle: middle(took.filled), most: most(took.filled) },
  }
}

/** @param {string} url */
async function lists(url) {
  const paths = {
    overview: 'v1/overview',
    history: 'v1/history',
    deliveries: 'v1/deliveries?limit=50',
    queuedOfOneHost: `v1/deliveries?state=queued&host=${host(500)}&limit=50`,
    claimed: 'v1/deliveries?state=claimed&limit=50',
    nothingMatches: 'v1/deliveries?state=queued&conversation=none&limit=50',
    messages: 'v1/messages?limit=50',
    messagesOfOneConversation: 'v1/messages?conversation=c17&limit=50',
    held: 'v1/held?limit=50',
    unknown: 'v1/unknown?limit=50',
    hosts: 'v1/hosts?limit=50',
    pendingOfABusyHost: `v1/hosts/${host(0)}/pending?limit=50`,
    log: 'v1/log?limit=50',
    logOfAVerbThatIsRare: 'v1/log?verb=pause&limit=50',
  }
  /** @type {Record<string, { middleMs: number, mostMs: number, bytes: number }>} */
  const figures = {}
  for (const [name, path] of Object.entries(paths)) {
    const took = []
    let bytes = 0
    for (let at = 0; at < rounds * 3; at += 1) {
      const startedAt = performance.now()
      const response = await fetch(new URL(path, `${url}/`))
      const text = await response.text()
      if (!response.ok) throw new Error(`${path}: ${text}`)
      bytes = text.length
      took.push(performance.now() - startedAt)
    }
    figures[name] = { middleMs: middle(took), mostMs: most(took), bytes }
  }
  return figures
}

try {
  await initRecord({ redis: server.url })
  const startedAt = performance.now()
  await fill()
  const filledInMs = Math.round(performance.now() - startedAt)
  const hub = await serve()
  const result = {
    machine: machineFacts(tmpdir()),
    at: new Date().toISOString(),
    deliveries,
    pending,
    hosts,
    filledInMs,
    lists: await lists(hub.url),
    page: await paints(hub.url),
  }
  await hub.stop()
  const text = `${JSON.stringify(result, null, 1)}\n`
  if (values.out === undefined) console.log(text)
  else writeFileSync(values.out, text)
} finally {
  await store.close()
  await server.stop()
}
