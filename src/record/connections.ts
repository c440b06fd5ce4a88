import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { onAbort } from '../contract/abort.js'
import { HoldfastError, isHoldfastError } from '../contract/errors.js'
import type { RedisAddress } from '../contract/redis-address.js'
import { redactUrl } from './address.js'
import { type LoadedLibrary, loadLibrary } from './library.js'
import { type Argument, type Link, openLink, type SendOptions } from './link.js'

export type { Argument } from './link.js'

/** How one call is made. */
export interface CallOptions extends Omit<SendOptions, 'deadlineMs'> {
  /** Milliseconds from the call to the answer; the store's own deadline when absent. */
  readonly deadlineMs?: number | undefined
}

/** How a function is called. */
export interface FunctionOptions extends CallOptions {
  /** By FCALL_RO: replicas and users that may only read may call it. */
  readonly readOnly?: boolean | undefined
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
   * have the function, the library is loaded once and the call made again (nothing had run); STORE_UNAVAILABLE when it is
   * gone again by then, LIBRARY_NEWER
   * when the server keeps a newer library that lacks it.
   */
  fcall(name: string, tag: string, args: readonly Argument[], options?: FunctionOptions): Promise<unknown>
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
  readonly url: RedisAddress
  /** The tag of the hub, such as `{hf}`: a Cluster is connected to where its slot is served, any of its primaries when absent. */
  readonly tag?: string | undefined
  /** Shown in the server's CLIENT LIST. */
  readonly name: string
  /** Milliseconds; 5,000 when absent. */
  readonly deadlineMs?: number | undefined
  /** Milliseconds for the first connection, and for every later handshake; 10,000 when absent. */
  readonly connectDeadlineMs?: number | undefined
  /** Gives up connecting, as if the deadline had passed; means nothing once connected. */
  readonly signal?: AbortSignal | undefined
  /** Where the Lua sources are; the package's own when absent. */
  readonly luaDir?: string | undefined
  /** Told of each function call once it is over: how long it took, and the error's code where it failed. */
  readonly onCall?: OnCall | undefined
}

/** Told of a function call once it is over: its name, milliseconds, and the error's code where it failed. */
export type OnCall = (functionName: string, tookMs: number, failure: string | undefined) => void

const defaultDeadlineMs = 5_000
/** WAIT answers at its time limit; so long may the answer take. */
const waitMarginMs = 500
const defaultConnectDeadlineMs = 10_000

/** Connects. Errors: INVALID_ARGUMENT (the URL), STORE_UNAVAILABLE (no usable server within the deadline). */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { url, name, deadlineMs = defaultDeadlineMs, connectDeadlineMs = defaultConnectDeadlineMs } = options
  const link = openLink({ url, name, tag: options.tag, connectDeadlineMs })
  await connected(link, connectDeadlineMs, options.signal)

  let loading: Promise<LoadedLibrary> | undefined
  function load(): Promise<LoadedLibrary> {
    loading ??= loadLibrary(store, { luaDir: options.luaDir }).finally(() => {
      loading = undefined
    })
    return loading
  }

  const sendingOf = (given: CallOptions = {}): SendOptions => ({
    ...given,
    deadlineMs: given.deadlineMs ?? deadlineMs,
  })

  const store: Store = {
    url: redactUrl(url),
    get healthy() {
      return link.healthy
    },
    call: (args, given) => link.send(args, sendingOf(given)),
    fcall: (functionName, tag, args, given) => {
      const command = [given?.readOnly ? 'FCALL_RO' : 'FCALL', functionName, 1, tag, ...args]
      const sending = sendingOf(given)
      const deadlineAt = performance.now() + sending.deadlineMs
      const called = link.send(command, sending).catch(async (error: unknown) => {
        if (!isFunctionMissing(error)) throw error
        requireFunction(functionName, await inTime(load(), deadlineAt))
        const leftMs = Math.max(1, deadlineAt - performance.now())
        return link.send(command, { ...sending, deadlineMs: leftMs, onSent: undefined }).catch((again) => {
          throw isFunctionMissing(again) ? lostAgain(functionName, again) : again
        })
      })
      const answer = called.then((reply) => replicated(link, reply, deadlineAt))
      return options.onCall === undefined ? answer : observed(functionName, answer, options.onCall)
    },
    pipeline: (commands, given) => link.sendAll(commands, sendingOf(given)),
    close: () => link.close(),
  }
  return store
}

async function observed(functionName: string, answer: Promise<unknown>, onCall: OnCall): Promise<unknown> {
  const startedAt = performance.now()
  const span = trace.getTracer('holdfast').startSpan(functionName, { kind: SpanKind.CLIENT })
  let failure: string | undefined
  try {
    return await answer
  } catch (error) {
    failure = isHoldfastError(error) ? error.code : 'UNEXPECTED'
    throw error
  } finally {
    if (failure !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: failure })
    span.end()
    onCall(functionName, performance.now() - startedAt, failure)
  }
}

async function connected(link: Link, deadlineMs: number, signal: AbortSignal | undefined): Promise<void> {
  const ignore = onAbort(signal, () => void link.close())
  try {
    await link.whenUsable(deadlineMs)
  } catch (error) {
    await link.close()
    throw error
  } finally {
    ignore()
  }
}

/**
 * Where a reply ends with `replicas n replicas_ms t`, it is an answer only once so many have what the server had when it
 * gave it: what was written by an earlier call that this one repeats as well, for WAIT covers all that came before.
 * @throws NOT_REPLICATED when fewer had it within the time
 */
async function replicated(link: Link, reply: unknown, deadlineAt: number): Promise<unknown> {
  if (!Array.isArray(reply) || String(reply.at(-4)) !== 'replicas') return reply
  const [wanted, withinMs] = [Number(reply.at(-3)), Number(reply.at(-1))]
  const leftMs = Math.floor(deadlineAt - performance.now()) - waitMarginMs
  const waitMs = Math.max(1, Math.min(withinMs, leftMs))
  let have: number
  try {
    have = Number(await link.send(['WAIT', wanted, waitMs], { deadlineMs: waitMs + waitMarginMs }))
  } catch (error) {
    // A primary that was replaced meanwhile, among others: what the call did may be lost with it.
    throw new HoldfastError('NOT_REPLICATED', `whether replicas have it is not known: ${String(error)}`, {
      cause: error,
    })
  }
  if (have >= wanted) return reply
  throw new HoldfastError('NOT_REPLICATED', `${have} of ${wanted} replicas had it within ${waitMs} ms`)
}

function isFunctionMissing(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('ERR Function not found')
}

/** Nothing ran: the same call may be made again. */
function lostAgain(name: string, cause: unknown): HoldfastError {
  const detail = `the library was loaded, and ${name} is gone again: ${String(cause)}`
  return new HoldfastError('STORE_UNAVAILABLE', detail, { cause })
}

/** Others may wait for the load too: it goes on. @throws STORE_UNAVAILABLE when the time is up: nothing ran */
async function inTime(loading: Promise<LoadedLibrary>, deadlineAt: number): Promise<LoadedLibrary> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const refuse = () => reject(new HoldfastError('STORE_UNAVAILABLE', 'the library was not loaded in time'))
    timer = setTimeout(refuse, Math.max(0, deadlineAt - performance.now()))
  })
  try {
    return await Promise.race([loading, late])
  } finally {
    clearTimeout(timer)
  }
}

function requireFunction(name: string, library: LoadedLibrary): void {
  if (library.kind !== 'newer') return
  throw new HoldfastError(
    'LIBRARY_NEWER',
    `the server's library (version ${library.version}) has no function ${name}`,
  )
}
