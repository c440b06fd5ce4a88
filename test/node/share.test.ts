import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createShares, type Place, type Share } from '../../src/node/share.js'

interface User {
  readonly share: Share
  /** What it holds, and how many of that could run. */
  active: number
  ready: number
  readonly places: Place[]
  /** How often it was told that there may be room. */
  rooms: number
}

/** Who took a place, in order. */
let taken: string[]

beforeEach(() => {
  taken = []
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

function users(settings: { concurrency: number; buffer: number }, ...names: string[]): User[] {
  return createShares(settings, names.length).map((share, at) => {
    const user: User = { share, active: 0, ready: 0, places: [], rooms: 0 }
    share.attach({
      active: () => user.active,
      turn: () => pump(user, names[at] ?? ''),
      room: () => {
        user.rooms += 1
      },
    })
    return user
  })
}

function pump(user: User, name: string): void {
  while (user.ready > 0) {
    const place = user.share.takePlace()
    if (place === undefined) return
    user.ready -= 1
    user.places.push(place)
    taken.push(name)
  }
}

function pair(concurrency: number, buffer = 32): [User, User] {
  const [a, b] = users({ concurrency, buffer }, 'a', 'b')
  if (a === undefined || b === undefined) throw new Error('two users were asked for')
  return [a, b]
}

describe('places', () => {
  it('are all for the hub that is alone with its work', () => {
    const [a] = pair(3)
    a.ready = 5
    pump(a, 'a')
    expect(taken).toEqual(['a', 'a', 'a'])
  })

  it('go round among the hubs that have something ready', () => {
    const [a, b] = pair(2)
    a.ready = 10
    pump(a, 'a')
    b.ready = 3
    pump(b, 'b')
    for (let given = 0; given < 6; given += 1) (a.places.shift() ?? b.places.shift())?.give()
    expect(taken).toEqual(['a', 'a', 'a', 'b', 'a', 'b', 'a', 'b'])
    expect(a.places.length + b.places.length).toBe(2)
  })

  it('come to the hubs in the order in which they asked', () => {
    const all = users({ concurrency: 1, buffer: 32 }, 'a', 'b', 'c')
    for (const [at, user] of all.entries()) {
      user.ready = 3
      pump(user, 'abc'[at] ?? '')
    }
    for (let given = 0; given < 8; given += 1)
      all
        .find(({ places }) => places.length > 0)
        ?.places.shift()
        ?.give()
    expect(taken.join('')).toBe('aabcabcbc')
  })

  it('pass by a hub whose turn comes when it wants none any more', () => {
    const [a, b] = pair(1)
    a.ready = 1
    pump(a, 'a')
    b.ready = 1
    pump(b, 'b')
    b.ready = 0
    a.ready = 1
    pump(a, 'a')
    a.places.shift()?.give()
    expect(taken).toEqual(['a', 'a'])
  })

  it('are lent to others while a hub does not answer, and are had again before anything is executed', async () => {
    const [a, b] = pair(1)
    a.ready = 1
    pump(a, 'a')
    b.ready = 1
    pump(b, 'b')
    expect(taken).toEqual(['a'])
    vi.advanceTimersByTime(500)
    expect(taken).toEqual(['a', 'b'])
    let entered = false
    const entering = a.places[0]?.enter()?.then(() => {
      entered = true
    })
    await Promise.resolve()
    expect(entered).toBe(false)
    b.places[0]?.give()
    await entering
    expect(entered).toBe(true)
    b.ready = 1
    pump(b, 'b')
    expect(taken).toEqual(['a', 'b'])
    a.places[0]?.give()
    expect(taken).toEqual(['a', 'b', 'b'])
  })

  it('are not lent once something is executed in them', () => {
    const [a, b] = pair(1)
    a.ready = 1
    pump(a, 'a')
    expect(a.places[0]?.enter()).toBeUndefined()
    b.ready = 1
    pump(b, 'b')
    vi.advanceTimersByTime(60_000)
    expect(taken).toEqual(['a'])
  })

  it('that were lent and are given up without an execution are not counted twice', () => {
    const [a, b] = pair(1)
    a.ready = 1
    pump(a, 'a')
    b.ready = 3
    pump(b, 'b')
    vi.advanceTimersByTime(500)
    a.places[0]?.give()
    expect(taken).toEqual(['a', 'b'])
    b.places[0]?.give()
    expect(taken).toEqual(['a', 'b', 'b'])
  })
})

describe('room for claims', () => {
  it('is all for the hub that asks alone, and kept free for its claim until that is answered', () => {
    const [a, b] = pair(8)
    expect(a.share.roomFor(100, false)).toBe(32)
    expect(b.share.roomFor(100, false)).toBe(b.share.even)
    b.share.claimed()
    a.active = 10
    a.share.claimed()
    expect(b.share.roomFor(100, false)).toBe(22)
  })

  it('is not taken from the others by a claim that waits for work', () => {
    const [a, b] = pair(8)
    expect(a.share.roomFor(100, true)).toBe(a.share.even)
    expect(b.share.roomFor(100, false)).toBe(32)
  })

  it('is at least the part that is a hub own, whatever the others hold', () => {
    const [a, b] = pair(8)
    a.active = 40
    expect(b.share.roomFor(100, false)).toBe(4)
    b.share.claimed()
    b.active = 3
    expect(b.share.roomFor(100, false)).toBe(1)
    b.share.claimed()
    b.active = 4
    expect(b.share.roomFor(100, false)).toBe(0)
  })

  it('that becomes free is told to those that wait, and parted among them', () => {
    const [a, b] = pair(8)
    a.active = 20
    b.active = 12
    expect([a.share.roomFor(100, false), b.share.roomFor(100, false)]).toEqual([0, 0])
    a.active = 10
    a.share.roomMade()
    expect([a.rooms, b.rooms]).toEqual([1, 1])
    expect(a.share.roomFor(100, false)).toBe(5)
    expect(b.share.roomFor(100, false)).toBe(5)
  })

  it('is not kept free for a claim that a hub does not answer', () => {
    const [a, b] = pair(8)
    a.share.roomFor(100, false)
    b.active = 4
    expect(b.share.roomFor(100, false)).toBe(0)
    vi.advanceTimersByTime(500)
    expect(b.rooms).toBe(1)
    expect(b.share.roomFor(100, false)).toBe(28)
  })
})
