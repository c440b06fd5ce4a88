import { describe, expect, it } from 'vitest'
import { createLanes, type Lanes, type Verdict, type Work } from '../../src/node/lanes.js'
import { until } from '../support/until.js'

const over: Verdict = { kind: 'over' }

function work(id: string, conversation = 'c1', more: Partial<Work> = {}): Work {
  const message = { id: 'm', conversation, sender: 's', sha256: '' }
  return {
    id,
    epoch: 1,
    session: undefined,
    message,
    payload: Buffer.alloc(0),
    tries: 0,
    grant: undefined,
    replay: false,
    ...more,
  }
}

/** Lanes whose runs end when the test says so. */
function openLanes(concurrency = 8) {
  const started: string[] = []
  const ends = new Map<string, (verdict: Verdict) => void>()
  const leaves = new Map<string, () => void>()
  let rooms = 0
  const lanes: Lanes = createLanes({
    concurrency,
    run: (each, leave) => {
      started.push(each.id)
      leaves.set(each.id, leave)
      return new Promise((resolve) => {
        ends.set(each.id, resolve)
      })
    },
    onRoom: () => {
      rooms += 1
    },
  })
  return {
    lanes,
    started,
    rooms: () => rooms,
    /** The outcome of a run is durable; it is still being reported. */
    leave: (id: string) => leaves.get(id)?.(),
    /** Ends a run; resolves once the lanes have taken notice. */
    end: async (id: string, verdict: Verdict = over) => {
      const before = rooms
      ends.get(id)?.(verdict)
      await until(() => rooms > before, { everyMs: 0 })
    },
  }
}

