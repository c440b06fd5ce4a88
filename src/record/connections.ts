import { HoldfastError, isHoldfastError } from '../contract/errors.js'
import { type LoadedLibrary, loadLibrary } from './library.js'
import { type Argument, type Link, openLink, redactUrl } from './link.js'

export { type Argument, redactUrl } from './link.js'

/** How one call is made. */
export interface CallOptions {
  /** Milliseconds from the call to the answer; the store's own deadline when absent. */
  readonly deadlineMs?: number | undefined
  /** Answer with Buffers instead of strings. */
  readonly buffers?: boolean | undefined
  /** Called once, synchronously, right after the command has been handed to the socket. */
  readonly onSent?: (() => void) | undefined
}

/**
 * The connection for everything that changes the record. Every command is written at most once.
 *
 * A call rejects with STORE_UNAVAILABLE when nothing was written or the server refused to work, with
 * DEADLINE_EXCEEDED when the command was written and no answer came (the socket closed, or the deadline
 * passed: then the socket is dropped, with it whatever else was under way on it), with the catalogue's error
 * when the server answered one of its codes, and with a plain Error for any other error reply.
 */
export interface Store {
  /** Sends one command. Numbers are sent as decimal text. */
  call(args: readonly Argument[], options?: CallOptions): Promise<unknown>
  /**
   * Calls a function of the library with `tag` (such as `{hf}`) as its one key. When the server does not
   * have the function, the library is loaded once and the call made again (nothing had run); LIBRARY_NEWER
   * when the server keeps a newer library that lacks it.
   */
  fcall(
    name: string,
    tag: string,
    args: readonly Argument[],
    options?: CallOptions & { readonly readOnly?: boolean | undefined },
  ): Promise<unknown>
  /** Sends reads in one write; rejects with the first failure. */
  pipeline(commands: readonly (readonly Argument[])[], options?: CallOptions): Promise<unknown[]>
  /** Lets calls under way finish within their deadlines, then closes. */
  close(): Promise<void>
  /** Where it is connected to, without the password. */
  readonly url: string
  /** The last known state: connected, and the last call was answered by a server willing to work. */
  readonly healthy: boolean
}

export interface StoreOptions {
  /** `redis://` or `rediss://`, with user, password and database when needed. */
  readonly url: string
  /** Shown in the server's CLIENT LIST. */
  readonly name: string
  /** Milliseconds; 5,000 when absent. */
  readonly deadlineMs?: number | undefined
  /** Milliseconds for the first connection, and for every later handshake; 10,000 when absent. */
  readonly connectDeadlineMs?: number | undefined
  /** Where the Lua sources are; the package's own when absent. */
  readonly luaDir?: string | undefined
}

const defaultDeadlineMs = 5_000
const defaultConnectDeadlineMs = 10_000

/** Connects. Errors: INVALID_ARGUMENT (the URL), STORE_UNAVAILABLE (no usable server within the deadline). */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { url, name, deadlineMs = defaultDeadlineMs, connectDeadlineMs = defaultConnectDeadlineMs } = options
  const link = openLink({ url, name, connectDeadlineMs })
  await connected(link, connectDeadlineMs)

  let loading: Promise<LoadedLibrary> | undefined
  function load(): Promise<LoadedLibrary> {
    loading ??= loadLibrary(store, { luaDir: options.luaDir }).finally(() => {
      loading = undefined
    })
    return loading
  }

  const store: Store = {
    url: redactUrl(url),
    get healthy() {
      return link.healthy
    },
    call: (args, given) => link.send(args, { deadlineMs, ...defined(given) }),
    fcall: (functionName, tag, args, given) => {
      const command = [given?.readOnly ? 'FCALL_RO' : 'FCALL', functionName, 1, tag, ...args]
      const sending = { deadlineMs, ...defined(given) }
      return link.send(command, sending).catch(async (error: unknown) => {
        if (!isFunctionMissing(error)) throw error
        requireFunction(functionName, await load())
        return link.send(command, { ...sending, onSent: undefined })
      })
    },
    pipeline: (commands, given) => link.sendAll(commands, { deadlineMs, ...defined(given) }),
    close: () => link.close(),
  }
  return store
}

