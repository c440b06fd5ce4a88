import { createHash } from 'node:crypto'
import { expect } from 'vitest'
import { isHoldfastError } from '../../src/contract/errors.js'
import { type MessageInput, prepareMessage } from '../../src/contract/message.js'
import type { SettingName } from '../../src/contract/settings.js'
import { deliveryStates, isDeliveryState, transitions } from '../../src/contract/states.js'
import type {
  BeginItem,
  ClaimedDelivery,
  ClaimReply,
  NodeIdentity,
  StepItem,
  StepResult,
} from '../../src/contract/steps.js'
import { type Hub, openHub } from '../../src/hub/open-hub.js'
import { openStore, type Store } from '../../src/record/connections.js'
import { type FanOutReply, type Functions, functionsOf } from '../../src/record/functions.js'
import { escapePart, type Keys, keysOf, laneName } from '../../src/record/keys.js'
import { loadLibrary } from '../../src/record/library.js'
import type { TestServer } from './server.js'
import { checkSessions } from './session-rules.js'
import { until } from './until.js'

/** A stream as dumped: its entries, and its groups with their pending lists. */
interface DumpedStream {
  readonly entries: readonly (readonly [id: string, fields: readonly string[]])[]
  readonly groups: Readonly<
    Record<
      string,
      { readonly lastDelivered: string; readonly pending: readonly (readonly [string, string, number])[] }
    >
  >
}

type DumpedValue =
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'hash'; readonly value: Readonly<Record<string, string>> }
  | { readonly type: 'list'; readonly value: readonly string[] }
  | { readonly type: 'set'; readonly value: readonly string[] }
  | { readonly type: 'zset'; readonly value: Readonly<Record<string, string>> }
  | { readonly type: 'stream'; readonly value: DumpedStream }

/** Every key of one tag with its whole content, pending lists included. Key names are without the tag. */
export type Dump = Readonly<Record<string, DumpedValue>>

/** One process of a node, with the request counter of its claims. */
export interface TestNode extends NodeIdentity {
  request: number
}

/** One hub's record on a test server, with what tests do to it and ask of it. */
export interface OpenRecord {
  readonly name: string
  readonly keys: Keys
  readonly store: Store
  readonly functions: Functions
  /** Accepts a message: to host `a`, with a key of its own, unless told otherwise. */
  accept(message?: Partial<MessageInput>): Promise<FanOutReply>
  /** Accepts `count` messages to one host, one after the other; answers the delivery ids. */
  acceptMany(count: number, message?: Partial<MessageInput>): Promise<string[]>
  join(host: string, node: string, incarnation?: number, instance?: string): Promise<TestNode>
  /** The next request of the node. */
  claim(node: TestNode, count?: number): Promise<ClaimReply>
  /** Claims until `more` is off; answers everything that was handed out. */
  claimAll(node: TestNode, count?: number): Promise<ClaimedDelivery[]>
  /** Claims, mirrors and acknowledges: what is delivered and idle then. */
  deliverAll(node: TestNode, count?: number): Promise<ClaimedDelivery[]>
  /** Begins one delivery, which must be granted. */
  begin(node: NodeIdentity, item: StepItem, grant?: string): Promise<BeginItem & { attempt: string }>
  /** The delivery row, as an object and as a map. */
  fields(id: string): Promise<Record<string, string>>
  row(id: string): Promise<ReadonlyMap<string, string>>
  states(ids: readonly string[]): Promise<string[]>
  config(name: string, value: number | string): Promise<void>
  send(...command: (string | number)[]): Promise<unknown>
  /** The server's clock, in whole milliseconds. */
  nowMs(): Promise<number>
  dump(): Promise<Dump>
  /** Nothing may be checked of these deliveries' places in lists any more: the test damaged them by hand. */
  damaged(...deliveries: string[]): void
  /** The conservation and index rules (contract section 11), on everything under the tag. */
  checkInvariants(): Promise<void>
  /** The call must be refused with this code, and must not have changed one byte of the record. */
  refused(code: string, call: () => Promise<unknown>): Promise<string>
  /** The first item must be refused with this code, and nothing may have changed. */
  itemRefused(
    code: string,
    call: () => Promise<readonly StepResult[]>,
  ): Promise<Extract<StepResult, { ok: false }>>
  close(): Promise<void>
}