describe('lanes', () => {
  it('run one of a lane at a time, in the order in which they came', async () => {
    const { lanes, started, end } = openLanes()
    for (const id of ['a', 'b', 'c']) lanes.add(work(id))
    expect(started).toEqual(['a'])
    await end('a')
    expect(started).toEqual(['a', 'b'])
    await end('b')
    await end('c')
    expect(started).toEqual(['a', 'b', 'c'])
    expect([lanes.total(), lanes.active(), lanes.running()]).toEqual([0, 0, 0])
  })

  it('are a conversation and a session: others run at the same time', () => {
    const { lanes, started } = openLanes()
    lanes.add(work('a'))
    lanes.add(work('b', 'c2'))
    lanes.add(work('c', 'c1', { session: 's1' }))
    lanes.add(work('d', 'c1', { session: 's2' }))
    lanes.add(work('e', 'c1', { session: 's1' }))
    expect(started).toEqual(['a', 'b', 'c', 'd'])
  })

  it('run so many at a time; the next lane starts when one ends, and each gets its turn', async () => {
    const { lanes, started, end } = openLanes(2)
    for (const lane of ['x', 'y', 'z']) for (const n of [1, 2]) lanes.add(work(`${lane}${n}`, lane))
    expect(started).toEqual(['x1', 'y1'])
    expect(lanes.running()).toBe(2)
    await end('x1')
    expect(started).toEqual(['x1', 'y1', 'z1'])
    await end('y1')
    expect(started).toEqual(['x1', 'y1', 'z1', 'x2'])
  })

  it('count what is held and runnable, and tell of room', async () => {
    const { lanes, rooms, end } = openLanes(1)
    for (const id of ['a', 'b', 'c']) lanes.add(work(id))
    expect([lanes.active(), lanes.total(), lanes.running(), rooms()]).toEqual([3, 3, 1, 0])
    await end('a')
    expect([lanes.active(), lanes.total(), rooms()]).toEqual([2, 2, 1])
    expect([lanes.epochOf('a'), lanes.epochOf('b')]).toEqual([undefined, 1])
  })

  it('that a pause stops keep their order and do not use the buffer, and begin again by themselves', async () => {
    const { lanes, started, end } = openLanes()
    for (const id of ['a', 'b', 'c']) lanes.add(work(id))
    lanes.add(work('free', 'c2'))
    await end('a', { kind: 'paused' })
    expect([lanes.active(), lanes.total()]).toEqual([1, 4])
    expect(started).toEqual(['a', 'free'])
    await until(() => started.length === 3, { what: 'asking again' })
    expect(started).toEqual(['a', 'free', 'a'])
    await end('a')
    expect(started.at(-1)).toBe('b')
  })

  it('that a pause stops are asked for at once when something rings', async () => {
    const { lanes, started, end } = openLanes()
    lanes.add(work('a'))
    await end('a', { kind: 'paused' })
    lanes.wake()
    expect(started).toEqual(['a', 'a'])
    await end('a')
    expect(started).toHaveLength(2)
  })

  it('let the next pass a delivery that is tried again later', async () => {
    const { lanes, started, end } = openLanes()
    for (const id of ['a', 'b']) lanes.add(work(id))
    await end('a', { kind: 'again', afterMs: 20 })
    expect(started).toEqual(['a', 'b'])
    expect([lanes.active(), lanes.total(), lanes.epochOf('a')]).toEqual([1, 2, 1])
    await end('b')
    await until(() => started.length === 3)
    expect(started).toEqual(['a', 'b', 'a'])
    expect([lanes.active(), lanes.total()]).toEqual([1, 1])
  })

  it('take on work that is not yet due', async () => {
    const { lanes, started } = openLanes()
    lanes.add(work('later'), 20)
    lanes.add(work('now'))
    expect(started).toEqual(['now'])
    expect([lanes.active(), lanes.total()]).toEqual([1, 2])
    await until(() => lanes.active() === 2)
  })

  it('keep a newer epoch when the run of an older one ends', async () => {
    const { lanes, started, end } = openLanes()
    lanes.add(work('a'))
    lanes.add(work('a', 'c1', { epoch: 3 }))
    await end('a')
    expect([lanes.epochOf('a'), lanes.total()]).toEqual([3, 1])
    expect(started).toEqual(['a', 'a'])
    await end('a')
    expect([lanes.epochOf('a'), lanes.total(), lanes.active()]).toEqual([undefined, 0, 0])
  })

  it('count a delivery that came back under a newer epoch while the older was put off', async () => {
    const { lanes, end } = openLanes(1)
    lanes.add(work('a'))
    await end('a', { kind: 'again', afterMs: 50_000 })
    lanes.add(work('a', 'c1', { epoch: 3 }))
    expect([lanes.total(), lanes.running(), lanes.active()]).toEqual([1, 1, 1])
  })

  it('pass place and lane on once an outcome is durable, and hold it until it is reported', async () => {
    const { lanes, started, leave, end, rooms } = openLanes(1)
    for (const id of ['a', 'b']) lanes.add(work(id))
    leave('a')
    leave('a')
    expect(started).toEqual(['a', 'b'])
    expect([lanes.active(), lanes.total(), lanes.running(), rooms()]).toEqual([1, 2, 2, 1])
    expect(lanes.epochOf('a')).toBe(1)
    await end('a')
    expect([lanes.active(), lanes.total(), lanes.running(), lanes.epochOf('a')]).toEqual([1, 1, 1, undefined])
    await end('b')
    expect([lanes.active(), lanes.total(), lanes.running()]).toEqual([0, 0, 0])
  })

  it('try again what left its lane and was not sent', async () => {
    const { lanes, started, leave, end } = openLanes(1)
    lanes.add(work('a'))
    leave('a')
    await end('a', { kind: 'again', afterMs: 1 })
    await until(() => started.length === 2)
    expect([lanes.active(), lanes.total(), lanes.running()]).toEqual([1, 1, 1])
  })

  it('count what came back under a newer epoch while the older was being reported', async () => {
    const { lanes, leave, end } = openLanes(1)
    lanes.add(work('a'))
    lanes.add(work('other', 'c2'))
    leave('a')
    lanes.add(work('a', 'c1', { epoch: 3 }))
    expect([lanes.active(), lanes.total(), lanes.running()]).toEqual([2, 2, 2])
    await end('a')
    expect([lanes.epochOf('a'), lanes.active(), lanes.running()]).toEqual([3, 2, 1])
  })

  it('say that nothing runs only when everything is reported', async () => {
    const { lanes, leave, end } = openLanes()
    lanes.add(work('a'))
    leave('a')
    let isIdle = false
    const stopped = lanes.stop().then(() => {
      isIdle = true
    })
    await new Promise((resolve) => setImmediate(resolve))
    expect(isIdle).toBe(false)
    await end('a')
    await stopped
  })

  it('begin nothing more once stopped, and say when nothing runs', async () => {
    const { lanes, started, end } = openLanes()
    for (const id of ['a', 'b']) lanes.add(work(id))
    let stopped = false
    const stopping = lanes.stop().then(() => {
      stopped = true
    })
    lanes.add(work('c', 'c2'))
    expect([started, stopped]).toEqual([['a'], false])
    await end('a')
    await stopping
    expect(started).toEqual(['a'])
    await lanes.stop()
  })

  it('leave no timer behind when a put-off verdict comes after the stop', async () => {
    const { lanes, end } = openLanes()
    lanes.add(work('a'))
    const before = process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length
    const stopping = lanes.stop()
    await end('a', { kind: 'again', afterMs: 50_000 })
    await stopping
    const after = process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length
    expect(after).toBeLessThanOrEqual(before)
  })
})
