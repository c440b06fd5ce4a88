import { describe, expect, it } from 'vitest'
import { eachRecord } from '../support/each-record.js'
import type { OpenRecord, TestNode } from '../support/record.js'
import { notSent, type SessionTools, scope, sessionTools, the } from '../support/sessions.js'
import { until } from '../support/until.js'

// Where a redriven delivery of a session goes: home; with rehome_on_redrive away from a host that is gone.

let record: OpenRecord
let sessions: SessionTools
let node: TestNode

eachRecord(async (made) => {
  record = made
  await record.config('heartbeat_ms', 60_000)
  await record.config('stale_after_ms', 60_000)
  await record.config('rehome_on_redrive', 1)
  sessions = sessionTools(record)
  node = await sessions.join('a')
  await sessions.open()
})

const release = (id: string) => record.functions.release(id, 'kim', 'again')
const retire = (host: string) => record.functions.retire(host, 'kim', 'sold')
const resolve = (attempt: string) =>
  record.functions.resolveAttempt(attempt, { as: 'not_sent', evidence: 'the log of the target' }, 'kim')
const placeOf = async (id: string) => {
  const { state, host } = await record.fields(id)
  return `${state} at ${host}`
}
const homeOf = async (session = 's') => (await sessions.row(session))['host']

/** Held by hand; nothing of it ran. */
async function heldOne(session = 's'): Promise<string> {
  const [id = ''] = await sessions.send(1, session)
  await record.functions.holdDelivery(id, 'kim', 'look at it')
  return id
}

/** In doubt, as its node said. */
async function doubtfulOne(): Promise<string> {
  const [id = ''] = await sessions.send()
  const claimed = the(await record.claimAll(node), id)
  await record.functions.refuse(node, [{ ...claimed, verdict: 'unknown', reason: 'disk' }])
  return id
}

/** Each way an operator redrives a delivery, from what must be there while its node still lives. */
const redrives: Record<string, () => Promise<{ id: string; redrive: () => Promise<unknown> }>> = {
  release: async () => {
    const id = await heldOne()
    return { id, redrive: () => release(id) }
  },
  'resolve of an attempt as not_sent': async () => {
    const { id, attempt } = await sessions.begin(node)
    return { id, redrive: () => resolve(attempt) }
  },
  'a not_sent of its earlier process': async () => {
    const open = await sessions.begin(node)
    return { id: open.id, redrive: () => sessions.report(open, notSent, node) }
  },
  'resolve of a delivery as queued': async () => {
    const id = await doubtfulOne()
    const resolution = { as: 'queued', evidence: 'the disk is whole' } as const
    return { id, redrive: () => record.functions.resolveDelivery(id, resolution, 'kim') }
  },
  'lift of a hold': async () => {
    await record.functions.hold('session:s', 'legal', 'kim')
    const [id = ''] = await sessions.send()
    await record.claimAll(node)
    return { id, redrive: () => record.functions.lift('hold', 'session:s', 'kim') }
  },
}

describe.each(Object.entries(redrives))('%s', (name, prepare) => {
  const die = async () => {
    if (name.includes('earlier process')) await record.functions.leave(node)
    else await sessions.silence(node)
  }

  it('moves the session when its host is dead and another serves its scope; the rest is owed', async () => {
    const { id, redrive } = await prepare()
    await record.functions.pause('conversation:rest', 'wait', 'kim')
    const rest = await sessions.send(2, 's', 'rest')
    await record.claimAll(node)
    await sessions.join('b')
    await die()
    await redrive()
    expect([await homeOf(), await placeOf(id)]).toEqual(['b', 'queued at b'])
    expect(await sessions.row()).toMatchObject({ epoch: '2', rehomed_by: 'redrive', moving_from: 'a' })
    expect(await record.send('ZRANGE', record.keys.obligations, 0, -1)).toEqual(['session:s'])
    await record.checkInvariants()
    expect((await record.functions.move('s', 'repair')).more).toBe(false)
    expect(await Promise.all(rest.map(placeOf))).toEqual(['queued at b', 'queued at b'])
  })

  it('does not, as long as rehome_on_redrive is off', async () => {
    await record.send('HDEL', record.keys.config, 'rehome_on_redrive')
    const { id, redrive } = await prepare()
    await sessions.join('b')
    await die()
    await redrive()
    expect([await homeOf(), await placeOf(id)]).toEqual(['a', 'queued at a'])
  })

  it('moves it when its host is retired', async () => {
    const { id, redrive } = await prepare()
    await sessions.join('b')
    await retire('a')
    await sessions.silence(node)
    await redrive()
    expect([await homeOf(), await placeOf(id)]).toEqual(['b', 'queued at b'])
  })
})

