import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isHoldfastError } from '../../src/contract/errors.js'
import type { Accepted } from '../../src/contract/hub.js'
import { keysOf } from '../../src/record/keys.js'
import { readerOf } from '../../src/record/reader.js'
import { type Final, judge, type Line } from '../../src/testing/checker/index.js'
import { readFinal } from '../../src/testing/final.js'
import { startNode, stopNodes } from '../support/nodes.js'
import { makeRecord, settlement, sha256, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

let server: TestServer
let record: TestRecord

beforeAll(async () => {
  server = await startTestServer()
  record = await makeRecord(server, 'final', { heartbeat_ms: 100 })
})
afterAll(async () => {
  await stopNodes()
  await record?.close()
  await server?.stop()
})

const read = (): Promise<Final> => readFinal(record.hub, readerOf(record.store, record.keys), record.keys)

/** Lines as processes write them, a second apart. */
function createHistory() {
  const lines: Line[] = []
  const tell = (role: string, kind: string, data: Line['data']) => {
    const number = lines.length + 1
    lines.push({
      file: role,
      number,
      t: number * 1e9,
      role,
      name: role,
      pid: 1,
      kind,
      data: { kind, ...data },
    })
  }
  return { lines, tell }
}

describe('the end of a history', () => {
  const { lines, tell } = createHistory()
  let accepted: Accepted
  let held: string

  beforeAll(async () => {
    await startNode({
      redis: server.url,
      hub: record.name,
      host: 'a',
      node: 'n1',
      execute: ({ deliveryId: delivery, number, epoch, payload }) => {
        const about = { delivery, number, epoch, node: 'n1', digest: sha256(payload) }
        tell('marks', 'mark', { type: 'begin', ...about })
        tell('marks', 'mark', { type: 'end', ...about, outcome: 'result' })
        return 'done'
      },
    })
    tell('conductor', 'phase', { phase: 'load', probe: true, leastPerSecond: 0.1 })
    const to = [{ host: 'a' }, { host: 'nobody' }]
    const message = { key: 'k1', conversation: 'c1', to, payload: 'p' }
    tell('producer', 'accept', {
      op: '1',
      type: 'invoke',
      key: 'k1',
      conversation: 'c1',
      to,
      digest: sha256('p'),
    })
    accepted = await record.hub.accept({ ...message, sender: 'tests' })
    tell('producer', 'accept', { op: '1', ...accepted, type: 'ok' })
    const [executed = '', other = ''] = accepted.deliveries.map(({ id }) => id)
    expect(await settlement(record, executed)).toBe('done')
    await record.hub.holdDelivery(other, { reason: 'looked at', actor: 'kim' })
    held = other
    tell('conductor', 'phase', { phase: 'heal' })
    tell('conductor', 'phase', { phase: 'final' })
  })

  it('has every message, every delivery and the lists of the hub', async () => {
    const { id } = accepted
    expect(await read()).toMatchObject({
      audit: { deliveries: 2, messages: 1, disagreements: [] },
      messages: [{ id, key: 'k1', conversation: 'c1', sha256: sha256('p'), recipients: 2 }],
      deliveries: [
        {
          id: `${id}.1`,
          message: id,
          host: 'a',
          state: 'delivered',
          attempts: [{ number: 1, status: 'done' }],
        },
        { id: held, host: 'nobody', state: 'held', heldReason: expect.stringContaining('looked at') },
      ],
      held: [{ id: held }],
      unknown: [],
    })
  })

  it('is judged with what was told of it, without a file', async () => {
    const final = await read()
    expect(judge(lines, final)).toMatchObject({ ok: true, acknowledged: 1, deliveries: 2, violations: [] })
    const [, ...others] = final.deliveries
    const { lost, violations } = judge(lines, { ...final, deliveries: others })
    expect(lost).toBeGreaterThan(0)
    expect(violations).toContainEqual(expect.objectContaining({ invariant: 'I1', id: `${accepted.id}.1` }))
  })

  it('has the whole log, however long', async () => {
    const note = ['XADD', record.keys.log, '*', 'verb', 'noted', 'actor', 'tests'] as const
    await record.store.pipeline(Array.from({ length: 2100 }, () => note))
    const { log } = await read()
    expect(log).toHaveLength(Number(await record.send('XLEN', record.keys.log)))
    expect(new Set(log.map(({ id }) => id)).size).toBe(log.length)
    expect(log.at(-1)?.fields).toEqual([
      ['verb', 'noted'],
      ['actor', 'tests'],
    ])
  })

  it('is not read where there is no record', async () => {
    const keys = keysOf('nowhere')
    const failed = await readFinal(record.hub, readerOf(record.store, keys), keys).catch((error) => error)
    expect(isHoldfastError(failed) && failed.code).toBe('STORE_UNKNOWN')
  })
})
