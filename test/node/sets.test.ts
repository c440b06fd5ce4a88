import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { hubOf } from '../../src/contract/hub-set.js'
import { startSetServer } from '../../src/http/set-server.js'
import { createNode, type NodeBasics } from '../../src/node/create-node.js'
import type { Attempt } from '../../src/node/executor.js'
import { sweepsOnDemand } from '../../src/sweeps/on-demand.js'
import { killChildren, readMarks, startNodeProcess } from '../support/child.js'
import { freshPath, type RunningNode, type SomeOptions, startNode, stopNodes } from '../support/nodes.js'
import { makeRecord, settlement, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// A node that works on all the hubs of a set.

let server: TestServer
let records: TestRecord[]
let names: string[]
let sets = 0

beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server?.stop())
beforeEach(async () => {
  sets += 1
  names = [0, 1, 2, 3].map((at) => `set${sets}-${at}`)
  records = await Promise.all(names.map((name) => makeRecord(server, name, { heartbeat_ms: 100 })))
})
afterEach(async () => {
  await killChildren()
  await stopNodes()
  for (const record of records) {
    await record.checkInvariants()
    await record.close()
  }
})

/** A delivery as the set says it. */
interface Sent {
  readonly record: TestRecord
  /** On its hub. */
  readonly id: string
  /** With the hub's name before it. */
  readonly name: string
}

function recordOf(hub: string): TestRecord {
  const record = records[names.indexOf(hub)]
  if (record === undefined) throw new Error(`no hub ${hub}`)
  return record
}

/** Accepts messages, in order, each on the hub of its conversation. */
async function send(conversations: readonly string[]): Promise<Sent[]> {
  const sent: Sent[] = []
  for (const conversation of conversations) {
    const record = recordOf(hubOf(conversation, names))
    const { deliveries } = await record.accept({ conversation })
    sent.push(...deliveries.map(({ id }) => ({ record, id, name: `${record.name}:${id}` })))
  }
  return sent
}

/** Accepts messages on one hub, each in a conversation of its own. */
async function sendTo(hub: string, count: number, sender = 'tests'): Promise<Sent[]> {
  const record = recordOf(hub)
  const replies = await Promise.all(
    Array.from({ length: count }, (_, at) =>
      record.accept({ conversation: `${hub} ${at} of ${count}`, sender }),
    ),
  )
  return replies.flatMap(({ deliveries }) =>
    deliveries.map(({ id }) => ({ record, id, name: `${hub}:${id}` })),
  )
}

/** Every one is executed, and that is on record. */
async function allDone(sent: readonly Sent[]): Promise<void> {
  for (const { record, id } of sent) expect(await settlement(record, id)).toBe('done')
}

/** How many have an attempt. */
async function begunOf(sent: readonly Sent[]): Promise<number> {
  const rows = await Promise.all(sent.map(({ record, id }) => record.fields(id)))
  return rows.filter((row) => Number(row['attempts']) > 0).length
}

function startSet(options: SomeOptions = {}): Promise<RunningNode> {
  return startNode({ redis: server.url, hubs: names, host: 'a', mirror: freshPath('mirrors'), ...options })
}

/** A handler that counts how many of it run; each waits for `open`, where the test says so. */
function counted(gate: Promise<unknown> = Promise.resolve()) {
  const count = { running: 0, most: 0 }
  const execute = async () => {
    count.running += 1
    count.most = Math.max(count.most, count.running)
    await gate
    // A turn of the event loop each: long enough for others to come in beside it.
    await new Promise((resolve) => setImmediate(resolve))
    count.running -= 1
  }
  return { count, execute }
}

function opening(): { readonly gate: Promise<void>; open(): void } {
  let open = () => {}
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  return { gate, open }
}

const idsOf = (attempts: readonly Attempt[]) => attempts.map(({ deliveryId }) => deliveryId)