/** The server's clock, in whole milliseconds. */
export async function clockOf(store: Store): Promise<number> {
  const [seconds, micros] = (await store.call(['TIME'])) as [string, string]
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
}

let tags = 0

/** A record of its own on the server: a fresh tag, initialised unless `init` is false. */
export async function openRecord(
  server: TestServer,
  options: { readonly init?: boolean; readonly name?: string } = {},
): Promise<OpenRecord> {
  tags += 1
  const name = options.name ?? `t${tags}`
  const keys = keysOf(name)
  const store = await openStore({ url: server.url, tag: keys.tag, name: 'test' })
  await loadLibrary(store)
  const functions = functionsOf(store, keys.tag)
  if (options.init !== false) await functions.init(`store-${name}`, false)
  const exempt = new Set<string>()
  let messages = 0
  let grants = 0

  const send = (...command: (string | number)[]) => store.call(command)
  const dump = () => dumpOf(store, keys.tag)

  function accept(message: Partial<MessageInput> = {}): Promise<FanOutReply> {
    messages += 1
    return functions.accept(
      prepareMessage({
        key: `key-${messages}`,
        conversation: 'c1',
        sender: 'tests',
        to: [{ host: 'a' }],
        payload: `payload ${messages}`,
        ...message,
      }),
    )
  }

  async function acceptMany(count: number, message: Partial<MessageInput> = {}): Promise<string[]> {
    const ids: string[] = []
    for (let made = 0; made < count; made += 50) {
      const batch = Array.from({ length: Math.min(50, count - made) }, () => accept(message))
      for (const reply of await Promise.all(batch)) ids.push(...reply.deliveries.map(({ id }) => id))
    }
    return ids
  }

  async function join(host: string, node: string, incarnation = 1, instance = `i${incarnation}`) {
    const who = { host, node, incarnation, request: 0 }
    await functions.join(who, instance, [], '0-0')
    return who
  }

  function claim(node: TestNode, count = 100): Promise<ClaimReply> {
    node.request += 1
    return functions.claim(node, node.request, count)
  }

  async function claimAll(node: TestNode, count = 100): Promise<ClaimedDelivery[]> {
    const found: ClaimedDelivery[] = []
    for (let calls = 0; calls < 1000; calls += 1) {
      const reply = await claim(node, count)
      found.push(...reply.deliveries)
      if (!reply.more) return found
    }
    throw new Error('the claim says "more" for ever')
  }

  async function deliverAll(node: TestNode, count = 100): Promise<ClaimedDelivery[]> {
    const claimed = await claimAll(node, count)
    const items = claimed.filter(({ state }) => state !== 'delivered')
    for (let first = 0; first < items.length; first += 500) {
      const batch = items.slice(first, first + 500)
      expect((await functions.mirror(node, batch)).every(({ ok }) => ok)).toBe(true)
      expect((await functions.ack(node, batch)).every(({ ok }) => ok)).toBe(true)
    }
    return claimed
  }

  async function begin(node: NodeIdentity, item: StepItem, grant?: string) {
    grants += 1
    const asked = { id: item.id, epoch: item.epoch, grant: grant ?? `grant-${grants}` }
    const [result] = await functions.begin(node, [asked])
    if (!result?.ok) throw new Error(`begin was refused: ${JSON.stringify(result)}`)
    return { ...asked, attempt: `${item.id}/${result.attempt}` }
  }

  async function fields(id: string): Promise<Record<string, string>> {
    return hashOf(await send('HGETALL', keys.delivery(id)))
  }

  async function refused(code: string, call: () => Promise<unknown>): Promise<string> {
    const before = await dump()
    let caught: unknown
    const reply = await call().catch((error: unknown) => {
      caught = error
    })
    if (!isHoldfastError(caught)) {
      throw new Error(`expected ${code}, got ${String(caught ?? JSON.stringify(reply))}`, { cause: caught })
    }
    expect(caught.code, caught.message).toBe(code)
    expect(await dump(), `${code} changed the record`).toEqual(before)
    return caught.message
  }

  async function itemRefused(code: string, call: () => Promise<readonly StepResult[]>) {
    const before = await dump()
    const [result] = await call()
    if (result === undefined || result.ok) throw new Error(`expected ${code}, got ${JSON.stringify(result)}`)
    expect(result.code, JSON.stringify(result)).toBe(code)
    expect(await dump(), `${code} changed the record`).toEqual(before)
    return result
  }

  return {
    name,
    keys,
    store,
    functions,
    accept,
    acceptMany,
    join,
    claim,
    claimAll,
    deliverAll,
    begin,
    fields,
    row: async (id) => new Map(Object.entries(await fields(id))),
    states: (ids) => Promise.all(ids.map(async (id) => (await fields(id))['state'] ?? 'gone')),
    config: async (setting, value) => {
      await send('HSET', keys.config, setting, value)
    },
    send,
    nowMs: () => clockOf(store),
    dump,
    damaged: (...deliveries) => {
      for (const id of deliveries) exempt.add(id)
    },
    checkInvariants: async () => checkInvariants(await dump(), exempt),
    refused,
    itemRefused,
    close: () => store.close(),
  }
}

