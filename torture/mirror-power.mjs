// @ts-check
// Cuts the power under a node's mirror at random moments and looks whether all it acknowledged is there.
//
//   node torture/mirror-power.mjs [--cuts 30] [--seed N] [--loops 16] [--dir FOLDER] [--without-sync] [--json] [--out FILE]
//
// A child process writes into a real mirror on an ext4 file system in a loop device, and notes what was acknowledged on
// another one. `--without-sync` is the control: the same with the mirror's own syncs left out must lose writes. `--out`
// keeps the figures in a file.
// Exit 0 when nothing is lost (with the control: when something is), 1 otherwise, 4 where this cannot run.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { diskNeeds, makeDisk } from './disk.mjs'
import { atEnd } from './endings.mjs'
import { createRandom } from './random.mjs'

/** @typedef {import('./disk.mjs').Disk} Disk */
/** @typedef {{ integrity: string, lost: string[], returned: string[], wrong: string[], torn: string[], acknowledged: number, compared: number, gone: number }} Verdict */

const { values } = parseArgs({
  options: {
    cuts: { type: 'string', default: '30' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    loops: { type: 'string', default: '16' },
    dir: { type: 'string', default: tmpdir() },
    'without-sync': { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    out: { type: 'string' },
  },
})

const opensWithinMs = 20_000
/** One cut in four falls while the mirror is being opened, the others into the writing. */
const opening = { share: 0.25, leastMs: 40, mostMs: 260 }
const writing = { leastMs: 5, mostMs: 1_500 }
/** How often some pages, up to so many of all, reach the disk right before the cut, in no order. */
const scattered = { share: 0.5, mostPages: 0.5 }
const control = values['without-sync']

const why = diskNeeds()
if (why !== undefined) {
  process.stderr.write(`${why}\n`)
  process.exit(4)
}

const random = createRandom(values.seed)
const folder = mkdtempSync(join(values.dir, 'holdfast-mirror-power-'))
const notes = join(folder, 'notes')
const scratch = join(folder, 'scratch')
for (const path of [notes, scratch]) mkdirSync(path)
atEnd(() => rmSync(folder, { recursive: true, force: true }))

/** @param {string} program @param {string[]} words */
function start(program, words) {
  const path = fileURLToPath(new URL(program, import.meta.url))
  const child = spawn(process.execPath, [path, ...words], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  let complaint = ''
  child.stdout.on('data', (bytes) => {
    output += bytes
  })
  child.stderr.on('data', (bytes) => {
    complaint += bytes
  })
  const leaveOut = atEnd(() => void child.kill('SIGKILL'))
  const ended = once(child, 'close').then(() => {
    leaveOut()
    return { code: child.exitCode, output, complaint }
  })
  return { child, ended, output: () => output }
}

/** @param {Disk} disk @param {number} cut */
async function cutOnce(disk, cut) {
  const file = join(disk.dir, 'node', 'mirror.db')
  const words = [file, join(notes, `${cut}.jsonl`), String(cut), values.loops]
  const writer = start('mirror/writer.mjs', control ? [...words, 'without-sync'] : words)
  const inOpening = random.chance(opening.share)
  const { leastMs, mostMs } = inOpening ? opening : writing
  if (!inOpening) await opened(writer)
  await sleep(leastMs + random.next() * (mostMs - leastMs))
  const wasOpen = writer.output() !== ''
  if (random.chance(scattered.share)) {
    for (const end of ['', '-wal']) {
      disk.writeBack(`node/mirror.db${end}`, random.next() * scattered.mostPages, random.int(0, 1e6))
    }
  }
  writer.child.kill('SIGSTOP')
  await disk.cut(writer.child.pid)
  writer.child.kill('SIGKILL')
  const { complaint } = await writer.ended
  await disk.umount()
  disk.mount()
  return { file, wasOpen, complaint: wasOpen ? complaint : '' }
}

/** @param {ReturnType<typeof start>} writer */
async function opened(writer) {
  const deadline = performance.now() + opensWithinMs
  while (writer.output() === '') {
    if (writer.child.exitCode !== null || performance.now() > deadline) {
      const { complaint } = await writer.ended
      throw new Error(`the mirror does not open: ${complaint}`)
    }
    await sleep(2)
  }
}

/** @param {string} file @param {boolean} close @returns {Promise<Verdict>} */
async function judge(file, close) {
  const judged = start('mirror/judge.mjs', [file, notes, scratch, close ? 'close' : 'abandon'])
  const { code, output, complaint } = await judged.ended
  if (code === 0 && output !== '') return JSON.parse(output)
  const integrity = `the mirror cannot be opened again: ${complaint.trim().slice(-600)}`
  return { integrity, lost: [], returned: [], wrong: [], torn: [], acknowledged: 0, compared: 0, gone: 0 }
}

/** Acknowledged in one run of the writer. @param {number} cut */
function acknowledgedIn(cut) {
  try {
    return readFileSync(join(notes, `${cut}.jsonl`), 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('["ok"')).length
  } catch {
    return 0
  }
}

/** @param {Verdict} verdict */
function isClean({ integrity, lost, returned, wrong, torn }) {
  return integrity === 'ok' && lost.length + returned.length + wrong.length + torn.length === 0
}

const total = {
  cuts: 0,
  whileOpening: 0,
  acknowledged: 0,
  leastAcknowledged: Number.POSITIVE_INFINITY,
  mostAcknowledged: 0,
  compared: 0,
  gone: 0,
  lost: 0,
  returned: 0,
  wrong: 0,
  torn: 0,
  corrupt: 0,
}

/** @param {Verdict} verdict @param {boolean} wasOpen @param {number} acknowledged */
function count(verdict, wasOpen, acknowledged) {
  total.cuts += 1
  if (wasOpen) {
    total.leastAcknowledged = Math.min(total.leastAcknowledged, acknowledged)
    total.mostAcknowledged = Math.max(total.mostAcknowledged, acknowledged)
  } else total.whileOpening += 1
  total.acknowledged += acknowledged
  total.compared += verdict.compared
  total.gone += verdict.gone
  total.lost += verdict.lost.length
  total.returned += verdict.returned.length
  total.wrong += verdict.wrong.length
  total.torn += verdict.torn.length
  if (verdict.integrity !== 'ok') total.corrupt += 1
}

/** @param {string} line */
function say(line) {
  if (!values.json) process.stdout.write(`${line}\n`)
}

/** @param {number} cut @param {Verdict} verdict @param {boolean} wasOpen @param {number} acknowledged */
function sayCut(cut, verdict, wasOpen, acknowledged) {
  const { integrity, lost, returned, wrong, torn } = verdict
  const moment = wasOpen ? '' : ', while it opened'
  say(
    `cut ${cut}: acknowledged ${acknowledged}${moment}; compared ${verdict.compared}, lost ${lost.length}, ` +
      `returned ${returned.length}, wrong ${wrong.length}, torn ${torn.length}, integrity ${integrity}`,
  )
  for (const line of [...lost, ...returned, ...wrong, ...torn].slice(0, 5)) say(`  ${line}`)
}

async function main() {
  say(`seed ${values.seed}${control ? ', control: the mirror syncs nothing of its own' : ''}`)
  const disk = makeDisk(folder, 'disk', { sizeMib: 512 })
  const startedAt = performance.now()
  let clean = true
  try {
    for (let cut = 1; cut <= Number(values.cuts); cut += 1) {
      const { file, wasOpen, complaint } = await cutOnce(disk, cut)
      const verdict = await judge(file, random.chance(0.5))
      const acknowledged = acknowledgedIn(cut)
      count(verdict, wasOpen, acknowledged)
      sayCut(cut, verdict, wasOpen, acknowledged)
      if (complaint !== '') say(`  the writer said: ${complaint.trim().slice(-600)}`)
      if (isClean(verdict)) continue
      clean = false
      break
    }
  } finally {
    await disk.remove()
  }
  const seconds = Math.round((performance.now() - startedAt) / 1000)
  const { leastAcknowledged, ...rest } = total
  const figures = { seed: values.seed, control, clean, ...rest, leastAcknowledged: finite(leastAcknowledged) }
  if (values.json) process.stdout.write(`${JSON.stringify(figures)}\n`)
  if (values.out !== undefined) {
    mkdirSync(dirname(values.out), { recursive: true })
    writeFileSync(
      values.out,
      `${JSON.stringify({ at: new Date().toISOString(), ...figures, seconds }, null, 1)}\n`,
    )
  }
  say(
    `${total.cuts} power cuts (${total.whileOpening} while it opened): acknowledged ${total.acknowledged} ` +
      `(${figures.leastAcknowledged} to ${total.mostAcknowledged} a cut), lost ${total.lost}, returned ${total.returned}, ` +
      `wrong ${total.wrong}, torn ${total.torn}, corrupt files ${total.corrupt}`,
  )
  process.exitCode = clean === control ? 1 : 0
}

/** @param {number} value */
function finite(value) {
  return Number.isFinite(value) ? value : 0
}

await main()