describe('a node of several hubs', () => {
  it('executes everything of each once, a conversation in its order, within one concurrency', async () => {
    const conversations = Array.from({ length: 240 }, (_, at) => `c${(at * 7) % 40}`)
    const early = await send(conversations.slice(0, 120))
    const { count, execute } = counted()
    const node = await startSet({ concurrency: 6, execute })
    const sent = [...early, ...(await send(conversations.slice(120)))]
    await allDone(sent)
    expect(new Set(sent.map(({ record }) => record.name)).size, 'hubs that had work').toBe(4)
    expect(idsOf(node.executed).sort()).toEqual(sent.map(({ name }) => name).sort())
    for (const conversation of new Set(conversations)) {
      const ofIt = node.executed.filter(({ message }) => message.conversation === conversation)
      const accepted = sent.filter((_, at) => conversations[at] === conversation)
      expect(idsOf(ofIt), conversation).toEqual(accepted.map(({ name }) => name))
    }
    expect(count.most).toBeLessThanOrEqual(6)
  })

  it('says in every attempt which hub it is of, also in its ids', async () => {
    const [hub = ''] = names
    const [sent] = await sendTo(hub, 1)
    const { executed } = await startSet()
    await allDone(sent === undefined ? [] : [sent])
    const [attempt] = executed
    const message = sent?.id.slice(0, sent.id.lastIndexOf('.'))
    expect(attempt).toMatchObject({
      hub,
      id: `${sent?.name}/1`,
      deliveryId: sent?.name,
      message: { id: `${hub}:${message}` },
    })
  })

  it('gives a hub with little to do its turns beside one with a backlog', async () => {
    const [busy = '', quiet = ''] = names
    const backlog = await sendTo(busy, 400)
    const { gate, open } = opening()
    const node = await startSet({ concurrency: 4, execute: counted(gate).execute })
    await until(() => node.executed.length === 4, { what: 'the busy hub having all places' })
    const few = await sendTo(quiet, 20)
    open()
    await allDone([...backlog, ...few])
    const order = node.executed.map(({ hub }) => hub)
    expect(order).toHaveLength(420)
    // In strict turns the last of the twenty would be the fortieth, after the four that had their places before.
    expect(order.lastIndexOf(quiet)).toBeLessThan(120)
  })

  it('lets a hub that is alone with its work have all of the concurrency', async () => {
    const [busy = ''] = names
    const sent = await sendTo(busy, 60)
    const { gate, open } = opening()
    const { count, execute } = counted(gate)
    await startSet({ concurrency: 16, execute })
    await until(() => count.running === 16, { what: 'all places being taken' })
    open()
    await allDone(sent)
    expect(count.most).toBe(16)
  })

  it('takes on no more than it has room for, of all hubs together', async () => {
    for (const hub of names) await sendTo(hub, 60)
    const { gate, open } = opening()
    const { node, executed } = await startSet({ concurrency: 4, buffer: 8, execute: () => gate })
    await until(() => executed.length === 4, { what: 'all places being taken' })
    const taken = async () => {
      const counts = await Promise.all(records.map(({ hub }) => hub.counts()))
      return counts.reduce((sum, each) => sum + 60 - (each['queued'] ?? 0), 0)
    }
    // Eight, and two beside them for each of the hubs that came late.
    await until(async () => (await taken()) >= 8 + 3 * 2, { what: 'the buffer being full' })
    expect(await taken()).toBe(8 + 3 * 2)
    open()
    await node.stop()
  })

  it('finds what comes to any of its hubs later, however long that was idle', async () => {
    const node = await startSet()
    for (const hub of [...names, ...names].reverse()) await allDone(await sendTo(hub, 3))
    expect(node.executed).toHaveLength(24)
  })
})

