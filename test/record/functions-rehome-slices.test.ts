import { describe, expect, it } from 'vitest'
import { createAccepting } from '../../src/hub/accept.js'
import { repairObligations } from '../../src/hub/repair.js'
import { readerOf } from '../../src/record/reader.js'
import { eachRecord } from '../support/each-record.js'
import type { OpenRecord, TestNode } from '../support/record.js'
import { result, type SessionTools, sessionTools } from '../support/sessions.js'

// A rehome is moved in slices, one a call. Whoever moves it may be killed between any two of them.

let record: OpenRecord
let sessions: SessionTools
let node: TestNode
let target: TestNode

eachRecord(async (made) => {
  record = made
  await record.config('heartbeat_ms', 60_000)
  await record.config('stale_after_ms', 60_000)
  sessions = sessionTools(record)
  node = await sessions.join('a')
  target = await sessions.join('b')
  await sessions.open()
})

const rehomeOnce = (host = 'b') => record.functions.rehome('s', host, 'kim', 'sold')
const moveOnce = () => record.functions.move('s', 'kim')
const owed = () => record.send('ZRANGE', record.keys.obligations, 0, -1)

async function repair() {
  const { store, keys, functions } = record
  const parts = {
    store,
    reader: readerOf(store, keys),
    keys,
    functions,
    accepting: createAccepting(functions, () => undefined),
    deadlineMs: 10_000,
    onPoint: undefined,
  }
  return repairObligations(parts, () => false)
}

async function all(once: () => Promise<{ more: boolean }>): Promise<void> {
  for (let calls = 1; (await once()).more; calls += 1) {
    if (calls === 100) throw new Error('a move says "more" for ever')
  }
}

const completions: Record<string, () => Promise<unknown>> = {
  'the same rehome again': () => all(() => rehomeOnce()),
  'moves of it': () => all(moveOnce),
  'the repair of obligations': repair,
}

type Row = readonly [host: string, state: string, epoch: string, entry: string, parkedBy: string | null]

async function rowsOf(ids: readonly string[]): Promise<Row[]> {
  const fields = ['host', 'state', 'epoch', 'entry', 'parked_by']
  return (await record.store.pipeline(
    ids.map((id) => ['HMGET', record.keys.delivery(id), ...fields]),
  )) as Row[]
}

async function streamOf(host: string): Promise<string[]> {
  const entries = (await record.send('XRANGE', record.keys.stream(host), '-', '+')) as [string, string[]][]
  return entries.map(([entry, [, id]]) => `${entry} ${id}`)
}

/** Some in each place on host a: parked, claimed, mirrored, delivered and idle, and the rest queued. */
async function fill(count: number): Promise<string[]> {
  await record.functions.pause('conversation:parked', 'wait', 'kim')
  const part = Math.ceil(count / 10)
  const ids = await sessions.send(part, 's', 'parked')
  ids.push(...(await sessions.send(count - part)))
  const taken: Awaited<ReturnType<OpenRecord['claim']>>['deliveries'][number][] = []
  while (taken.length < 3 * part) taken.push(...(await record.claim(node, part)).deliveries)
  await record.functions.mirror(node, taken.slice(0, 2 * part))
  await record.functions.ack(node, taken.slice(0, part))
  return ids
}

/** The first `moved` are queued anew on host b, the others as they were; looks at those from `first` to `last`. */
async function checkRows(
  ids: readonly string[],
  before: readonly Row[],
  moved: number,
  first: number,
  last: number,
) {
  const rows = await rowsOf(ids.slice(first, last))
  const wrong = rows.filter((row, index) => {
    const at = first + index
    const earlier = before[at]
    if (at >= moved) return String(row) !== String(earlier)
    return `${row.slice(0, 3)} ${row[4]}` !== `b,queued,${Number(earlier?.[2]) + 1} null`
  })
  expect(wrong.slice(0, 5), `rows ${first} to ${last}, ${moved} moved`).toEqual([])
  return rows
}

