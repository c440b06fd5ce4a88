/// <reference lib="esnext.disposable" preserve="true" />
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import type { MessageView } from '../contract/delivery-views.js'
import { HoldfastError } from '../contract/errors.js'
import type { Accepted } from '../contract/hub.js'
import type { MessageInput } from '../contract/message.js'
import { checkOptions, option, optionsOf } from '../contract/options.js'
import type { SettingName } from '../contract/settings.js'
import { type SweepName, sweepNames } from '../contract/sweeps.js'
import { type Hub, initRecord, openHubParts } from '../hub/open-hub.js'
import { piecesOf, scanKeys } from '../hub/scan.js'
import type { HoldfastNode } from '../node/create-node.js'
import { openStore, type Store } from '../record/connections.js'
import type { Functions } from '../record/functions.js'
import { type Keys, keysOf } from '../record/keys.js'
import { loadLibrary } from '../record/library.js'
import { type Reader, readerOf } from '../record/reader.js'
import { sweepsOnDemand } from '../sweeps/on-demand.js'
import { clockOf, type TestClock } from './clock.js'
import { type RunningNode, startNode, type TestNodeOptions } from './node.js'
import { leaveServer, useServer } from './server.js'

/** A record of its own, with a hub over it and all that a test needs around it. */
export interface TestRecord extends AsyncDisposable {
  /** URL of its server: for `openHub`, `createNode`, the command line and `redis-cli`. */
  readonly redis: string
  /** Name of its hub: for `openHub({ hub })` and `createNode({ hub })`. Its keys begin with `{<name>}:`. */
  readonly name: string
  readonly hub: Hub
  readonly clock: TestClock
  /** A folder for mirrors and whatever else a test leaves. */
  readonly dir: string
  /**
   * Accepts a message. What is not named: a key of its own, conversation `test`, sender `test`, host `test-host`, payload
   * `test`.
   */
  send(message?: Partial<MessageInput>): Promise<Accepted>
  /**
   * Waits until every delivery of a message is settled; 10,000 ms when no time is named.
   * @throws DEADLINE_EXCEEDED with each delivery that is not, and why; MESSAGE_NOT_FOUND
   */
  settled(message: string | Pick<Accepted, 'id'>, timeoutMs?: number): Promise<MessageView>
  /** A node in this process, joined: of host `test-host`, with a mirror of its own, unless told otherwise. */
  startNode(options: TestNodeOptions): Promise<RunningNode>
  /** The hub over HTTP, on a free port of loopback. Its sweeps run when {@link TestRecord.sweep} is called. */
  startServer(): Promise<TestServer>
  /** One run of a sweep, now; of all of them in turn when none is named. Answers what they noted. */
  sweep(name?: SweepName): Promise<readonly string[]>
  /** Stops its nodes and servers, and takes every key of it out of the server. */
  close(): Promise<void>
}

/** A hub over HTTP, within a test. */
export interface TestServer {
  readonly url: string
  /** Answers what is under way, and closes. Its record does so as well. */
  close(): Promise<void>
}

/** Options of {@link openTestRecord}. */
export interface TestRecordOptions {
  /** As `holdfast config set` does, such as `{ stale_after_ms: 500 }`; the usual values when absent. */
  readonly settings?: Readonly<Partial<Record<SettingName, number>>> | undefined
}

const form = optionsOf<TestRecordOptions>({ settings: option.names })

/** Host of messages and nodes that name none. */
export const testHost = 'test-host'

let records = 0
const keysAtOnce = 1000

/**
 * Makes a record on the Redis server of this process, AOF `always`, which is started for the first one. It is real in
 * every part: the functions, the streams, the mirrors of its nodes.
 * @throws SERVER_NOT_FOUND where this machine has no Redis server, INVALID_ARGUMENT (the settings)
 */
export async function openTestRecord(options: TestRecordOptions = {}): Promise<TestRecord> {
  checkOptions('openTestRecord', form, options)
  return (await openTestParts(options)).record
}

/** A record with the parts that it is made of. */
export interface TestParts {
  readonly record: TestRecord
  readonly keys: Keys
  readonly reader: Reader
  readonly functions: Functions
}

