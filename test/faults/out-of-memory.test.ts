import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { isHoldfastError } from '../../src/contract/errors.js'
import type { NodeIdentity } from '../../src/contract/steps.js'
import { openHub } from '../../src/hub/open-hub.js'
import { startNode, stopNodes } from '../support/nodes.js'
import { makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// faults.md 19: the memory limit is reached.

let server: TestServer
let record: TestRecord
let records = 0

beforeAll(async () => {
  server = await startTestServer()
})
beforeEach(async () => {
  records += 1
  record = await makeRecord(server, `memory-${records}`, { heartbeat_ms: 100, stale_after_ms: 60_000 })
})
afterEach(async () => {
  await makeRoom()
  await stopNodes()
  await record.checkInvariants()
  await record.close()
})
afterAll(() => server?.stop())

/** From now on the server takes nothing that needs memory. */
async function fill(): Promise<void> {
  await record.send('CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
  await record.send('CONFIG', 'SET', 'maxmemory', 1)
}

const makeRoom = () => record.send('CONFIG', 'SET', 'maxmemory', 0)

it('accept is refused with STORE_UNAVAILABLE and nothing stored, by function and by hub; then it works', async () => {
  await fill()
  await record.refused('STORE_UNAVAILABLE', () => record.accept())
  const hub = await openHub({ redis: server.url, hub: record.name, deadlineMs: 100 })
  const message = { key: 'k', conversation: 'c', sender: 's', to: [{ host: 'a' }], payload: 'p' }
  await record.refused('STORE_UNAVAILABLE', () => hub.accept(message))
  await makeRoom()
  expect(await hub.accept(message)).toMatchObject({ replayed: false, fanOut: 'complete' })
  await hub.close()
})

it('a fan-out that is cut by it stands as an obligation, and is completed when there is room', async () => {
  await record.config('inline_fan_out', 1)
  const { id } = await record.accept({ to: ['a', 'b', 'c'].map((host) => ({ host })) })
  await fill()
  await record.refused('STORE_UNAVAILABLE', () => record.functions.fanOut(id, 10))
  await makeRoom()
  expect(await record.hub.repair()).toMatchObject({ messages: 1, deliveries: 2 })
})

it('mirror, ack, begin, report, takeover, lift and release drain the backlog', async () => {
  const node = await record.join('a', 'n1')
  const leaving = await record.join('a', 'n2')
  const ids = await record.acceptMany(6)
  await record.claimAll(leaving, 2)
  await record.functions.hold('conversation:c2', 'legal', 'kim')
  const held = await record.acceptMany(2, { conversation: 'c2' })
  await record.claimAll(node)
  expect(await record.states(held)).toEqual(['held', 'held'])
  await fill()

  await record.functions.leave(leaving)
  await record.functions.release(held[0] ?? '', 'kim', 'checked')
  await record.functions.lift('hold', 'conversation:c2', 'kim')
  const taken = await record.deliverAll(await record.join('a', 'n3'))
  expect(new Set(taken.map(({ how }) => how))).toContain('takeover')
  const all = new Map<string, { id: string; epoch: number }>()
  const later = await record.join('a', 'n1', 2)
  const owners = new Map<string, NodeIdentity>([
    ['n3', { host: 'a', node: 'n3', incarnation: 1 }],
    ['n1', later],
  ])
  await record.deliverAll(later)
  for (const id of [...ids, ...held]) {
    const row = await record.fields(id)
    all.set(id, { id, epoch: Number(row['epoch']) })
    const owner = owners.get(row['owner'] ?? '')
    if (owner === undefined) throw new Error(`${id} has no live owner: ${JSON.stringify(row)}`)
    const open = await record.begin(owner, all.get(id) ?? { id, epoch: 0 })
    const outcome = { kind: 'result', result: '"drained"' } as const
    const [answer] = await record.functions.report(owner, [
      { id: open.attempt, grant: open.grant, key: 'k', outcome },
    ])
    expect(answer).toMatchObject({ ok: true, outcome: 'result' })
  }
  expect(await record.hub.counts()).toMatchObject({ done: 8 })
  await record.refused('STORE_UNAVAILABLE', () => record.accept())
})

it('fences, holds, rejects, cancels and retires stay possible', async () => {
  const node = await record.join('a', 'n1')
  const [one = '', two = ''] = await record.acceptMany(3)
  await fill()
  const act = { actor: 'kim', reason: 'r' }
  await record.hub.pause('hub', act)
  await record.hub.lift('pause', 'hub', 'kim')
  await record.hub.holdDelivery(one, act)
  await record.hub.reject(one, act)
  await record.hub.cancel(two, act)
  await record.hub.retire('a', act)
  await record.refused('HOST_RETIRED', () => record.functions.claim(node, 1, 1))
})

it('a node at work drains what was accepted, and goes on when there is room', async () => {
  const ids = await record.acceptMany(30)
  await fill()
  const { executed } = await startNode({ redis: server.url, hub: record.name, host: 'a' })
  const done = async (wanted: readonly string[]) =>
    (await Promise.all(wanted.map((id) => record.fields(id)))).every(
      (row) => row['attempt_status'] === 'done',
    )
  await until(() => done(ids), { what: 'the backlog done' })
  const outcome = await record.accept().catch((error: unknown) => error)
  expect(isHoldfastError(outcome, 'STORE_UNAVAILABLE')).toBe(true)
  await makeRoom()
  const more = await record.acceptMany(3)
  await until(() => done(more), { what: 'what came after' })
  expect(executed).toHaveLength(33)
})
