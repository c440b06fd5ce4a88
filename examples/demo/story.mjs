// @ts-check
// What happens in the demo, act by act. Every act waits for what it claims to show, and fails when it does
// not come.
import { setTimeout as sleep } from 'node:timers/promises'
import { hosts } from './cluster.mjs'
import { liftPause, raiseFences, showBlock, showHold } from './fences.mjs'
import { groupBy } from './judge.mjs'
import { openBegins, readMarks } from './marks.mjs'
import {
  actor,
  deadlineMs,
  deliveriesOf,
  heldBy,
  isExecuting,
  isOf,
  isSettledAttempt,
  liveDeliveries,
  rowsOf,
} from './rows.mjs'
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
 * @property {string[]} blocked conversations that a block stood over for a time
 * @property {Finding[]} findings what the acts themselves saw go wrong
 * @property {string[]} marksFiles
 */

const acceptAtOnce = 4
const pauseAt = 0.25
const secondWaveAt = 0.6
const staleEpoch = 'STALE_EPOCH'
const watchEveryMs = 20
const claimLastsMs = 20
const burstMessages = 4

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
  say(
    `Redis on port ${cluster.server.port}; nodes ${[one, two, three, four].map((node) => node.name).join(', ')}`,
  )

  const pause = Math.floor(sources.length * pauseAt)
  const second = Math.floor(sources.length * secondWaveAt)
  await acceptWave(story, sources.slice(0, pause))
  const fenced = await raiseFences(story, sources.slice(pause, second))
  await Promise.all([acceptWave(story, sources.slice(pause, second)), killWhileBegun(story, two)])
  await liftPause(story, fenced.pause)
  await showHold(story, fenced.hold)
  await showBlock(story, fenced.block)
  await stopAndWake(story, three, four, acceptWave(story, sources.slice(second)))
  await settle(story)
  await cluster.stopNodes()
}

/** @param {Story} story @param {readonly Source[]} sources @param {readonly string[]} to */
async function accept(story, sources, to = hosts) {
  const waiting = [...sources]
  const recipients = to.map((host) => ({ host }))
  const lines = Array.from({ length: acceptAtOnce }, async () => {
    for (let source = waiting.shift(); source !== undefined; source = waiting.shift()) {
      const message = { ...source, sender: actor, to: recipients }
      const { id, deliveries } = await story.cluster.hub.accept(message)
      story.sent.push({ ...source, hosts: to, message: id, deliveries })
    }
  })
  await Promise.all(lines)
}

/** @param {Story} story @param {readonly Source[]} sources */
async function acceptWave(story, sources) {
  await accept(story, sources)
  say(`accepted ${story.sent.length} of ${story.sources.length} messages, each for ${hosts.length} hosts`)
}

/**
 * Kills the node with SIGKILL while a command of it runs, and starts it again on the same mirror.
 * @param {Story} story @param {NodeProcess} node
 */
async function killWhileBegun(story, node) {
  const { cluster } = story
  await until(
    'a begun attempt on host-2',
    deadlineMs,
    () => {
      const slow = deliveriesOf(story, (sent) => sent.conversation.startsWith('slow/'))
      return openBegins(readMarks([node.marksFile])).some((mark) => slow.has(mark.delivery))
    },
    watchEveryMs,
  )
  node.signal('SIGKILL')
  await node.ended()
  await heldBy(cluster, node) // once this is answered, all that it had sent has been seen to
  const open = (await heldBy(cluster, node)).filter(isExecuting)
  const attempts = open.map((delivery) => delivery.attempts.at(-1)?.id ?? '')
  story.killed.push(...attempts)
  say(`killed ${node.name} with SIGKILL: ${open.length} attempts were begun (${attempts.join(', ')})`)

  await cluster.startNode(node.host, node.node, 3)
  const left = await until('what the killed process left to be told', deadlineMs, async () => {
    const now = await rowsOf(cluster, open)
    const unknown = await cluster.hub.unknown()
    const told = now.filter((each) => isSettledAttempt(each) || unknown.some(({ id }) => isOf(id, each)))
    return told.length === now.length && unknown.filter(({ id }) => attempts.includes(id))
  })
  const known = open.length - left.length
  say(
    `${node.name} is back on its mirror: ${known} told, ${left.length} unknown (${reasonsOf(left)}), the rest goes on`,
  )
}

/**
 * Stops a node (SIGSTOP) that holds work it began, work it was handed and work it claimed; lets the other
 * node of the host take over and execute what is idle; wakes it.
 * @param {Story} story @param {NodeProcess} taker @param {NodeProcess} sleeper
 * @param {Promise<void>} accepting the wave that keeps them busy
 */
