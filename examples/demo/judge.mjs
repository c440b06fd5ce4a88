// @ts-check
// The judge. It believes the payloads that were sent and the marks that executors synced outside Redis; the
// record is what is on trial.
import { createHash } from 'node:crypto'

/**
 * @typedef {import('./marks.mjs').Mark} Mark
 * @typedef {import('holdfast').DeliveryView} DeliveryView
 * @typedef {import('holdfast').UnknownEntry} UnknownEntry
 *
 * @typedef {object} Sent
 * @property {string} key
 * @property {string} conversation
 * @property {Buffer} payload
 * @property {readonly string[]} hosts who it was for
 * @property {string} message
 * @property {readonly { id: string, host: string }[]} deliveries as accept answered them
 *
 * @typedef {object} Case
 * @property {readonly Sent[]} sent
 * @property {readonly DeliveryView[]} rows every delivery of every message, as the record has it
 * @property {readonly UnknownEntry[]} unknown
 * @property {readonly Mark[]} marks
 * @property {readonly string[]} killed attempts that a SIGKILL may have cut off before their begin mark
 * @property {readonly string[]} blocked conversations that a block stood over: what it failed was to fail
 *
 * @typedef {'done' | 'failed' | 'held' | 'unknown' | 'unfinished'} State
 *
 * @typedef {object} Finding
 * @property {'lost' | 'twice' | 'wrong'} kind
 * @property {string} id
 * @property {string} text
 *
 * @typedef {object} Verdict
 * @property {readonly Finding[]} findings
 * @property {ReadonlyMap<string, { host: string, state: State }>} states by delivery
 * @property {number} blocked expected failures
 */

/** @param {Case} file @returns {Verdict} */
export function judge(file) {
  const rows = new Map(file.rows.map((row) => [row.id, row]))
  const unknown = new Map(file.unknown.map((entry) => [deliveryOf(entry.id), entry]))
  const marks = groupBy(file.marks, (mark) => mark.delivery)
  /** @type {Finding[]} */
  const findings = []
  /** @type {Map<string, { host: string, state: State }>} */
  const states = new Map()
  let blocked = 0

  for (const sent of file.sent) {
    const digest = createHash('sha256').update(sent.payload).digest('hex')
    for (const host of sent.hosts) {
      const accepted = sent.deliveries.filter((delivery) => delivery.host === host)
      if (accepted.length !== 1) {
        findings.push({ kind: 'lost', id: sent.message, text: `${accepted.length} deliveries for ${host}` })
      }
      for (const { id } of accepted) {
        const state = stateOf(rows.get(id), unknown.get(id))
        states.set(id, { host, state })
        findings.push(...judgeOne(id, state, digest, sent.conversation))
      }
    }
  }
  for (const id of marks.keys()) {
    if (!states.has(id)) findings.push({ kind: 'wrong', id, text: 'executed, but never accepted' })
  }
  return { findings, states, blocked }

  /** @param {string} id @param {State} state @param {string} digest @param {string} conversation @returns {Finding[]} */
  function judgeOne(id, state, digest, conversation) {
    const own = marks.get(id) ?? []
    const begins = own.filter((mark) => mark.kind === 'begin')
    /** @type {Finding[]} */
    const found = []
    if (begins.length > 1) {
      const tries = begins.map((mark) => `${mark.attempt} on ${mark.node} under epoch ${mark.epoch}`)
      found.push({ kind: 'twice', id, text: tries.join(', ') })
    }
    if (state === 'unfinished') found.push({ kind: 'lost', id, text: 'no outcome, and in no list' })
    if (state === 'done') found.push(...checkDone(id, own, digest))
    if (state === 'failed' && begins.length > 0)
      found.push({ kind: 'wrong', id, text: 'failed, but it was begun' })
    if (state === 'failed' && wasBlocked(id, conversation)) blocked += 1
    else if (state === 'failed')
      found.push({ kind: 'wrong', id, text: `failed by no block: ${rows.get(id)?.reason}` })
    const attempt = state === 'unknown' ? unknown.get(id)?.id : undefined
    if (attempt !== undefined && begins.length === 0 && !file.killed.includes(attempt)) {
      found.push({ kind: 'wrong', id, text: 'unknown, but nobody began or was killed' })
    }
    return found
  }

  /** An expected failure: nobody began it, and the block names itself. @param {string} id @param {string} conversation */
  function wasBlocked(id, conversation) {
    const expected = `blocked block:conversation:${conversation}`
    return file.blocked.includes(conversation) && rows.get(id)?.reason === expected
  }

  /** @param {string} id @param {readonly Mark[]} own @param {string} digest @returns {Finding[]} */
  function checkDone(id, own, digest) {
    const attempt = rows.get(id)?.attempts.at(-1)
    const kinds = own.filter((mark) => mark.attempt === attempt?.id).map((mark) => mark.kind)
    const end = own.find((mark) => mark.kind === 'end' && mark.attempt === attempt?.id)
    if (!kinds.includes('begin') || end === undefined) {
      return [{ kind: 'wrong', id, text: `done, but its marks are [${kinds.join(', ')}]` }]
    }
    const reported = String(JSON.parse(attempt?.result ?? '{}').stdout)
    if (end.digest === digest && reported === digest) return []
    return [{ kind: 'wrong', id, text: `sha256 is ${digest}, executed ${end.digest}, recorded ${reported}` }]
  }
}

/** @param {DeliveryView | undefined} row @param {UnknownEntry | undefined} unknown @returns {State} */
function stateOf(row, unknown) {
  if (row === undefined) return 'unfinished'
  if (row.state === 'held' || row.state === 'failed') return row.reason ? row.state : 'unfinished'
  if (row.attempts.at(-1)?.status === 'done') return 'done'
  return unknown?.reason ? 'unknown' : 'unfinished'
}

/** @param {string} id of a delivery or of one of its attempts */
function deliveryOf(id) {
  return id.split('/')[0] ?? id
}

/**
 * @template Item
 * @param {readonly Item[]} items @param {(item: Item) => string} keyOf
 * @returns {Map<string, Item[]>}
 */
export function groupBy(items, keyOf) {
  /** @type {Map<string, Item[]>} */
  const groups = new Map()
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item])
  return groups
}
