// @ts-check
// Opens the mirror after a power cut and compares it with what was acknowledged. Prints a verdict as one line of JSON.
// judge.mjs <mirror> <folder of notes> <scratch folder> <close|abandon>
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import Database from 'libsql'
import { openMirror, owner } from './built.mjs'
import { copyOf, deliveriesOf, depthOf, grantOf, isUnknown, messageOf, reportOf } from './words.mjs'

const [file = '', notes = '', scratch = '', ending] = process.argv.slice(2)

/**
 * @typedef {object} Verdict
 * @property {string} integrity what `pragma integrity_check` says of the file as the cut left it
 * @property {string[]} lost acknowledged, and not there
 * @property {string[]} returned acknowledged as forgotten, and there
 * @property {string[]} wrong there, and not as it was written
 * @property {string[]} torn stored by one call, and only a part of it there
 * @property {number} acknowledged operations, those of earlier cuts included
 * @property {number} compared acknowledged ones that must be there, each compared in full
 * @property {number} gone acknowledged as forgotten, and looked for
 */

/** Acknowledged steps, and removals that were asked for, each as `step id`. */
const done = new Set()
const asked = new Set()
let incarnation = 0
let logId = '0-0'

for (const name of readdirSync(notes)) readNotes(readFileSync(join(notes, name), 'utf8'))

/** @param {string} text */
function readNotes(text) {
  // The last line may be cut short where its writer was killed within it.
  for (const line of text.slice(0, text.lastIndexOf('\n') + 1).split('\n')) {
    if (line !== '') take(JSON.parse(line))
  }
}

/** @param {string[]} line */
function take([kind, step, id = '']) {
  if (kind === 'try') asked.add(`${step} ${id}`)
  if (kind !== 'ok') return
  if (step === 'open') incarnation = Math.max(incarnation, Number(id))
  else if (step === 'log-id') logId = later(logId, id)
  else done.add(`${step} ${id}`)
}

/** @param {string} one @param {string} other */
function later(one, other) {
  const [a = 0, b = 0] = one.split('-').map(Number)
  const [c = 0, d = 0] = other.split('-').map(Number)
  return c > a || (c === a && d > b) ? other : one
}

/** @type {Verdict} */
const verdict = {
  integrity: '',
  lost: [],
  returned: [],
  wrong: [],
  torn: [],
  acknowledged: done.size,
  compared: 0,
  gone: 0,
}

/** A copy of the files as the cut left them: looking at them must not mend them. @returns {string[]} deliveries */
function inspectCopy() {
  const copy = join(scratch, 'inspected.db')
  for (const end of ['', '-wal', '-journal']) {
    if (existsSync(file + end)) copyFileSync(file + end, copy + end)
  }
  const database = new Database(copy)
  const answer = /** @type {{ integrity_check: string }[]} */ (
    database.prepare('pragma integrity_check').all([])
  )
  verdict.integrity = answer.map((row) => row.integrity_check).join('; ')
  const tables = database.prepare("select name from sqlite_master where name = 'copies'").all([])
  const rows = tables.length === 0 ? [] : database.prepare('select delivery from copies').all([])
  database.close()
  for (const end of ['', '-wal', '-shm', '-journal']) rmSync(copy + end, { force: true })
  return /** @type {{ delivery: string }[]} */ (rows).map((row) => row.delivery)
}

/** @param {ReturnType<typeof openMirror>} mirror @param {string[]} listed */
function compare(mirror, listed) {
  const { grants, reports } = mirror.recovery()
  const there = {
    copies: new Set(listed),
    grants: new Map(grants.map((grant) => [grant.delivery, grant])),
    reports: new Map(reports.map((report) => [report.delivery, report])),
  }
  for (const delivery of there.copies) judgeCopy(mirror.copy(delivery), delivery)
  for (const [delivery, grant] of there.grants) judgeGrant(grant, delivery)
  for (const [delivery, report] of there.reports) judgeReport(report, delivery)
  judgeCalls(there.copies)
  for (const step of done) judgeStep(String(step), there)
  if (mirror.incarnation <= incarnation)
    verdict.lost.push(`incarnation ${incarnation}: now ${mirror.incarnation}`)
  if (later(logId, mirror.lastLogId()) !== mirror.lastLogId())
    verdict.lost.push(`log id ${logId}: now ${mirror.lastLogId()}`)
}

/** @param {import('../../src/node/mirror.ts').StoredCopy | undefined} kept @param {string} delivery */
function judgeCopy(kept, delivery) {
  const { epoch, message, payload } = copyOf(delivery)
  const same =
    kept?.epoch === epoch && isDeepStrictEqual(kept.message, message) && kept.payload.equals(payload)
  if (!same) verdict.wrong.push(`copy ${delivery}`)
}

/** @param {import('../../src/node/mirror.ts').StoredGrant} kept @param {string} delivery */
function judgeGrant(kept, delivery) {
  const { grant, epoch } = grantOf(delivery)
  if (kept.grant !== grant || kept.epoch !== epoch) verdict.wrong.push(`grant ${delivery}`)
  if (done.has(`start ${delivery}`) && (kept.attempt !== 1 || kept.startedAtMs === undefined)) {
    verdict.lost.push(`start ${delivery}`)
  }
  if (done.has(`report ${delivery}`) && isUnknown(delivery) !== (kept.unknown !== undefined)) {
    verdict.lost.push(`the report's words on grant ${delivery}`)
  }
}

/** @param {import('../../src/node/mirror.ts').StoredReport} kept @param {string} delivery */
function judgeReport({ createdAtMs: _, ...kept }, delivery) {
  if (!isDeepStrictEqual(kept, reportOf(delivery))) verdict.wrong.push(`report ${delivery}`)
}

/** @param {Set<string>} copies */
function judgeCalls(copies) {
  for (const message of new Set([...copies].map(messageOf))) {
    const missing = deliveriesOf(message).filter((delivery) => !copies.has(delivery))
    if (missing.length > 0) verdict.torn.push(`copies ${message}: ${missing.join(' ')}`)
  }
}

/**
 * @param {string} line
 * @param {{ copies: Set<string>, grants: Map<string, unknown>, reports: Map<string, unknown> }} there
 */
function judgeStep(line, { copies, grants, reports }) {
  const [step = '', id = ''] = line.split(' ')
  /** @param {boolean} isThere */
  const mustBe = (isThere) => {
    verdict.compared += 1
    if (!isThere) verdict.lost.push(line)
  }
  /** @param {boolean} isThere */
  const mustNotBe = (isThere) => {
    verdict.gone += 1
    if (isThere) verdict.returned.push(line)
  }
  const forgets = depthOf(id) < 3 ? 'drop-grant' : 'answered'
  if (step === 'copies' && !asked.has(`drop-copies ${id}`))
    mustBe(deliveriesOf(id).every((delivery) => copies.has(delivery)))
  if ((step === 'mint' || step === 'start') && !asked.has(`${forgets} ${id}`)) mustBe(grants.has(id))
  if (step === 'report' && !asked.has(`answered ${id}`)) mustBe(reports.has(id))
  if (step === 'drop-copies') mustNotBe(deliveriesOf(id).some((delivery) => copies.has(delivery)))
  if (step === 'drop-grant') mustNotBe(grants.has(id))
  if (step === 'answered') mustNotBe(grants.has(id) || reports.has(id))
}

const listed = inspectCopy()
const mirror = openMirror({ file, ...owner })
compare(mirror, listed)
if (ending === 'close') await mirror.close()
process.stdout.write(`${JSON.stringify(verdict)}\n`, () => process.exit(0))