async function stopAndWake(story, taker, sleeper, accepting) {
  const held = await stopInTheMiddle(story, sleeper, accepting)
  await accepting
  const begun = held.filter(isExecuting)
  const idle = held.filter((each) => !isExecuting(each))
  say(`stopped ${sleeper.name} with SIGSTOP: it holds ${countsOf(held)}`)

  await waitForTakeover(story.cluster, taker, begun, idle)
  say(`${taker.name} took over and executed ${idle.length}; the ${begun.length} begun are listed as unknown`)

  const logged = sleeper.log().length
  sleeper.signal('SIGCONT')
  const refused = await until(`${sleeper.name} to meet what it lost`, deadlineMs, () => {
    const codes = refusalsOf(sleeper, logged)
    const ran = new Set(readMarks([sleeper.marksFile]).map((mark) => mark.delivery))
    if (!idle.every(({ id }) => codes.has(id) || ran.has(id))) return false
    return idle.map(({ id }) => ({ id, code: codes.get(id) ?? 'leave to execute it' }))
  })
  for (const { id, code } of refused.filter((each) => each.code !== staleEpoch)) {
    story.findings.push({
      kind: 'wrong',
      id,
      text: `${sleeper.name} was answered ${code}, not ${staleEpoch}`,
    })
  }
  await until(`${sleeper.name} to report what it had begun`, deadlineMs, async () => {
    const now = await rowsOf(story.cluster, begun)
    return now.every(isSettledAttempt)
  })
  const stale = refused.filter((each) => each.code === staleEpoch).length
  say(
    `woke ${sleeper.name}: ${stale} of ${idle.length} refused (${staleEpoch}), ${begun.length} begun settled late`,
  )
}

/**
 * Until the idle ones were executed by the taker, and the begun ones, which nobody may take, are in the
 * unknown list.
 * @param {Cluster} cluster @param {NodeProcess} taker
 * @param {readonly DeliveryView[]} begun @param {readonly DeliveryView[]} idle
 */
async function waitForTakeover(cluster, taker, begun, idle) {
  await until(`${taker.name} to execute what was taken over`, deadlineMs, async () => {
    const now = await rowsOf(cluster, idle)
    const unknown = await cluster.hub.unknown()
    return (
      now.every((each) => each.owner === taker.node && isSettledAttempt(each)) &&
      begun.every((each) => unknown.some(({ id }) => isOf(id, each)))
    )
  })
}

/**
 * Stops the node, looks, and lets it go on until it is caught with all three. A claim is over in a few
 * milliseconds; when the wave has passed without luck, a few more messages are sent to its host alone.
 * @param {Story} story @param {NodeProcess} node @param {Promise<void>} accepting
 */
async function stopInTheMiddle(story, node, accepting) {
  let wave = true
  const over = () => {
    wave = false
  }
  accepting.then(over, over)
  let bursts = 0
  return await until(`${node.name} to hold claimed, delivered and begun work`, deadlineMs, async () => {
    const more = wave ? accepting : accept(story, burstOf(story.sources, bursts++), [node.host])
    await sleep(Math.random() * claimLastsMs)
    node.signal('SIGSTOP')
    const held = (await lookAt(story.cluster, node)) && (await lookAt(story.cluster, node))
    if (!held) node.signal('SIGCONT')
    if (!wave) await more
    return held
  })
}

/** @param {Cluster} cluster @param {NodeProcess} node */
async function lookAt(cluster, node) {
  await sleep(watchEveryMs) // what it had sent is answered by now
  const held = await heldBy(cluster, node)
  const claimed = held.filter((each) => each.state !== 'delivered').length
  const begun = held.filter(isExecuting).length
  return claimed > 0 && begun > 0 && held.length > claimed + begun && held
}

/** Files once more, under keys of their own, in a slow conversation. @param {readonly Source[]} sources @param {number} nth */
function burstOf(sources, nth) {
  return Array.from({ length: burstMessages }, (_, at) => {
    const { key = '', payload = Buffer.alloc(0) } = sources[(nth * burstMessages + at) % sources.length] ?? {}
    return { key: `${key} again ${nth}`, conversation: 'slow/again', payload }
  })
}

/** Until nothing moves any more: all settled but what the kill made unknown. @param {Story} story */
async function settle({ cluster, killed }) {
  await until('the rest to settle', deadlineMs, async () => {
    const unknown = (await cluster.hub.unknown()).filter(({ id }) => killed.includes(id))
    const moving = (await liveDeliveries(cluster)).filter(
      (each) => each.state !== 'held' && !unknown.some(({ id }) => isOf(id, each)),
    )
    return moving.length === 0
  })
}

/** Delivery id to code, for every step that the node was refused. @param {NodeProcess} node @param {number} from line of its log */
function refusalsOf(node, from) {
  /** @type {Map<string, string>} */
  const codes = new Map()
  for (const entry of node.log().slice(from)) {
    if (typeof entry['delivery'] === 'string' && typeof entry['code'] === 'string') {
      codes.set(entry['delivery'], entry['code'])
    }
  }
  return codes
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