async function connected(link: Link, deadlineMs: number): Promise<void> {
  try {
    await link.whenUsable(deadlineMs)
  } catch (error) {
    await link.close()
    throw error
  }
}

function defined(options: CallOptions | undefined): CallOptions & { deadlineMs?: number } {
  const { deadlineMs, buffers, onSent } = options ?? {}
  return deadlineMs === undefined ? { buffers, onSent } : { deadlineMs, buffers, onSent }
}

function isFunctionMissing(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('ERR Function not found')
}

function requireFunction(name: string, library: LoadedLibrary): void {
  if (library.kind !== 'newer') return
  throw new HoldfastError(
    'LIBRARY_NEWER',
    `the server's library (version ${library.version}) has no function ${name}`,
  )
}

/** A connection of its own for blocking reads: a blocked socket stalls everything else on it. */
export interface BlockingReader {
  /**
   * Waits up to `blockMs` (at least 1) for an entry after the given id in any of the streams; answers, for
   * each stream that had one, the id of the first such entry. Only the wake-up counts: what is there is read
   * by other means. Empty when the time passed, when aborted (at once) or closed, and when the server was silent for
   * 2 s longer than it may be (the socket is dropped). Rejects with STORE_UNAVAILABLE when there is no
   * connection. One read at a time.
   */
  read(
    streams: Readonly<Record<string, string>>,
    blockMs: number,
    signal?: AbortSignal,
  ): Promise<Record<string, string>>
  close(): Promise<void>
}

const answerMarginMs = 2_000

/** Opens a blocking reader; it connects in the background. Errors: INVALID_ARGUMENT (the URL). */
export function openBlockingReader(options: {
  readonly url: string
  readonly name: string
  /** Milliseconds a read waits for a connection; 5,000 when absent. */
  readonly connectDeadlineMs?: number | undefined
}): BlockingReader {
  const connectDeadlineMs = options.connectDeadlineMs ?? defaultDeadlineMs
  const link = openLink({ url: options.url, name: options.name, connectDeadlineMs })
  let closed = false

  async function wait(
    command: readonly Argument[],
    blockMs: number,
    signal: AbortSignal | undefined,
  ): Promise<Record<string, string>> {
    let sentAt = Number.POSITIVE_INFINITY
    try {
      await link.whenUsable(connectDeadlineMs)
      if (signal?.aborted) return {}
      const reply = await link.send(command, {
        deadlineMs: blockMs + answerMarginMs,
        onSent: () => {
          sentAt = performance.now()
        },
      })
      return idsOf(reply)
    } catch (error) {
      if (closed) return {}
      if (!isHoldfastError(error, 'DEADLINE_EXCEEDED')) throw error
      if (performance.now() - sentAt >= blockMs + answerMarginMs - 1) return {}
      // A lost read has no effect to be in doubt about.
      throw new HoldfastError('STORE_UNAVAILABLE', 'the connection was lost during a blocking read')
    }
  }

  async function read(
    streams: Readonly<Record<string, string>>,
    blockMs: number,
    signal?: AbortSignal,
  ): Promise<Record<string, string>> {
    const wholeMs = Math.max(1, Math.ceil(blockMs))
    const command = [
      'XREAD',
      'COUNT',
      1,
      'BLOCK',
      wholeMs,
      'STREAMS',
      ...Object.keys(streams),
      ...Object.values(streams),
    ]
    if (signal?.aborted || closed) return {}
    let abort: () => void = () => undefined
    const aborted = new Promise<Record<string, string>>((resolve) => {
      abort = () => {
        resolve({})
        link.reset()
      }
    })
    signal?.addEventListener('abort', abort, { once: true })
    try {
      return await Promise.race([wait(command, wholeMs, signal), aborted])
    } finally {
      signal?.removeEventListener('abort', abort)
    }
  }

  return {
    read,
    close: async () => {
      closed = true
      link.reset()
      await link.close()
    },
  }
}

function idsOf(reply: unknown): Record<string, string> {
  const streams = (reply ?? []) as [stream: string, entries: [id: string, fields: string[]][]][]
  const seen = streams.map(([stream, entries]) => [stream, entries.at(-1)?.[0] ?? ''] as const)
  return Object.fromEntries(seen)
}
