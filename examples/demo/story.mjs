// @ts-check
// What happens in the demo, act by act. Every act waits for what it claims to show, and fails when it does
// not come.
import { setTimeout as sleep } from 'node:timers/promises'
import { groupBy } from './judge.mjs'
import { openBegins, readMarks } from './marks.mjs'
import { say, until } from './screen.mjs'

/**
 * @typedef {import('./cluster.mjs').Cluster} Cluster
 * @typedef {import('./cluster.mjs').NodeProcess} NodeProcess
 * @typedef {import('./judge.mjs').Sent} Sent
 * @typedef {import('./judge.mjs').Finding} Finding
 * @typedef {import('./sources.mjs').Source} Source
 * @typedef {import('holdfast').DeliveryView} DeliveryView
 *
 * @typedef {object} Story
 * @property {Cluster} cluster
 * @property {readonly Source[]} sources
 * @property {Sent[]} sent every message that was accepted
 * @property {string[]} killed attempts that were open when their node was killed
 * @property {Finding[]} findings what the acts themselves saw go wrong
 * @property {string[]} marksFiles
 */

export const hosts = ['host-1', 'host-2', 'host-3']
const actor = 'demo'
const acceptAtOnce = 4
const pauseAt = 0.25
const secondWaveAt = 0.6
const actDeadlineMs = 45_000
const settleDeadlineMs = 90_000

/** @param {Story} story */
export async function play(story) {
  const { cluster, sources } = story
  const [one, two, three, four] = await Promise.all([
    cluster.startNode('host-1', 'a', 3),
    cluster.startNode('host-2', 'a', 3),
    cluster.startNode('host-3', 'a', 2),
    cluster.startNode('host-3', 'b', 2),
  ])
  story.marksFiles.push(...[one, two, three, four].map((node) => node.marksFile))
  say(`Redis on port ${cluster.server.port}; nodes ${[one, two, three, four].map((node) => node.name).join(', ')}`)

  const pause = Math.floor(sources.length * pauseAt)
  const second = Math.floor(sources.length * secondWaveAt)
  await accept(story, sources.slice(0, pause))
  const paused = await pauseBusiest(story, sources.slice(pause, second))
  await Promise.all([accept(story, sources.slice(pause, second)), killWhileBegun(story, two)])
  await lift(story, paused)
  await Promise.all([accept(story, sources.slice(second)), stopAndWake(story, three, four)])
  await settle(story)
  await cluster.stopNodes()
}

/** @param {Story} story @param {readonly Source[]} sources */
async function accept(story, sources) {
  const waiting = [...sources]
  const to = hosts.map((host) => ({ host }))
  const lines = Array.from({ length: acceptAtOnce }, async () => {
    for (let source = waiting.shift(); source !== undefined; source = waiting.shift()) {
      const { key, conversation, payload } = source
      const accepted = await story.cluster.hub.accept({ key, conversation, sender: actor, to, payload })
      story.sent.push({ key, conversation, payload, message: accepted.id, deliveries: accepted.deliveries })
    }
  })
  await Promise.all(lines)
  say(`accepted ${story.sent.length} messages, ${story.sent.length * hosts.length} deliveries`)
}

/**
 * Pauses the conversation that has most to come, so that what comes is under the fence from the start.
 * @param {Story} story @param {readonly Source[]} coming
 */
async function pauseBusiest({ cluster }, coming) {
  const quick = coming.filter((source) => !source.conversation.startsWith('slow/'))
  const groups = [...groupBy(quick, (source) => source.conversation)].sort((a, b) => b[1].length - a[1].length)
  const [conversation, its] = groups[0] ?? ['', []]
  await cluster.hub.pause(`conversation:${conversation}`, { reason: 'shown in the demo', actor })
  say(`paused conversation ${conversation}: ${its.length * hosts.length} deliveries of it are still to come`)
  return { conversation, keys: its.map((source) => source.key) }
}

