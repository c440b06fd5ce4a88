import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { DeliveryView, HeldEntry, MessageView } from '../../src/contract/delivery-views.js'
import type { FenceView, HostView } from '../../src/contract/host-views.js'
import type { Accepted } from '../../src/contract/hub.js'
import { terminal } from '../../src/contract/outcomes.js'
import type { SettingView } from '../../src/contract/upkeep-views.js'
import { startNode, stopNodes } from '../support/nodes.js'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'
import { errorOf, makeFolder, runCli } from './run-cli.js'
import { commandsIn } from './run-here.js'

// The verbs by which an operator moves deliveries, hosts and tunables, and a send that waits. Commands run in this
// process; those with `spawned` in a process of their own, for the exit code that a shell sees.

let server: TestServer
let record: OpenRecord
const folder = makeFolder()
const { path: cwd } = folder
beforeAll(async () => {
  server = await startTestServer()
  record = await openRecord(server, { name: 'hf' })
  await record.config('stale_after_ms', 600_000) // nodes of this test send no heartbeats
})
afterAll(async () => {
  await stopNodes()
  await record?.close()
  await server?.stop()
  folder.remove()
})

const at = (...args: string[]) => [...args, '--redis', server.url]
const here = commandsIn(cwd)
const run = (...args: string[]) => here.run(at(...args))
const answer = <Answer>(...args: string[]) => here.answer<Answer>(at(...args))
const spawned = (...args: string[]) => runCli(at(...args), { cwd })
const acted = (state: string, id: string) => ({
  id,
  state,
  epoch: expect.any(Number),
  logId: expect.any(String),
})

async function queued(host: string, conversation = 'c1'): Promise<string> {
  const { deliveries } = await record.accept({ to: [{ host }], conversation })
  return deliveries[0]?.id ?? ''
}

async function heldOne(host: string): Promise<string> {
  const id = await queued(host)
  await record.functions.holdDelivery(id, 'kim', 'by hand')
  return id
}

describe('held and delivery', () => {
  test('held ls shows what waits for someone, with age and reason', async () => {
    expect(await run('held', 'ls')).toMatchObject({ code: 0, stdout: '', stderr: 'no held deliveries\n' })
    const id = await heldOne('h1')
    const { held } = await answer<{ held: HeldEntry[] }>('held', 'ls')
    expect(held).toEqual([
      { id, sinceMs: expect.any(Number), reason: 'by hand', host: 'h1', conversation: 'c1', attempts: 0 },
    ])
    expect((await run('held', 'ls')).stdout).toMatch(/^DELIVERY .*\n.*by hand$/m)
    await record.functions.reject(id, 'kim', 'done with it')
  })

  test('release, reject, hold and cancel, each with reason and actor on the row', async () => {
    const id = await queued('h1')
    const act = (verb: string) => answer('delivery', verb, id, '--reason', `${verb} it`, '--actor', 'kim')
    expect(await act('hold')).toEqual(acted('held', id))
    expect(await act('release')).toEqual(acted('queued', id))
    expect(await record.fields(id)).toMatchObject({ requeued_by: 'kim', requeued_reason: 'release it' })
    expect(await act('hold')).toEqual(acted('held', id))
    expect(await act('reject')).toEqual(acted('failed', id))
    expect(await record.fields(id)).toMatchObject({ failed_code: 'rejected', failed_detail: 'reject it' })

    const other = await queued('h1')
    const ended = await spawned('delivery', 'cancel', other, '--reason', 'too late')
    expect(ended).toMatchObject({ code: 0, stderr: '' })
    expect(ended.stdout).toMatch(/^state +failed$/m)
    expect(await answer<DeliveryView>('delivery', 'show', other)).toMatchObject({
      state: 'failed',
      reason: 'cancelled too late',
    })
  })

  test('what is refused says the code, and changes nothing', async () => {
    const idle = await queued('h2')
    const node = await record.join('h2', 'n1')
    const [delivery] = await record.deliverAll(node)
    await record.begin(node, delivery ?? { id: '', epoch: 0 })
    const refusals = [
      { verb: 'release', id: await queued('h1'), exit: 1, code: 'NOT_HELD' },
      { verb: 'reject', id: await queued('h1'), exit: 1, code: 'NOT_HELD' },
      { verb: 'hold', id: idle, exit: 1, code: 'EXECUTING' },
      { verb: 'cancel', id: idle, exit: 1, code: 'EXECUTING' },
      { verb: 'release', id: '1-1.1', exit: 3, code: 'DELIVERY_NOT_FOUND' },
      { verb: 'cancel', id: 'x', exit: 2, code: 'INVALID_ARGUMENT' },
    ]
    const before = await record.dump()
    for (const { verb, id, exit, code } of refusals) {
      const ended = await run('delivery', verb, id, '--reason', 'r', '--json')
      expect(ended.code, verb).toBe(exit)
      expect(errorOf(ended).code).toBe(code)
      expect(errorOf(ended).next).not.toBe('')
      expect(ended.stdout).toBe('')
    }
    expect(await record.dump()).toEqual(before)
  })

  test.each(['release', 'reject', 'hold', 'cancel'])('delivery %s needs a reason', async (verb) => {
    const ended = await run('delivery', verb, '1-1.1')
    expect(ended.code).toBe(2)
    expect(ended.stderr).toContain('--reason: is required')
  })
})

