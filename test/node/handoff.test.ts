import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ClaimedDelivery, StepItem, StepResult } from '../../src/contract/steps.js'
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

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-handoff-'))
  mirror = openMirror({ file: join(folder, 'node.db'), hub: 'hub', host: 'h', node: 'n' })
  ran = []
  sent = []
  logs = []
  refusing = () => false
  lanes = createLanes({
    concurrency: 8,
    run: (work) => {
      ran.push(work)
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

function step(name: string) {
  return (items: readonly (StepItem & { reason?: string })[]): Promise<StepResult[]> => {
    sent.push(`${name} ${items.map(({ id, reason }) => (reason ? `${id} ${reason}` : id)).join(',')}`)
    if (name === 'mirror')
      for (const { id } of items) expect(mirror.copy(id), `${id} is durable first`).toBeDefined()
    return Promise.resolve(
      items.map(({ id, epoch }) =>
        refusing(name, { id, epoch })
          ? { id, ok: false, code: 'STALE_EPOCH', epoch: epoch + 1, owner: 'other' }
          : { id, ok: true, epoch, state: 'delivered' },
      ),
    )
  }
}

function handoff() {
  const note = (_: object, text: string) => void logs.push(text)
  return createHandoff({
    mirror,
    lanes,
    steps: { mirror: step('mirror'), ack: step('ack'), refuse: step('refuse') },
    log: { debug: note, info: note, warn: note, error: note },
    onPoint: (point) => void sent.push(point),
  })
}

describe('handoff', () => {
  it('stores the copies, mirrors, acknowledges, then runs, in this order', async () => {
    await handoff()([claimed('a'), claimed('b')])
    expect(sent).toEqual(['copy.stored', 'mirror a,b', 'ack a,b'])
    expect(ran.map(({ id }) => id)).toEqual(['a', 'b'])
    expect(mirror.copy('a')).toMatchObject({ delivery: 'a', epoch: 1 })
    expect(ran[0]?.payload.toString()).toBe('payload of a')
  })

  it('does for each only the steps that its state lacks', async () => {
    await handoff()([
      claimed('new'),
      claimed('mirrored', { state: 'mirrored', how: 'resume' }),
      claimed('delivered', { state: 'delivered', how: 'takeover' }),
    ])
    expect(sent).toEqual(['copy.stored', 'mirror new', 'ack new,mirrored'])
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
    expect(sent).toEqual(['copy.stored', 'mirror a', 'ack a'])
    expect(lanes.epochOf('a')).toBe(3)
  })

  it('refuses a payload that does not match its digest before it is stored; the rest goes on', async () => {
    const bad = claimed('bad')
    await handoff()([{ ...bad, payload: Buffer.from('changed') }, claimed('good')])
    expect(sent).toEqual(['refuse bad payload_corrupt', 'copy.stored', 'mirror good', 'ack good'])
    expect(mirror.copy('bad')).toBeUndefined()
    expect(ran.map(({ id }) => id)).toEqual(['good'])
  })

  it.each(['mirror', 'ack'])(
    'drops the copy of what the record refuses to %s, and runs the rest',
    async (name) => {
      refusing = (taken, { id }) => taken === name && id === 'b'
      await handoff()([claimed('a'), claimed('b')])
      expect(ran.map(({ id }) => id)).toEqual(['a'])
      expect([mirror.copy('a') !== undefined, mirror.copy('b')]).toEqual([true, undefined])
      expect(sent.at(-1)).toBe(name === 'mirror' ? 'ack a' : 'ack a,b')
      expect(logs.some((text) => text.includes('refused'))).toBe(true)
    },
  )

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
