import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Outcome } from '../../src/contract/outcomes.js'
import { makeRecord, type TestNode, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

let server: TestServer
let record: TestRecord
let node: TestNode
let records = 0

beforeAll(async () => {
  server = await startTestServer()
})
beforeEach(async () => {
  records += 1
  record = await makeRecord(server, `acts-${records}`)
  node = await record.join('a', 'n1')
})
afterEach(async () => {
  await record.checkInvariants()
  await record.close()
})
afterAll(() => server?.stop())

const act = { actor: 'kim', reason: 'r' }

async function executing() {
  await record.acceptMany(1)
  const [item = { id: '', epoch: 0 }] = await record.deliverAll(node)
  return record.begin(node, item)
}

async function ended(outcome: Outcome): Promise<string> {
  const open = await executing()
  await record.functions.report(node, [{ id: open.attempt, grant: open.grant, key: 'k', outcome }])
  return open.id
}

async function cancelled(): Promise<string> {
  const [id = ''] = await record.acceptMany(1)
  await record.hub.cancel(id, act)
  return id
}

describe('faults.md 28: an act on what is not in the state for it', () => {
  it('release and reject of what is queued, executing or settled: NOT_HELD, nothing changes', async () => {
    const queued = await record.acceptMany(1, { conversation: 'c2', to: [{ host: 'b' }] })
    const ids = [
      ...queued,
      (await executing()).id,
      await ended({ kind: 'result', result: '1' }),
      await cancelled(),
    ]
    for (const id of ids) {
      const why = await record.refused('NOT_HELD', () => record.hub.release(id, act))
      expect(why).toContain(id)
      await record.refused('NOT_HELD', () => record.hub.reject(id, act))
    }
  })

  it('release and reject given twice: the second is NOT_HELD', async () => {
    const [one = '', two = ''] = await record.acceptMany(2)
    await record.hub.holdDelivery(one, act)
    await record.hub.holdDelivery(two, act)
    await record.hub.release(one, act)
    await record.refused('NOT_HELD', () => record.hub.release(one, act))
    await record.hub.reject(two, act)
    await record.refused('NOT_HELD', () => record.hub.reject(two, act))
  })

  it('hold and cancel of what executes, unknown or not: EXECUTING, nothing changes', async () => {
    const { id } = await executing()
    const lost = await ended({ kind: 'outcome_unknown', errorCode: 'timeout' })
    for (const each of [id, lost]) {
      await record.refused('EXECUTING', () => record.hub.holdDelivery(each, act))
      await record.refused('EXECUTING', () => record.hub.cancel(each, act))
    }
  })

  it('hold and cancel of what is settled: ALREADY_SETTLED, nothing changes', async () => {
    const ids = [
      await ended({ kind: 'result', result: '1' }),
      await ended({ kind: 'terminal', errorCode: 'gone' }),
      await cancelled(),
    ]
    for (const id of ids) {
      await record.refused('ALREADY_SETTLED', () => record.hub.holdDelivery(id, act))
      await record.refused('ALREADY_SETTLED', () => record.hub.cancel(id, act))
    }
  })

  it('a lift of no fence, a retire of no host, any act on no delivery: not found, nothing changes', async () => {
    const missing = '1764430000000-000000.1'
    await record.refused('FENCE_NOT_FOUND', () => record.hub.lift('hold', 'hub', 'kim'))
    await record.refused('HOST_NOT_FOUND', () => record.hub.retire('never', act))
    for (const verb of ['release', 'reject', 'holdDelivery', 'cancel'] as const)
      await record.refused('DELIVERY_NOT_FOUND', () => record.hub[verb](missing, act))
  })

  it('two operators at once: one act counts, the other is told', async () => {
    const [id = ''] = await record.acceptMany(1)
    await record.hub.holdDelivery(id, act)
    const answers = await Promise.allSettled([record.hub.release(id, act), record.hub.reject(id, act)])
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    const [refusal] = answers.filter((each) => each.status === 'rejected')
    expect(refusal?.reason).toMatchObject({ code: 'NOT_HELD' })
  })
})
