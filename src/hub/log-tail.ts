import { setTimeout as sleep } from 'node:timers/promises'
import type { LogEntry } from '../contract/log-filter.js'
import { isAfter } from '../contract/log-ids.js'
import type { BlockingReader } from '../record/blocking-reader.js'
import type { Keys } from '../record/keys.js'
import type { Reader } from '../record/reader.js'
import { firstLogId, lastLogId, logEntryOf } from './log.js'

/** What one waits for: work on a host, a change of a message's deliveries, or anything. */
export type Topic = `host:${string}` | `message:${string}` | 'any'

/**
 * The one reader of the log in a process, for any number of waiters: with it thousands of idle hosts need no
 * connection of their own. It starts reading with the first who waits or watches.
 */
export interface LogTail {
  /**
   * Resolves when the log has an entry on the topic after the position, or may have had one that this process
   * did not see; after `waitMs` at the latest, and when aborted or closed. What is there is read by other means.
   */
  wait(topic: Topic, position: string, waitMs: number, signal?: AbortSignal): Promise<void>
  /** Told of each entry from now on, in order, and of `undefined` where some may have been missed. */
  watch(listener: (entry: LogEntry | undefined) => void): () => void
  /** Milliseconds since the log was last read with success; infinite before the first time. */
  ageMs(): number
  close(): Promise<void>
}

const blockMs = 1000
const entriesAtOnce = 500
const retryMs = 200
const silentMs = 1500
/** Entries kept to tell a waiter whether what it waits for has passed already. */
const recentAtMost = 2000
/** Whoever is further back than those looks again after this; at once, it would spin on a log that went back. */
const lookAgainMs = 50

interface Recent {
  readonly id: string
  readonly hosts: readonly string[] | '*'
  readonly messages: ReadonlySet<string>
}

/** `open` is called once, when the log is first needed. */
export function createLogTail(open: () => BlockingReader, reader: Reader, keys: Keys): LogTail {
  const waiting = new Map<Topic, Set<() => void>>()
  const watchers = new Set<(entry: LogEntry | undefined) => void>()
  const closing = new AbortController()
  const recent: Recent[] = []
  /** Entries up to here have been told; those after `since` are the ones in `recent`. */
  let position = '0-0'
  let since: string | undefined
  let begun = false
  let readAt = Number.NEGATIVE_INFINITY
  let blocking: BlockingReader | undefined
  let looping: Promise<void> | undefined

  function start(): void {
    looping ??= loop()
  }

  async function loop(): Promise<void> {
    blocking = open()
    while (!closing.signal.aborted) {
      try {
        if (since === undefined) await begin()
        await readOn(blocking)
      } catch {
        since = undefined
        await sleep(retryMs, undefined, { signal: closing.signal }).catch(() => undefined)
      }
    }
  }

  /** Starts at the log's end; whoever waits may have missed what came before. */
  async function begin(): Promise<void> {
    position = await lastLogId(reader, keys)
    since = position
    recent.length = 0
    readAt = performance.now()
    wakeAll()
    if (begun) for (const listener of watchers) listener(undefined)
    begun = true
  }

  async function readOn(from: BlockingReader): Promise<void> {
    const options = { count: entriesAtOnce, blockMs, signal: closing.signal }
    const startedAt = performance.now()
    const entries = await from.entries(keys.log, position, options)
    const tookMs = performance.now() - startedAt
    // Whoever is a batch behind may have come too late for entries that the log's length no longer allows.
    const isBehind = entries.length === entriesAtOnce
    if (isBehind && isAfter(await firstLogId(reader, keys), position)) {
      since = undefined
      return
    }
    for (const entry of entries) tell(logEntryOf(entry))
    // A server that stays silent past the block, and the margin that ends the read, has said nothing.
    if (entries.length > 0 || tookMs < blockMs + silentMs) readAt = performance.now()
    // A log that was lost, or a clock that went back, may go on at lower ids: nothing would come after ours.
    if (entries.length === 0 && isAfter(position, await lastLogId(reader, keys))) since = undefined
  }

  function tell(entry: LogEntry): void {
    position = entry.id
    const messages = new Set(entry.changes.flatMap(({ ids }) => ids.map(messageOf)))
    recent.push({ id: entry.id, hosts: entry.hosts, messages })
    if (recent.length > recentAtMost) since = recent.shift()?.id
    if (entry.hosts === '*') wakeHosts()
    else for (const host of entry.hosts) wake(`host:${host}`)
    for (const message of messages) wake(`message:${message}`)
    wake('any')
    for (const listener of watchers) listener(entry)
  }

  function wake(topic: Topic): void {
    const waiters = waiting.get(topic)
    if (waiters !== undefined) for (const each of [...waiters]) each()
  }

  function wakeHosts(): void {
    for (const topic of [...waiting.keys()]) if (topic.startsWith('host:')) wake(topic)
  }

  function wakeAll(): void {
    for (const topic of [...waiting.keys()]) wake(topic)
  }

  /** Whether an entry on the topic after this position, which is not before `since`, was told already. */
  function hasPassed(topic: Topic, from: string): boolean {
    if (!isAfter(position, from)) return false
    if (topic === 'any') return true
    for (let at = recent.length - 1; at >= 0; at -= 1) {
      const entry = recent[at]
      if (entry === undefined || !isAfter(entry.id, from)) return false
      if (isOn(entry, topic)) return true
    }
    return false
  }

  return {
    wait: (topic, from, waitMs, signal) =>
      new Promise((resolve) => {
        start()
        const isFarBack = since !== undefined && isAfter(since, from)
        // Before the first reading there is nothing to have missed: it wakes whoever waits.
        const passed = since !== undefined && !isFarBack && hasPassed(topic, from)
        if (closing.signal.aborted || signal?.aborted || passed) return resolve()
        const end = () => {
          clearTimeout(timer)
          signal?.removeEventListener('abort', end)
          const waiters = waiting.get(topic)
          waiters?.delete(end)
          if (waiters?.size === 0) waiting.delete(topic)
          resolve()
        }
        const timer = setTimeout(end, isFarBack ? Math.min(lookAgainMs, waitMs) : waitMs)
        signal?.addEventListener('abort', end, { once: true })
        const waiters = waiting.get(topic) ?? new Set()
        waiting.set(topic, waiters.add(end))
      }),
    watch: (listener) => {
      watchers.add(listener)
      start()
      return () => watchers.delete(listener)
    },
    ageMs: () => performance.now() - readAt,
    close: async () => {
      closing.abort()
      wakeAll()
      await blocking?.close()
      await looping
    },
  }
}

function isOn(entry: Recent, topic: Topic): boolean {
  const at = topic.indexOf(':')
  const [kind, name] = [topic.slice(0, at), topic.slice(at + 1)]
  if (kind === 'message') return entry.messages.has(name)
  return entry.hosts === '*' || entry.hosts.includes(name)
}

/** The message of a delivery or an attempt. */
function messageOf(id: string): string {
  const end = id.indexOf('.')
  return end < 0 ? id : id.slice(0, end)
}
