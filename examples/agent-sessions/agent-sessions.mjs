// @ts-check
// Agent sessions on two hosts, one of which dies: its sessions are moved, their messages go on where they live now, the
// one turn of which nobody can know how it went is decided by an operator, and nothing runs twice.
// node examples/agent-sessions/agent-sessions.mjs   (after npm run build)
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { initRecord, isHoldfastError, openHub, startEmbedded } from 'holdfast'

const actor = 'kim'
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'holdfast-agents-')))
const scope = join(folder, 'work') // a directory that both hosts see
mkdirSync(scope)
const server = await startEmbedded({ dataDir: folder })
await initRecord({ redis: server.url })
const hub = await openHub({ redis: server.url })
await hub.configure({ heartbeat_ms: 300, stale_after_ms: 1500 }, actor)

/** @typedef {Record<string, any>} Line */

/** @param {string} host @param {string[]} sessions */
function startHost(host, sessions) {
  const own = join(folder, host)
  mkdirSync(own, { recursive: true })
  const options = JSON.stringify({ redis: server.url, host, folder: own, scope, sessions })
  const child = spawn(process.execPath, [new URL('host.mjs', import.meta.url).pathname, options], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  /** @type {Line[]} */
  const lines = []
  createInterface({ input: child.stdout }).on('line', (text) => lines.push(JSON.parse(text)))
  return {
    child,
    lines,
    /** @param {(line: Line) => boolean} wanted */
    line: (wanted) => until(() => lines.find(wanted)),
    /** As when the machine dies: the node, the supervisors and the agents, at once. */
    die: () => {
      const agents = lines.filter((line) => line['message'] === 'session opened').map((line) => line['pid'])
      child.kill('SIGKILL')
      for (const pid of agents) kill(pid)
    },
  }
}

/** @param {number} pid */
function kill(pid) {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {}
}

/** @template T @param {() => T | undefined | false | Promise<T | undefined | false>} check @returns {Promise<T>} */
async function until(check) {
  const deadline = performance.now() + 30_000
  while (performance.now() < deadline) {
    const found = await check()
    if (found !== undefined && found !== false) return found
    await sleep(20)
  }
  throw new Error('it did not come true within 30 s')
}

async function whereTheyLive() {
  const { entries } = await hub.sessionPage()
  return entries
    .map(({ session, host }) => `${session} on ${host}`)
    .sort()
    .join(', ')
}

let sent = 0
/** @type {string[]} */
const messages = []

/** @param {string} session @param {number} count */
async function send(session, count) {
  for (let n = 0; n < count; n += 1) {
    sent += 1
    const message = { conversation: 'c42', sender: 'kim', to: [{ session }], payload: `turn ${sent}` }
    messages.push((await hub.accept({ key: `turn-${sent}`, ...message })).id)
  }
}

/** Every line that the agents wrote, wherever they ran. */
function journal() {
  const files = readdirSync(scope).filter((name) => name.endsWith('.journal'))
  const text = files.map((name) => readFileSync(join(scope, name), 'utf8')).join('')
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => /** @type {Line} */ (JSON.parse(line)))
}

const first = startHost('build-1', ['lead', 'lead/helper'])
const second = startHost('build-2', ['other'])
await first.line((line) => 'up' in line)
await second.line((line) => 'up' in line)
console.log('sessions:', await whereTheyLive())

await Promise.all([send('lead', 10), send('lead/helper', 10), send('other', 10)])
await until(() => journal().filter((line) => 'end' in line).length >= 6)
await until(() => journal().some((line) => 'begin' in line && isOpen(line['begin'], 'lead')))
first.die()
console.log('build-1 died within a turn')

/** @param {string} attempt @param {string} session */
function isOpen(attempt, session) {
  const lines = journal()
  const ofLead = lines.find((line) => line['begin'] === attempt)
  const ended = lines.some((line) => line['end'] === attempt)
  const named = readFileSync(join(scope, `${session}.journal`), 'utf8').includes(attempt)
  return ofLead !== undefined && named && !ended
}

/** @param {() => Promise<unknown>} call */
async function refusal(call) {
  try {
    await call()
    return undefined
  } catch (error) {
    if (isHoldfastError(error)) return error.code
    throw error
  }
}

const move = () => hub.rehome('lead', 'build-2', { actor, reason: 'build-1 is gone' })
console.log('moved at once:', (await refusal(move)) ?? 'yes', '(its node was heard a moment ago)')
await until(async () => (await refusal(move)) === undefined)
console.log('moved:', await whereTheyLive())
for (const session of ['lead', 'lead/helper']) second.child.stdin.write(`open ${session}\n`)

const unknown = await until(async () => {
  const entries = await hub.unknown()
  return entries.length > 0 && entries
})
for (const { id, reason } of unknown) {
  const ended = journal().some((line) => line['end'] === id)
  const evidence = `the journal of the agent ${ended ? 'has its end' : 'has a begin and no end'}`
  console.log(`unknown: ${id} (${reason}); ${evidence}`)
  await hub.resolveAttempt(id, { as: ended ? 'result' : 'terminal', evidence }, actor)
}

const again = startHost('build-1', ['lead', 'lead/helper'])
const refused = await again.line((line) => 'refused' in line && line['session'] === 'lead')
console.log('build-1 came back and opens lead:', refused['refused'])

for (const id of messages) {
  const view = await hub.waitFor(id, 30_000)
  if (view.settledAt === undefined)
    console.log(`not settled: ${id}`, view.deliveries[0]?.state, await hub.why(`${id}.1`))
}

const begun = journal().filter((line) => 'begin' in line)
const turns = new Map(
  begun.map((line) => [line['prompt'], begun.filter((each) => each['prompt'] === line['prompt']).length]),
)
const twice = [...turns.values()].filter((count) => count > 1).length
const views = await Promise.all(messages.map((id) => hub.message(id)))
const lost = views.filter((view) => view.settledAt === undefined).length
const statuses = views.map((view) => view.deliveries[0]?.attempts.at(-1)?.status)
const done = statuses.filter((status) => status === 'done').length
console.log(
  `${messages.length} messages: ${done} done, ${statuses.filter((each) => each === 'terminal').length} resolved as cut`,
)
console.log(`lost ${lost}, turns begun twice ${twice}`)

for (const host of [second, again]) {
  host.child.kill('SIGTERM')
  await new Promise((resolve) => host.child.once('exit', resolve))
}
await hub.close()
await server.stop()
rmSync(folder, { recursive: true, force: true })
process.exit(lost === 0 && twice === 0 ? 0 : 1)
