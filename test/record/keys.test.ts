import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { isHoldfastError } from '../../src/contract/errors.js'
import { sweepNames } from '../../src/contract/sweeps.js'
import { type Keys, keysOf, laneName } from '../../src/record/keys.js'
import { keysUnder, type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

let server: TestServer
let record: OpenRecord

beforeAll(async () => {
  server = await startTestServer()
  record = await openRecord(server)
})
afterAll(async () => {
  await record?.close()
  await server?.stop()
})

const nasty = ['a/b', 'a b', '100%', '%2F', '{x}', '}', '*', '?[]', '"\'\\', 'a:b', '~._-@+=,', '#', '&']
const day = () => Math.floor(Date.now() / 86_400_000)

it('are named the same in Lua and TypeScript, kind by kind', () => {
  const text = readFileSync(new URL('../../lua/lib/keys.lua', import.meta.url), 'utf8')
  const inLua = [...text.matchAll(/^function hf\.key\.(\w+)\(/gm)].map((found) =>
    (found[1] ?? '').replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
  )
  const inSource = Object.keys(keysOf('x')).filter((name) => name !== 'tag')
  expect(inLua.toSorted()).toEqual(inSource.toSorted())
})

it('are those that the functions really make', async () => {
  const { keys, functions } = record
  await record.config('inline_fan_out', 1)
  const wanted = new Set<string>([keys.identity, keys.config, keys.log, keys.hosts, keys.counts])
  const node = await record.join('a', 'n/1 %')
  for (const key of [keys.nodes, keys.node('a', 'n/1 %'), keys.host('a'), keys.bell('a')]) wanted.add(key)

  for (const [at, name] of nasty.entries()) {
    const parent = nasty[(at + 1) % nasty.length] ?? ''
    await functions.openSession(name, { host: 'a', scope: '/', parent }, 'kim')
    const { id } = await record.accept({ key: name, conversation: name, to: [{ session: name }] })
    for (const key of [keys.message(id), keys.payload(id), keys.delivery(`${id}.1`)]) wanted.add(key)
    for (const key of [keys.session(name), keys.children(name), keys.sessionDeliveries(name)]) wanted.add(key)
    wanted.add(keys.idempotency(name))
    wanted.add(keys.lane('a', laneName(name, name)))
  }
  wanted.add(keys.sessions)
  const owing = await record.accept({
    key: 'owing',
    conversation: 'lane-less',
    to: [{ host: 'a' }, { host: 'b' }],
  })
  for (const key of [keys.obligations, keys.recipients(owing.id), keys.idempotency('owing')]) wanted.add(key)
  for (const key of [keys.message(owing.id), keys.payload(owing.id), keys.delivery(`${owing.id}.1`)])
    wanted.add(key)
  wanted.add(keys.lane('a', laneName('lane-less')))
  await functions.pause('hub', 'r', 'kim')
  await record.claimAll(node)
  for (const key of [keys.fences, keys.stream('a'), keys.parked('a'), keys.parkedHosts]) wanted.add(key)
  expect(await keysUnder(record.store, keys.tag)).toEqual([...wanted].sort())

  await functions.lift('pause', 'hub', 'kim')
  for (const key of [...wanted].filter((each) => each.startsWith(`${keys.tag}:lane:`))) wanted.delete(key)
  for (const key of [keys.fences, keys.parked('a'), keys.parkedHosts]) wanted.delete(key)
  const delivered = await record.deliverAll(node)
  expect(delivered).toHaveLength(nasty.length + 1)
  const [held, done, ...open] = delivered.filter((each) => each.session !== undefined)
  const sessionOf = (each: typeof held) => each?.session ?? ''
  await functions.refuse(node, [
    { id: held?.id ?? '', epoch: 1, verdict: 'failed', reason: 'payload_corrupt' },
  ])
  const ended = await record.begin(node, done ?? { id: '', epoch: 0 })
  await functions.report(node, [
    { id: ended.attempt, grant: ended.grant, key: 'd', outcome: { kind: 'result', result: '1' } },
  ])
  wanted.delete(keys.sessionDeliveries(sessionOf(done)))
  for (const each of open) {
    const begun = await record.begin(node, each)
    await functions.report(node, [
      {
        id: begun.attempt,
        grant: begun.grant,
        key: 'u',
        outcome: { kind: 'outcome_unknown', errorCode: 'x' },
      },
    ])
    wanted.add(keys.sessionAttempts(sessionOf(each)))
  }
  await record.config('heartbeat_ms', 50)
  await record.send('ZADD', keys.nodes, 1, 'a/n/1 %')
  await functions.heartbeat(node, {
    lastLogId: '0-0',
    progressAgeMs: 0,
    blocking: { sumMs: 0, longestMs: 0 },
  })
  for (const key of [keys.awaiting('a'), keys.held, keys.unknown, keys.liveness, keys.settledDays]) {
    wanted.add(key)
  }
  const found = await keysUnder(record.store, keys.tag)
  const settledDays = found.filter((key) => key.startsWith(`${keys.tag}:settled:`))
  expect(settledDays).toHaveLength(1)
  expect([keys.settled(day()), keys.settled(day() - 1)]).toContain(settledDays[0])
  expect(found.filter((key) => !settledDays.includes(key))).toEqual([...wanted].sort())
  await record.checkInvariants()
})

it('of effects are those that the functions really make', async () => {
  const { keys, functions, ...own } = await openRecord(server)
  const wanted = new Set([keys.identity, keys.log, keys.counts, keys.effects, keys.executing, keys.unknown])
  wanted.add(keys.settledEffectDays)
  for (const id of nasty) {
    const by = { executor: 'x', grant: 'g' }
    const answer = await functions.claimEffect(id, { ...by, type: 't', payloadHash: 'a'.repeat(64) })
    expect(answer).toMatchObject({ kind: 'claimed', epoch: 1 })
    wanted.add(keys.effect(id))
    const outcome =
      id === nasty[0]
        ? ({ kind: 'result', result: '1' } as const)
        : ({ kind: 'outcome_unknown', errorCode: 'x' } as const)
    await functions.settleEffect(id, { ...by, epoch: 1, outcome })
  }
  const found = await keysUnder(own.store, keys.tag)
  const days = [keys.settledEffects(day()), keys.settledEffects(day() - 1)]
  expect(found.filter((key) => days.includes(key))).toHaveLength(1)
  expect(found.filter((key) => !days.includes(key))).toEqual([...wanted].sort())
  await own.close()
})

it('of sweeps are those that the functions really make', async () => {
  const { keys, functions, ...own } = await openRecord(server)
  const { id } = await own.accept({
    key: 'k',
    to: [{ host: 'lonely' }],
    conversation: 'c',
    deliverBy: Date.now() + 60_000,
  })
  const wanted = new Set([keys.identity, keys.log, keys.counts, keys.hosts, keys.host('lonely')])
  for (const key of [keys.message(id), keys.payload(id), keys.delivery(`${id}.1`)]) wanted.add(key)
  for (const key of [keys.idempotency('k'), keys.stream('lonely'), keys.deadlines]) wanted.add(key)
  expect(await keysUnder(own.store, keys.tag)).toEqual([...wanted].sort())

  expect(await functions.sweepHost('stale', 'lonely', '')).toMatchObject({ found: 1, left: 1 })
  wanted.add(keys.stranded)
  const did = { found: 1, repaired: 0, left: 1, notes: ['lonely'] }
  for (const name of sweepNames) {
    await functions.noteSweep(name, { ...did, durationMs: 1, cursor: '', by: 'tests' })
    wanted.add(keys.sweep(name))
  }
  const found = await keysUnder(own.store, keys.tag)
  // Whether anybody may be judged was asked for.
  expect(found.filter((key) => key !== keys.liveness)).toEqual([...wanted].sort())
  await own.checkInvariants()
  await own.close()
})

it('all lie in the slot of the tag, and no name reaches another key', () => {
  const keys = keysOf('hf')
  const names = (make: (name: string) => string) => nasty.map(make)
  const made = [
    ...names(keys.session),
    ...names(keys.idempotency),
    ...names(keys.effect),
    ...names(keys.children),
    ...names(keys.sessionDeliveries),
    ...names(keys.sessionAttempts),
    ...names((name) => keys.node('a', name)),
    ...nasty.flatMap((one) => names((other) => keys.lane('a', laneName(one, other)))),
    ...names((name) => keys.lane('a', laneName(name))),
  ]
  expect(new Set(made).size).toBe(made.length)
  for (const key of made) expect(key.indexOf('}')).toBe('{hf'.length)
  for (const key of made)
    expect(key).toMatch(
      /^\{hf\}:(session|idempotency|effect|children|session_deliveries|session_attempts|node|lane):[A-Za-z0-9._~:@+=,%/-]*$/,
    )
})

it.each(['', 'A', 'a b', 'a}', '-a', 'a.', 'x'.repeat(64), 'é', '{hf}'])('refuse the hub name %j', (name) => {
  let caught: unknown
  try {
    keysOf(name) satisfies Keys
  } catch (error) {
    caught = error
  }
  expect(isHoldfastError(caught, 'INVALID_ARGUMENT')).toBe(true)
})