describe('a redrive leaves the session where it is', () => {
  it.each([
    ['while a node of its host lives', () => sessions.join('a', 'n2')],
    ['while no other host has a node', () => Promise.resolve()],
    ['while no other host serves the scope', () => sessions.join('b', 'n1', 1, [`${scope}2`])],
    ['while the other host is silent', async () => sessions.silence(await sessions.join('b'))],
    [
      'while the other host is retired',
      async () => {
        await sessions.join('b')
        await retire('b')
      },
    ],
  ])('%s', async (_, prepare) => {
    const id = await heldOne()
    await sessions.join('c', 'n1', 1, [])
    await sessions.silence(node)
    await prepare()
    expect(await release(id)).toMatchObject({ state: 'queued' })
    expect([await homeOf(), await placeOf(id)]).toEqual(['a', 'queued at a'])
    expect(await record.send('EXISTS', record.keys.obligations)).toBe(0)
  })

  it('while nobody is judged, after a stall', async () => {
    const ids = [await heldOne()]
    await sessions.join('b')
    await sessions.silence(node)
    await record.send('ZADD', record.keys.nodes, Date.now() - 5_000, 'b/n1')
    await record.config('heartbeat_ms', 50)
    await release(ids[0] ?? '')
    expect(await homeOf()).toBe('a')
    await until(async () => {
      const id = await heldOne()
      await release(id)
      return (await placeOf(id)) === 'queued at b'
    })
  })

  it('on a host that no node ever joined: it is waited for, not given up', async () => {
    await sessions.open('new', { host: 'new' })
    await sessions.join('b')
    const id = await heldOne('new')
    await release(id)
    expect(await placeOf(id)).toBe('queued at new')
  })

  it('while an attempt of it may still run, on whichever host', async () => {
    const open = await sessions.begin(node)
    const second = await sessions.join('b')
    await sessions.silence(node)
    await sessions.rehome()
    await sessions.join('a', 'n2')
    const beat = { lastLogId: '0-0', progressAgeMs: 0, blocking: { sumMs: 0, longestMs: 0 } }
    await record.functions.heartbeat(node, beat)
    const id = await heldOne()
    await sessions.silence(second)
    await release(id)
    expect([await homeOf(), await placeOf(id)]).toEqual(['b', 'queued at b'])
    await record.functions.leave(node)
    await record.functions.holdDelivery(id, 'kim', 'again')
    await release(id)
    expect([await homeOf(), await placeOf(id)]).toEqual(['a', 'queued at a'])
    expect(await record.fields(open.id)).toMatchObject({ attempt_status: 'executing' })
  })

  it('while a child session of it may still run something', async () => {
    await sessions.open('child', { parent: 's' })
    const open = await sessions.begin(node, 'child')
    const id = await heldOne()
    await sessions.join('b')
    await retire('a')
    await release(id).catch(() => undefined)
    expect(await homeOf()).toBe('a')
    await sessions.report(open, { kind: 'result', result: '1' }, node)
    await release(id)
    expect([await homeOf(), await homeOf('child'), await placeOf(id)]).toEqual(['b', 'b', 'queued at b'])
  })

  it('when it has more child sessions than one rehome takes along; the redrive itself is done', async () => {
    for (let child = 0; child <= 100; child += 1) await sessions.open(`c${child}`, { parent: 's' })
    const { id, attempt } = await sessions.begin(node)
    await sessions.join('b')
    await sessions.silence(node)
    expect(await resolve(attempt)).toMatchObject({ state: 'queued' })
    expect([await homeOf(), await placeOf(id)]).toEqual(['a', 'queued at a'])
  })
})

describe('a release', () => {
  it('on a retired host is refused as long as its session lives there, and changes nothing', async () => {
    const id = await heldOne()
    await retire('a')
    await record.refused('HOST_RETIRED', () => release(id))
    await sessions.join('b')
    await record.config('rehome_on_redrive', 0)
    await record.refused('HOST_RETIRED', () => release(id))
  })

  it('takes home what stayed on a retired host when its tries were used up', async () => {
    await record.config('rehome_on_redrive', 0)
    await record.config('max_redrive', 1)
    const { id, attempt } = await sessions.begin(node)
    await sessions.join('b')
    await retire('a')
    await sessions.silence(node)
    await sessions.rehome()
    await record.functions.hold('host:a', 'legal', 'kim')
    await record.functions.hold('host:b', 'legal', 'kim')
    await resolve(attempt)
    expect(await record.fields(id)).toMatchObject({ state: 'held', held_reason: 'redrive_exhausted' })
    expect(await release(id)).toMatchObject({ state: 'queued' })
    expect(await placeOf(id)).toBe('queued at b')
    expect((await record.fields(id))['released_holds']).toBe(' hold:host:b ')
  })
})