describe('a hub of the set that does not answer', () => {
  it('stalls what is its own alone, also where that had all places, and goes on when it is back', async () => {
    const [lost = '', ...others] = names
    const record = recordOf(lost)
    const identity = record.keys.identity
    const before = await record.fields('none').then(() => record.send('HGETALL', identity))
    const own = await sendTo(lost, 6)
    const { gate, open } = opening()
    const [free, behindGate] = [counted(), counted(gate)]
    let broken = false
    const node = await startSet({
      concurrency: 2,
      execute: ({ hub, message }) =>
        hub !== lost && message.sender === 'late' ? behindGate.execute() : free.execute(),
      // Its places are taken by then; the call that hands off and begins is refused until the identity is back.
      onPoint: (point) => {
        if (point !== 'take.before' || broken) return
        broken = true
        server.cli('DEL', identity)
      },
    })
    await until(() => broken)
    const elsewhere = (await Promise.all(others.map((hub) => sendTo(hub, 20)))).flat()
    await allDone(elsewhere)
    const late = (await Promise.all(others.map((hub) => sendTo(hub, 3, 'late')))).flat()
    await until(() => behindGate.count.running === 2, { what: 'the others having all places' })
    await record.send('HSET', identity, ...pairsOf(before))
    await until(async () => (await begunOf(own)) === 2, { what: 'what was handed off being begun' })
    expect(
      node.executed.filter(({ hub }) => hub === lost),
      'what found its place taken',
    ).toEqual([])
    open()
    await allDone([...late, ...own])
    expect(node.executed).toHaveLength(75)
    expect(behindGate.count.most).toBe(2)
  })

  it('that has no record refuses the start of the whole node, which leaves the others', async () => {
    const sent = await send(Array.from({ length: 40 }, (_, at) => `c${at}`))
    const mirror = freshPath('mirrors')
    const options = { redis: server.url, hubs: [...names, 'never-made'], host: 'a', mirror }
    const node = createNode({ ...options, execute: () => 'done' })
    await expect(node.start()).rejects.toThrow('STORE_UNKNOWN')
    expect(await node.closed).toMatchObject({ kind: 'failed', error: { code: 'STORE_UNKNOWN' } })
    // What it had taken on is free: a node of the hubs that are there does all of it.
    await startSet({ node: 'heir' })
    await allDone(sent)
  })

  it('where another process has taken the place of this one ends the node, which leaves the others', async () => {
    const node = await startSet()
    const [first = '', second = ''] = names
    await recordOf(second).join('a', 'a', 99, 'another process')
    expect(await node.node.closed).toMatchObject({ kind: 'failed', error: { code: 'SUPERSEDED' } })
    const left = node.logs.filter(({ log }) => log === 'left').map((line) => ({ ...line }))
    expect(left).toHaveLength(3)
    expect(left).toContainEqual(expect.objectContaining({ hub: first }))
    expect(left).not.toContainEqual(expect.objectContaining({ hub: second }))
  })
})

describe('over HTTP', () => {
  it('each hub is reached below the one address, and all goes as it does on the record', async () => {
    const served = await startSetServer({
      redis: server.url,
      hubs: names,
      listen: { host: '127.0.0.1', port: 0 },
      sweeps: sweepsOnDemand,
      log: pino({ level: 'silent' }),
      limits: { lagMs: 0 },
    })
    try {
      const sent = (await Promise.all(names.map((hub) => sendTo(hub, 15)))).flat()
      const { count, execute } = counted()
      const node = await startSet({ redis: undefined, http: { url: served.url }, concurrency: 4, execute })
      for (const hub of names) sent.push(...(await sendTo(hub, 2)))
      await allDone(sent)
      expect(idsOf(node.executed).sort()).toEqual(sent.map(({ name }) => name).sort())
      expect(count.most).toBeLessThanOrEqual(4)
      await node.node.stop()
      expect(await node.node.closed).toEqual({ kind: 'left' })
    } finally {
      await served.close()
    }
  })
})

