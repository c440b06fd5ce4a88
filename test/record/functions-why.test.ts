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
