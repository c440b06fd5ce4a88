// @ts-check
// A node that is killed, stopped and cut off. Its handler marks the beginning and the end of everything it does in a
// file of its own, on disk before it goes on; its probe tells from the marks of earlier processes, honestly.
// Its one argument is JSON, see `NodeOptions` below. What it logs goes to stderr.
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { openHistory, readEarlier } from '../built.mjs'
import { createRandom } from '../random.mjs'
import { endAtCrash, followConductor, lineLog, optionsOfThis, say, signalAtPoint } from './shared.mjs'

/**
 * `calm`: every handler ends well, and in time.
 * @typedef {object} NodeOptions
 * @property {string} history
 * @property {string} name
 * @property {string} seed
 * @property {string} host
 * @property {string} node its id: its name, until its mirror is lost
 * @property {string} hub
 * @property {string} [redis]
 * @property {string} [http]
 * @property {string} [token]
 * @property {string} mirror
 * @property {string[]} scopes
 * @property {boolean} probe
 * @property {boolean} calm
 */

const timeLimitMs = 300
const graceMs = 100
const longestHandlerMs = 20
/** How often a handler ends otherwise than with its result, of 1. */
const oddities = { not_sent: 0.03, terminal: 0.01, thrown: 0.006, thrownAfterEffect: 0.006, over: 0.003 }

/** @type {NodeOptions} */
const options = optionsOfThis()
const { history: dir, name, seed, host, node: nodeId, hub } = options
let { calm } = options

/** @type {typeof import('../../src/node/index.ts')} */
const { createNode, notSent, terminal } = await import(
  new URL('../../dist/node/index.js', import.meta.url).href
)
/** @typedef {import('../../src/node/index.ts').Attempt} Attempt */
/** @typedef {import('../../src/node/index.ts').ProbeAnswer} ProbeAnswer */

const history = openHistory(dir, 'node', name)
const marks = openHistory(dir, 'marks', name)
const atPoint = signalAtPoint(history)

/**
 * On disk before this returns.
 * @param {'begin' | 'end'} type @param {Attempt} attempt @param {string} digest @param {object} [more]
 */
function mark(type, attempt, digest, more = {}) {
  const { id, deliveryId: delivery, number, epoch, replay } = attempt
  marks.write({
    kind: 'mark',
    type,
    delivery,
    attempt: id,
    number,
    epoch,
    replay,
    digest,
    node: nodeId,
    ...more,
  })
  marks.sync()
}

/** What the handler does with this attempt: a seed, a payload and a number repeat it. @param {string} digest @param {number} number */
function planOf(digest, number) {
  const random = createRandom(`${seed} ${host} ${digest} ${number}`)
  const tookMs = random.int(0, longestHandlerMs)
  if (calm) return { how: 'result', tookMs }
  let left = random.next()
  for (const [how, share] of Object.entries(oddities)) {
    left -= share
    if (left < 0) return { how, tookMs: how === 'over' ? timeLimitMs + random.int(50, 500) : tookMs }
  }
  return { how: 'result', tookMs }
}

/** @param {Attempt} attempt */
async function execute(attempt) {
  const digest = createHash('sha256').update(attempt.payload).digest('hex')
  mark('begin', attempt, digest)
  const { how, tookMs } = planOf(digest, attempt.number)
  await sleep(tookMs)
  switch (how) {
    case 'not_sent':
      mark('end', attempt, digest, { outcome: 'not_sent' })
      return notSent('not yet')
    case 'terminal':
      mark('end', attempt, digest, { outcome: 'terminal' })
      return terminal('refused', { digest })
    case 'thrown':
    case 'thrownAfterEffect':
      mark('end', attempt, digest, { outcome: 'outcome_unknown', effect: how === 'thrownAfterEffect' })
      throw new Error(how)
    default:
      mark('end', attempt, digest, { outcome: 'result', ...(how === 'over' ? { late: true } : {}) })
      return { bytes: attempt.payload.length }
  }
}

/** @type {Map<string, any> | undefined} */
let ended

/**
 * What became of an attempt that an earlier process of this node began. That process is gone, so its marks are all
 * there are: the effect is the mark of its end, and without it nothing happened.
 * @param {Attempt} attempt @returns {ProbeAnswer}
 */
function probe(attempt) {
  ended ??= new Map(
    readEarlier(dir, 'marks', name).flatMap((line) => (line.type === 'end' ? [[line.attempt, line]] : [])),
  )
  const answer = answerOf(ended.get(attempt.id))
  history.write({ kind: 'probe', attempt: attempt.id, answer: answer.kind })
  return answer
}

/** @param {any} end @returns {ProbeAnswer} */
function answerOf(end) {
  if (end === undefined) return { kind: 'not_executed' }
  if (end.outcome === 'terminal') return terminal('refused', { digest: end.digest })
  const isDone = end.outcome === 'result' || end.effect === true
  return isDone ? { kind: 'result', value: { probed: true } } : { kind: 'not_executed' }
}

const log = lineLog((_, particulars, message) => {
  if (message === 'attempt reported') history.write({ kind: 'report', ...particulars })
})
const node = createNode({
  ...(options.http === undefined
    ? { redis: options.redis ?? '' }
    : { http: { url: options.http, token: options.token } }),
  host,
  node: nodeId,
  hub,
  mirror: options.mirror,
  scopes: options.scopes,
  execute,
  ...(options.probe ? { probe } : {}),
  timeLimitMs,
  graceMs,
  drainMs: 3000,
  concurrency: 32,
  probeTimeLimitMs: 5000,
  onPoint: atPoint.onPoint,
  log,
})

process.on('SIGTERM', () => void node.stop())
endAtCrash(history)
followConductor((message) => {
  if (message.arm !== undefined) atPoint.arm(message.arm)
  if (message.calm === true) calm = true
})
void node.closed.then((end) => {
  const why = 'error' in end ? end.error.message : 'why' in end ? end.why : undefined
  history.write({ kind: 'end', how: end.kind, ...(why === undefined ? {} : { why }) })
  process.exit(end.kind === 'failed' ? 1 : 0)
})
try {
  await node.start()
} catch (error) {
  console.error(error)
  history.write({ kind: 'end', how: 'not started', why: String(error) })
  process.exit(1)
}
history.write({ kind: 'up', host })
say({ up: true })
