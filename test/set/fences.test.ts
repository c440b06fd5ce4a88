import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { HubCalls } from '../../src/contract/hub.js'
import { messageOf, openSetStage, type SetStage } from './stage.js'

// What stands on every hub, and what becomes of it where one hub does not take it.

let stage: SetStage
beforeAll(async () => {
  stage = await openSetStage()
})
afterAll(() => stage?.close())

const kim = { reason: 'stop', actor: 'kim' }

describe.each(['on the record', 'over HTTP'] as const)('a set %s', (way) => {
  let set: HubCalls
  beforeAll(() => {
    set = way === 'on the record' ? stage.set : stage.client
  })
  beforeEach(async () => {
    for (const name of stage.names) await stage.record(name).send('DEL', stage.record(name).keys.fences)
  })

  const fencesOn = async (hub: string) =>
    (await stage.record(hub).send('HKEYS', stage.record(hub).keys.fences)) as string[]

  /** What `hub` gives a node that claims from a host of its own. */
  async function claimable(hub: string, host: string, conversation = stage.conversationOf(hub)) {
    const record = stage.record(hub)
    await set.accept(messageOf(conversation, { to: [{ host }] }))
    return (await record.claim(await record.join(host, 'n'))).deliveries.length
  }

  test.each(['hub', 'host:a'])('a fence of %s stands on every hub and is shown once', async (scope) => {
    const reply = await set.pause(scope, kim)
    expect(reply.fence).toBe(`pause:${scope}`)
    expect(reply.logId.split(',').map((id) => id.split(':')[0])).toEqual(stage.names)
    for (const hub of stage.names) expect(await fencesOn(hub)).toEqual([`pause:${scope}`])
    const fences = await set.fences()
    expect(fences).toMatchObject([{ fence: `pause:${scope}`, reason: 'stop', actor: 'kim', known: true }])
    expect(fences[0]).not.toHaveProperty('missing')
    expect(await set.lift('pause', scope, 'kim')).toMatchObject({ fence: `pause:${scope}` })
    expect(await set.fences()).toEqual([])
    await expect(set.lift('pause', scope, 'kim')).rejects.toMatchObject({ code: 'FENCE_NOT_FOUND' })
  })

  test('one that was deleted by hand on one hub is shown as partial, and finished by repeating', async () => {
    await set.pause('hub', kim)
    const { keys, send } = stage.record('hf-1')
    await send('HDEL', keys.fences, 'pause:hub')
    expect(await claimable('hf-1', `${way.length}-half`)).toBe(1)
    expect(await set.fences()).toMatchObject([{ fence: 'pause:hub', missing: ['hf-1'] }])
    await set.pause('hub', kim)
    expect((await set.fences())[0]).not.toHaveProperty('missing')
    expect(await claimable('hf-1', `${way.length}-whole`)).toBe(0)
    await send('HDEL', keys.fences, 'pause:hub')
    // Gone from one hub by hand is no hindrance to taking it from the others.
    await set.lift('pause', 'hub', 'kim')
    expect(await set.fences()).toEqual([])
  })

  test('one that a hub did not take says on which hubs it stands, on which not, and how to go on', async () => {
    const { keys, send } = stage.record('hf-2')
    await send('RENAME', keys.identity, `${keys.tag}:aside`)
    const error = await caught(set.hold('host:a', kim))
    await send('RENAME', `${keys.tag}:aside`, keys.identity)
    expect(error).toMatchObject({
      code: 'SET_INCOMPLETE',
      message: expect.stringMatching(/hold:host:a stands on hf-0, hf-1; not on hf-2 \(STORE_UNKNOWN /),
      next: expect.stringContaining('repeat the same call'),
      current: { done: ['hf-0', 'hf-1'], missing: ['hf-2'] },
    })
    expect(await set.fences()).toMatchObject([{ fence: 'hold:host:a', missing: ['hf-2'] }])
    expect(await set.hold('host:a', kim)).toMatchObject({ replaced: expect.stringContaining('stop') })
    expect((await set.fences())[0]).not.toHaveProperty('missing')

    await send('RENAME', keys.identity, `${keys.tag}:aside`)
    const lifting = set.lift('hold', 'host:a', 'kim')
    await expect(lifting).rejects.toMatchObject({ code: 'SET_INCOMPLETE' })
    await send('RENAME', `${keys.tag}:aside`, keys.identity)
    expect(await set.fences()).toMatchObject([{ fence: 'hold:host:a', missing: ['hf-0', 'hf-1'] }])
    await set.lift('hold', 'host:a', 'kim')
    expect(await set.fences()).toEqual([])
  })

  test('a fence of a conversation stands on its hub alone', async () => {
    const conversation = stage.conversationOf('hf-1')
    await set.block(`conversation:${conversation}`, kim)
    for (const hub of stage.names) {
      expect(await fencesOn(hub)).toEqual(hub === 'hf-1' ? [`block:conversation:${conversation}`] : [])
    }
    const [shown] = await set.fences()
    expect(shown?.fence).toBe(`block:conversation:${conversation}`)
    expect(shown).not.toHaveProperty('missing')
  })

  test('one that stands where its conversation lived before the set grew is partial, and lifted from there', async () => {
    const conversation = stage.conversationOf('hf-1')
    await stage.record('hf-0').functions.pause(`conversation:${conversation}`, 'old', 'kim')
    expect(await set.fences()).toMatchObject([{ missing: ['hf-1'], reason: 'old' }])
    await set.pause(`conversation:${conversation}`, kim)
    expect((await set.fences())[0]).not.toHaveProperty('missing')
    await set.lift('pause', `conversation:${conversation}`, 'kim')
    for (const hub of stage.names) expect(await fencesOn(hub)).toEqual([])
  })

  test('a fence of a session is set and lifted by its qualified name, and shown under it', async () => {
    await set.pause('session:hf-2:agent:7', kim)
    expect(await fencesOn('hf-2')).toEqual(['pause:session:agent:7'])
    expect(await set.fences()).toMatchObject([{ fence: 'pause:session:hf-2:agent:7' }])
    await expect(set.pause('session:agent', kim)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect(await set.lift('pause', 'session:hf-2:agent:7', 'kim')).toMatchObject({
      fence: 'pause:session:hf-2:agent:7',
    })
    expect(await set.fences()).toEqual([])
  })

  test('a field that no rule reads is shown with its hub', async () => {
    await stage.record('hf-1').send('HSET', stage.record('hf-1').keys.fences, 'stop everything', 'please')
    expect(await set.fences()).toMatchObject([{ fence: 'hf-1:stop everything', known: false }])
  })

  test('a scope that no hub knows is refused by all, and nothing stands', async () => {
    await expect(set.pause('planet:earth', kim)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect(await set.fences()).toEqual([])
  })

  test('a read that one hub cannot answer names that hub', async () => {
    const { keys, send } = stage.record('hf-1')
    await send('RENAME', keys.identity, `${keys.tag}:aside`)
    const errors = [await caught(set.fences()), await caught(set.counts()), await caught(set.heldPage())]
    await send('RENAME', `${keys.tag}:aside`, keys.identity)
    for (const error of errors) {
      expect(error).toMatchObject({ code: 'STORE_UNKNOWN', message: expect.stringContaining('hub hf-1: ') })
    }
  })
})

const caught = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  )