/** A record with a hub over it. */
export interface TestRecord extends OpenRecord {
  readonly hub: Hub
}

/** A record of this name with these settings, and a hub over it. */
export async function makeRecord(
  server: TestServer,
  name: string,
  settings: Partial<Record<SettingName, number>> = {},
): Promise<TestRecord> {
  const record = await openRecord(server, { name })
  for (const [setting, value] of Object.entries(settings)) await record.config(setting, value)
  const hub = await openHub({ redis: server.url, hub: name })
  return {
    ...record,
    hub,
    close: async () => {
      await hub.close()
      await record.close()
    },
  }
}

/** How a delivery ended, waiting for it: its attempt's status, a final state, or `unknown` when so reported. */
export function settlement(record: OpenRecord, id: string): Promise<string> {
  return until(
    async () => {
      const row = await record.fields(id)
      const status = row['attempt_status'] ?? ''
      if (status === 'done' || status === 'terminal') return status
      if (['failed', 'held', 'unknown'].includes(row['state'] ?? '')) return row['state']
      return row[`attempt_${row['attempts']}_unknown_keys`] === undefined ? undefined : 'unknown'
    },
    { timeoutMs: 20_000, what: `an end of ${id}` },
  )
}

/** Sha-256 in hex. */
export function sha256(bytes: string | Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

export function hashOf(reply: unknown): Record<string, string> {
  const words = reply as string[]
  const fields: Record<string, string> = {}
  for (let at = 0; at < words.length; at += 2) fields[words[at] ?? ''] = words[at + 1] ?? ''
  return fields
}

const dayMs = 86_400_000

function byTime(one: string, other: string): number {
  const [ms = 0, number = 0] = one.split('-').map(Number)
  const [otherMs = 0, otherNumber = 0] = other.split('-').map(Number)
  return ms - otherMs || number - otherNumber
}

/** The same with message ids told by their order, entries of streams and times of today not at all. */
export function withoutIds(value: unknown): unknown {
  const text = JSON.stringify(value)
  const ids = [...new Set(text.match(/\b\d{13}-\d{6,}/g))].sort(byTime)
  const names = new Map(ids.map((id, at) => [id, `message-${at + 1}`]))
  const isToday = (ms: string) => Math.abs(Number(ms) - Date.now()) < dayMs
  return JSON.parse(
    text
      .replaceAll(/\b\d{13}-\d+/g, (id) => names.get(id) ?? 'entry')
      .replaceAll(/(?<=")\d{13}(?=")|(?<=\\":)\d{13}\b/g, (ms) => (isToday(ms) ? 'time' : ms)),
  )
}

/** What two records hold alike on which the same was done in other calls: all but the log, and counts of none. */
export function comparable(dump: Dump): unknown {
  const { ':log': _, ':identity': __, ':counts': counts, ...rest } = dump
  const counted = counts?.type === 'hash' ? Object.entries(counts.value) : []
  return withoutIds({ ...rest, counts: Object.fromEntries(counted.filter(([, count]) => count !== '0')) })
}

/** The transitions that the log tells of, each as `<id> <from> <to>`, sorted; ids as in `withoutIds`. */
export function movesOf(dump: Dump): string[] {
  const log = dump[':log']
  const found: string[] = []
  for (const [, fields] of log?.type === 'stream' ? log.value.entries : []) {
    for (let at = 0; at < fields.length; at += 2) {
      if (fields[at] !== 'ids') continue
      const [, ids = '', , from = '', , to = ''] = fields.slice(at, at + 6)
      for (const id of ids.split(' ')) found.push(`${id} ${from} ${to}`)
    }
  }
  return (withoutIds(found) as string[]).sort()
}

/** The names of all keys under the tag, in order. */
export async function keysUnder(store: Store, tag: string): Promise<string[]> {
  const found = new Set<string>()
  let cursor = '0'
  do {
    const [next, names] = (await store.call(['SCAN', cursor, 'MATCH', `${tag}:*`, 'COUNT', 10_000])) as [
      string,
      string[],
    ]
    for (const name of names) found.add(name)
    cursor = next
  } while (cursor !== '0')
  return [...found].sort()
}

const readers = {
  string: (key: string) => ['GET', key],
  hash: (key: string) => ['HGETALL', key],
  list: (key: string) => ['LRANGE', key, 0, -1],
  set: (key: string) => ['SMEMBERS', key],
  zset: (key: string) => ['ZRANGE', key, 0, -1, 'WITHSCORES'],
  stream: (key: string) => ['XRANGE', key, '-', '+'],
} as const

async function dumpOf(store: Store, tag: string): Promise<Dump> {
  const found = await keysUnder(store, tag)
  const typesOf = (await store.pipeline(found.map((name) => ['TYPE', name]))) as (
    | keyof typeof readers
    | 'none'
  )[]
  // A lock of a sweeper's queue may have lapsed since it was found.
  const [names, types] = [[] as string[], [] as (keyof typeof readers)[]]
  for (const [at, type] of typesOf.entries()) {
    if (type === 'none') continue
    names.push(found[at] ?? '')
    types.push(type)
  }
  const raw = await store.pipeline(names.map((name, at) => readers[types[at] ?? 'string'](name)))
  const entries = await Promise.all(
    names.map(async (name, at) => {
      const type = types[at] ?? 'string'
      return [name.slice(tag.length), await dumpedValue(store, name, type, raw[at])] as const
    }),
  )
  return Object.fromEntries(entries)
}

async function dumpedValue(
  store: Store,
  key: string,
  type: keyof typeof readers,
  raw: unknown,
): Promise<DumpedValue> {
  switch (type) {
    case 'hash':
    case 'zset':
      return { type, value: hashOf(raw) }
    case 'list':
      return { type, value: raw as string[] }
    case 'set':
      return { type, value: (raw as string[]).toSorted() }
    case 'stream':
      return { type, value: await dumpedStream(store, key, raw as [string, string[]][]) }
    default:
      return { type: 'string', value: String(raw) }
  }
}

async function dumpedStream(
  store: Store,
  key: string,
  entries: readonly [string, string[]][],
): Promise<DumpedStream> {
  const groups: Record<string, { lastDelivered: string; pending: [string, string, number][] }> = {}
  for (const reply of (await store.call(['XINFO', 'GROUPS', key])) as string[][]) {
    const group = hashOf(reply)
    const name = group['name'] ?? ''
    const pending = (await store.call(['XPENDING', key, name, '-', '+', 100_000])) as [
      string,
      string,
      number,
      number,
    ][]
    groups[name] = {
      lastDelivered: group['last-delivered-id'] ?? '',
      pending: pending.map(([entry, consumer, , deliveries]) => [entry, consumer, deliveries]),
    }
  }
  return { entries, groups }
}

type Row = Readonly<Record<string, string>>

interface Picture {
  readonly rows: ReadonlyMap<string, Row>
  readonly dump: Dump
  readonly exempt: ReadonlySet<string>
}

function checkInvariants(dump: Dump, exempt: ReadonlySet<string>): void {
  const rows = new Map<string, Row>()
  for (const [id, value] of under(dump, ':delivery:')) if (value.type === 'hash') rows.set(id, value.value)
  const picture = { rows, dump, exempt }
  checkConservation(picture)
  checkCounts(picture)
  checkStreams(picture)
  checkLists(picture)
  checkParking(picture)
  checkSessions(dump, exempt)
  checkLog(picture)
}

function under(dump: Dump, prefix: string): [string, DumpedValue][] {
  return Object.entries(dump)
    .filter(([key]) => key.startsWith(prefix))
    .map(([key, value]) => [key.slice(prefix.length), value])
}

function zset(dump: Dump, key: string): string[] {
  const value = dump[key]
  return value?.type === 'zset' ? Object.keys(value.value) : []
}

function idsWhere(picture: Picture, test: (row: Row) => boolean): string[] {
  return [...picture.rows].filter(([id, row]) => !picture.exempt.has(id) && test(row)).map(([id]) => id)
}

function without(picture: Picture, ids: readonly string[]): string[] {
  return ids.filter((id) => !picture.exempt.has(id))
}

/** The same members, whatever their order; names the first differences only. */
export function expectSame(found: readonly string[], wanted: readonly string[], what: string): void {
  const [present, asked, seen] = [new Set(found), new Set(wanted), new Set<string>()]
  const extra = found.filter((each) => !asked.has(each))
  const missing = wanted.filter((each) => !present.has(each))
  const twice = found.filter((each) => seen.size === seen.add(each).size)
  const differences = { extra: extra.slice(0, 5), missing: missing.slice(0, 5), twice: twice.slice(0, 5) }
  expect(differences, `${what} (${extra.length} extra, ${missing.length} missing)`).toEqual({
    extra: [],
    missing: [],
    twice: [],
  })
}

const isFinished = (row: Row) => row['attempt_status'] === 'done' || row['attempt_status'] === 'terminal'
const isSettled = (row: Row) => isFinished(row) || row['state'] === 'failed'
const inStream = (row: Row) => ['queued', 'claimed', 'mirrored'].includes(row['state'] ?? '')

/** I1: every recipient has one delivery, or is named by what the message still owes. */
function checkConservation(picture: Picture): void {
  const owing = new Set(zset(picture.dump, ':obligations'))
  const byMessage = rowsByMessage(picture)
  for (const [id, value] of under(picture.dump, ':message:')) {
    if (value.type !== 'hash') continue
    const { recipients = '0', made = '0', settled = '0', settled_at, pruned_from } = value.value
    const ids = Array.from({ length: Number(made) }, (_, at) => `${id}.${at + 1}`)
    const mine = byMessage.get(id) ?? []
    if (ids.some((delivery) => picture.exempt.has(delivery))) continue
    expectSame(
      mine.map(([delivery]) => delivery),
      ids,
      `deliveries of ${id}`,
    )
    if (pruned_from !== undefined) {
      // Half gone: what is left is settled, and listed no more.
      expect([...mine.filter(([, row]) => !isSettled(row)), owing.has(id)], `what is left of ${id}`).toEqual([
        false,
      ])
      continue
    }
    const places = mine.map(([, row]) => `${row['host']} ${row['session'] ?? ''}`)
    expect(new Set(places).size, `one delivery a recipient of ${id}`).toBe(places.length)
    const owed = picture.dump[`:recipients:${id}`]
    const owedCount = owed?.type === 'list' ? owed.value.length : 0
    expect(Number(made) + owedCount, `recipients of ${id}`).toBe(Number(recipients))
    expect(owing.has(id), `the obligation of ${id}`).toBe(owedCount > 0)
    const over = mine.filter(([, row]) => isSettled(row)).length
    expect(Number(settled), `settled deliveries of ${id}`).toBe(over)
    expect(settled_at !== undefined, `settled_at of ${id}`).toBe(over === Number(recipients))
  }
}

function rowsByMessage({ rows }: Picture): ReadonlyMap<string, [string, Row][]> {
  const found = new Map<string, [string, Row][]>()
  for (const [id, row] of rows) {
    const [message = ''] = id.split('.', 1)
    const mine = found.get(message)
    if (mine === undefined) found.set(message, [[id, row]])
    else mine.push([id, row])
  }
  return found
}

/** Of every host that has rows, a stream, or something awaiting. */
function rowsByHost({ rows, dump }: Picture): ReadonlyMap<string, ReadonlyMap<string, Row>> {
  const listed = [':stream:', ':awaiting:'].flatMap((prefix) => under(dump, prefix).map(([host]) => host))
  const found = new Map(listed.map((host) => [host, new Map<string, Row>()]))
  for (const [id, row] of rows) {
    const host = row['host'] ?? ''
    const here = found.get(host) ?? new Map<string, Row>()
    found.set(host, here.set(id, row))
  }
  return found
}

function checkCounts({ rows, dump }: Picture): void {
  const counts = dump[':counts']
  const counted = counts?.type === 'hash' ? counts.value : {}
  const by = (test: (row: Row) => boolean) => [...rows.values()].filter(test).length
  for (const state of deliveryStates) {
    expect(Number(counted[state] ?? 0), `the count of ${state}`).toBe(by((row) => row['state'] === state))
  }
  // These count what happened: what was pruned since stays counted.
  const gone = ['done', 'terminal'].map((status) => {
    return Number(counted[status] ?? 0) - by((row) => row['attempt_status'] === status)
  })
  for (const count of gone) expect(count, 'finished attempts counted').toBeGreaterThanOrEqual(0)
  expect(gone[0] ?? 0, 'finished attempts counted').toBeLessThanOrEqual(
    Number(counted['pruned'] ?? 0) - (gone[1] ?? 0),
  )
}

/** I4, and that the streams hold exactly what is queued (parked too), claimed and mirrored. */
function checkStreams(picture: Picture): void {
  for (const [host, rows] of rowsByHost(picture)) {
    const stream = picture.dump[`:stream:${host}`]
    const here = idsWhere({ ...picture, rows }, inStream)
    const entries = stream?.type === 'stream' ? stream.value.entries : []
    const wanted = here.map((id) => `${picture.rows.get(id)?.['entry']} ${id}`)
    const found = entries
      .filter(([, fields]) => !picture.exempt.has(fields[1] ?? ''))
      .map(([entry, fields]) => `${entry} ${fields[1]}`)
    expectSame(found, wanted, `the stream of ${host}`)

    const pending = stream?.type === 'stream' ? (stream.value.groups['nodes']?.pending ?? []) : []
    const exemptEntries = new Set(
      [...picture.exempt].map((id) => picture.rows.get(id)?.['entry']).filter(Boolean),
    )
    const taken = here
      .map((id) => picture.rows.get(id))
      .filter((row) => row?.['state'] === 'claimed' || row?.['state'] === 'mirrored')
      .map((row) => `${row?.['entry']} ${row?.['owner']}`)
    const listed = pending
      .filter(([entry]) => !exemptEntries.has(entry))
      .map(([entry, consumer]) => `${entry} ${consumer}`)
    expectSame(listed, taken, `the pending list of ${host}`)
  }
}

function checkLists(picture: Picture): void {
  const { dump, rows } = picture
  for (const [host, here] of rowsByHost(picture)) {
    const open = (row: Row) => row['state'] === 'delivered' && !isFinished(row)
    expectSame(
      without(picture, zset(dump, `:awaiting:${host}`)),
      idsWhere({ ...picture, rows: here }, open),
      `awaiting of ${host}`,
    )
  }
  expectSame(
    without(picture, zset(dump, ':held')),
    idsWhere(picture, (row) => row['state'] === 'held'),
    'the held queue',
  )
  checkHeldByFence(picture)
  const unknown = zset(dump, ':unknown').filter((member) => !member.startsWith('effect:'))
  for (const member of unknown.filter((each) => each.includes('/'))) {
    const [id = '', number = ''] = member.split('/')
    const row = rows.get(id)
    expect([row?.['attempts'], row?.['attempt_status'], row?.[`attempt_${number}_status`]], member).toEqual([
      number,
      'executing',
      'executing',
    ])
  }
  expectSame(
    without(picture, unknown).filter((each) => !each.includes('/')),
    idsWhere(picture, (row) => row['state'] === 'unknown'),
    'deliveries in the unknown list',
  )
}

/** What a hold parked is listed by it as well, and the holds that list something are known. */
function checkHeldByFence(picture: Picture): void {
  const { dump, rows } = picture
  const lists = under(dump, ':held:')
  const listed = lists.flatMap(([fence]) => zset(dump, `:held:${fence}`).map((id) => `${id} by ${fence}`))
  const held = idsWhere(picture, (row) => row['state'] === 'held' && Boolean(row['held_fence']))
  expectSame(
    listed.filter((each) => !picture.exempt.has(each.split(' ', 1)[0] ?? '')),
    held.map((id) => `${id} by ${escapePart(rows.get(id)?.['held_fence'] ?? '')}`),
    'what holds keep',
  )
  const holding = dump[':holding']
  expectSame(
    holding?.type === 'set' ? holding.value.map(escapePart) : [],
    lists.map(([fence]) => fence),
    'holds that keep something',
  )
}

function checkParking(picture: Picture): void {
  const { dump, rows } = picture
  const listed: string[] = []
  const lanesByHost = new Map<string, string[]>()
  for (const [lane, value] of under(dump, ':lane:')) {
    if (value.type !== 'list') continue
    const [host = ''] = lane.split('/', 1)
    const name = lane.slice(host.length + 1)
    lanesByHost.set(host, [...(lanesByHost.get(host) ?? []), name])
    for (const id of value.value) {
      const row = rows.get(id)
      expect(`${row?.['host']} ${laneName(row?.['conversation'] ?? '', row?.['session'])}`, id).toBe(
        `${host} ${name}`,
      )
      listed.push(id)
    }
  }
  const parked = idsWhere(picture, (row) => row['state'] === 'queued' && row['parked_by'] !== undefined)
  expectSame(without(picture, listed), parked, 'the parked lanes')
  const hosts = dump[':parked']
  const rung = hosts?.type === 'set' ? hosts.value : []
  expect(rung, 'hosts with something parked').toEqual([...lanesByHost.keys()].sort())
  for (const [host, value] of under(dump, ':parked:')) {
    expect(value.type === 'zset' ? Object.keys(value.value).sort() : [], `parked lanes of ${host}`).toEqual(
      (lanesByHost.get(host) ?? []).sort(),
    )
  }
}

/** I5: the log names no transition between states that the table does not have. */
function checkLog({ dump }: Picture): void {
  const log = dump[':log']
  if (log?.type !== 'stream') return
  const known = new Set(transitions.map(({ from, to }) => `${from} > ${to}`))
  for (const [, fields] of log.value.entries) {
    let from = ''
    for (let at = 0; at < fields.length; at += 2) {
      if (fields[at] === 'from') from = fields[at + 1] ?? ''
      const to = fields[at + 1] ?? ''
      if (fields[at] !== 'to' || !isDeliveryState(from) || !isDeliveryState(to)) continue
      expect(known, `${fields.join(' ')}`).toContain(`${from} > ${to}`)
    }
  }
}