async function checkStreams(ids: readonly string[], rows: readonly Row[]) {
  for (const host of ['a', 'b']) {
    const wanted = rows.flatMap((row, at) =>
      row[0] === host && row[1] !== 'delivered' ? [`${row[3]} ${ids[at]}`] : [],
    )
    const known = new Set(ids)
    const found = (await streamOf(host)).filter((each) => known.has(each.split(' ')[1] ?? ''))
    expect(String(found) === String(wanted), `the stream of ${host}, in order`).toBe(true)
  }
}

it('5,000 deliveries: after each slice every one is on one host, as it was or queued anew, and the rest is owed', async () => {
  const { keys, store } = record
  const ids = await fill(5_000)
  const before = await rowsOf(ids)
  const later: string[] = []
  let slices = 0
  for (let more = true; more; ) {
    slices += 1
    expect(slices, 'a move says "more" for ever').toBeLessThanOrEqual(52)
    more = (await (slices % 2 === 1 ? rehomeOnce() : moveOnce())).more
    if (slices % 10 === 0) later.push(...(await sessions.send()))
    expect(await owed()).toEqual(more ? ['session:s'] : [])
    const places = [
      ['XLEN', keys.stream('a')],
      ['ZCARD', keys.awaiting('a')],
      ['XLEN', keys.stream('b')],
    ]
    const listed = (await store.pipeline(places)) as number[]
    expect(listed.reduce((sum, each) => sum + each, 0)).toBe(5_000 + later.length)
    const moved = Math.min(100 * slices, 5_000)
    await checkRows(ids, before, moved, Math.max(0, moved - 200), moved + 200)
    if (slices % 10 === 1 || !more) await checkStreams(ids, await checkRows(ids, before, moved, 0, 5_000))
  }
  expect(slices).toBeGreaterThanOrEqual(50)
  for (const key of [keys.awaiting('a'), keys.parked('a'), keys.parkedHosts]) {
    expect(await record.send('EXISTS', key)).toBe(0)
  }
  expect(new Set((await rowsOf(later)).map(([host]) => host))).toEqual(new Set(['b']))
})

