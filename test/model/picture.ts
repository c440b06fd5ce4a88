import { expect } from 'vitest'
import { messageOf } from '../../src/contract/ids.js'
import { deliveryStates } from '../../src/contract/states.js'
import type { Store } from '../../src/record/connections.js'
import { hashOf } from '../support/record.js'

export type Row = Readonly<Record<string, string>>

/** Everything under a tag that the model speaks of, read in one step. */
export interface Picture {
  readonly deliveries: ReadonlyMap<string, Row>
  readonly hashes: ReadonlyMap<string, Row>
  readonly lists: ReadonlyMap<string, readonly string[]>
  readonly zsets: ReadonlyMap<string, ReadonlyMap<string, string>>
  readonly sets: ReadonlyMap<string, readonly string[]>
  readonly streams: ReadonlyMap<string, StreamPicture>
  /** Idempotency keys, with what they hold. */
  readonly strings: ReadonlyMap<string, string>
  /** Log entries after the one that was asked for. */
  readonly log: readonly (readonly [id: string, fields: readonly string[]])[]
}

interface StreamPicture {
  readonly entries: readonly (readonly [id: string, delivery: string])[]
  readonly pending: readonly (readonly [id: string, consumer: string])[]
}

const reader = `
local tag, after, found = ARGV[1], ARGV[2], {}
for _, key in ipairs(redis.call('KEYS', tag .. ':*')) do
  local name, kind = string.sub(key, #tag + 1), redis.call('TYPE', key)['ok']
  local value, pending
  if kind == 'hash' then value = redis.call('HGETALL', key)
  elseif kind == 'list' then value = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'set' then value = redis.call('SMEMBERS', key)
  elseif kind == 'zset' then value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif name == ':log' then value = redis.call('XRANGE', key, '(' .. after, '+')
  elseif kind == 'stream' then
    value = redis.call('XRANGE', key, '-', '+')
    pending = redis.pcall('XPENDING', key, 'nodes', '-', '+', 100000)
    if pending.err then pending = {} end
  elseif string.sub(name, 1, 12) == ':idempotency' then value = redis.call('GET', key) end
  if value then found[#found + 1] = { name, kind, value, pending or {} } end
end
return found`

export async function takePicture(store: Store, tag: string, afterLogId: string): Promise<Picture> {
  const reply = (await store.call(['EVAL', reader, 0, tag, afterLogId])) as [string, string, never, never][]
  const deliveries = new Map<string, Row>()
  const hashes = new Map<string, Row>()
  const lists = new Map<string, string[]>()
  const zsets = new Map<string, Map<string, string>>()
  const sets = new Map<string, string[]>()
  const streams = new Map<string, StreamPicture>()
  const strings = new Map<string, string>()
  let log: [string, string[]][] = []
  for (const [name, kind, value, pending] of reply) {
    if (name === ':log') log = value
    else if (name.startsWith(':delivery:')) deliveries.set(name.slice(10), hashOf(value))
    else if (kind === 'hash') hashes.set(name, hashOf(value))
    else if (kind === 'list') lists.set(name, value)
    else if (kind === 'set') sets.set(name, (value as string[]).toSorted())
    else if (kind === 'zset') zsets.set(name, new Map(Object.entries(hashOf(value))))
    else if (kind === 'string') strings.set(name, value)
    else if (kind === 'stream') {
      streams.set(name, {
        entries: (value as [string, string[]][]).map(([id, fields]) => [id, fields[1] ?? '']),
        pending: (pending as [string, string][]).map(([id, consumer]) => [id, consumer]),
      })
    }
  }
  return { deliveries, hashes, lists, zsets, sets, streams, strings, log }
}

const isFinished = (row: Row) => row['attempt_status'] === 'done' || row['attempt_status'] === 'terminal'

function same(found: readonly string[], wanted: readonly string[], what: string): void {
  const one = found.toSorted()
  const other = wanted.toSorted()
  if (one.length === other.length && one.every((each, at) => each === other[at])) return
  expect(one, what).toEqual(other)
}

/**
 * I1, I4 and I6, and that every index agrees with the rows. As `checkInvariants` of test/support/record.ts,
 * on a picture taken in one step.
 */