test('a hold sends what it covers to the held queue; lifting it queues that again', async () => {
  const set = await answer('fence', 'hold', 'conversation:c-hold', '--reason', 'look first', '--actor', 'kim')
  expect(set).toMatchObject({ fence: 'hold:conversation:c-hold' })
  const { fences } = await answer<{ fences: FenceView[] }>('fence', 'ls')
  expect(fences).toMatchObject([{ fence: 'hold:conversation:c-hold', reason: 'look first', actor: 'kim' }])

  const ids = [await queued('h3', 'c-hold'), await queued('h3', 'c-hold')]
  const node = await record.join('h3', 'n1')
  expect(await record.claimAll(node)).toEqual([])
  const { held } = await answer<{ held: HeldEntry[] }>('held', 'ls')
  expect(held.map(({ id, reason }) => ({ id, reason }))).toEqual(
    ids.map((id) => ({ id, reason: 'fence hold:conversation:c-hold' })),
  )
  const [first = ''] = ids
  await answer('delivery', 'release', first, '--reason', 'this one is fine')
  expect((await record.claimAll(node)).map(({ id }) => id)).toEqual([first])

  const lifted = await answer('fence', 'lift', 'hold', 'conversation:c-hold')
  expect(lifted).toMatchObject({ fence: 'hold:conversation:c-hold', left: 0 })
  expect((await record.claimAll(node)).map(({ id }) => id)).toEqual(ids.slice(1))
})

describe('host', () => {
  test('ls shows each host with its nodes and what waits for it', async () => {
    await queued('lonely')
    await record.join('busy', 'n1')
    await queued('busy')
    await record.deliverAll(await record.join('busy', 'n2'))
    const { hosts } = await answer<{ hosts: HostView[] }>('host', 'ls')
    expect(hosts.filter(({ host }) => host === 'lonely' || host === 'busy')).toEqual([
      {
        host: 'busy',
        joined: true,
        entries: 0,
        awaiting: 1,
        nodes: ['n1', 'n2'].map((node) => ({
          node,
          state: 'live',
          incarnation: 1,
          heartbeatAgeMs: expect.any(Number),
        })),
      },
      { host: 'lonely', joined: false, entries: 1, awaiting: 0, nodes: [] },
    ])
    await record.send('HSET', record.keys.node('busy', 'n1'), 'heartbeat_at', Date.now() - 3_600_000)
    const { stdout } = await run('host', 'ls')
    expect(stdout).toMatch(/^lonely +1 +0 +never joined$/m)
    expect(stdout).toMatch(/^busy +0 +1 +n1 silent for 1h0m, n2 live$/m)
  })

  test('drain is a pause with the reason drain', async () => {
    expect(await answer('host', 'drain', 'h3', '--actor', 'kim')).toMatchObject({ fence: 'pause:host:h3' })
    const { fences } = await answer<{ fences: FenceView[] }>('fence', 'ls')
    expect(fences).toMatchObject([{ fence: 'pause:host:h3', reason: 'drain', actor: 'kim' }])
    await answer('fence', 'lift', 'pause', 'host:h3')
  })

  test('drain says so when no such host was ever seen', async () => {
    const ended = await run('host', 'drain', 'h-mistyped')
    expect(ended.code).toBe(0)
    expect(ended.stderr).toContain('no host h-mistyped was ever seen')
    await answer('fence', 'lift', 'pause', 'host:h-mistyped')
  })

  test('retire moves what is idle to the held queue', async () => {
    const id = await queued('h4')
    const view = await answer('host', 'retire', 'h4', '--reason', 'scrapped', '--actor', 'kim')
    expect(view).toMatchObject({ host: 'h4', retiredAt: expect.any(Number), entries: 0 })
    expect(await record.fields(id)).toMatchObject({ state: 'held', held_reason: 'retired' })
    expect(await record.send('HMGET', record.keys.host('h4'), 'retired_by', 'retired_reason')).toEqual([
      'kim',
      'scrapped',
    ])
    const refused = await run('delivery', 'release', id, '--reason', 'r', '--json')
    expect(errorOf(refused).code).toBe('HOST_RETIRED')
    expect((await run('host', 'ls')).stdout).toMatch(/^h4 .*nothing is handed out/m)
  })

  test.each([
    [['host', 'retire', 'nowhere', '--reason', 'r'], 3, 'HOST_NOT_FOUND'],
    [['host', 'retire', 'Nowhere', '--reason', 'r'], 2, 'INVALID_ARGUMENT'],
    [['host', 'retire', 'h1'], 2, 'INVALID_ARGUMENT'],
    [['host', 'drain', '-x-'], 2, 'INVALID_ARGUMENT'],
  ])('%j ends with %d %s', async (args, exit, code) => {
    const ended = await run(...args, '--json')
    expect(ended.code).toBe(exit)
    expect(errorOf(ended).code).toBe(code)
  })
})

