import { writeFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Child, killChildren, readMarks, startHubProcess, startNodeProcess } from '../support/child.js'
import { freshPath, startNode, stopNodes } from '../support/nodes.js'
import { makeRecord, settlement, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

let server: TestServer
let record: TestRecord

beforeAll(async () => {
  server = await startTestServer()
})
afterEach(async () => {
  await killChildren()
  await stopNodes()
  await record.close()
})
afterAll(() => server?.stop())

const dayMs = 86_400_000
const skews = [
  ['a day ahead', dayMs],
  ['a day behind', -dayMs],
] as const

/** Starts a process whose clock is off by so much; the monotonic one is as it is. */
function skewed(byMs: number, start: () => Child): Child {
  const preload = freshPath('cjs')
  writeFileSync(
    preload,
    `const RealDate = Date, real = Date.now
     Date.now = () => real() + ${byMs}
     globalThis.Date = class Date extends RealDate {
       constructor(...given) { if (given.length === 0) super(RealDate.now()); else super(...given) }
     }`,
  )
  const before = process.env['NODE_OPTIONS']
  process.env['NODE_OPTIONS'] = `--require ${preload}`
  try {
    return start()
  } finally {
    if (before === undefined) delete process.env['NODE_OPTIONS']
    else process.env['NODE_OPTIONS'] = before
  }
}

function nodeOptions(name: string, more: { notSentTimes?: number } = {}) {
  const marks = freshPath('marks')
  writeFileSync(marks, '')
  return {
    redis: server.url,
    hub: record.name,
    host: 'h1',
    node: name,
    mirror: freshPath('db'),
    marks,
    ...more,
  }
}

async function acceptOne(more: { deliverBy?: number; executeBy?: number; conversation?: string } = {}) {
  const { deliveries } = await record.accept({ to: [{ host: 'h1' }], ...more })
  return deliveries[0]?.id ?? ''
}

const nearNow = async (ms: unknown) => Math.abs(Number(ms) - (await record.nowMs())) < dayMs / 2

describe.each(skews)('faults.md 11: a caller whose clock is %s', (what, byMs) => {
  const name = (test: string) => `clock-${test}-${what.replaceAll(' ', '-')}`

  it('decides no deadline: what has time left is executed, what has none is not', async () => {
    record = await makeRecord(server, name('deadline'), { heartbeat_ms: 100 })
    const now = await record.nowMs()
    const open = await acceptOne({ deliverBy: now + 3_600_000, executeBy: now + 3_600_000 })
    const late = await acceptOne({ deliverBy: now - 1 })
    const tooLate = await acceptOne({ executeBy: now - 1, conversation: 'c2' })
    const options = nodeOptions('a')
    const child = skewed(byMs, () => startNodeProcess(options))
    expect(await Promise.all([open, late, tooLate].map((id) => settlement(record, id)))).toEqual([
      'done',
      'failed',
      'failed',
    ])
    expect(new Set(readMarks(options.marks).map(({ delivery }) => delivery))).toEqual(new Set([open]))
    const row = await record.fields(open)
    for (const field of ['claimed_at', 'mirrored_at', 'delivered_at', 'attempt_1_begun_at', 'settled_at'])
      expect(await nearNow(row[field]), field).toBe(true)
    await child.kill()
    await record.checkInvariants()
  })

  it('is not stale while it beats, and takes nothing from one that does', async () => {
    record = await makeRecord(server, name('stale'), { heartbeat_ms: 100, stale_after_ms: 3000 })
    const options = { ...nodeOptions('a'), gated: true }
    const child = skewed(byMs, () => startNodeProcess(options))
    await child.line('started')
    const held = await acceptOne()
    const behind = await acceptOne()
    await child.line('executing', `${held}/1`)
    await startNode({ redis: server.url, hub: record.name, host: 'h1', node: 'b' })
    const from = await record.nowMs()
    await until(async () => (await record.nowMs()) > from + 4000)
    expect(await record.fields(behind)).toMatchObject({ owner: 'a', epoch: '1', state: 'delivered' })
    expect(await record.hub.unknown()).toEqual([])
    child.send('go')
    expect(await settlement(record, behind)).toBe('done')
    expect(await record.fields(behind)).toMatchObject({ epoch: '1' })
  })

  it('is taken over by the clock of Redis once it is silent', async () => {
    record = await makeRecord(server, name('silent'), { heartbeat_ms: 100, stale_after_ms: 500 })
    const child = skewed(byMs, () => startNodeProcess({ ...nodeOptions('a'), gated: true }))
    await child.line('started')
    const open = await acceptOne()
    const behind = await acceptOne()
    await child.line('executing', `${open}/1`)
    await until(async () => (await record.states([behind]))[0] === 'delivered')
    await child.kill()
    await startNode({ redis: server.url, hub: record.name, host: 'h1', node: 'b' })
    expect(await settlement(record, behind)).toBe('done')
    expect(await record.fields(behind)).toMatchObject({ epoch: '2', taken_from: 'a#1' })
    expect(await record.hub.unknown()).toMatchObject([{ id: `${open}/1`, reason: 'stale' }])
  })

  it('wakes when a fence lapses by the clock of Redis', async () => {
    record = await makeRecord(server, name('fence'), { heartbeat_ms: 100 })
    const untilMs = (await record.nowMs()) + 1500
    await record.functions.pause('hub', 'wait', 'kim', untilMs)
    const id = await acceptOne()
    skewed(byMs, () => startNodeProcess(nodeOptions('a')))
    expect(await settlement(record, id)).toBe('done')
    expect(Number((await record.fields(id))['claimed_at'])).toBeGreaterThanOrEqual(untilMs)
  })

  it('writes no time of its own when it accepts', async () => {
    record = await makeRecord(server, name('accept'), { inline_fan_out: 1 })
    const message = {
      key: 'k',
      conversation: 'c',
      sender: 's',
      payload: 'p',
      to: ['h1', 'h2'].map((host) => ({ host })),
    }
    const hub = skewed(byMs, () => startHubProcess({ redis: server.url, hub: record.name, message }))
    const { accepted } = await hub.line('accepted')
    const { id } = accepted as { id: string }
    expect(await nearNow(id.split('-')[0])).toBe(true)
    expect(await nearNow((await record.hub.message(id)).acceptedAt)).toBe(true)
    const rows = await Promise.all([1, 2].map((n) => record.fields(`${id}.${n}`)))
    for (const row of rows) expect(await nearNow(row['queued_at'])).toBe(true)
  })

  it('whose clock is then put right tries again what it had put off', async () => {
    record = await makeRecord(server, name('backoff'), { heartbeat_ms: 100 })
    const options = nodeOptions('a', { notSentTimes: 1 })
    const id = await acceptOne()
    const first = skewed(byMs, () => startNodeProcess(options))
    await first.line('log', 'not sent; tried again')
    await first.kill()
    startNodeProcess(options)
    expect(await settlement(record, id)).toBe('done')
  })
})
