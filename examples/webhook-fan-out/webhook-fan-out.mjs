// @ts-check
// One message to four webhooks, each of which goes wrong in its own way: ledger is busy, archive is gone for good, mail
// does its work and hangs up, search is still at work when the node that asked it is killed. Nothing is done twice.
// node examples/webhook-fan-out/webhook-fan-out.mjs   (in a clone after npm run build)
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { initRecord, openHub, startEmbedded } from 'holdfast'
import { busyAtFirst, openReceiver } from './receivers.mjs'

const actor = 'kim'
const holdfast = fileURLToPath(new URL('dist/cli/main.js', import.meta.resolve('holdfast/package.json')))
const folder = mkdtempSync(join(tmpdir(), 'holdfast-webhooks-'))
/** What is to be ended, the last first. @type {(() => unknown)[]} */
const closers = [() => rmSync(folder, { recursive: true, force: true })]

try {
  process.exitCode = await story()
} finally {
  for (const close of closers.reverse()) await close()
}

async function story() {
  const server = await startEmbedded({ dataDir: folder })
  closers.push(() => server.stop())
  await initRecord({ redis: server.url })
  const hub = await openHub({ redis: server.url })
  closers.push(() => hub.close())

  const receivers = {
    ledger: await openReceiver({ refuses: busyAtFirst() }),
    archive: await openReceiver({ refuses: () => ({ status: 410 }) }),
    mail: await openReceiver({ hangsUp: true }),
    search: await openReceiver({
      works: (requests) => until('the second request', () => requests.length === 2 && { indexed: true }),
    }),
  }
  const { ledger, mail, search } = receivers
  for (const { close } of Object.values(receivers)) closers.push(close)
  for (const host of /** @type {const} */ (['ledger', 'archive', 'mail'])) startNode(host)
  const doomed = startNode('search')

  /** @param {keyof typeof receivers} host */
  function startNode(host) {
    const { url } = receivers[host]
    const place = ['--redis', server.url, '--host', host, '--mirror', join(folder, `${host}.db`)]
    // That search may be asked again under the same key is declared: it keeps its keys.
    const args = [...place, '--forward', url, ...(host === 'search' ? ['--idempotent'] : [])]
    const child = spawn(process.execPath, [holdfast, 'node', ...args], { stdio: 'ignore' })
    closers.push(() => end(child))
    return child
  }

  const message = {
    key: 'invoice-17-paid',
    conversation: 'invoice-17',
    sender: 'billing',
    to: Object.keys(receivers).map((host) => ({ host })),
    contentType: 'application/json',
    payload: '{"invoice": 17, "paid": 120.00}',
  }
  const { id, deliveries } = await hub.accept(message)
  const repeated = await hub.accept(message) // as of a producer whose answer was lost
  console.log(`accepted for ${deliveries.map(({ host }) => host).join(', ')}`)
  console.log(`accepted again under its key: ${repeated.id === id ? 'the same message' : 'another message'}`)

  await until('search being at work', () => search.requests.length === 1)
  await end(doomed)
  console.log('search is at work when its node is killed; the next process of the node asks it again')
  startNode('search')
  await until('search being asked again', () => search.requests.length === 2)
  console.log(`search was asked under ${search.log.size === 1 ? 'one key' : 'several keys'}`)

  const unknown = await until('mail in the unknown list', async () =>
    (await hub.unknown()).find(({ host }) => host === 'mail'),
  )
  console.log(`unknown: ${unknown.id} on mail (${unknown.reason})`)
  const isInLog = mail.log.has(unknown.id)
  const evidence = `the log of mail ${isInLog ? 'has' : 'does not have'} the key ${unknown.id}`
  await hub.resolveAttempt(unknown.id, { as: isInLog ? 'result' : 'not_sent', evidence }, actor)
  console.log(`resolved by ${actor}: ${evidence}`)

  const view = await hub.waitFor(id, 30_000)
  console.log('\nwhat ledger was passed when it was asked again:')
  for (const [name, value] of Object.entries(ledger.requests[1] ?? {})) {
    if (/^(idempotency-key|content-type|holdfast-|traceparent)/.test(name)) console.log(`  ${name}: ${value}`)
  }

  console.log('\nwhat became of it:')
  for (const { host, attempts } of view.deliveries) {
    const tries = attempts.map(({ outcome, errorCode }) =>
      outcome === 'result' ? outcome : `${outcome} ${errorCode}`,
    )
    const { requests, worked } = receivers[/** @type {keyof typeof receivers} */ (host)]
    console.log(`  ${host}: ${tries.join(', ')} (asked ${times(requests)}, worked ${times(worked)})`)
  }
  const lost = view.deliveries.filter(({ attempts }) => attempts.at(-1)?.settledAt === undefined).length
  const twice = Object.values(receivers).filter(({ worked }) => new Set(worked).size < worked.length).length
  console.log(`lost ${lost}, done twice ${twice}`)
  return lost === 0 && twice === 0 ? 0 : 1
}

/** @param {readonly unknown[]} list */
function times({ length }) {
  return ['never', 'once'][length] ?? `${length} times`
}

/** As when the machine dies. @param {import('node:child_process').ChildProcess} child */
async function end(child) {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

/**
 * @template T @param {string} what @param {() => T | undefined | false | Promise<T | undefined | false>} check
 * @returns {Promise<T>}
 */
async function until(what, check) {
  const deadline = performance.now() + 30_000
  while (performance.now() < deadline) {
    const found = await check()
    if (found !== undefined && found !== false) return found
    await sleep(20)
  }
  throw new Error(`${what} did not come within 30 s`)
}
