// @ts-check
// npm run demo: real messages, real commands, real kills, and a judge that does not ask the broker.
// Options: --messages N (200), --keep (leave the data folder behind).
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import Table from 'cli-table3'
import { hosts, openCluster } from './cluster.mjs'
import { judge } from './judge.mjs'
import { readMarks } from './marks.mjs'
import { progress, say } from './screen.mjs'
import { readSources } from './sources.mjs'
import { play } from './story.mjs'

/**
 * @typedef {import('./cluster.mjs').Cluster} Cluster
 * @typedef {import('./judge.mjs').Verdict} Verdict
 * @typedef {import('./story.mjs').Story} Story
 */

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
const fewestMessages = 60
const shownAtMost = 10
const columns = /** @type {const} */ (['done', 'unknown', 'held', 'failed', 'unfinished'])

const { values } = parseArgs({
  options: { messages: { type: 'string', default: '200' }, keep: { type: 'boolean', default: false } },
})
const sources = readSources(root, Number(values.messages))
if (!(sources.length >= fewestMessages)) {
  console.error(
    `the demo needs ${fewestMessages} messages or more; --messages ${values.messages} gives ${sources.length}`,
  )
  process.exit(2)
}

say(
  `${sources.length} source files, ${hosts.length} hosts: ${sources.length * hosts.length} deliveries to run sha256sum on`,
)
const opening = openCluster({ keep: values.keep })
let interrupted = false
for (const name of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
  process.once(name, () => {
    interrupted = true
    opening.then((opened) => opened.close()).finally(() => process.exit(130))
  })
}
const cluster = await opening
const code = await run().catch(brokeOff)
await cluster.close()
if (values.keep) console.error(`kept ${cluster.folder}`)
process.exit(interrupted ? 130 : code) // an act that broke off may still be waiting for something

async function run() {
  /** @type {Story} */
  const story = { cluster, sources, sent: [], killed: [], blocked: [], findings: [], marksFiles: [] }
  const ticker = setInterval(() => void showProgress(story), 250)
  const played = await Promise.race([play(story), watchNodes()]).then(() => 0, brokeOff)
  clearInterval(ticker)
  return (await conclude(story)) ? played : 1
}

/** @param {unknown} error */
function brokeOff(error) {
  if (!interrupted) say(`the demo broke off: ${error instanceof Error ? error.message : error}`)
  return 1
}

/** @param {Story} story */
async function showProgress({ sent }) {
  const counts = await cluster.hub.counts().catch(() => undefined)
  if (counts === undefined || sent.length === 0) return
  const { done = 0, queued = 0, delivered = 0, held = 0, failed = 0 } = counts
  const of = sent.flatMap((each) => each.deliveries).length
  const aside = held + failed > 0 ? `, ${held} held, ${failed} blocked` : ''
  progress(`${done} of ${of} done, ${delivered - done} handed over, ${queued} queued${aside}`)
}

/** Rejects when a node ends that nobody asked to. */
async function watchNodes() {
  return await new Promise((_, reject) => {
    setInterval(() => {
      const failure = cluster.failure()
      if (failure !== undefined) reject(new Error(failure))
    }, 100).unref()
  })
}

/** Hears the judge and prints what it found; true when everything is as promised. @param {Story} story */
async function conclude(story) {
  const { hub } = cluster
  const messages = await Promise.all(story.sent.map((sent) => hub.message(sent.message)))
  const unknown = await hub.unknown()
  const marks = readMarks(story.marksFiles)
  const rows = messages.flatMap((message) => message.deliveries)
  const { sent, killed, blocked } = story
  const verdict = judge({ sent, rows, unknown, marks, killed, blocked })
  const findings = [...story.findings, ...verdict.findings]
  const begins = marks.filter((mark) => mark.kind === 'begin').length
  say(`judged ${verdict.states.size} deliveries by ${begins} begin and ${marks.length - begins} end marks`)

  console.log(`\n${tableOf(verdict)}\n`)
  for (const host of hosts) {
    const pending = await hub.pending(host)
    console.log(
      `pending ${host} ${pending.length}${pending.map((entry) => ` ${entry.delivery ?? entry.entry}`).join('')}`,
    )
  }
  console.log(`unknown ${unknown.length}`)
  for (const { id, reason, node, host } of unknown) {
    const seen = marks.filter((mark) => mark.attempt === id).map((mark) => mark.kind)
    console.log(`  ${id} on ${node ?? host}: ${reason} (its marks: ${seen.join(', ') || 'none'})`)
  }
  const failed = [...verdict.states.values()].filter(({ state }) => state === 'failed').length
  console.log(`failed ${failed}, of which the block on ${blocked.join(', ')} was to fail ${verdict.blocked}`)
  for (const { kind, id, text } of findings.slice(0, shownAtMost)) console.log(`${kind}: ${id} ${text}`)
  if (findings.length > shownAtMost) console.log(`and ${findings.length - shownAtMost} more`)
  await explain(verdict)

  const count = /** @param {string} kind */ (kind) =>
    findings.filter((finding) => finding.kind === kind).length
  if (count('wrong') > 0) console.log(`wrong ${count('wrong')}`)
  console.log(`lost ${count('lost')}, executed twice ${count('twice')}`)
  return findings.length === 0 && story.sent.length >= sources.length
}

/** @param {Verdict} verdict */
function tableOf({ states }) {
  const table = new Table({ head: ['host', 'accepted', ...columns], style: { head: [], border: [] } })
  for (const host of [...hosts, 'all']) {
    const mine = [...states.values()].filter((each) => host === 'all' || each.host === host)
    table.push([
      host,
      mine.length,
      ...columns.map((state) => mine.filter((each) => each.state === state).length),
    ])
  }
  return table.toString()
}

/** Says why what is unfinished does not go on. @param {Verdict} verdict */
async function explain({ states }) {
  const stuck = [...states].filter(([, { state }]) => state === 'unfinished').slice(0, shownAtMost)
  for (const [id] of stuck) console.log(`why ${id}: ${JSON.stringify(await cluster.hub.why(id))}`)
}
