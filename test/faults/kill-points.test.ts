import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Point, points } from '../../src/contract/points.js'
import {
  killChildren,
  type NodeProcessOptions,
  readMarks,
  type SignalAt,
  startHubProcess,
  startNodeProcess,
} from '../support/child.js'
import { makeRecord, settlement, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// Real processes are killed with SIGKILL at every named point and started again. Nothing may be lost, nothing may
// run twice, and what nobody can know must be listed. A point that is not reached fails its test. Each has a record,
// processes and files of its own, so several go at a time: most of each is the start of processes.

let server: TestServer
let dir: string

beforeAll(async () => {
  server = await startTestServer()
  dir = mkdtempSync(join(tmpdir(), 'holdfast-kill-'))
})

afterAll(async () => {
  await killChildren()
  await server?.stop()
  rmSync(dir, { recursive: true, force: true })
})

/** How the first delivery must end when its node is killed at a point. */
interface NodeEndState {
  /** The state the record must be left in by the killed process: what was sent has arrived. */
  readonly left: 'queued' | 'claimed' | 'mirrored' | 'delivered'
  readonly end: 'done' | 'unknown'
  /** Begin and end marks that the handler wrote outside the record, over both processes. */
  readonly marks: readonly [begins: number, ends: number]
  /** Status of its attempts, in order. */
  readonly attempts: readonly string[]
  /** How often its owner changed in all. */
  readonly epoch: number
}

type NodePoint = Exclude<Point, `accept.${string}` | `fan_out.${string}`>

const runs = { end: 'done', marks: [1, 1], attempts: ['done'] } as const
const resumed = { ...runs, epoch: 2 } as const
/** A granted begin without a start mark is proof: closed as not_sent, queued again, claimed again. */
const provenNotSent = { ...runs, attempts: ['not_sent', 'done'], epoch: 3 } as const
const unknown = { end: 'unknown', attempts: ['executing'], epoch: 1 } as const
const reported = { ...runs, epoch: 1 } as const

const nodePoints: Readonly<Record<NodePoint, NodeEndState>> = {
  'claim.before': { left: 'queued', ...runs, epoch: 1 },
  'claim.sent': { left: 'claimed', ...resumed },
  'claim.answered': { left: 'claimed', ...resumed },
  'copy.stored': { left: 'claimed', ...resumed },
  'grant.stored': { left: 'claimed', ...resumed },
  'take.before': { left: 'claimed', ...resumed },
  'take.sent': { left: 'delivered', ...provenNotSent },
  'take.answered': { left: 'delivered', ...provenNotSent },
  'begin.before': { left: 'delivered', ...resumed },
  'begin.sent': { left: 'delivered', ...provenNotSent },
  'begin.answered': { left: 'delivered', ...provenNotSent },
  'start.marked': { left: 'delivered', ...unknown, marks: [0, 0] },
  'execute.entered': { left: 'delivered', ...unknown, marks: [0, 0] },
  'execute.left': { left: 'delivered', ...unknown, marks: [1, 1] },
  'outcome.stored': { left: 'delivered', ...reported },
  'report.before': { left: 'delivered', ...reported },
  'report.sent': { left: 'delivered', ...reported },
  'report.answered': { left: 'delivered', ...reported },
  'report.settled': { left: 'delivered', ...reported },
}

/** Whether the dead process had opened the attempt in the record, and whether it had settled it. */
const attemptAfter: Partial<Record<NodePoint | 'handler', string>> = {
  'take.sent': 'executing',
  'take.answered': 'executing',
  'begin.sent': 'executing',
  'begin.answered': 'executing',
  'start.marked': 'executing',
  'execute.entered': 'executing',
  handler: 'executing',
  'execute.left': 'executing',
  'outcome.stored': 'executing',
  'report.before': 'executing',
  'report.sent': 'done',
  'report.answered': 'done',
  'report.settled': 'done',
}

it('names every point once, for a hub or for a node', () => {
  expect([...hubCases.map((each) => each.point), ...Object.keys(nodePoints)]).toEqual(
    expect.arrayContaining([...points]),
  )
})

describe.concurrent('a node is killed', () => {
  for (const [point, expected] of Object.entries(nodePoints) as [NodePoint, NodeEndState][]) {
    it(`at ${point}: its delivery ends ${expected.end}`, async () => {
      await killNode(point, expected)
    })
  }

  it('between the two marks of its handler: its delivery ends unknown', async () => {
    await killNode('handler', { left: 'delivered', ...unknown, marks: [1, 0] })
  })
})

async function killNode(point: NodePoint | 'handler', expected: NodeEndState): Promise<void> {
  const name = `kill-${point.replace('_', '-')}`
  const record = await makeRecord(server, name, { heartbeat_ms: 100, stale_after_ms: 60_000 })
  const { hub } = record
  try {
    // Two in one lane: one meets the point, the other shows that its neighbour is not buried. The first is begun as it
    // is taken on; begun by itself is one that had to wait behind another.
    const lane = [await deliverOne(record), await deliverOne(record)] as const
    const [first, second] = point.startsWith('begin.') ? [lane[1], lane[0]] : lane
    const marks = join(dir, `${name}.marks`)
    writeFileSync(marks, '')
    const options = { redis: server.url, hub: name, host: 'h1', mirror: join(dir, `${name}.db`), marks }

    await runUntilKilled(point, options)
    const left = await until(
      async () => {
        const view = await hub.delivery(first)
        const reached = view.state === expected.left && view.attempts[0]?.status === attemptAfter[point]
        return reached ? view : undefined
      },
      {
        timeoutMs: 30_000,
        what: `the killed process leaving ${expected.left} ${attemptAfter[point] ?? 'without attempt'}`,
      },
    )
    const successor = startNodeProcess(options)
    const ends = await Promise.all([settlement(record, first), settlement(record, second)])

    // Once an outcome is durable the lane passes on: the dead process may have been at the neighbour by then.
    const passedOn = point.startsWith('report.') && ends[1] === 'unknown'
    expect(ends).toEqual([expected.end, passedOn ? 'unknown' : 'done'])
    const view = await hub.delivery(first)
    expect(view.attempts.map((attempt) => attempt.status)).toEqual(expected.attempts)
    expect(view.epoch).toBe(expected.epoch)
    expect(view.epoch).toBeGreaterThanOrEqual(left.epoch)
    expect(countMarks(marks, first)).toEqual(expected.marks)
    if (passedOn) expect(countMarks(marks, second)[0]).toBeLessThanOrEqual(1)
    else expect(countMarks(marks, second)).toEqual([1, 1])
    const unknowns = [expected.end === 'unknown' ? first : '', passedOn ? second : '']
    await expectListed(record, unknowns.filter(Boolean))
    await successor.kill()
    await record.checkInvariants()
    expect(await hub.pending()).toEqual([])
  } finally {
    await record.close()
  }
}

async function deliverOne(record: TestRecord): Promise<string> {
  const { deliveries } = await record.accept({ conversation: 'lane', to: [{ host: 'h1' }] })
  return deliveries[0]?.id ?? ''
}

async function runUntilKilled(point: NodePoint | 'handler', options: NodeProcessOptions): Promise<void> {
  const how =
    point === 'handler'
      ? ({ inHandler: 'SIGKILL' } as const)
      : { at: { point, signal: 'SIGKILL' } satisfies SignalAt }
  const victim = startNodeProcess({ ...options, ...how })
  await victim.line(point === 'handler' ? 'executing' : 'hit')
  expect(await victim.ended).toBe('SIGKILL')
}

function countMarks(file: string, delivery: string): [begins: number, ends: number] {
  const marks = readMarks(file).filter((mark) => mark.delivery === delivery)
  return [
    marks.filter((mark) => mark.what === 'begin').length,
    marks.filter((mark) => mark.what === 'end').length,
  ]
}

async function expectListed({ hub }: TestRecord, deliveries: readonly string[]): Promise<void> {
  const listed = (await hub.unknown()).map(({ id, reason, host, node }) => ({ id, reason, host, node }))
  expect(listed).toEqual(
    deliveries.map((id) => ({ id: `${id}/1`, reason: 'executor_died', host: 'h1', node: 'h1/h1' })),
  )
}

interface HubCase {
  readonly point: Point
  readonly nth: number
  /** Deliveries that the killed process has made; undefined when it has stored nothing at all. */
  readonly made: number | undefined
  /** Who completes it: the producer's retry, or the next hub by itself. */
  readonly healedBy: 'retry' | 'repair'
}

const recipients = Array.from({ length: 100 }, (_, at) => ({ host: `host-${at}` }))
const [inline, chunk] = [2, 64]

const hubCases: readonly HubCase[] = [
  { point: 'accept.before', nth: 1, made: undefined, healedBy: 'retry' },
  { point: 'accept.sent', nth: 1, made: inline, healedBy: 'retry' },
  { point: 'accept.answered', nth: 1, made: inline, healedBy: 'retry' },
  { point: 'fan_out.before', nth: 1, made: inline, healedBy: 'retry' },
  { point: 'fan_out.sent', nth: 1, made: inline + chunk, healedBy: 'retry' },
  { point: 'fan_out.answered', nth: 1, made: inline + chunk, healedBy: 'retry' },
  { point: 'fan_out.before', nth: 2, made: inline + chunk, healedBy: 'repair' },
  { point: 'fan_out.sent', nth: 2, made: recipients.length, healedBy: 'retry' },
  { point: 'fan_out.answered', nth: 1, made: inline + chunk, healedBy: 'repair' },
  { point: 'fan_out.answered', nth: 2, made: recipients.length, healedBy: 'repair' },
]

describe.concurrent('a hub is killed while it accepts', () => {
  for (const each of hubCases) {
    it(`at ${each.point}, time ${each.nth}: one message, healed by ${each.healedBy}`, async () => {
      await killHub(each)
    })
  }
})

async function killHub({ point, nth, made, healedBy }: HubCase): Promise<void> {
  const name = `kill-${point.replace('_', '-')}-${nth}-${healedBy}`
  const record = await makeRecord(server, name, { inline_fan_out: inline })
  const { hub } = record
  try {
    const message = { key: 'k1', conversation: 'c1', sender: 's1', to: recipients, payload: 'to all' }
    const at = { point, nth, signal: 'SIGKILL' } as const
    const victim = startHubProcess({ redis: server.url, hub: name, message, at })
    await victim.line('hit', point)
    expect(await victim.ended).toBe('SIGKILL')
    await until(async () => (await hub.counts())['queued'] === made, {
      what: `the killed process leaving ${made} deliveries`,
    })
    await record.checkInvariants()

    const retried = healedBy === 'retry' ? message : undefined
    const successor = startHubProcess({ redis: server.url, hub: name, message: retried })
    const line = await successor.line(retried ? 'accepted' : 'repaired')
    expect(await successor.ended).toBe(0)
    await record.checkInvariants()
    await expectComplete(record, retried && line['accepted'], made !== undefined)
  } finally {
    await record.close()
  }
}

/** One message, and one delivery for every recipient; the retry was answered with them. */
async function expectComplete(record: TestRecord, accepted: unknown, replayed: boolean): Promise<void> {
  const messages = Object.keys(await record.dump()).filter((key) => key.startsWith(':message:'))
  expect(messages).toHaveLength(1)
  const id = messages[0]?.slice(':message:'.length) ?? ''
  const view = await record.hub.message(id)
  expect(view.fanOut).toBe('complete')
  expect(view.deliveries.map((delivery) => delivery.host)).toEqual(recipients.map(({ host }) => host))
  if (accepted === undefined) return
  const deliveries = view.deliveries.map(({ id: delivery, host, state }) => ({ id: delivery, host, state }))
  expect(accepted).toEqual({ id, deliveries, fanOut: 'complete', replayed })
}
