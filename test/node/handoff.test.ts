import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type {
  ClaimedDelivery,
  RefuseItem,
  StepItem,
  StepResult,
  TakeItem,
  TakeReply,
} from '../../src/contract/steps.js'
import { createHandoff } from '../../src/node/handoff.js'
import { createLanes, type Lanes, type Work } from '../../src/node/lanes.js'
import { type Mirror, openMirror } from '../../src/node/mirror.js'
import { sha256 } from '../support/record.js'
import { until } from '../support/until.js'

let folder: string
let mirror: Mirror
let lanes: Lanes
let ran: Work[]
let sent: string[]
let logs: string[]
let refusing: (step: string, item: StepItem) => boolean
/** Whether what a lane starts asks to begin at once. */
let joining: boolean

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-handoff-'))
  mirror = openMirror({ file: join(folder, 'node.db'), hub: 'hub', host: 'h', node: 'n' })
  ran = []
  sent = []
  logs = []
  refusing = () => false
  joining = false
  lanes = createLanes({
    concurrency: 8,
    run: (work) => {
      ran.push(work)
      if (joining) joins(work)
      return new Promise(() => undefined)
    },
    onRoom: () => undefined,
  })
})
afterEach(async () => {
  await mirror.close()
  rmSync(folder, { recursive: true, force: true })
})

function claimed(id: string, more: Partial<ClaimedDelivery> = {}): ClaimedDelivery {
  const payload = more.payload ?? Buffer.from(`payload of ${id}`)
  const message = { id: 'm', conversation: id, sender: 's', sha256: sha256(payload) }
  return { id, epoch: 1, state: 'claimed', how: 'new', attempts: 0, message, payload, ...more }
}

function answerTo(name: string, { id, epoch }: StepItem): StepResult {
  return refusing(name, { id, epoch })
    ? { id, ok: false, code: 'STALE_EPOCH', epoch: epoch + 1, owner: 'other' }
    : { id, ok: true, epoch, state: 'delivered' }
}

/** Grants are told by a `+`. */
async function take(items: readonly TakeItem[]): Promise<TakeReply> {
  sent.push(`take ${items.map(({ id, grant }) => (grant === undefined ? id : `${id}+`)).join(',')}`)
  for (const { id, grant } of items) {
    expect(mirror.copy(id), `the copy of ${id} is durable first`).toBeDefined()
    if (grant !== undefined)
      expect(mirror.holdsGrant(grant), `the grant of ${id} is durable first`).toBe(true)
  }
  const results = items.map((item) => answerTo('take', item))
  const begins = items.filter(({ grant }, at) => grant !== undefined && results[at]?.ok)
  return { results, begun: begins.map((item) => answerTo('begin', item)) }
}

function refuse(items: readonly RefuseItem[]): Promise<StepResult[]> {
  sent.push(`refuse ${items.map(({ id, reason }) => `${id} ${reason}`).join(',')}`)
  return Promise.resolve(items.map((item) => answerTo('refuse', item)))
}

function handoff() {
  const note = (_: object, text: string) => void logs.push(text)
  return createHandoff({
    mirror,
    lanes,
    steps: { take, refuse },
    log: { debug: note, info: note, warn: note, error: note },
    onPoint: (point) => void sent.push(point),
  })
}

/** What the record answered to each that ran, in the order of running. */
function arrivals() {
  return Promise.all(
    ran.map(async ({ id, arrival }) => {
      const { accepted, begun } = (await arrival?.answer) ?? { accepted: false }
      return `${id} ${accepted ? 'accepted' : 'refused'}${begun === undefined ? '' : begun.ok ? ', begun' : ', not begun'}`
    }),
  )
}

/** Joins at once with a grant of this name, as an attempt does. */
function joins(work: Work): void {
  const grant = `grant-${work.id}`
  if (!work.arrival?.open) return
  const minted = mirror.mintGrant({ grant, delivery: work.id, epoch: work.epoch })
  work.arrival.join(
    grant,
    minted.then(
      () => true,
      () => false,
    ),
  )
}