/** @param {Story} story @param {{ conversation: string, keys: string[] }} paused */
async function lift(story, { conversation, keys }) {
  const { hub } = story.cluster
  const mine = deliveriesOf(story, (sent) => keys.includes(sent.key))
  await until('the paused conversation to be parked', actDeadlineMs, async () => {
    const { deliveries } = await hub.deliveries({ state: 'queued', limit: 1000 })
    return deliveries.filter((each) => mine.has(each.id) && each.parkedBy !== undefined).length === mine.size
  })
  const begun = readMarks(story.marksFiles).filter((mark) => mine.has(mark.delivery))
  for (const mark of begun) {
    story.findings.push({ kind: 'wrong', id: mark.delivery, text: 'begun while its conversation was paused' })
  }
  say(`all ${mine.size} deliveries of ${conversation} wait, ${begun.length} were begun; the rest went on; lifting`)
  await hub.lift('pause', `conversation:${conversation}`, actor)
}

/**
 * Kills the node with SIGKILL while a command of it runs, and starts it again on the same mirror.
 * @param {Story} story @param {NodeProcess} node
 */
async function killWhileBegun(story, node) {
  const { cluster } = story
  await until('a begun attempt on host-2', actDeadlineMs, () => {
    const slow = deliveriesOf(story, (sent) => sent.conversation.startsWith('slow/'))
    return openBegins(readMarks([node.marksFile])).some((mark) => slow.has(mark.delivery))
  })
  node.signal('SIGKILL')
  await node.ended()
  const open = (await heldBy(cluster, node)).filter(isExecuting)
  const attempts = open.map((delivery) => delivery.attempts.at(-1)?.id ?? '')
  story.killed.push(...attempts)
  say(`killed ${node.name} with SIGKILL: ${open.length} attempts were begun (${attempts.join(', ')})`)

  await cluster.startNode(node.host, node.node, 3)
  const left = await until('what the killed process left to be told', actDeadlineMs, async () => {
    const now = await Promise.all(open.map((delivery) => cluster.hub.delivery(delivery.id)))
    const unknown = await cluster.hub.unknown()
    const told = now.filter((each) => isSettledAttempt(each) || unknown.some(({ id }) => isOf(id, each)))
    return told.length === now.length && unknown.filter(({ id }) => attempts.includes(id))
  })
  say(`${node.name} is back on its mirror: ${left.length} unknown (${reasonsOf(left)}), the rest goes on`)
}

/**
 * Stops a node (SIGSTOP) that holds work it began, work it was handed and work it claimed; lets the other
 * node of the host take over and execute what is idle; wakes it.
 * @param {Story} story @param {NodeProcess} taker @param {NodeProcess} sleeper
 */
async function stopAndWake(story, taker, sleeper) {
  const { cluster } = story
  const held = await stopInTheMiddle(cluster, sleeper)
  const begun = held.filter(isExecuting)
  const idle = held.filter((each) => !isExecuting(each))
  say(`stopped ${sleeper.name} with SIGSTOP: it holds ${countsOf(held)}`)

  const takenOver = await until(`${taker.name} to execute what ${sleeper.name} had`, actDeadlineMs, async () => {
    const now = await Promise.all(idle.map((each) => cluster.hub.delivery(each.id)))
    return now.every((each) => each.owner === taker.node && isSettledAttempt(each)) && now
  })
  const unknown = (await cluster.hub.unknown()).filter(({ id }) => begun.some((each) => isOf(id, each)))
  say(`${taker.name} took over and executed ${takenOver.length}; begun ones stay unknown (${reasonsOf(unknown)})`)

  sleeper.signal('SIGCONT')
  const refused = await until(`${sleeper.name} to meet what it lost`, actDeadlineMs, () => {
    const codes = refusalsOf(sleeper)
    const ran = new Set(readMarks([sleeper.marksFile]).map((mark) => mark.delivery))
    return idle.every(({ id }) => codes.has(id) || ran.has(id)) && idle.flatMap(({ id }) => codes.get(id) ?? [])
  })
  await until(`${sleeper.name} to report what it had begun`, actDeadlineMs, async () => {
    const now = await Promise.all(begun.map((each) => cluster.hub.delivery(each.id)))
    return now.every(isSettledAttempt)
  })
  const codes = [...new Set(refused)].join(', ')
  say(`woke ${sleeper.name}: refused ${refused.length} of ${idle.length} (${codes}); its begun ones reported themselves`)
}

