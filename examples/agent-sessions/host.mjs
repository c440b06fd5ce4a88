// @ts-check
// A host: one node, and a supervisor for each agent session that lives here. Its one argument is JSON; it says how it
// goes as lines of JSON on stdout, and takes `open <session>` on stdin: a session that was moved here.
import { request } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { isHoldfastError, openHub } from 'holdfast'
import { createNode, createSupervisor, notSent } from 'holdfast/node'

/** @type {{redis: string, host: string, folder: string, scope: string, sessions: string[]}} */
const { redis, host, folder, scope, sessions } = JSON.parse(process.argv[2] ?? '{}')

/** @param {object} line */
const say = (line) => void process.stdout.write(`${JSON.stringify({ host, ...line })}\n`)
const log = {
  debug: () => undefined,
  info: (/** @type {object} */ what, /** @type {string} */ message) => say({ message, ...what }),
  warn: (/** @type {object} */ what, /** @type {string} */ message) => say({ message, ...what }),
  error: (/** @type {object} */ what, /** @type {string} */ message) => say({ message, ...what }),
}

const agent = new URL('agent.mjs', import.meta.url).pathname
const hub = await openHub({ redis })
const supervisors = /** @type {Map<string, import('holdfast/node').Supervisor>} */ (new Map())

/** @param {string} session */
async function supervise(session) {
  const supervisor = createSupervisor({
    hub,
    session,
    host,
    scope,
    ...(session.includes('/') ? { parent: session.slice(0, session.lastIndexOf('/')) } : {}),
    restartBudget: 3,
    command: [process.execPath, agent, encodeURIComponent(session), scope],
    stateFile: join(folder, `${encodeURIComponent(session)}.json`),
    actor: host,
    log,
  })
  supervisors.set(session, supervisor)
  try {
    await supervisor.start()
  } catch (error) {
    say({ session, refused: isHoldfastError(error) ? error.code : String(error) })
  }
}

/**
 * One turn of an agent. No connection means that nothing was sent; anything else that goes wrong is thrown, for it may
 * have been.
 * @param {import('holdfast/node').Attempt} attempt
 */
function turn(attempt) {
  const session = attempt.target.session ?? ''
  return new Promise((resolve, reject) => {
    const sending = request({
      socketPath: join(scope, `${encodeURIComponent(session)}.sock`),
      method: 'POST',
      headers: { 'idempotency-key': attempt.id },
      signal: attempt.signal,
    })
    let connected = false
    sending.once('socket', (socket) => socket.once('connect', () => (connected = true)))
    sending.once('error', (error) => (connected ? reject(error) : resolve(notSent('the agent is not up'))))
    sending.once('response', async (response) => {
      try {
        let text = ''
        for await (const chunk of response) text += chunk
        resolve(JSON.parse(text))
      } catch (error) {
        reject(error)
      }
    })
    sending.end(attempt.payload)
  })
}

await Promise.all(sessions.map(supervise))
const node = createNode({
  host,
  redis,
  mirror: join(folder, 'node.db'),
  scopes: [scope],
  execute: turn,
  log,
})
await node.start()
say({ up: process.pid })

createInterface({ input: process.stdin }).on('line', (line) => void supervise(line.slice('open '.length)))
process.once('SIGTERM', async () => {
  await node.stop()
  await Promise.all([...supervisors.values()].map((each) => each.stop('restart').catch(() => undefined)))
  await hub.close()
  process.exit(0)
})
