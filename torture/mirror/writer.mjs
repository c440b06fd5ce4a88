// @ts-check
// A process that writes into a mirror as fast as it can until it is killed, and notes what was acknowledged.
// writer.mjs <mirror> <notes> <prefix> <loops> [without-sync]
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const [file = '', notes = '', prefix = '', loops = '16', control] = process.argv.slice(2)
const { fdatasync, writeSync, openSync } = fs
if (control === 'without-sync') leaveOutSync()
const { openMirror, owner } = await import('./built.mjs')
const { copyOf, deliveriesOf, depthOf, grantOf, isKept, reportOf } = await import('./words.mjs')

/** How many messages a loop keeps before it forgets the oldest. */
const kept = 40

const descriptor = openSync(notes, 'a')
let syncing = false
let unsynced = false

/** For the control: a mirror that answers without having brought anything to the disk. */
function leaveOutSync() {
  fs.fdatasync = /** @type {any} */ (
    (/** @type {number} */ _, /** @type {() => void} */ done) => setImmediate(done)
  )
  fs.fdatasyncSync = () => undefined
  syncBuiltinESMExports()
}

/** Adds a line, which outlives this process at once; the disk under it gets it soon. @param {unknown[]} line */
function note(...line) {
  writeSync(descriptor, `${JSON.stringify([...line, Number(process.hrtime.bigint() / 1000n)])}\n`)
  unsynced = true
  if (!syncing) syncNotes()
}

function syncNotes() {
  syncing = true
  unsynced = false
  fdatasync(descriptor, () => {
    syncing = false
    if (unsynced) syncNotes()
  })
}

/** @param {string} step @param {string} id @param {Promise<unknown>} answer */
async function acknowledged(step, id, answer) {
  await answer
  note('ok', step, id)
}

/** What takes something away is noted before it is asked for, too. @param {string} step @param {string} id @param {() => Promise<unknown>} ask */
function taken(step, id, ask) {
  note('try', step, id)
  return acknowledged(step, id, ask())
}

/** @param {string} delivery */
async function live(delivery) {
  const depth = depthOf(delivery)
  const grant = grantOf(delivery)
  if (depth > 0) await acknowledged('mint', delivery, mirror.mintGrant(grant))
  if (depth > 1) await acknowledged('start', delivery, mirror.markStarted(grant.grant, 1))
  if (depth > 2) await acknowledged('report', delivery, mirror.recordReport(reportOf(delivery)))
}

/** @param {string} message */
async function forget(message) {
  const deliveries = deliveriesOf(message)
  await Promise.all(deliveries.map((delivery) => settle(delivery)))
  await taken('drop-copies', message, () => mirror.dropCopies(deliveries))
}

/** @param {string} delivery */
async function settle(delivery) {
  const depth = depthOf(delivery)
  if (depth === 0) return
  if (depth < 3) return taken('drop-grant', delivery, () => mirror.dropGrant(grantOf(delivery).grant))
  return taken('answered', delivery, () => mirror.reportAnswered(reportOf(delivery).key, { settled: true }))
}

/** @param {number} loop */
async function write(loop) {
  /** @type {string[]} */
  const messages = []
  for (let n = 0; ; n += 1) {
    const message = `${prefix}-${loop}-${n}`
    const deliveries = deliveriesOf(message)
    await acknowledged('copies', message, mirror.storeCopies(deliveries.map(copyOf)))
    await Promise.all(deliveries.map(live))
    if (!isKept(message)) messages.push(message)
    if (messages.length > kept) await forget(messages.shift() ?? '')
  }
}

async function moveOn() {
  for (let n = 1; ; n += 1) {
    const id = `${Date.now()}-${n}`
    mirror.noteLogId(id)
    await mirror.putOff('nothing', n, 0)
    note('ok', 'log-id', id)
  }
}

const mirror = openMirror({ file, ...owner })
note('ok', 'open', mirror.incarnation)
process.stdout.write('open\n')

/** A loop ends when its mirror refuses; the process stays, as a node that says why would. @param {unknown} error */
function refused(error) {
  note('refused', error instanceof Error ? error.message : String(error))
}
setInterval(() => undefined, 1_000)
for (let loop = 0; loop < Number(loops); loop += 1) write(loop).catch(refused)
moveOn().catch(refused)