describe.each(Object.keys(completions))('stopped and completed by %s', (how) => {
  it.each([1, 2, 3])(
    'after %i slices of 250: nothing is lost, nothing doubled, and the new host gets all',
    async (stop) => {
      const ids = await fill(250)
      for (let slice = 0; slice < stop; slice += 1) await rehomeOnce()
      await record.checkInvariants()
      await completions[how]?.()
      expect(await owed()).toEqual([])
      expect(await sessions.row()).not.toHaveProperty('move_cursor')
      expect(await record.claimAll(node)).toEqual([])
      await record.functions.lift('pause', 'conversation:parked', 'kim')
      const there = await record.claimAll(target)
      expect(there.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
      const before = await sessions.row()
      await completions[how]?.()
      expect(await sessions.row()).toEqual(before)
    },
  )
})

describe('while a move is under way', () => {
  it('messages go to the new host, and what its nodes settle is not moved again', async () => {
    const ids = await fill(250)
    expect((await rehomeOnce()).more).toBe(true)
    const [late = ''] = await sessions.send()
    expect((await rowsOf([late]))[0]?.[0]).toBe('b')
    const there = await record.deliverAll(target)
    expect(there.map(({ id }) => id)).toContain(late)
    for (const each of there.slice(0, 10)) {
      await sessions.report(await record.begin(target, each), result, target)
    }
    const before = await rowsOf(there.map(({ id }) => id))
    await all(moveOnce)
    expect(await rowsOf(there.map(({ id }) => id))).toEqual(before)
    expect(new Set((await rowsOf(ids)).map(([host]) => host))).toEqual(new Set(['b']))
  })

  it('the old host claims nothing of what is still queued there: it goes along at that', async () => {
    const ids = await fill(250)
    await rehomeOnce()
    expect(await record.send('XLEN', record.keys.stream('a'))).toBe(150)
    expect(await record.claimAll(node)).toEqual([])
    expect(await record.send('XLEN', record.keys.stream('a'))).toBe(0)
    expect(await owed()).toEqual(['session:s'])
    await record.checkInvariants()
    await all(moveOnce)
    expect(new Set((await rowsOf(ids)).map(([host]) => host))).toEqual(new Set(['b']))
  })

  it('the old host that restarts resumes nothing of what is still there, and serves none of it after a lift', async () => {
    await record.functions.pause('conversation:parked', 'wait', 'kim')
    const ids = await sessions.send(120, 's', 'c1')
    const taken = await record.claimAll(node, 120)
    await record.functions.mirror(node, taken.slice(100, 115))
    await record.functions.ack(node, taken.slice(110, 115))
    ids.push(...(await sessions.send(30, 's', 'parked')))
    await record.claimAll(node)
    await rehomeOnce()
    await record.functions.lift('pause', 'conversation:parked', 'kim')
    expect(new Set((await rowsOf(ids.slice(100))).map(([host]) => host))).toEqual(new Set(['a']))
    expect(await record.claimAll(await sessions.join('a', 'n1', 2))).toEqual([])
    expect(new Set((await rowsOf(ids)).map(([host, state]) => `${host} ${state}`))).toEqual(
      new Set(['b queued']),
    )
    await record.checkInvariants()
    await all(moveOnce)
  })

  it('what was delivered there and is begun there is refused NOT_OWNER, and moves at that', async () => {
    const ids = await sessions.send(150)
    const delivered = await record.deliverAll(node, 150)
    await rehomeOnce()
    const last = delivered.at(-1) ?? { id: '', epoch: 0 }
    expect((await record.fields(last.id))['host']).toBe('a')
    const begin = () => record.functions.begin(node, [{ id: last.id, epoch: last.epoch, grant: 'g' }])
    expect(await begin()).toMatchObject([{ ok: false, code: 'NOT_OWNER', state: 'queued' }])
    expect(await record.fields(last.id)).toMatchObject({ host: 'b', state: 'queued', attempts: '0' })
    await record.itemRefused('NOT_OWNER', begin)
    await all(moveOnce)
    const there = await record.claimAll(target)
    expect(there.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
  })

  it('a second rehome, onward or back, is where all of it ends', async () => {
    await sessions.join('c')
    const ids = await fill(250)
    const before = await rowsOf(ids.slice(100))
    await rehomeOnce('b')
    await rehomeOnce('c')
    expect(await sessions.row()).toMatchObject({ host: 'c', moving_from: 'b', epoch: '3' })
    await rehomeOnce('a')
    await record.checkInvariants()
    await repair()
    expect(new Set((await rowsOf(ids)).map(([host]) => host))).toEqual(new Set(['a']))
    expect(await rowsOf(ids.slice(100))).toEqual(before)
  })

  it('the new host may be retired: what still comes is held there', async () => {
    const ids = await fill(250)
    const byHand = ids.at(-1) ?? ''
    await record.functions.holdDelivery(byHand, 'kim', 'look at it')
    await rehomeOnce()
    await all(() => record.functions.retire('b', 'kim', 'sold'))
    await all(moveOnce)
    expect(new Set((await rowsOf(ids)).map(([host, state]) => `${host} ${state}`))).toEqual(
      new Set(['b held']),
    )
    const reasonOf = async (id = '') => (await record.fields(id))['held_reason']
    expect([await reasonOf(ids[0]), await reasonOf(ids[200]), await reasonOf(byHand)]).toEqual([
      'retired',
      'retired',
      'look at it',
    ])
  })

  it('two callers at once move it once', async () => {
    const ids = await fill(250)
    await Promise.all([all(() => rehomeOnce()), all(() => rehomeOnce()), repair()])
    expect(await sessions.row()).toMatchObject({ host: 'b', epoch: '2' })
    const epochs = (await rowsOf(ids)).map(([, , epoch]) => Number(epoch))
    expect(Math.max(...epochs)).toBe(2)
  })
})