/**
 * Stops the node, looks, and lets it go on until it is caught with all three.
 * @param {Cluster} cluster @param {NodeProcess} node
 */
async function stopInTheMiddle(cluster, node) {
  return await until(`${node.name} to hold claimed, delivered and begun work`, actDeadlineMs, async () => {
    node.signal('SIGSTOP')
    await sleep(10) // what it had sent is answered by now
    const held = await heldBy(cluster, node)
    const claimed = held.filter((each) => each.state !== 'delivered').length
    const begun = held.filter(isExecuting).length
    if (claimed > 0 && begun > 0 && held.length >= claimed + begun + 2) {
      await sleep(100)
      return await heldBy(cluster, node)
    }
    node.signal('SIGCONT')
    return false
  })
}

/** Until nothing moves any more: all settled but what the kill made unknown. @param {Story} story */
async function settle({ cluster, killed }) {
  await until('the rest to settle', settleDeadlineMs, async () => {
    const unknown = (await cluster.hub.unknown()).filter(({ id }) => killed.includes(id))
    const moving = (await liveDeliveries(cluster)).filter(
      (each) => each.state !== 'held' && !unknown.some(({ id }) => isOf(id, each)),
    )
    return moving.length === 0
  })
}

/** @param {Cluster} cluster */
async function liveDeliveries({ hub }) {
  /** @type {DeliveryView[]} */
  const found = []
  for (let page = await hub.deliveries({ limit: 1000 }); ; page = await hub.deliveries({ cursor: page.cursor })) {
    found.push(...page.deliveries)
    if (page.cursor === undefined) return found
  }
}

/** What the record says the node holds, unsettled. @param {Cluster} cluster @param {NodeProcess} node */
async function heldBy({ hub }, node) {
  const { deliveries } = await hub.deliveries({ host: node.host, limit: 1000 })
  return deliveries.filter((each) => each.owner === node.node && each.state !== 'queued')
}

/** Delivery id to code, for every step that the node was refused. @param {NodeProcess} node */
function refusalsOf(node) {
  /** @type {Map<string, string>} */
  const codes = new Map()
  for (const entry of node.log()) {
    if (typeof entry['delivery'] === 'string' && typeof entry['code'] === 'string') {
      codes.set(entry['delivery'], entry['code'])
    }
  }
  return codes
}

/** @param {Story} story @param {(sent: Sent) => boolean} which */
function deliveriesOf({ sent }, which) {
  return new Set(sent.filter(which).flatMap((each) => each.deliveries.map(({ id }) => id)))
}

/** @param {DeliveryView} delivery */
function isExecuting(delivery) {
  return delivery.attempts.at(-1)?.status === 'executing'
}

/** @param {DeliveryView} delivery */
function isSettledAttempt(delivery) {
  return delivery.attempts.length > 0 && !isExecuting(delivery)
}

/** @param {string} attempt @param {DeliveryView} delivery */
function isOf(attempt, delivery) {
  return attempt.split('/')[0] === delivery.id
}

/** @param {readonly { reason: string }[]} entries */
function reasonsOf(entries) {
  return [...new Set(entries.map((entry) => entry.reason))].join(', ') || 'none'
}

/** @param {readonly DeliveryView[]} deliveries */
function countsOf(deliveries) {
  const groups = groupBy(deliveries, (each) => (isExecuting(each) ? 'begun' : each.state))
  return [...groups].map(([state, its]) => `${its.length} ${state}`).join(', ')
}
