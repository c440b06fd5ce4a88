// @ts-check
// A producer over HTTP: both hubs in turn, and whatever nobody answered again under the same key. Now and then it
// repeats what was accepted, and asks for the same key with one byte changed. Every request is one op of its history.
// Its one argument is JSON: { history, name, seed, start, hubs, token, rate, cast, draining }.
import { setTimeout as sleep } from 'node:timers/promises'
import {
  acceptedReply,
  errorCatalogue,
  isHoldfastError,
  openCalls,
  openHistory,
  readEarlier,
} from '../built.mjs'
import { createRandom } from '../random.mjs'
import { bodyOf, changedBody, messageOf } from './message.mjs'
import { endAtCrash, followConductor, optionsOfThis, say } from './shared.mjs'

/** @typedef {import('./message.mjs').Message} Message */

/** @type {{ history: string, name: string, seed: string, start: number, hubs: string[], token: string, rate: number, cast: import('./message.mjs').Cast, draining: boolean }} */
const options = optionsOfThis()
const { history: dir, name, seed, start, hubs, token, rate, cast } = options

const flights = 8
const deadlineMs = 2500
const retry = { leastMs: 50, mostMs: 1500 }
/** Nothing new is sent while so many keys have no answer. */
const unansweredAtMost = 60
/** How often a turn repeats what was accepted, and how often it asks with other content, of 1. */
const repeats = 0.04
const changes = 0.01
const rememberedAtMost = 500

const history = openHistory(dir, 'producer', name)
const random = createRandom(`${seed} producer ${name} ${start}`)
const calls = hubs.map((url) => openCalls({ url, token, deadlineMs }))
/** Keys whose answer was lost, and whose turn it is when. @type {{ key: string, dueAt: number, failures: number }[]} */
const unanswered = unansweredBefore().map((key) => ({ key, dueAt: 0, failures: 0 }))
/** @type {string[]} */
const accepted = []
let { draining } = options
/** The nodes have enough before them: nothing new is sent. */
let waits = false
let [ops, keys, underWay] = [0, 0, 0]

followConductor((message) => {
  if (message.drain === true) draining = true
  if (message.wait !== undefined) waits = message.wait
})
endAtCrash(history)
process.on('SIGTERM', () => {
  history.write({ kind: 'end', how: 'stopped' })
  process.exit(0)
})
history.write({ kind: 'up' })
say({ up: true })
await Promise.all(Array.from({ length: flights }, work))
history.write({ kind: 'end', how: 'drained' })
say({ drained: true })

/** What earlier processes of this producer began and have no answer to. @returns {string[]} */
function unansweredBefore() {
  /** @type {Map<string, boolean>} */
  const open = new Map()
  for (const line of readEarlier(dir, 'producer', name)) {
    if (line.kind !== 'accept' || line.changed === true) continue
    if (line.type === 'ok' || line.type === 'fail') open.set(line.key, false)
    else if (!open.has(line.key)) open.set(line.key, true)
  }
  return [...open].flatMap(([key, isOpen]) => (isOpen ? [key] : []))
}

async function work() {
  const everyMs = (1000 * flights) / rate
  await sleep(random.int(0, Math.ceil(everyMs)))
  while (!draining || unanswered.length > 0 || underWay > 0) {
    const beganAt = performance.now()
    await turn()
    await sleep(Math.max(1, everyMs * (0.5 + random.next()) - (performance.now() - beganAt)))
  }
}

/** One request. */
async function turn() {
  const due = unanswered.findIndex(({ dueAt }) => dueAt <= performance.now())
  const [again] = due < 0 ? [] : unanswered.splice(due, 1)
  underWay += 1
  try {
    if (again !== undefined) await accept(messageOf(seed, again.key, cast), again.failures)
    else if (draining || waits || unanswered.length >= unansweredAtMost) return
    else if (accepted.length > 0 && random.chance(repeats))
      await accept(messageOf(seed, random.pick(accepted), cast))
    else if (accepted.length > 0 && random.chance(changes))
      await askOther(messageOf(seed, random.pick(accepted), cast))
    else await accept(messageOf(seed, newKey(), cast))
  } finally {
    underWay -= 1
  }
}

function newKey() {
  keys += 1
  return `${name}.${start}-${keys}`
}

/** @param {Message} message @param {number} [failures] */
async function accept(message, failures = 0) {
  const { key } = message
  const how = await request(message, bodyOf(message), message.digest)
  if (how === 'ok') remember(key)
  else if (how === 'info') {
    const mostMs = Math.min(retry.mostMs, retry.leastMs * 2 ** Math.min(failures + 1, 10))
    unanswered.push({
      key,
      dueAt: performance.now() + random.int(retry.leastMs, mostMs),
      failures: failures + 1,
    })
  }
}

/** @param {string} key */
function remember(key) {
  accepted.push(key)
  if (accepted.length > rememberedAtMost) accepted.splice(random.int(0, accepted.length - 1), 1)
}

/** The key of a message that was accepted, with one byte changed. @param {Message} message */
async function askOther(message) {
  const { body, digest } = changedBody(message)
  await request(message, body, digest, { changed: true })
}

/**
 * One request and its answer, as the history tells it.
 * @param {Message} message @param {string} body @param {string} digest @param {{ changed?: true }} [more]
 * @returns {Promise<'ok' | 'fail' | 'info'>}
 */
async function request({ key, conversation, to }, body, digest, more = {}) {
  ops += 1
  const op = `${name}.${start}/${ops}`
  const hub = ops % calls.length
  const about = { kind: 'accept', op, key, hub, ...more }
  history.write({ ...about, type: 'invoke', conversation, to, digest })
  try {
    const answer = await /** @type {(typeof calls)[number]} */ (calls[hub]).call({
      method: 'POST',
      path: '/v1/messages',
      headers: { 'idempotency-key': key },
      body,
      reply: acceptedReply,
    })
    const deliveries = answer.value.deliveries.map(({ id, host }) => ({ id, host }))
    const replayed = answer.headers['idempotency-replayed'] === 'true'
    history.write({ ...about, type: 'ok', id: answer.value.id, deliveries, replayed })
    return 'ok'
  } catch (error) {
    if (!isHoldfastError(error)) throw error
    const { code } = error
    const type = errorCatalogue[code].status < 500 ? 'fail' : 'info'
    history.write({ ...about, type, code, detail: error.message.slice(0, 300) })
    return type
  }
}