export function checkRecord(picture: Picture): void {
  const rows = [...picture.deliveries]
  const idsWhere = (test: (row: Row) => boolean) => rows.filter(([, row]) => test(row)).map(([id]) => id)
  const members = (name: string) => [...(picture.zsets.get(name)?.keys() ?? [])]

  checkMessages(picture)
  const counts = picture.hashes.get(':counts') ?? {}
  const counted = [
    ...deliveryStates.map((state) => [state, idsWhere((row) => row['state'] === state).length] as const),
    ...['done', 'terminal'].map(
      (status) => [status, idsWhere((row) => row['attempt_status'] === status).length] as const,
    ),
  ]
  for (const [name, wanted] of counted) {
    if (Number(counts[name] ?? 0) !== wanted) {
      expect(Number(counts[name] ?? 0), `I1: the count of ${name}`).toBe(wanted)
    }
  }

  const hosts = new Set(rows.map(([, row]) => row['host'] ?? ''))
  for (const host of hosts) {
    const here = rows.filter(([, row]) => row['host'] === host)
    const stream = picture.streams.get(`:stream:${host}`)
    const inState = (...states: string[]) => here.filter(([, row]) => states.includes(row['state'] ?? ''))
    same(
      stream?.entries.map(([entry, id]) => `${entry} ${id}`) ?? [],
      inState('queued', 'claimed', 'mirrored').map(([id, row]) => `${row['entry']} ${id}`),
      `I1: the stream of ${host}`,
    )
    same(
      stream?.pending.map(([entry, consumer]) => `${entry} ${consumer}`) ?? [],
      inState('claimed', 'mirrored').map(([, row]) => `${row['entry']} ${row['owner']}`),
      `I4: the pending list of ${host}`,
    )
    same(
      members(`:awaiting:${host}`),
      inState('delivered')
        .filter(([, row]) => !isFinished(row))
        .map(([id]) => id),
      `I7: awaiting of ${host}`,
    )
  }
  same(
    members(':held'),
    idsWhere((row) => row['state'] === 'held'),
    'I7: the held queue',
  )
  same(
    members(':unknown').filter((each) => !each.includes('/')),
    idsWhere((row) => row['state'] === 'unknown'),
    'I7: unknown deliveries',
  )
  checkLanes(picture)
}

function checkMessages(picture: Picture): void {
  const owing = new Set(picture.zsets.get(':obligations')?.keys() ?? [])
  const byKey = new Map([...picture.strings].map(([name, held]) => [held.split(' ')[0] ?? '', name]))
  let messages = 0
  for (const [name, row] of picture.hashes) {
    if (!name.startsWith(':message:')) continue
    messages += 1
    const id = name.slice(':message:'.length)
    const { made = '0', recipients = '0', settled = '0' } = row
    const mine = [...picture.deliveries].filter(([delivery]) => messageOf(delivery) === id)
    same(
      mine.map(([delivery]) => delivery),
      Array.from({ length: Number(made) }, (_, at) => `${id}.${at + 1}`),
      `I1: deliveries of ${id}`,
    )
    const owed = picture.lists.get(`:recipients:${id}`)?.length ?? 0
    expect(Number(made) + owed, `I1: recipients of ${id}`).toBe(Number(recipients))
    expect(owing.has(id), `I1: the obligation of ${id}`).toBe(owed > 0)
    const over = mine.filter(([, delivery]) => isFinished(delivery) || delivery['state'] === 'failed').length
    expect(Number(settled), `I1: settled deliveries of ${id}`).toBe(over)
    expect(row['settled_at'] !== undefined, `settled_at of ${id}`).toBe(over === Number(recipients))
    expect(byKey.get(id), `I6: the key of ${id}`).toBe(`:idempotency:${row['key']}`)
  }
  expect(messages, 'I6: one message a key').toBe(picture.strings.size)
}

/** Every parked delivery is listed by its lane, and nothing else is, in a lane that is listed by its host. */
function checkLanes(picture: Picture): void {
  const parkedHosts = new Set<string>()
  const listed: string[] = []
  for (const [name, ids] of picture.lists) {
    if (!name.startsWith(':lane:')) continue
    const [host = ''] = name.slice(':lane:'.length).split('/')
    const lane = name.slice(`:lane:${host}/`.length)
    parkedHosts.add(host)
    expect(picture.zsets.get(`:parked:${host}`)?.has(lane), `I7: ${name} is looked at`).toBe(true)
    for (const id of ids) listed.push(`${id} in ${host}/${lane}`)
  }
  const parked = [...picture.deliveries].filter(([, row]) => row['parked_by'] !== undefined)
  const places = parked.map(([id, row]) => {
    return `${id} in ${row['host']}/${row['conversation']}/${row['session'] ?? ''}`
  })
  same(listed, places, 'I7: parked deliveries')
  for (const [id, row] of parked) expect(row['state'], `the state of ${id}, which is parked`).toBe('queued')
  same(picture.sets.get(':parked') ?? [], [...parkedHosts], 'I7: hosts with something parked')
}