describe('config', () => {
  const get = async (...name: string[]) =>
    (await answer<{ settings: SettingView[] }>('config', 'get', ...name)).settings

  test('set changes it for everyone, get shows what is used', async () => {
    expect(await get('max_takeovers')).toEqual([
      { name: 'max_takeovers', value: 5, default: 5, meaning: expect.any(String), bad: false },
    ])
    expect(await answer('config', 'set', 'max_takeovers', '7')).toMatchObject({
      settings: [{ name: 'max_takeovers', value: 7, set: '7', bad: false }],
    })
    expect(await record.send('HGET', record.keys.config, 'max_takeovers')).toBe('7')
    const ended = await run('config', 'get')
    expect(ended).toMatchObject({ code: 0, stderr: '' })
    expect(ended.stdout).toMatch(/^max_takeovers +7 +5 +7 /m)
    expect(ended.stdout).toMatch(/^heartbeat_ms +2000 +2000 /m)
  })

  test('set says where nodes are to beat more seldom than stale_after_ms allows', async () => {
    try {
      expect(await run('config', 'set', 'heartbeat_ms', '200000')).toMatchObject({ code: 0, stderr: '' })
      const ended = await run('config', 'set', 'heartbeat_ms', '200001')
      expect(ended).toMatchObject({ code: 0, stdout: expect.stringContaining('200001') })
      expect(ended.stderr).toContain('heartbeat_ms 200001 is more than a third of stale_after_ms 600000')
      expect(await run('config', 'set', 'max_takeovers', '7')).toMatchObject({ code: 0, stderr: '' })
    } finally {
      await record.send('HDEL', record.keys.config, 'heartbeat_ms')
    }
  })

  test('a bad value and a strange field are shown by name, and the default is used', async () => {
    await record.send('HSET', record.keys.config, 'max_redrive', 'many', 'max_redrvie', '3')
    const found = await get()
    expect(found.filter(({ bad }) => bad)).toEqual([
      { name: 'max_redrive', value: 10, default: 10, meaning: expect.any(String), set: 'many', bad: true },
      { name: 'max_redrvie', meaning: 'no such setting', set: '3', bad: true },
    ])
    const ended = await run('config', 'get')
    expect(ended.code).toBe(0)
    expect(ended.stdout).toMatch(/^max_redrive +10 +10 +many +bad /m)
    expect(ended.stderr.trim().split('\n')).toEqual([
      'max_redrive: "many" is no value of it; the default 10 is used',
      'max_redrvie: no such setting; its text "3" is read by nothing',
    ])
    await record.send('HDEL', record.keys.config, 'max_redrive', 'max_redrvie')
  })

  test.each([
    ['set', 'max_takeovers', '0'],
    ['set', 'max_takeovers', 'five'],
    ['set', 'max_takeovers', '1e3'],
    ['set', 'max_takeovers'],
    ['set', 'no_such', '1'],
    ['get', 'no_such'],
  ])('config %s %s %s is INVALID_ARGUMENT', async (...words) => {
    const before = await record.dump()
    const ended = await run('config', ...words.filter((word) => word !== undefined), '--json')
    expect(ended.code).toBe(2)
    expect(errorOf(ended).code).toBe('INVALID_ARGUMENT')
    expect(await record.dump()).toEqual(before)
  })
})

