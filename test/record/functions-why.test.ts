import { expect, it } from 'vitest'
import { eachRecord } from '../support/each-record.js'
import type { OpenRecord, TestNode } from '../support/record.js'

// What `why` says before a sweep has come by: the row still says that it runs, or that it waits.

let record: OpenRecord
let node: TestNode

eachRecord(async (made) => {
  record = made
  await record.config('stale_after_ms', 60_000)
  node = await record.join('a', 'n1')
})

const why = (id: string) => record.functions.why(id)

async function begunOne(): Promise<string> {
  await record.acceptMany(1)
  const [delivered] = await record.deliverAll(node)
  if (delivered === undefined) throw new Error('nothing was delivered')
  return (await record.begin(node, delivered)).id
}

it('of an open attempt: whether the node that began it is silent', async () => {
  const id = await begunOne()
  expect((await why(id)).detail).toMatch(/^attempt \S+\/1 runs on node n1 since \d+$/)
  const silentSince = (await record.nowMs()) - 90_500
  await record.send('HSET', record.keys.node('a', 'n1'), 'heartbeat_at', silentSince)
  await record.send('ZADD', record.keys.nodes, silentSince, 'a/n1')
  expect(await why(id)).toMatchObject({
    reason: 'executing',
    detail: expect.stringMatching(/since \d+, and that node is silent for 9\d s$/),
  })
})

it('of an open attempt: whether a later process has its place', async () => {
  const id = await begunOne()
  await record.join('a', 'n1', 2)
  expect((await why(id)).detail).toMatch(/, and another process of that node has joined since$/)
})

it('of an open attempt: whether its node has left', async () => {
  const id = await begunOne()
  await record.functions.leave(node)
  expect(await why(id)).toMatchObject({
    reason: 'executing',
    detail: expect.stringMatching(/, and that node has left$/),
  })
})

it('of one that waits: whether its deliver_by has passed, before all else that it waits for', async () => {
  const { deliveries } = await record.accept({ to: [{ host: 'never' }], deliverBy: Date.now() + 150 })
  const id = deliveries[0]?.id ?? ''
  expect(await why(id)).toMatchObject({ reason: 'stranded' })
  await record.send('HSET', record.keys.delivery(id), 'deliver_by', 1)
  expect(await why(id)).toMatchObject({
    reason: 'queued',
    detail: 'its deliver_by has passed: the next claim or sweep fails it',
  })
})

it('of a delivery that is unknown as a whole: why it is, not what an earlier attempt said', async () => {
  const [id = ''] = await record.acceptMany(1)
  const [item] = await record.deliverAll(node)
  const { attempt, grant } = await record.begin(node, item ?? { id, epoch: 0 })
  const say = (key: string, outcome: Parameters<typeof record.functions.report>[1][number]['outcome']) =>
    record.functions.report(node, [{ id: attempt, grant, key, outcome }])
  await say('one', { kind: 'outcome_unknown', errorCode: 'timeout' })
  expect((await why(id)).detail).toContain('timeout')
  const next = await record.join('a', 'n1', 2)
  await say('two', { kind: 'not_sent', errorCode: 'busy' })
  const [again] = await record.claimAll(next)
  await record.functions.refuse(next, [
    { id, epoch: again?.epoch ?? 0, verdict: 'unknown', reason: 'copy_in_doubt' },
  ])
  expect(await record.states([id])).toEqual(['unknown'])
  expect((await why(id)).detail).toContain('copy_in_doubt')
})
