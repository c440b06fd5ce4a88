import { expect, it } from 'vitest'
import { done, idsOf, item, type Make, neverMessage, refused, type Stage } from './stage.js'

const two = [{ host: 'a' }, { host: 'b' }] as const

async function settle(stage: Stage, host: string): Promise<void> {
  const node = await stage.join({ host })
  for (const each of await node.deliverAll()) await node.conclude(await node.open(item(each)), done)
}

export function accepting(make: Make): void {
  it('answers the deliveries, and the same again for the same key, states current', async () => {
    const stage = await make()
    const message = { key: 'k', to: [...two, { host: 'a' }], payload: 'p' }
    const first = await stage.accept(message)
    expect(first).toEqual({
      id: expect.stringMatching(/^\d+-\d+$/),
      deliveries: [
        { id: `${first.id}.1`, host: 'a', state: 'queued' },
        { id: `${first.id}.2`, host: 'b', state: 'queued' },
      ],
      fanOut: 'complete',
      replayed: false,
    })
    const node = await stage.join()
    await node.claimAll()
    const before = await stage.record.dump()
    const again = await stage.accept({ ...message, to: [...two].toReversed(), deliverBy: 1 })
    expect(again).toEqual({
      ...first,
      deliveries: [{ ...first.deliveries[0], state: 'claimed' }, first.deliveries[1]],
      replayed: true,
    })
    expect(await stage.record.dump()).toEqual(before)
    const view = await stage.shown((hub) => hub.message(first.id))
    expect(view).toMatchObject({ key: 'k', sender: 'tests', bytes: 1, recipients: 2, fanOut: 'complete' })
  })

  it('completes a fan-out beyond what it makes at once', async () => {
    const stage = await make({ inline_fan_out: 4 })
    const to = Array.from({ length: 90 }, (_, at) => ({ host: `h${at}` }))
    const accepted = await stage.accept({ to })
    expect(accepted.deliveries.map(({ host }) => host)).toEqual(to.map(({ host }) => host))
    expect(accepted.fanOut).toBe('complete')
    expect((await stage.shown((hub) => hub.message(accepted.id))).deliveries).toHaveLength(90)
  })

  it('takes a message to nobody: it is settled', async () => {
    const stage = await make()
    const accepted = await stage.accept({ to: [] })
    expect(accepted.deliveries).toEqual([])
    expect((await stage.hub.waitFor(accepted.id, 20_000)).deliveries).toEqual([])
  })

  it('makes one message of many accepts of one key at the same time', async () => {
    const stage = await make()
    const message = { key: 'k', to: two, payload: 'p' }
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => stage.accept({ ...message, to: [...two] })),
    )
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1)
    expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1)
  })

  it('refuses other content under a known key, before every other check', async () => {
    const stage = await make({ max_payload_bytes: 10 })
    const message = { key: 'k', payload: 'p', parent: 'p1' }
    await stage.accept(message)
    const others = [
      { payload: 'q' },
      { payload: 'longer than ten bytes' },
      { conversation: 'c2' },
      { sender: 'someone else' },
      { parent: 'p2' },
      { to: [{ host: 'b' }] },
      { to: [{ session: 'never' }] },
    ]
    for (const other of others) {
      await refused(stage, 'IDEMPOTENCY_MISMATCH', () => stage.accept({ ...message, ...other }))
    }
  })

  it('refuses what has no route, is too large, or goes to too many, and keeps nothing of it', async () => {
    const stage = await make({ max_recipients: 3, max_queued_per_host: 2 })
    await refused(stage, 'NO_ROUTE', () => stage.accept({ to: [{ host: 'a' }, { session: 'never' }] }))
    const largest = 1_048_576
    await refused(stage, 'PAYLOAD_TOO_LARGE', () => stage.accept({ payload: Buffer.alloc(largest + 1) }))
    await refused(stage, 'PAYLOAD_TOO_LARGE', () => stage.accept({ payload: Buffer.alloc(3 * largest) }))
    const many = Array.from({ length: 4 }, (_, at) => ({ host: `h${at}` }))
    await refused(stage, 'TOO_MANY_RECIPIENTS', () => stage.accept({ to: many }))
    await stage.acceptMany(2)
    await refused(stage, 'HOST_FULL', () => stage.accept({ to: [{ host: 'b' }, { host: 'a' }] }))
    await stage.hub.configure({ open_hosts: 0 }, 'kim')
    await refused(stage, 'NO_ROUTE', () => stage.accept({ to: [{ host: 'never-joined' }] }))
  })

  it('refuses what is no message', async () => {
    const stage = await make()
    const bad: object[] = [
      { to: [{ host: 'A' }] },
      { to: [{ host: 'a', session: 's' }] },
      { conversation: '' },
      { key: 'é' },
      { key: '' },
      { sender: 'tab\t' },
      { payload: '\ud800' },
      { deliverBy: -1 },
      { executeBy: 'tomorrow' },
      { extra: 1 },
    ]
    for (const each of bad) await refused(stage, 'INVALID_ARGUMENT', () => stage.accept(each))
  })

  it('sends a message again under a new key, to the same or to others, linked to the first', async () => {
    const stage = await make()
    const payload = Buffer.from([0, 255, 128])
    const first = await stage.accept({ to: [...two], payload, contentType: 'x/y', parent: 'p' })
    const again = await stage.hub.resend(first.id, { key: 'second' })
    expect(again.deliveries.map(({ host }) => host)).toEqual(['a', 'b'])
    expect(await stage.shown((hub) => hub.message(again.id))).toMatchObject({
      resendOf: first.id,
      key: 'second',
      sender: 'tests',
      contentType: 'x/y',
      parent: 'p',
      bytes: 3,
    })
    expect(await stage.hub.resend(first.id, { key: 'second' })).toEqual({ ...again, replayed: true })
    const other = await stage.hub.resend(first.id, { key: 'third', to: [{ host: 'c' }] })
    expect(other.deliveries.map(({ host }) => host)).toEqual(['c'])
    const claimed = await (await stage.join({ host: 'c' })).claimAll()
    expect(claimed.map((each) => each.payload)).toEqual([payload])
    await refused(stage, 'IDEMPOTENCY_MISMATCH', () =>
      stage.hub.resend(first.id, { key: 'second', to: [{ host: 'x' }] }),
    )
    await refused(stage, 'MESSAGE_NOT_FOUND', () => stage.hub.resend(neverMessage, { key: 'k' }))
    await refused(stage, 'INVALID_ARGUMENT', () => stage.hub.resend('x', { key: 'k' }))
    await refused(stage, 'INVALID_ARGUMENT', () => stage.hub.resend(first.id, { key: '' }))
  })

  it('waitFor answers as soon as all recipients are settled, with the outcomes', async () => {
    const stage = await make()
    const { id } = await stage.accept({ to: [...two] })
    await settle(stage, 'a')
    let over = false
    const wait = stage.hub.waitFor(id, 20_000).then((view) => {
      over = true
      return view
    })
    await stage.accept({ to: [{ host: 'c' }] })
    await settle(stage, 'c')
    expect(over).toBe(false)
    const from = performance.now()
    await settle(stage, 'b')
    const view = await wait
    expect(performance.now() - from).toBeLessThan(4000)
    expect(view.settledAt).toBeDefined()
    expect(view.deliveries.map(({ attempts }) => attempts[0]?.result)).toEqual(['{"n":1}', '{"n":1}'])
    expect(view).toEqual(await stage.hub.message(id))
  })

  it('any number may wait for messages, while other calls go on', async () => {
    const stage = await make()
    const { id } = await stage.accept()
    const waits = Array.from({ length: 150 }, () => stage.hub.waitFor(id, 30_000))
    await stage.accept({ to: [{ host: 'b' }] })
    await settle(stage, 'a')
    const views = await Promise.all(waits)
    expect(views.every(({ settledAt }) => settledAt !== undefined)).toBe(true)
  })

  it('waitFor answers the message as it stands when the time is up or it is aborted', async () => {
    const stage = await make()
    const { id } = await stage.accept()
    for (const timeoutMs of [0, 0.4, 60]) {
      const view = await stage.hub.waitFor(id, timeoutMs)
      expect(view).toMatchObject({ id, deliveries: [{ state: 'queued' }] })
      expect(view.settledAt).toBeUndefined()
    }
    const stop = new AbortController()
    const wait = stage.hub.waitFor(id, 20_000, stop.signal)
    await stage.hub.counts()
    stop.abort()
    expect(idsOf((await wait).deliveries)).toEqual([`${id}.1`])
    expect(idsOf((await stage.hub.waitFor(id, 20_000, stop.signal)).deliveries)).toEqual([`${id}.1`])
    await refused(stage, 'MESSAGE_NOT_FOUND', () => stage.hub.waitFor(neverMessage, 20_000))
    await refused(stage, 'INVALID_ARGUMENT', () => stage.hub.waitFor('x', 20_000))
  })
}