describe('message resend', () => {
  test('sends the same bytes again, to the same recipients or to others', async () => {
    const first = await record.accept({ to: [{ host: 'r1' }, { host: 'r2' }], payload: 'same bytes' })
    const again = await answer<Accepted & { key: string }>('message', 'resend', first.id, '--key', 'again')
    expect(again).toMatchObject({ key: 'again', replayed: false, fanOut: 'complete' })
    expect(again.deliveries.map(({ host }) => host)).toEqual(['r1', 'r2'])
    expect(await record.send('GET', record.keys.payload(again.id))).toBe('same bytes')
    const shown = await answer<MessageView>('message', 'show', again.id)
    expect(shown).toMatchObject({ resendOf: first.id })
    const repeated = await answer('message', 'resend', first.id, '--key', 'again')
    expect(repeated).toMatchObject({ id: again.id, replayed: true })

    const ended = await run('message', 'resend', first.id, '--to', 'host:r3')
    expect(ended.code).toBe(0)
    expect(ended.stdout).toMatch(/queued +r3$/m)
    expect(ended.stderr).toMatch(/^key ([0-9a-f-]{36}) \(a retry must pass --key \1\)\n$/)
  })

  test.each([
    [['1-1'], 3, 'MESSAGE_NOT_FOUND'],
    [['x'], 2, 'INVALID_ARGUMENT'],
    [['1-1', '--to', 'r3'], 2, 'INVALID_ARGUMENT'],
  ])('%j ends with %d %s', async (args, exit, code) => {
    const ended = await run('message', 'resend', ...args, '--json')
    expect(ended.code).toBe(exit)
    expect(errorOf(ended).code).toBe(code)
  })
})

describe('send --wait', () => {
  const words = (...args: string[]) => ['send', '--conversation', 'c-wait', '--wait', ...args]
  beforeAll(async () => {
    await startNode({
      host: 'w1',
      redis: server.url,
      execute: ({ payload }) => (payload.toString() === 'bad' ? terminal('refused') : 'fine'),
    })
  })

  test('ends with 0 when every delivery is done, and shows the outcomes', async () => {
    const ended = await spawned(...words('--to', 'host:w1', '--key', 'w-1', 'good', '--json'))
    expect(ended).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse(ended.stdout)).toMatchObject({
      key: 'w-1',
      fanOut: 'complete',
      replayed: false,
      deliveries: [{ host: 'w1', state: 'delivered', attempts: [{ status: 'done', outcome: 'result' }] }],
    })
    const shown = await run(...words('--to', 'host:w1', '--key', 'w-1', 'good', '--sender', 'other'))
    expect(shown.code).toBe(1) // another sender: other content
    const text = await run(...words('--to', 'host:w1', '--key', 'w-1', 'good'))
    expect(text.code).toBe(0)
    expect(text.stdout).toMatch(/^\S+\.1 +delivered +w1 .*done$/m)
  })

  test('ends with 1 when one is settled otherwise', async () => {
    const ended = await spawned(...words('--to', 'host:w1', '--key', 'w-2', 'bad'))
    expect(ended.code).toBe(1)
    expect(ended.stdout).toMatch(/terminal$/m)
    expect(ended.stderr).toBe('0 of 1 done, 0 not settled\n')
  })

  test('ends with 1 when the time is up, showing how it stands', async () => {
    const args = words('--to', 'host:w1', '--to', 'host:nobody', '--timeout', '700ms', '--key', 'w-3', 'good')
    const ended = await run(...args)
    expect(ended.code).toBe(1)
    expect(ended.stdout).toMatch(/queued +nobody/)
    expect(ended.stderr).toBe('1 of 2 done, 1 not settled\n')
  })

  test('wakes when the last one is settled meanwhile', async () => {
    const waiting = run(...words('--to', 'host:w4', '--key', 'w-4', 'x', '--json'))
    const entry = await until(async () => {
      const [found] = (await record.send('XRANGE', record.keys.stream('w4'), '-', '+')) as [
        string,
        string[],
      ][]
      return found
    })
    await record.functions.cancel(entry[1][1] ?? '', 'kim', 'enough')
    const ended = await waiting
    expect(ended.code).toBe(1)
    expect(JSON.parse(ended.stdout)).toMatchObject({
      deliveries: [{ state: 'failed', reason: 'cancelled enough' }],
    })
  })

  test('--timeout without --wait is wrong usage', async () => {
    const ended = await run('send', '--conversation', 'c', '--to', 'host:w1', '--timeout', '5s', 'x')
    expect(ended.code).toBe(2)
    expect(ended.stderr).toContain('--timeout: is the patience of --wait')
  })
})

test('the record is whole after all that', () => record.checkInvariants())
