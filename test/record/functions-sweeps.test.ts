import { describe, expect, it } from 'vitest'
import { eachRecord } from '../support/each-record.js'
import type { OpenRecord, TestNode } from '../support/record.js'

let record: OpenRecord
let node: TestNode

eachRecord(async (made) => {
  record = made
  node = await record.join('a', 'n1')
})

const hourMs = 3_600_000

async function nowMs(): Promise<number> {
  return (await record.claim(node)).nowMs
}

async function deliverOne(message: { executeBy?: number; deliverBy?: number } = {}) {
  await record.acceptMany(1, message)
  const [delivered] = await record.deliverAll(node)
  if (delivered === undefined) throw new Error('nothing was handed out')
  return delivered
}

const deadlineOf = (id: string) => record.send('ZSCORE', record.keys.deadlines, id)

/** As if the sweep had to look at it now. */
const makeDue = (id: string) => record.send('ZADD', record.keys.deadlines, 1, id)

describe('the sweep of deadlines', () => {
  it('forgets what has failed or is finished, and changes nothing of it', async () => {
    const executeBy = (await nowMs()) + hourMs
    const finished = await deliverOne({ executeBy })
    const { attempt, grant } = await record.begin(node, finished)
    const outcome = { kind: 'result', result: '1' } as const
    await record.functions.report(node, [{ id: attempt, grant, key: 'k', outcome }])
    const [cancelled = ''] = await record.acceptMany(1, { executeBy })
    await record.functions.cancel(cancelled, 'kim', 'not needed')
    const before = await Promise.all([finished.id, cancelled].map(record.fields))
    for (const id of [finished.id, cancelled]) await makeDue(id)
    await record.functions.sweepHub('deadlines', '')
    expect(await deadlineOf(finished.id)).toBeNull()
    expect(await deadlineOf(cancelled)).toBeNull()
    expect(await Promise.all([finished.id, cancelled].map(record.fields))).toEqual(before)
  })

  it('looks again at execute_by where that is still to come', async () => {
    const executeBy = (await nowMs()) + hourMs
    const { id } = await deliverOne({ executeBy, deliverBy: executeBy - hourMs / 2 })
    await makeDue(id)
    await record.functions.sweepHub('deadlines', '')
    expect(Number(await deadlineOf(id))).toBe(executeBy)
    expect(await record.states([id])).toEqual(['delivered'])
  })
})

it('the sweep of reports fails what was handed off and not begun in time', async () => {
  const { id } = await deliverOne({ executeBy: (await nowMs()) + hourMs })
  await record.send('HSET', record.keys.delivery(id), 'execute_by', await nowMs())
  await record.functions.sweepHost('reports', 'a', '')
  expect(await record.fields(id)).toMatchObject({
    state: 'failed',
    failed_code: 'expired',
    failed_by: 'sweep',
  })
})

describe('the sweep of claims', () => {
  /** An entry that another program put into the stream of `a` and read there. */
  async function leftover(id: string, entry: string): Promise<void> {
    await record.send('XADD', record.keys.stream('a'), entry, 'delivery', id)
    await record.send('XREADGROUP', 'GROUP', 'nodes', 'stranger', 'STREAMS', record.keys.stream('a'), '>')
  }
  const entriesOfA = () => record.send('XLEN', record.keys.stream('a'))

  it('clears an entry of a delivery that has another entry', async () => {
    const [claimed] = await record.acceptMany(1).then(() => record.claimAll(node))
    await leftover(claimed?.id ?? '', '*')
    expect(await entriesOfA()).toBe(2)
    const { notes } = await record.functions.sweepHost('claims', 'a', '')
    expect(notes).toEqual([expect.stringContaining('left over of')])
    expect(await entriesOfA()).toBe(1)
  })

  it('clears an entry of a delivery of another host, though it has the same entry there', async () => {
    const [away = ''] = await record.acceptMany(1, { to: [{ host: 'b' }] })
    await record.acceptMany(1)
    await record.claimAll(node)
    const later = '99999999999999-1'
    await record.send('XDEL', record.keys.stream('b'), (await record.fields(away))['entry'] ?? '')
    await record.send('XADD', record.keys.stream('b'), later, 'delivery', away)
    await record.send('HSET', record.keys.delivery(away), 'entry', later)
    await leftover(away, later)
    await record.functions.sweepHost('claims', 'a', '')
    expect(await entriesOfA()).toBe(1)
    expect(await record.fields(away)).toMatchObject({ host: 'b', state: 'queued', entry: later })
  })
})

it('the sweep of nodes takes those out of the group that were silent for the retention, and own nothing', async () => {
  const silent = await record.join('a', 'n2')
  for (const who of [node, silent]) {
    await record.acceptMany(1)
    await record.deliverAll(who)
  }
  const consumers = async () => {
    const found = (await record.send('XINFO', 'CONSUMERS', record.keys.stream('a'), 'nodes')) as string[][]
    return found.map(([, name]) => name)
  }
  await record.config('retention_ms', hourMs)
  const row = record.keys.node('a', 'n2')
  await record.send('HSET', row, 'heartbeat_at', (await nowMs()) - hourMs / 2)
  await record.functions.sweepHost('nodes', 'a', '')
  expect(await consumers()).toEqual(['n1', 'n2'])
  await record.send('HSET', row, 'heartbeat_at', (await nowMs()) - 2 * hourMs)
  await record.functions.sweepHost('nodes', 'a', '')
  expect(await consumers()).toEqual(['n1'])
})
