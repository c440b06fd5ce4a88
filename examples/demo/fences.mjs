// @ts-check
// The fences of the demo: one conversation each is paused, held and blocked while a wave of messages comes.
import { hosts } from './cluster.mjs'
import { groupBy } from './judge.mjs'
import { readMarks } from './marks.mjs'
import { actor, deadlineMs, deliveriesOf, isSettledAttempt } from './rows.mjs'
import { say, until } from './screen.mjs'

/**
 * @typedef {import('./sources.mjs').Source} Source
 * @typedef {import('./story.mjs').Story} Story
 *
 * @typedef {object} Fenced
 * @property {string} conversation
 * @property {readonly string[]} keys of what comes under the fence
 */

const kinds = /** @type {const} */ (['pause', 'hold', 'block'])
const reasons = { pause: 'customer asked', hold: 'look at these first', block: 'customer left' }

/**
 * Sets each fence over one of the conversations that have most to come, so that what comes is under the fence
 * from the start.
 * @param {Story} story @param {readonly Source[]} coming
 * @returns {Promise<Record<'pause' | 'hold' | 'block', Fenced>>}
 */
export async function raiseFences(story, coming) {
  const quick = coming.filter((source) => !source.conversation.startsWith('slow/'))
  const groups = [...groupBy(quick, (source) => source.conversation)].sort(
    (a, b) => b[1].length - a[1].length,
  )
  /** @type {Fenced[]} */
  const raised = []
  for (const [at, kind] of kinds.entries()) {
    const [conversation, its] = groups[at] ?? ['', []]
    await story.cluster.hub[kind](`conversation:${conversation}`, { reason: reasons[kind], actor })
    if (kind === 'block') story.blocked.push(conversation)
    const to = its.length * hosts.length
    say(
      `${kind} on conversation ${conversation} ("${reasons[kind]}"): ${to} deliveries of it are still to come`,
    )
    raised.push({ conversation, keys: its.map((source) => source.key) })
  }
  const [pause, hold, block] = raised
  if (pause === undefined || hold === undefined || block === undefined) throw new Error('no fences were set')
  return { pause, hold, block }
}

/** Waits until all of it is parked, and lifts the pause. @param {Story} story @param {Fenced} fenced */
export async function liftPause(story, { conversation, keys }) {
  const { hub } = story.cluster
  const mine = deliveriesOf(story, (sent) => keys.includes(sent.key))
  await until('the paused conversation to be parked', deadlineMs, async () => {
    const { deliveries } = await hub.deliveries({ state: 'queued', limit: 1000 })
    return deliveries.filter((each) => mine.has(each.id) && each.parkedBy !== undefined).length === mine.size
  })
  expectNotBegun(story, mine, 'paused')
  say(
    `all ${mine.size} deliveries of ${conversation} wait, none was begun; the rest went on; lifting the pause`,
  )
  await hub.lift('pause', `conversation:${conversation}`, actor)
}

/**
 * Waits until all of it is in the held queue, releases one by hand, and lifts the hold when that one is done.
 * @param {Story} story @param {Fenced} fenced
 */
export async function showHold(story, { conversation, keys }) {
  const { hub } = story.cluster
  const mine = deliveriesOf(story, (sent) => keys.includes(sent.key))
  const held = await until('the held queue to hold the conversation', deadlineMs, async () => {
    const now = (await hub.held()).filter(({ id }) => mine.has(id))
    return now.length === mine.size && now
  })
  expectNotBegun(story, mine, 'held')
  const [first = { id: '', reason: '' }, ...others] = held
  say(`all ${held.length} deliveries of ${conversation} are in the held queue, reason "${first.reason}"`)

  await hub.release(first.id, { reason: 'looked at, is fine', actor })
  await until('the released delivery to be executed', deadlineMs, async () => {
    return isSettledAttempt(await hub.delivery(first.id))
  })
  expectNotBegun(story, new Set(others.map(({ id }) => id)), 'held')
  await hub.lift('hold', `conversation:${conversation}`, actor)
  say(
    `released ${first.id} by hand: it passed the hold and ran; lifted the hold for the other ${others.length}`,
  )
}

/** Waits until all of it has failed, and lifts the block. @param {Story} story @param {Fenced} fenced */
export async function showBlock(story, { conversation, keys }) {
  const { hub } = story.cluster
  const mine = deliveriesOf(story, (sent) => keys.includes(sent.key))
  const settled = await until('the blocked conversation to fail', deadlineMs, async () => {
    const now = await Promise.all([...mine].map((id) => hub.delivery(id)))
    return now.every((each) => each.state === 'failed' || isSettledAttempt(each)) && now
  })
  expectNotBegun(story, mine, 'blocked')
  const failed = settled.filter((each) => each.state === 'failed')
  await hub.lift('block', `conversation:${conversation}`, actor)
  say(
    `${failed.length} deliveries of ${conversation} failed, "${failed[0]?.reason}", without an attempt; lifted`,
  )
}

/** @param {Story} story @param {ReadonlySet<string>} deliveries @param {string} what their conversation is */
function expectNotBegun(story, deliveries, what) {
  for (const mark of readMarks(story.marksFiles).filter(({ delivery }) => deliveries.has(delivery))) {
    story.findings.push({
      kind: 'wrong',
      id: mark.delivery,
      text: `begun while its conversation was ${what}`,
    })
  }
}