describe('handoff', () => {
  it('stores the copies, then takes on, and runs what the record accepted', async () => {
    await handoff()([claimed('a'), claimed('b')])
    expect(sent).toEqual(['copy.stored', 'take a,b'])
    expect(await arrivals()).toEqual(['a accepted', 'b accepted'])
    expect(mirror.copy('a')).toMatchObject({ delivery: 'a', epoch: 1 })
    expect(ran[0]?.payload.toString()).toBe('payload of a')
  })

  it('begins in the same call what a lane starts at once, by one commit; not what waits behind it', async () => {
    joining = true
    const before = mirror.stats().commits
    const one = claimed('a')
    await handoff()([
      one,
      claimed('b'),
      { ...claimed('a2'), message: { ...one.message, sha256: claimed('a2').message.sha256 } },
    ])
    expect(sent).toEqual(['copy.stored', 'take a+,b+,a2'])
    expect(mirror.stats().commits).toBe(before + 1)
    expect(await arrivals()).toEqual(['a accepted, begun', 'b accepted, begun'])
    expect(lanes.total()).toBe(3)
  })

  it('tells each what became of its begin, and begins nothing without a durable grant', async () => {
    joining = true
    await mirror.mintGrant({ grant: 'earlier', delivery: 'b', epoch: 0 })
    refusing = (name, { id }) => name === 'begin' && id === 'a'
    await handoff()([claimed('a'), claimed('b')])
    expect(sent).toEqual(['copy.stored', 'take a+,b'])
    expect(await arrivals()).toEqual(['a accepted, not begun', 'b accepted'])
  })

  it('takes on whatever its state is: new, mirrored, delivered', async () => {
    await handoff()([
      claimed('new'),
      claimed('mirrored', { state: 'mirrored', how: 'resume' }),
      claimed('delivered', { state: 'delivered', how: 'takeover' }),
    ])
    expect(sent).toEqual(['copy.stored', 'take new,mirrored,delivered'])
    expect(ran).toHaveLength(3)
  })

  it.each(['held', 'failed', 'queued', 'unknown'] as const)(
    'leaves what has gone on to %s alone',
    async (state) => {
      await handoff()([claimed('a', { state })])
      expect([sent, ran]).toEqual([[], []])
    },
  )

  it('leaves alone what it holds under this epoch or a later one, and takes on a later one', async () => {
    const hand = handoff()
    await hand([claimed('a', { epoch: 2 })])
    sent = []
    await hand([claimed('a', { epoch: 2 }), claimed('a', { epoch: 1 })])
    expect(sent).toEqual([])
    await hand([claimed('a', { epoch: 3 })])
    expect(sent).toEqual(['copy.stored', 'take a'])
    expect(lanes.epochOf('a')).toBe(3)
  })

  it('refuses a payload that does not match its digest before it is stored; the rest goes on', async () => {
    const bad = claimed('bad')
    await handoff()([{ ...bad, payload: Buffer.from('changed') }, claimed('good')])
    expect(sent).toEqual(['refuse bad payload_corrupt', 'copy.stored', 'take good'])
    expect(mirror.copy('bad')).toBeUndefined()
    expect(ran.map(({ id }) => id)).toEqual(['good'])
  })

  it('drops the copy of what the record refuses, and runs the rest', async () => {
    refusing = (name, { id }) => name === 'take' && id === 'b'
    await handoff()([claimed('a'), claimed('b')])
    expect(await arrivals()).toEqual(['a accepted', 'b refused'])
    expect([mirror.copy('a') !== undefined, mirror.copy('b')]).toEqual([true, undefined])
    expect(logs.some((text) => text.includes('refused'))).toBe(true)
  })

  it('tells those that run when it fails', async () => {
    const hand = createHandoff({
      mirror,
      lanes,
      steps: { take: () => Promise.reject(new Error('superseded')), refuse },
      log: { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined },
      onPoint: undefined,
    })
    await expect(hand([claimed('a')])).rejects.toThrow('superseded')
    await expect(ran[0]?.arrival?.answer).rejects.toThrow('superseded')
  })

  it('goes on with a redrive where an earlier process left it: its tries and its delay', async () => {
    await mirror.storeCopies([
      { delivery: 'a', epoch: 1, message: claimed('a').message, payload: claimed('a').payload },
    ])
    await mirror.putOff('a', 3, Date.now() + 40)
    await handoff()([claimed('a', { epoch: 2, state: 'delivered', how: 'resume' })])
    expect(ran).toEqual([])
    expect(lanes.total()).toBe(1)
    await until(() => ran.length === 1)
    expect(ran[0]?.tries).toBe(3)
  })

  it('waits no longer than a backoff may be, whatever the clock says that put it off', async () => {
    await mirror.storeCopies([
      { delivery: 'a', epoch: 1, message: claimed('a').message, payload: claimed('a').payload },
    ])
    await mirror.putOff('a', 1, Date.now() + 86_400_000)
    const delays: number[] = []
    lanes = { ...lanes, add: (_, afterMs = 0) => void delays.push(afterMs) }
    await handoff()([claimed('a', { epoch: 2, state: 'delivered', how: 'resume' })])
    expect(delays).toHaveLength(1)
    expect(delays[0]).toBeLessThanOrEqual(60_000)
  })

  it('begins anew with what was taken over, or claimed again', async () => {
    await mirror.storeCopies([
      { delivery: 'a', epoch: 1, message: claimed('a').message, payload: claimed('a').payload },
    ])
    await mirror.putOff('a', 3, Date.now() + 60_000)
    await handoff()([claimed('a', { epoch: 2, how: 'takeover' })])
    expect(ran[0]?.tries).toBe(0)
  })
})
