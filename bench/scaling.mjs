// @ts-check
// node bench/scaling.mjs [--hosts N] [--backlog N] [--hubs N] [--out FILE]
// What a host, a conversation, a delivery and a hub cost the server: memory, and time in Redis for a call, at growing
// sizes, on one real server with AOF `always`. Prints JSON; docs/scaling.md says what follows from it.
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { parseArgs } from 'node:util'
import {
  functionsOf,
  initRecord,
  keysOf,
  openHubParts,
  openStore,
  prepareMessage,
  runSweep,
} from './built.mjs'
import { machineFacts } from './machine.mjs'
import { startServer } from './server.mjs'

const { values } = parseArgs({
  options: {
    hosts: { type: 'string', default: '20000' },
    backlog: { type: 'string', default: '200000' },
    hubs: { type: 'string', default: '8' },
    out: { type: 'string' },
  },
})
const [hosts, backlog, hubs] = [Number(values.hosts), Number(values.backlog), Number(values.hubs)]
const atOnce = 200
const payload = 'x'.repeat(200)
const beat = { lastLogId: '0-0', progressAgeMs: 0, blocking: { sumMs: 0, longestMs: 0 } }
const server = await startServer(tmpdir())
const store = await openStore({ url: server.url, tag: '{hf}', name: 'bench-scaling', deadlineMs: 60_000 })
const functions = functionsOf(store, keysOf('hf').tag)

/** @param {string} section @param {string} field */
async function figure(section, field) {
  const info = String(await store.call(['INFO', section]))
  return (
    info
      .split('\r\n')
      .find((line) => line.startsWith(`${field}:`))
      ?.slice(field.length + 1) ?? ''
  )
}

/** After allocations have settled. */
const memory = async () => Number(await figure('memory', 'used_memory'))

/** Time in Redis of one call of a function, in µs, over many. @param {number} count @param {(at: number) => Promise<unknown>} call */
async function inRedis(count, call) {
  await store.call(['CONFIG', 'RESETSTAT'])
  for (let from = 0; from < count; from += atOnce) {
    const many = Math.min(atOnce, count - from)
    await Promise.all(Array.from({ length: many }, (_, at) => call(from + at)))
  }
  const line = await figure('commandstats', 'cmdstat_fcall')
  return Number(/usec_per_call=([\d.]+)/.exec(line)?.[1])
}

const host = (/** @type {number} */ at) => `h${at}`
const node = (/** @type {number} */ at) => ({ host: host(at), node: 'n', incarnation: 1 })

/** @param {number} at @param {string} conversation @param {string} to @param {string} prefix */
const message = (at, conversation, to, prefix) =>
  prepareMessage({ key: `${prefix}-${at}`, conversation, sender: 'bench', to: [{ host: to }], payload })

async function hostsCost() {
  const rows = []
  let made = 0
  for (const count of [hosts / 20, hosts / 4, hosts]) {
    const before = await memory()
    const joinUs = await inRedis(count - made, (at) => functions.join(node(made + at), 'i', [], '0-0'))
    const bytes = (await memory()) - before
    const heartbeatUs = await inRedis(4000, (at) => functions.heartbeat(node(at % count), beat))
    const emptyClaimUs = await inRedis(2000, (at) =>
      functions.claim(node(at % Math.min(count, 2000)), claims(at % Math.min(count, 2000)), 10),
    )
    rows.push({
      hosts: count,
      bytesAHost: Math.round(bytes / (count - made)),
      joinUs,
      heartbeatUs,
      emptyClaimUs,
    })
    made = count
  }
  return rows
}

/** @type {number[]} */
const requests = []
const claims = (/** @type {number} */ at) => {
  requests[at] = (requests[at] ?? 0) + 1
  return requests[at]
}

/** @param {string} kind @param {(at: number) => string} conversationOf @param {number} count */
async function messagesCost(kind, conversationOf, count) {
  const before = await memory()
  const acceptUs = await inRedis(count, (at) =>
    functions.accept(message(at, conversationOf(at), host(at % 50), kind)),
  )
  return { kind, messages: count, bytesADelivery: Math.round(((await memory()) - before) / count), acceptUs }
}

async function backlogCost() {
  const rows = []
  let made = 0
  for (const count of [backlog / 20, backlog / 4, backlog]) {
    const more = count - made
    const acceptUs = await inRedis(more, (at) =>
      functions.accept(message(made + at, `b${at % 1000}`, host(at % 50), 'backlog')),
    )
    made = count
    const claimUs = await inRedis(50, (at) => functions.claim(node(at), claims(at), 10))
    rows.push({ queued: count, acceptUs, claimOfTenUs: claimUs })
  }
  return rows
}

/** One round of each sweep that looks at hosts. */
async function sweepsCost() {
  const parts = await openHubParts({ redis: server.url })
  try {
    /** @type {Record<string, number>} */
    const tookMs = {}
    for (const name of /** @type {const} */ (['stale', 'claims', 'parked', 'nodes', 'reports'])) {
      const startedAt = performance.now()
      await runSweep(parts, name, { by: 'bench', signal: new AbortController().signal })
      tookMs[name] = Math.round(performance.now() - startedAt)
    }
    return tookMs
  } finally {
    await parts.hub.close()
  }
}

async function hubsCost() {
  const before = await memory()
  for (let at = 0; at < hubs; at += 1) await initRecord({ redis: server.url, hub: `hub-${at}` })
  const bytesAHub = Math.round(((await memory()) - before) / hubs)
  const opened = []
  for (let at = 0; at < hubs; at += 1)
    opened.push(await openHubParts({ redis: server.url, hub: `hub-${at}` }))
  const clients = Number(await figure('clients', 'connected_clients'))
  await store.call(['CONFIG', 'RESETSTAT'])
  const cpu = async () =>
    Number(await figure('cpu', 'used_cpu_user')) + Number(await figure('cpu', 'used_cpu_sys'))
  const [cpuBefore, startedAt] = [await cpu(), performance.now()]
  await new Promise((resolve) => setTimeout(resolve, 10_000))
  const idleCpuPercentAHub = (((await cpu()) - cpuBefore) * 1e5) / (performance.now() - startedAt) / hubs
  for (const { hub } of opened) await hub.close()
  return { hubs, bytesAHub, connectionsAHub: (clients - 1) / hubs, idleCpuPercentAHub }
}

try {
  await initRecord({ redis: server.url })
  const digest = createHash('sha256').update(payload).digest('hex').slice(0, 8)
  const result = {
    machine: machineFacts(tmpdir()),
    at: new Date().toISOString(),
    server: await figure('server', 'redis_version'),
    payload: { bytes: payload.length, digest },
    hub: await hubsCost(),
    hosts: await hostsCost(),
    oneConversation: await messagesCost('one', () => 'c', 20_000),
    manyConversations: await messagesCost('many', (at) => `m${at}`, 20_000),
    sweepsMs: await sweepsCost(),
    backlog: await backlogCost(),
    sweepsUnderBacklogMs: await sweepsCost(),
  }
  const text = `${JSON.stringify(result, null, 1)}\n`
  if (values.out === undefined) console.log(text)
  else writeFileSync(values.out, text)
} finally {
  await store.close()
  await server.stop()
}
