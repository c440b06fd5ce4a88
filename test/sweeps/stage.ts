import type { SweepName } from '../../src/contract/sweeps.js'
import { type OpenedHub, openHubParts } from '../../src/hub/open-hub.js'
import { registry } from '../../src/sweeps/registry.js'
import { runSweep } from '../../src/sweeps/run.js'
import { type Dump, type OpenRecord, openRecord } from '../support/record.js'
import type { TestServer } from '../support/server.js'

/** A record with the sweeps over it, run when a test says so. */
export interface SweptRecord extends OpenRecord {
  readonly parts: OpenedHub
  /** Runs one sweep; fails when it failed. */
  sweep(name: SweepName): Promise<Awaited<ReturnType<typeof runSweep>>>
  /** Every sweep once, in the order of a first round. */
  sweepAll(): Promise<void>
}

export async function openSwept(server: TestServer): Promise<SweptRecord> {
  const record = await openRecord(server)
  const parts = await openHubParts({ redis: server.url, hub: record.name })
  const signal = new AbortController().signal
  const sweep = async (name: SweepName) => {
    const run = await runSweep(parts, name, { by: 'test', signal })
    if (run.error !== undefined) throw new Error(`sweep ${name}: ${run.error}`)
    return run
  }
  return {
    ...record,
    parts,
    sweep,
    sweepAll: async () => {
      for (const name of Object.keys(registry) as SweepName[]) await sweep(name)
    },
    close: async () => {
      await parts.hub.close()
      await record.close()
    },
  }
}

/** Deliveries in every state, parked and held ones, sessions, effects, obligations, retired hosts: all indexes are made. */
export interface Everything {
  /** Ids by what they are. */
  readonly ids: Readonly<Record<string, string>>
}

export async function stageEverything(record: SweptRecord): Promise<Everything> {
  const { functions } = record
  const ids: Record<string, string> = {}
  const who = await record.join('a', 'n1')
  const far = await record.join('r', 'far')
  await functions.openSession('parent', { host: 'a', scope: '/srv' }, 'kim')
  await functions.openSession('s1', { host: 'a', scope: '/srv', parent: 'parent' }, 'kim')
  const one = async (name: string, message: Parameters<OpenRecord['accept']>[0] = {}) => {
    const { deliveries } = await record.accept({ conversation: name, ...message })
    ids[name] = deliveries[0]?.id ?? ''
  }
  const names = ['idle', 'executing', 'unknown', 'done', 'terminal', 'held', 'corrupt']
  for (const name of names) await one(name)
  await one('in-session', { to: [{ session: 's1' }] })
  const delivered = await record.deliverAll(who)
  const begun = async (name: string) => {
    const item = delivered.find(({ id }) => id === ids[name])
    if (item === undefined) throw new Error(`${name} was not delivered`)
    return await record.begin(who, item, `grant-${name}`)
  }
  const report = async (name: string, outcome: Parameters<typeof functions.report>[1][number]['outcome']) => {
    const { attempt, grant } = await begun(name)
    await functions.report(who, [{ id: attempt, grant, key: `key-${name}`, outcome }])
  }
  await begun('executing')
  await begun('in-session')
  await report('unknown', { kind: 'outcome_unknown', errorCode: 'thrown' })
  await report('done', { kind: 'result', result: '1' })
  await report('terminal', { kind: 'terminal', errorCode: 'gone' })
  await functions.holdDelivery(ids['held'] ?? '', 'kim', 'look')
  const corrupt = delivered.find(({ id }) => id === ids['corrupt'])
  if (corrupt !== undefined)
    await functions.refuse(who, [{ ...corrupt, verdict: 'failed', reason: 'payload_corrupt' }])

  await one('blocked')
  await functions.block('conversation:blocked', 'no', 'kim')
  await one('doubted')
  const [doubted] = await record.claimAll(who)
  if (doubted !== undefined) await functions.refuse(who, [{ ...doubted, verdict: 'unknown', reason: 'disk' }])
  await functions.hold('conversation:fenced', 'wait', 'kim')
  await functions.pause('conversation:parked', 'wait', 'kim')
  await one('fenced')
  for (const name of ['parked', 'parked-2', 'parked-3']) await one(name, { conversation: 'parked' })
  for (const name of ['claimed', 'mirrored']) await one(name)
  const claimed = await record.claimAll(who)
  await functions.mirror(
    who,
    claimed.filter(({ id }) => id === ids['mirrored']),
  )

  await one('on-retired', { to: [{ host: 'r' }] })
  await record.claimAll(far)
  while ((await functions.retire('r', 'kim', 'sold')).more);
  await record.config('inline_fan_out', 1)
  await one('owing', { to: [{ host: 'a' }, { host: 'b' }, { host: 'c' }] })
  await one('late', { deliverBy: Date.now() + 3_600_000 })
  for (const name of ['queued', 'queued-2']) await one(name)
  await functions.claimEffect('effect-1', {
    type: 'charge',
    payloadHash: 'a'.repeat(64),
    executor: 'e1',
    grant: 'effect-grant',
  })
  await functions.claimEffect('effect-2', {
    type: 'charge',
    payloadHash: 'b'.repeat(64),
    executor: 'e1',
    grant: 'effect-grant-2',
  })
  await functions.settleEffect('effect-2', {
    executor: 'e1',
    grant: 'effect-grant-2',
    epoch: 1,
    outcome: { kind: 'result', result: '1' },
  })
  return { ids }
}

/** What a repair may change: when it happened, what it says of itself, and which entries stand for a delivery. */
const changing = [/^:sweep:/, /^:log$/, /^:bell:/, /^:liveness$/, /^:damaged:/, /^:stranded$/]
const fields =
  /^(entry|peers_look_at|peers_cursor|parked_look_at|parked_bell|parked_cursor|group_made_at|first_seen_at|joined_at|deliveries_made|retired_at|node:.*)$/

/** The record without that: streams as the ids in them, sets of time as their members. */
export function essenceOf(dump: Dump): Record<string, unknown> {
  const entries = Object.entries(dump).filter(([key]) => !changing.some((each) => each.test(key)))
  return Object.fromEntries(
    entries.map(([key, { type, value }]) => {
      if (type === 'zset') return [key, Object.keys(value).sort()]
      if (type === 'hash') return [key, withoutChanging(value as Readonly<Record<string, string>>)]
      if (type === 'list') return [key, [...(value as readonly string[])].sort()]
      if (type !== 'stream') return [key, value]
      const stream = value as Extract<Dump[string], { type: 'stream' }>['value']
      const ids = new Map(stream.entries.map(([entry, words]) => [entry, words[1] ?? '']))
      const pending = stream.groups['nodes']?.pending.map(
        ([entry, consumer]) => `${ids.get(entry)} ${consumer}`,
      )
      return [key, { ids: [...ids.values()].sort(), pending: pending?.sort() }]
    }),
  )
}

function withoutChanging(row: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(row).filter(([name]) => !fields.test(name)))
}
