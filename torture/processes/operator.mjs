// @ts-check
// An operator over HTTP: sets fences of every kind and scope and lifts them again, and releases what is held. Once it
// is told that the run calms down it lifts all that stand and releases all that are held, until it is ended.
// Its one argument is JSON: { history, name, seed, start, hubs, token, cast, calm }.
import { setTimeout as sleep } from 'node:timers/promises'
import { errorCatalogue, isHoldfastError, openClient, openHistory } from '../built.mjs'
import { createRandom } from '../random.mjs'
import { endAtCrash, followConductor, optionsOfThis, say } from './shared.mjs'

/** @typedef {'pause' | 'hold' | 'block'} Kind */
/** @typedef {{ fence: Kind, scope: string, liftAt: number }} Standing */

/** @type {{ history: string, name: string, seed: string, start: number, hubs: string[], token: string, cast: import('./message.mjs').Cast, calm: boolean }} */
const options = optionsOfThis()
const { history: dir, name, seed, start, hubs, token, cast } = options

const deadlineMs = 2500
const thinkMs = { least: 50, most: 400 }
const standingAtMost = 3
const actor = 'operator'
const kinds = /** @type {const} */ ({
  pause: { weight: 5, least: 100, most: 1500 },
  hold: { weight: 4, least: 100, most: 1000 },
  block: { weight: 1, least: 20, most: 200 },
})
const dimensions = [
  { weight: 1, scopes: ['hub'] },
  { weight: 3, scopes: cast.hosts.map((host) => `host:${host}`) },
  { weight: 4, scopes: cast.conversations.map((conversation) => `conversation:${conversation}`) },
  { weight: 2, scopes: cast.sessions.map((session) => `session:${session}`) },
]

const history = openHistory(dir, 'operator', name)
const random = createRandom(`${seed} operator ${name} ${start}`)
const clients = hubs.map((url) => openClient({ url, token, deadlineMs }))
/** @type {Standing[]} */
const standing = []
let { calm } = options
let [ops, asked] = [0, 0]

followConductor((message) => {
  if (message.calm === true) calm = true
})
endAtCrash(history)
process.on('SIGTERM', () => {
  history.write({ kind: 'end', how: 'stopped' })
  process.exit(0)
})
history.write({ kind: 'up' })
say({ up: true })
await adoptFences()
for (;;) {
  if (calm) await makeCalm()
  else await turn()
  await sleep(random.int(thinkMs.least, thinkMs.most))
}

/** What an earlier process of this operator set is lifted by this one. */
async function adoptFences() {
  for (const { fence: field } of (await answered((client) => client.fences())) ?? []) {
    standing.push({ ...fenceOf(field), liftAt: performance.now() + random.int(0, 1000) })
  }
}

/** @param {string} field */
function fenceOf(field) {
  const [fence = '', ...scope] = field.split(':')
  return { fence: /** @type {Kind} */ (fence), scope: scope.join(':') }
}

async function turn() {
  const due = standing.find(({ liftAt }) => liftAt <= performance.now())
  if (due !== undefined) return await liftOne(due)
  if (random.chance(0.25)) return await releaseSome(3)
  if (standing.length < standingAtMost) await setOne()
}

async function setOne() {
  const fence = random.weighted(/** @type {Kind[]} */ (Object.keys(kinds)), (kind) => kinds[kind].weight)
  const scope = random.pick(random.weighted(dimensions, ({ weight }) => weight).scopes)
  const known = standing.some((each) => each.fence === fence && each.scope === scope)
  if (known) return
  const { least, most } = kinds[fence]
  const how = await act({ kind: 'fence', act: 'set', fence, scope }, (client) =>
    client[fence](scope, { reason: `${fence} of the run`, actor }),
  )
  if (how !== 'fail') standing.push({ fence, scope, liftAt: performance.now() + random.int(least, most) })
}

/** @param {Standing} given */
async function liftOne(given) {
  const { fence, scope } = given
  const how = await act({ kind: 'fence', act: 'lift', fence, scope }, (client) =>
    client.lift(fence, scope, actor),
  )
  const at = standing.indexOf(given)
  if (how !== 'info' && at >= 0) standing.splice(at, 1)
}

/** @param {number} most */
async function releaseSome(most) {
  const held = (await answered((client) => client.heldPage({ limit: 200 })))?.entries ?? []
  const ids = held.map(({ id }) => id)
  while (ids.length > 0 && most > 0) {
    const [id = ''] = ids.splice(random.int(0, ids.length - 1), 1)
    most -= 1
    await act({ kind: 'act', act: 'release', id }, (client) =>
      client.release(id, { reason: 'released', actor }),
    )
  }
  return held.length
}

/** Everything that stands is lifted and everything held is released; says so when there was nothing to do. */
async function makeCalm() {
  const fences = await answered((client) => client.fences())
  if (fences === undefined) return
  for (const { fence: field } of fences) {
    await liftOne({ ...fenceOf(field), liftAt: 0 })
  }
  const held = await releaseSome(200)
  if (fences.length === 0 && held === 0) say({ calm: true })
}

/** @typedef {(typeof clients)[number]} Client */

/** @template Answer @param {(client: Client) => Promise<Answer>} read @returns {Promise<Answer | undefined>} */
async function answered(read) {
  try {
    return await read(nextClient())
  } catch (error) {
    if (!isHoldfastError(error)) throw error
    return undefined
  }
}

function nextClient() {
  asked += 1
  return /** @type {Client} */ (clients[asked % clients.length])
}

/**
 * One call and its answer, as the history tells it. It is made once.
 * @param {{ kind: 'fence' | 'act', [member: string]: unknown }} about
 * @param {(client: Client) => Promise<{ logId: string }>} call
 * @returns {Promise<'ok' | 'fail' | 'info'>}
 */
async function act(about, call) {
  ops += 1
  const op = `${name}.${start}/${ops}`
  history.write({ ...about, op, type: 'invoke' })
  try {
    const { logId } = await call(nextClient())
    history.write({ ...about, op, type: 'ok', logId })
    return 'ok'
  } catch (error) {
    if (!isHoldfastError(error)) throw error
    const { code } = error
    const type = errorCatalogue[code].status < 500 ? 'fail' : 'info'
    history.write({ ...about, op, type, code, detail: error.message.slice(0, 300) })
    return type
  }
}
