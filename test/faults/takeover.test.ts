import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { ClaimedDelivery } from '../../src/contract/steps.js'
import { killChildren, readMarks, startNodeProcess } from '../support/child.js'
import { freshPath, startNode, stopNodes } from '../support/nodes.js'
import { type Dump, makeRecord, type TestNode, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

let server: TestServer
const records: TestRecord[] = []

beforeAll(async () => {
  server = await startTestServer()
})

afterEach(async () => {
  server.thaw()
  await killChildren()
  await stopNodes()
  for (const record of records.splice(0)) await record.close()
})

afterAll(async () => {
  await server?.stop()
})

async function open(name: string, settings: Parameters<typeof makeRecord>[2]): Promise<TestRecord> {
  const record = await makeRecord(server, name, settings)
  records.push(record)
  return record
}

async function deliverOne(record: TestRecord, conversation = 'c1'): Promise<string> {
  const { deliveries } = await record.accept({ conversation, to: [{ host: 'h1' }] })
  return deliveries[0]?.id ?? ''
}

/** Without what heartbeats, joins and idle claims write. */
function withoutBookkeeping(dump: Dump): Dump {
  return Object.fromEntries(
    Object.entries(dump).filter(([key]) => !/^:(nodes$|node:|host:|liveness$)/.test(key)),
  )
}

async function isDone(record: TestRecord, id: string): Promise<boolean> {
  return (await record.hub.delivery(id)).attempts.some((attempt) => attempt.status === 'done')
}

async function beat(record: TestRecord, ...nodes: readonly TestNode[]): Promise<void> {
  for (const node of nodes) {
    await record.functions.heartbeat(node, {
      lastLogId: '0-0',
      progressAgeMs: 0,
      blocking: { sumMs: 0, longestMs: 0 },
    })
  }
}

/** Claims with a living node until it got so many; the others say nothing. */
async function takeOver(record: TestRecord, node: TestNode, count: number): Promise<ClaimedDelivery[]> {
  const found: ClaimedDelivery[] = []
  await until(
    async () => {
      await beat(record, node)
      found.push(...(await record.claim(node)).deliveries)
      return found.length >= count
    },
    { timeoutMs: 30_000, what: `${count} taken over` },
  )
  return found
}

/** Takeover may reorder (contract section 5). */
function handedOut(deliveries: readonly ClaimedDelivery[]): string[] {
  return deliveries.map(({ id, epoch, how }) => `${id} ${epoch} ${how}`).sort()
}

/** One delivery each delivered without an attempt, mirrored, and claimed. */
async function threeHeld(record: TestRecord, node: TestNode): Promise<[string, string, string]> {
  const ids = [await deliverOne(record), await deliverOne(record), await deliverOne(record)] as const
  await record.claimAll(node)
  const item = (id: string) => ({ id, epoch: 1 })
  await record.functions.mirror(node, [item(ids[0]), item(ids[1])])
  await record.functions.ack(node, [item(ids[0])])
  expect(await record.states(ids)).toEqual(['delivered', 'mirrored', 'claimed'])
  return [...ids]
}

describe('faults.md 5: a node is stopped past staleness and wakes', () => {
  for (const step of ['take', 'begin'] as const) {
    it(`before its ${step}: B takes over and finishes, A is refused STALE_EPOCH, nothing changes`, async () => {
      const record = await open(`stopped-${step}`, { heartbeat_ms: 100, stale_after_ms: 600 })
      // Begun by a call of its own is what had to wait behind another of its lane.
      if (step === 'begin') await deliverOne(record)
      const id = await deliverOne(record)
      const marks = freshPath('marks')
      const a = startNodeProcess({
        redis: server.url,
        hub: record.name,
        host: 'h1',
        node: 'a',
        mirror: freshPath('db'),
        marks,
        at: { point: `${step}.before`, signal: 'SIGSTOP' },
      })
      await a.line('hit')
      expect(await record.states([id])).toEqual([{ take: 'claimed', begin: 'delivered' }[step]])

      const b = await startNode({ redis: server.url, hub: record.name, host: 'h1', node: 'b' })
      await until(() => isDone(record, id), { timeoutMs: 20_000, what: 'B finishing' })
      const before = withoutBookkeeping(await record.dump())
      await a.goOn()
      const refusal = await a.line('code')
      expect(refusal).toMatchObject({ delivery: id, code: 'STALE_EPOCH', owner: 'b' })
      await a.line('log', step === 'begin' ? 'begin refused' : 'refused; the copy is dropped')

      expect(withoutBookkeeping(await record.dump())).toEqual(before)
      expect(readMarks(marks).filter(({ delivery }) => delivery === id)).toEqual([])
      expect(b.executed.map((attempt) => attempt.id)).toEqual([`${id}/1`])
      expect(await record.hub.delivery(id)).toMatchObject({
        owner: 'b',
        epoch: 2,
        attempts: [{ node: 'h1/b' }],
      })
      await record.checkInvariants()
    })
  }

  it('each late step on claimed, mirrored and delivered work is STALE_EPOCH with zero change', async () => {
    const record = await open('late-steps', { heartbeat_ms: 50, stale_after_ms: 150 })
    const a = await record.join('h1', 'a')
    const ids = await threeHeld(record, a)
    const b = await record.join('h1', 'b')
    const taken = await takeOver(record, b, 3)
    expect(handedOut(taken)).toEqual(ids.map((id) => `${id} 2 takeover`))

    const { functions } = record
    for (const id of ids) {
      const item = { id, epoch: 1 }
      const now = { epoch: 2, owner: 'b' }
      expect(await record.itemRefused('STALE_EPOCH', () => functions.mirror(a, [item]))).toMatchObject(now)
      expect(await record.itemRefused('STALE_EPOCH', () => functions.ack(a, [item]))).toMatchObject(now)
      const begin = () => functions.begin(a, [{ ...item, grant: 'late' }])
      expect(await record.itemRefused('STALE_EPOCH', begin)).toMatchObject(now)
      await record.itemRefused('NOT_OWNER', () => functions.mirror(a, [{ id, epoch: 2 }]))
    }
    for (const delivery of taken) {
      if (delivery.state === 'claimed') await functions.mirror(b, [delivery])
      if (delivery.state !== 'delivered') await functions.ack(b, [delivery])
      await record.begin(b, delivery)
    }
    expect(await record.states(ids)).toEqual(['delivered', 'delivered', 'delivered'])
    await record.checkInvariants()
  })

  it('after its begin was granted: nobody takes over, it is listed, its own report settles it', async () => {
    const record = await open('stopped-inside', { heartbeat_ms: 100, stale_after_ms: 600 })
    const id = await deliverOne(record)
    const marks = freshPath('marks')
    const a = startNodeProcess({
      redis: server.url,
      hub: record.name,
      host: 'h1',
      node: 'a',
      mirror: freshPath('db'),
      marks,
      inHandler: 'SIGSTOP',
    })
    await a.line('executing')
    const b = await startNode({ redis: server.url, hub: record.name, host: 'h1', node: 'b' })
    const [listed] = await until(async () => {
      const list = await record.hub.unknown()
      return list.length > 0 ? list : undefined
    })
    expect(listed).toMatchObject({ id: `${id}/1`, reason: 'stale', host: 'h1', node: 'h1/a' })
    expect(await record.hub.delivery(id)).toMatchObject({ owner: 'a', epoch: 1, takeovers: 0 })
    await record.checkInvariants()

    await a.goOn()
    await until(() => isDone(record, id), { timeoutMs: 30_000, what: "A's own report" })
    expect(await record.hub.unknown()).toEqual([])
    expect(b.executed).toEqual([])
    expect(readMarks(marks).map(({ what, attempt }) => [what, attempt])).toEqual([
      ['begin', `${id}/1`],
      ['end', `${id}/1`],
    ])
    await record.checkInvariants()
  })
})

describe('faults.md 6: handlers run longer than staleness with eight deliveries buffered', () => {
  it('sees no overlap and no takeover while another node of the host looks on', async () => {
    const record = await open('long-handlers', { heartbeat_ms: 100, stale_after_ms: 800 })
    const ids: string[] = []
    for (let at = 0; at < 8; at += 1) ids.push(await deliverOne(record, `lane-${at % 4}`))
    const marks = freshPath('marks')
    const a = startNodeProcess({
      redis: server.url,
      hub: record.name,
      host: 'h1',
      node: 'a',
      mirror: freshPath('db'),
      marks,
      handlerMs: 1600,
      concurrency: 4,
      buffer: 8,
    })
    await until(async () => (await record.hub.deliveries({ state: 'delivered' })).deliveries.length === 8)
    const b = await startNode({ redis: server.url, hub: record.name, host: 'h1', node: 'b' })
    for (const id of ids) await until(() => isDone(record, id), { timeoutMs: 20_000, what: `${id} done` })

    expect(b.executed).toEqual([])
    for (const id of ids) {
      const row = await record.fields(id)
      expect(row).toMatchObject({ owner: 'a', epoch: '1', attempts: '1' })
      expect(row).not.toHaveProperty('taken_over_at')
    }
    // Per lane in the order of the marks: each begins after the one before it has ended.
    for (const lane of [0, 1, 2, 3]) {
      const mine = readMarks(marks).filter(({ delivery }) => ids.indexOf(delivery) % 4 === lane)
      const inOrder = mine.toSorted((one, other) => one.at - other.at)
      expect(inOrder.map(({ what, delivery }) => [what, ids.indexOf(delivery)])).toEqual([
        ['begin', lane],
        ['end', lane],
        ['begin', lane + 4],
        ['end', lane + 4],
      ])
    }
    expect(await record.hub.unknown()).toEqual([])
    expect(a.lines.filter((line) => line['log'] === 'heartbeat not answered')).toEqual([])
    await record.checkInvariants()
  })
})

describe('a node is killed while another node of its host lives', () => {
  // What was not begun goes to the other node. What was begun waits for the dead node's own successor, which proves
  // that nothing ran, or reports what it knows.
  const cases = [
    { point: 'claim.sent', by: 'b', attempts: ['done'] },
    { point: 'grant.stored', by: 'b', attempts: ['done'] },
    { point: 'take.before', by: 'b', attempts: ['done'] },
    { point: 'take.sent', by: 'successor', attempts: ['not_sent', 'done'] },
    { point: 'outcome.stored', by: 'successor', attempts: ['done'] },
  ] as const
  for (const { point, by, attempts } of cases) {
    it(`at ${point}: settled through ${by}, executed once`, async () => {
      const record = await open(`pair-${point.replace('.', '-')}`, { heartbeat_ms: 100, stale_after_ms: 500 })
      const id = await deliverOne(record)
      const marks = freshPath('marks')
      const common = { redis: server.url, hub: record.name, host: 'h1' }
      const options = { ...common, node: 'a', mirror: freshPath('db'), marks }
      const victim = startNodeProcess({ ...options, at: { point, signal: 'SIGKILL' } })
      await victim.line('hit')
      await victim.ended
      const b = await startNode({ ...common, node: 'b' })
      if (by === 'b') await until(() => isDone(record, id), { timeoutMs: 30_000, what: 'b finishing' })
      else await until(async () => (await record.hub.unknown()).some(({ reason }) => reason === 'stale'))
      const successor = startNodeProcess(options)
      await successor.line('started')
      await until(() => isDone(record, id), { timeoutMs: 30_000, what: 'the delivery done' })

      const view = await record.hub.delivery(id)
      expect(view.attempts.map(({ status }) => status)).toEqual(attempts)
      const begun = readMarks(marks).filter(({ what }) => what === 'begin').length
      expect(begun + b.executed.length).toBe(1)
      if (by === 'b') expect(view).toMatchObject({ owner: 'b', epoch: 2 })
      expect(await record.hub.unknown()).toEqual([])
      await record.checkInvariants()
    })
  }
})

describe('contract 8: leaving, crashing and stalls', () => {
  it('a node that stops finishes what runs, and another goes on with the rest at once', async () => {
    const record = await open('stop', { stale_after_ms: 600_000 })
    const ids = [await deliverOne(record), await deliverOne(record), await deliverOne(record)]
    let release: () => void = () => undefined
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    const common = { redis: server.url, hub: record.name, host: 'h1' }
    const a = await startNode({ ...common, node: 'a', execute: () => gate })
    await until(() => a.executed.length === 1)
    const b = await startNode({ ...common, node: 'b' })
    const stopped = a.node.stop()
    release()
    await stopped
    for (const id of ids) await until(() => isDone(record, id), { timeoutMs: 30_000, what: `${id} done` })
    expect(a.executed.map(({ deliveryId }) => deliveryId)).toEqual(ids.slice(0, 1))
    expect(b.executed.map(({ deliveryId }) => deliveryId)).toEqual(ids.slice(1))
    for (const id of ids) expect(Number((await record.fields(id))['takeovers'] ?? 0)).toBe(0)
    await record.checkInvariants()
  })

  for (const [how, counted] of [
    ['left', '0'],
    ['crashed', '1'],
  ] as const) {
    it(`what a node that ${how} held is resumed by its next process, ${counted === '0' ? 'un' : ''}counted`, async () => {
      const record = await open(`resume-${how}`, { stale_after_ms: 600_000 })
      const first = await record.join('h1', 'a', 1)
      const ids = await threeHeld(record, first)
      if (how === 'left') await record.functions.leave(first)
      const resumed = await record.claimAll(await record.join('h1', 'a', 2))
      expect(resumed.map(({ id, epoch, how: came }) => [id, epoch, came])).toEqual(
        ids.map((id) => [id, 2, 'resume']),
      )
      for (const id of ids) expect(await record.fields(id)).toMatchObject({ takeovers: counted })
      await record.checkInvariants()
    })
  }

  it('a clean leave hands everything over at once, uncounted', async () => {
    const record = await open('leave', { stale_after_ms: 600_000 })
    const [a, b] = [await record.join('h1', 'a'), await record.join('h1', 'b')]
    const ids = await threeHeld(record, a)
    await record.claimAll(b)
    await record.functions.leave(a)
    const taken = await record.claimAll(b)
    expect(handedOut(taken)).toEqual(ids.map((id) => `${id} 2 takeover`))
    for (const id of ids) expect(await record.fields(id)).toMatchObject({ takeovers: '0', taken_from: 'a#1' })
    await record.refused('LEFT', () => record.claim(a))
    await record.refused('LEFT', () => record.functions.begin(a, [{ id: ids[0], epoch: 2, grant: 'g' }]))
    await record.refused('LEFT', () => beat(record, a))
    await record.functions.leave(a)
    await record.checkInvariants()
  })

  it('what a node had begun before it left is listed, and its report still counts', async () => {
    const record = await open('left-open', { stale_after_ms: 600_000 })
    const [a, b] = [await record.join('h1', 'a'), await record.join('h1', 'b')]
    const id = await deliverOne(record)
    const [delivered] = await record.deliverAll(a)
    if (delivered === undefined) throw new Error('nothing was claimed')
    const { attempt, grant } = await record.begin(a, delivered)
    await record.functions.leave(a)
    expect(await record.claimAll(b)).toEqual([])
    expect(await record.hub.unknown()).toMatchObject([{ id: attempt, reason: 'left' }])
    const outcome = { kind: 'result', result: '1' } as const
    const [answer] = await record.functions.report(a, [{ id: attempt, grant, key: 'k', outcome }])
    expect(answer).toMatchObject({ ok: true, outcome: 'result' })
    expect(await isDone(record, id)).toBe(true)
    expect(await record.hub.unknown()).toEqual([])
    await record.checkInvariants()
  })

  it('a takeover from a stale node is counted on every delivery, and an outcome resets the count', async () => {
    const record = await open('crash', { heartbeat_ms: 50, stale_after_ms: 150 })
    const a = await record.join('h1', 'a')
    const ids = await threeHeld(record, a)
    const b = await record.join('h1', 'b')
    const taken = await takeOver(record, b, 3)
    for (const id of ids) expect(await record.fields(id)).toMatchObject({ takeovers: '1', taken_from: 'a#1' })
    const idle = taken.find(({ state }) => state === 'delivered')
    if (idle === undefined) throw new Error('nothing was taken over')
    const { attempt, grant } = await record.begin(b, idle)
    const outcome = { kind: 'result', result: '1' } as const
    await record.functions.report(b, [{ id: attempt, grant, key: 'k', outcome }])
    expect(await record.fields(idle.id)).toMatchObject({ takeovers: '0', attempt_status: 'done' })
    await record.checkInvariants()
  })

  it('when no node at all was heard for a while, nobody is judged before the living could speak', async () => {
    const record = await open('all-silent', { heartbeat_ms: 100, stale_after_ms: 300 })
    const [a, b] = [await record.join('h1', 'a'), await record.join('h1', 'b')]
    await threeHeld(record, a)
    await sleep(400) // the stall itself: longer than staleness
    expect((await record.claim(b)).deliveries).toEqual([])
    const judgeAfter = Number((await record.send('HGET', record.keys.liveness, 'judge_after')) ?? 0)
    expect(judgeAfter).toBeGreaterThan(0)
    await until(async () => {
      await beat(record, a, b)
      const reply = await record.claim(b)
      expect(reply.deliveries).toEqual([])
      return reply.nowMs > judgeAfter + 300
    })
    await record.checkInvariants()
  })

  it('Redis frozen for twice the staleness under five live nodes: no takeover, nothing listed', async () => {
    const [stale, beatEvery] = [1000, 100]
    const record = await open('frozen', { heartbeat_ms: beatEvery, stale_after_ms: stale })
    const ids: string[] = []
    for (let at = 0; at < 15; at += 1) ids.push(await deliverOne(record, `lane-${at}`))
    let release: () => void = () => undefined
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    const names = ['n1', 'n2', 'n3', 'n4', 'n5']
    const common = { redis: server.url, hub: record.name, host: 'h1', concurrency: 1, buffer: 3 }
    const nodes = await Promise.all(names.map((node) => startNode({ ...common, node, execute: () => gate })))
    await until(async () => (await record.hub.deliveries({ state: 'delivered' })).deliveries.length === 15)
    await until(() => nodes.every(({ executed }) => executed.length === 1))
    const owners = await Promise.all(ids.map(async (id) => (await record.hub.delivery(id)).owner))

    server.freeze()
    await sleep(2 * stale) // the fault itself
    server.thaw()
    await until(
      async () => {
        const judgeAfter = Number(await record.send('HGET', record.keys.liveness, 'judge_after'))
        const beats = await Promise.all(
          names.map((node) => record.send('HGET', record.keys.node('h1', node), 'heartbeat_at')),
        )
        return judgeAfter > 0 && beats.every((at) => Number(at) > judgeAfter + 2 * beatEvery)
      },
      { timeoutMs: 30_000, what: 'every node heard after the stall' },
    )
    expect(await record.hub.unknown()).toEqual([])
    release()
    for (const id of ids) await until(() => isDone(record, id), { timeoutMs: 30_000, what: `${id} done` })
    for (const [at, id] of ids.entries()) {
      expect(await record.fields(id)).toMatchObject({ owner: owners[at], epoch: '1', attempts: '1' })
    }
    await record.checkInvariants()
  })
})