/** As {@link openTestRecord}. */
export async function openTestParts(options: TestRecordOptions = {}): Promise<TestParts> {
  const server = await useServer()
  records += 1
  const name = `test-${process.pid}-${records}`
  const closers: (() => Promise<unknown>)[] = [async () => leaveServer()]
  try {
    return await makeRecord(server, name, options, closers)
  } catch (error) {
    await closeAll(closers)
    throw error
  }
}

async function makeRecord(
  server: { readonly url: string; readonly dir: string },
  name: string,
  { settings = {} }: TestRecordOptions,
  closers: (() => Promise<unknown>)[],
): Promise<TestParts> {
  const keys = keysOf(name)
  const dir = mkdtempSync(join(server.dir, `${name}-`))
  const store = await openStore({ url: server.url, tag: keys.tag, name: 'holdfast-testing' })
  closers.push(() => store.close())
  await loadLibrary(store, { withClock: true })
  await initRecord({ redis: server.url, hub: name })
  closers.push(() => empty(store, keys))
  const parts = await openHubParts({ redis: server.url, hub: name })
  const { hub } = parts
  closers.push(() => hub.close())
  if (Object.keys(settings).length > 0) await hub.configure(settings, 'test')
  const sweeps = await sweepsOnDemand(parts)
  closers.push(() => sweeps.stop())

  let sent = 0
  let closing: Promise<void> | undefined
  const close = () => {
    closing ??= closeAll(closers)
    return closing
  }
  const closeWithIt = (node: Pick<HoldfastNode, 'stop'>) => void closers.push(() => node.stop())
  const record: TestRecord = {
    redis: server.url,
    name,
    hub,
    dir,
    clock: clockOf(store, keys.tag),
    send: (message = {}) => {
      sent += 1
      return hub.accept({
        key: `test-${sent}`,
        conversation: 'test',
        sender: 'test',
        to: [{ host: testHost }],
        payload: 'test',
        ...message,
      })
    },
    settled: (message, timeoutMs = 10_000) =>
      untilSettled(hub, typeof message === 'string' ? message : message.id, timeoutMs),
    startNode: (given) =>
      startNode(given, { redis: server.url, hub: name, host: testHost, dir }, closeWithIt),
    startServer: async () => {
      // Only now: whoever tests a handler has no use for fastify.
      const { openTestServer } = await import('./hub-server.js')
      const opened = await openTestServer(server.url, name)
      closers.push(opened.close)
      return opened
    },
    sweep: async (which) => {
      const runs = []
      for (const each of which === undefined ? sweepNames : [which]) runs.push(await sweeps.run(each))
      return runs.flatMap(({ notes }) => notes)
    },
    close,
    [Symbol.asyncDispose]: close,
  }
  return { record, keys, reader: parts.reader, functions: parts.functions }
}

/** Nothing of it is left in the server. */
async function empty(store: Store, keys: Keys): Promise<void> {
  for await (const names of scanKeys(readerOf(store, keys), `${keys.tag}:`)) {
    for (const piece of piecesOf(names, keysAtOnce)) await store.call(['UNLINK', ...piece])
  }
}

/** Everything is closed, whatever one of them says; the first complaint is passed on. */
async function closeAll(closers: (() => Promise<unknown>)[]): Promise<void> {
  const failures: unknown[] = []
  for (const close of closers.splice(0).reverse()) {
    await close().catch((error: unknown) => void failures.push(error))
  }
  if (failures.length > 0) throw failures[0]
}

async function untilSettled(hub: Hub, id: string, timeoutMs: number): Promise<MessageView> {
  const message = await hub.waitFor(id, timeoutMs)
  if (message.settledAt !== undefined) return message
  const reasons = await Promise.all(
    message.deliveries.map(async (delivery) => {
      const { reason, detail } = await hub.why(delivery.id)
      return `${delivery.id} on ${delivery.host} is ${delivery.state} (${reason}: ${detail})`
    }),
  )
  throw new HoldfastError(
    'DEADLINE_EXCEEDED',
    `message ${id} is not settled after ${timeoutMs} ms: ${reasons.join('; ')}`,
  )
}