describe('the end of a node of several hubs', () => {
  it('by stop lets what runs finish on every hub, leaves them, and loses nothing', async () => {
    const sent = (await Promise.all(names.map((hub) => sendTo(hub, 10)))).flat()
    const { gate, open } = opening()
    const first = await startSet({ concurrency: 4, execute: counted(gate).execute })
    await until(() => first.executed.length === 4)
    const stopped = first.node.stop()
    open()
    await stopped
    expect(await first.node.closed).toEqual({ kind: 'left' })
    const second = await startSet({ node: 'heir' })
    await allDone(sent)
    expect([...idsOf(first.executed), ...idsOf(second.executed)].sort()).toEqual(
      sent.map(({ name }) => name).sort(),
    )
  })

  it('before it has started is a stop like any other', async () => {
    const node = createNode({
      redis: server.url,
      hubs: names,
      host: 'a',
      mirror: freshPath('mirrors'),
      execute: () => 1,
    })
    const starting = node.start().catch(() => 'given up')
    await node.stop()
    expect(['given up', undefined]).toContain(await starting)
    expect(await node.closed).toEqual({ kind: 'left' })
  })

  it('by kill -9 in the middle: the next process goes on, nothing runs twice and nothing is lost', async () => {
    const sent = (await Promise.all(names.map((hub) => sendTo(hub, 30)))).flat()
    const [mirror, marks] = [freshPath('mirrors'), freshPath('marks')]
    const options = { redis: server.url, hubs: names, host: 'a', mirror, marks, concurrency: 4 }
    const at = { point: 'outcome.stored', nth: 50, signal: 'SIGKILL' } as const
    const victim = startNodeProcess({ ...options, at })
    await victim.line('hit', 'outcome.stored')
    expect(await victim.ended).toBe('SIGKILL')
    const heir = startNodeProcess(options)
    const ends = new Map<string, string>()
    for (const { record, id, name } of sent) ends.set(name, await settlement(record, id))
    heir.send('stop')
    expect(await heir.ended).toBe(0)
    const begun = readMarks(marks).filter(({ what }) => what === 'begin')
    const runs = (name: string) => begun.filter(({ delivery }) => delivery === name).length
    expect(begun.filter(({ pid }) => pid === victim.pid).length).toBeGreaterThanOrEqual(50)
    for (const [name, end] of ends) {
      // What ran without its outcome on the disk is nobody's to repeat: at most what was under way.
      expect(['done 1', 'unknown 1', 'unknown 0'], name).toContain(`${end} ${runs(name)}`)
    }
    expect([...ends.values()].filter((end) => end === 'unknown').length).toBeLessThanOrEqual(4)
  })
})

describe('a set of one', () => {
  it('is the hub: the same mirror, and ids without its name', async () => {
    const [hub = ''] = names
    const mirror = freshPath('db')
    const first = await startSet({ hubs: [hub], mirror })
    const [one] = await sendTo(hub, 1)
    await allDone(one === undefined ? [] : [one])
    await first.node.stop()
    expect(existsSync(mirror)).toBe(true)
    expect(first.executed).toMatchObject([{ hub, id: `${one?.id}/1`, deliveryId: one?.id }])
    expect(first.logs.some((line) => 'hub' in line)).toBe(false)
    const second = await startSet({ hubs: undefined, hub, mirror })
    const [two] = await sendTo(hub, 1)
    await allDone(two === undefined ? [] : [two])
    expect(second.executed).toMatchObject([{ hub, id: `${two?.id}/1` }])
    const joins = [...first.logs, ...second.logs].filter(({ log }) => log === 'joined')
    expect(joins).toMatchObject([{ incarnation: 1 }, { incarnation: 2 }])
  })
})

describe('the mirrors of a set', () => {
  it('are one file a hub in the folder that is named', async () => {
    const mirror = freshPath('mirrors')
    await startSet({ mirror })
    for (const hub of names) expect(existsSync(join(mirror, `${hub}.db`))).toBe(true)
  })

  it('that another process holds refuse the start', async () => {
    const mirror = freshPath('mirrors')
    await startSet({ mirror })
    await expect(startSet({ mirror, node: 'b' })).rejects.toThrow('MIRROR_LOCKED')
  })
})

describe('the options', () => {
  const refusals: readonly [string, Partial<NodeBasics>][] = [
    ['both hub and hubs', { hub: 'hf', hubs: ['hf-0', 'hf-1'] }],
    ['no hub at all', { hubs: [] }],
    ['a hub twice', { hubs: ['hf-0', 'hf-0'] }],
    ['a hub with a bad name', { hubs: ['hf-0', 'HF 1'] }],
  ]
  it.each(refusals)('refuse %s', (_, options) => {
    const base = { host: 'a', redis: 'redis://127.0.0.1:1', mirror: 'unused', execute: () => 1 }
    expect(() => createNode({ ...base, ...options })).toThrow('INVALID_ARGUMENT')
  })
})

function pairsOf(hash: unknown): string[] {
  if (Array.isArray(hash)) return hash.map(String)
  return Object.entries(hash as Record<string, string>).flat()
}
