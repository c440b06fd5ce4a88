import { HoldfastError, isHoldfastError } from '../contract/errors.js'
import type { RedisAddress } from '../contract/redis-address.js'
import { type Argument, openLink } from './link.js'

/** An entry of a stream, with its fields in order. */
export interface StreamEntry {
  readonly id: string
  readonly fields: readonly (readonly [name: string, value: string])[]
}

/** A connection of its own for blocking reads: a blocked socket stalls everything else on it. */
export interface BlockingReader {
  /** How many connections there have been: another server, or the same started anew, may be behind what one was told. */
  readonly connections: number
  /** Resolves once there is a connection; rejects with STORE_UNAVAILABLE where there is none in time. */
  connected(): Promise<void>
  /**
   * Waits up to `blockMs` (at least 1) for an entry after the given id in any of the streams; answers, for
   * each stream that had one, the id of the first such entry. Only the wake-up counts: what is there is read
   * by other means. Empty when the time passed, when aborted (at once) or closed, and when the server was silent for
   * 2 s longer than it may be (the socket is dropped). Rejects with STORE_UNAVAILABLE when there is no
   * connection. One read at a time. With `over`, a count of connections, it waits on that connection alone, and is
   * empty at once where there is another by now: nothing may come after the ids there.
   */
  read(
    streams: Readonly<Record<string, string>>,
    blockMs: number,
    options?: { readonly signal?: AbortSignal | undefined; readonly over?: number | undefined },
  ): Promise<Record<string, string>>
  /** The entries of one stream after an id, at most `count`; waits for the first of them as `read` does. */
  entries(
    stream: string,
    after: string,
    options: { readonly count: number; readonly blockMs: number; readonly signal?: AbortSignal },
  ): Promise<StreamEntry[]>
  close(): Promise<void>
}

const answerMarginMs = 2_000
const defaultConnectDeadlineMs = 5_000

/** Opens a blocking reader; it connects in the background. Errors: INVALID_ARGUMENT (the URL). */
export function openBlockingReader(options: {
  readonly url: RedisAddress
  /** As of a store. */
  readonly tag?: string | undefined
  readonly name: string
  /** Milliseconds that a read, or `connected`, waits for a connection; 5,000 when absent. */
  readonly connectDeadlineMs?: number | undefined
}): BlockingReader {
  const connectDeadlineMs = options.connectDeadlineMs ?? defaultConnectDeadlineMs
  const { url, name, tag } = options
  const link = openLink({ url, name, tag, connectDeadlineMs })
  let closed = false

  async function wait(
    command: readonly Argument[],
    blockMs: number,
    signal: AbortSignal | undefined,
    over: number | undefined,
  ): Promise<unknown> {
    let sentAt = Number.POSITIVE_INFINITY
    try {
      await link.whenUsable(connectDeadlineMs)
      if (signal?.aborted || (over ?? link.connections) !== link.connections) return undefined
      return await link.send(command, {
        deadlineMs: blockMs + answerMarginMs,
        onSent: () => {
          sentAt = performance.now()
        },
      })
    } catch (error) {
      if (closed) return undefined
      if (!isHoldfastError(error, 'DEADLINE_EXCEEDED')) throw error
      if (performance.now() - sentAt >= blockMs + answerMarginMs - 1) return undefined
      // A lost read has no effect to be in doubt about.
      throw new HoldfastError('STORE_UNAVAILABLE', 'the connection was lost during a blocking read')
    }
  }

  async function blockingRead(
    streams: Readonly<Record<string, string>>,
    count: number,
    blockMs: number,
    { signal, over }: { readonly signal?: AbortSignal | undefined; readonly over?: number | undefined },
  ): Promise<FoundEntries> {
    const wholeMs = Math.max(1, Math.ceil(blockMs))
    const places = [...Object.keys(streams), ...Object.values(streams)]
    const command = ['XREAD', 'COUNT', count, 'BLOCK', wholeMs, 'STREAMS', ...places]
    if (signal?.aborted || closed) return []
    let abort: () => void = () => undefined
    const aborted = new Promise<undefined>((resolve) => {
      abort = () => {
        resolve(undefined)
        link.reset()
      }
    })
    signal?.addEventListener('abort', abort, { once: true })
    try {
      const reply = await Promise.race([wait(command, wholeMs, signal, over), aborted])
      const streams = (reply ?? []) as [stream: string, entries: unknown][]
      return streams.map(([stream, entries]) => [stream, streamEntriesOf(entries)])
    } finally {
      signal?.removeEventListener('abort', abort)
    }
  }

  return {
    get connections() {
      return link.connections
    },
    connected: () => link.whenUsable(connectDeadlineMs),
    read: async (streams, blockMs, given = {}) => {
      const found = await blockingRead(streams, 1, blockMs, given)
      return Object.fromEntries(found.map(([stream, entries]) => [stream, entries.at(-1)?.id ?? '']))
    },
    entries: async (stream, after, { count, blockMs, signal }) => {
      const [found] = await blockingRead({ [stream]: after }, count, blockMs, { signal })
      return found?.[1] ?? []
    },
    close: async () => {
      closed = true
      link.reset()
      await link.close()
    },
  }
}

type FoundEntries = (readonly [stream: string, entries: StreamEntry[]])[]

/** The entries of XRANGE's reply, or of one stream in XREAD's. */
export function streamEntriesOf(reply: unknown): StreamEntry[] {
  if (!Array.isArray(reply)) return []
  return reply.map((entry: unknown) => {
    const [id, words] = entry as [string, readonly string[] | null]
    const fields = Array.from({ length: (words?.length ?? 0) / 2 }, (_, at) => {
      return [String(words?.[2 * at]), String(words?.[2 * at + 1])] as const
    })
    return { id, fields }
  })
}
