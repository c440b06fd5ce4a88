import calculateSlot from 'cluster-key-slot'
import { Command, Redis, ReplyError } from 'ioredis'
import { HoldfastError, isHoldfastError } from '../contract/errors.js'
import type { Sending } from '../contract/points.js'
import type { RedisAddress } from '../contract/redis-address.js'
import { denialNext, failureOfReply, isPermanent, movedTo, reasonOf } from './failures.js'
import { type Hint, reachOf } from './reach.js'

/** An argument of a Redis command. */
export type Argument = string | Buffer | number

/** How one command is sent. */
export interface SendOptions extends Sending {
  /** Milliseconds from the call to the answer, waiting for the connection included. */
  readonly deadlineMs: number
  /** Answer with Buffers instead of strings. */
  readonly buffers?: boolean | undefined
}

/**
 * One connection that never sends a command twice. It has no offline queue and resends nothing, but what a node of a
 * Cluster did not do because another serves the slot (MOVED); it reconnects for ever (50 ms to 2 s apart) until it is
 * closed, to where the primary is then.
 */
export interface Link {
  readonly healthy: boolean
  /** How many connections there have been: what one of them was told need not hold on the next. */
  readonly connections: number
  /** Waits for the connection, sends once, waits for the answer: all within one deadline. */
  send(args: readonly Argument[], options: SendOptions): Promise<unknown>
  /** Sends several commands in one write; rejects with the first failure. For reads. */
  sendAll(commands: readonly (readonly Argument[])[], options: SendOptions): Promise<unknown[]>
  /** Resolves when commands can be written; rejects with STORE_UNAVAILABLE at the deadline. */
  whenUsable(deadlineMs: number): Promise<void>
  /** Drops the socket (answers under way are lost) and connects anew. */
  reset(): void
  /** Lets answers under way arrive within their deadlines, then closes. */
  close(): Promise<void>
}

export interface LinkOptions {
  readonly url: RedisAddress
  readonly name: string
  /** The tag of the hub, such as `{hf}`: in a Cluster, the primary that serves it is connected to. */
  readonly tag?: string | undefined
  /** Milliseconds from an accepted TCP connection to a usable one (authentication, loading). */
  readonly connectDeadlineMs: number
}

const firstRetryMs = 50
const lastRetryMs = 2_000
/** Nodes of a Cluster may disagree for a moment on who serves a slot. */
const movesAtMost = 5

/** The name of a command for messages: its first word, and for FCALL the function. Never an argument. */
function nameOf(args: readonly Argument[]): string {
  const name = String(args[0]).toUpperCase()
  return name.startsWith('FCALL') ? `${name} ${String(args[1])}` : name
}

function unanswered(args: readonly Argument[], why: string): HoldfastError {
  return new HoldfastError(
    'DEADLINE_EXCEEDED',
    `${nameOf(args)}: ${why}; it may or may not have taken effect`,
  )
}

/**
 * ioredis by default sends a command again after a lost reply, and keeps what was called while offline.
 * `maxRetriesPerRequest: 0` with `autoResendUnfulfilledCommands: false` rejects what was under way when the
 * socket closed; without the offline queue nothing is written later than its caller knows.
 */
function connect(options: LinkOptions, hint: Hint): Redis {
  const slot = options.tag === undefined ? undefined : calculateSlot(options.tag)
  return new Redis({
    ...reachOf(options.url).options(slot, hint),
    connectionName: options.name,
    protocol: 2,
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    disableClientInfo: true,
    connectTimeout: options.connectDeadlineMs,
    // A socket is destroyed when its link closes; the timer of one that is gone already would keep the process.
    disconnectTimeout: 0,
    maxLoadingRetryTime: 200,
    retryStrategy: (times) => Math.min(lastRetryMs, firstRetryMs * 2 ** Math.min(times - 1, 10)),
  })
}

/** Not done, because another node of the Cluster serves the slot. */
class Moved extends Error {
  readonly failure: Error

  constructor(failure: Error) {
    super(failure.message)
    this.failure = failure
  }
}

/** Opens a link; it connects in the background. Throws INVALID_ARGUMENT for a bad URL. */
export function openLink(options: LinkOptions): Link {
  const { kind, shown: address } = reachOf(options.url)
  const hint: Hint = {}
  const client = connect(options, hint)
  const waiting = new Set<(failure?: HoldfastError) => void>()
  let underWay = 0
  let onIdle: () => void = () => undefined
  let closed = false
  let healthy = false
  let connections = 0
  /** The slot is served elsewhere: nothing more is written here, and what is under way is answered first. */
  let isLeaving = false
  let lastFailure = ''
  let handshakeTimer: NodeJS.Timeout | undefined

  const isUsable = () => !closed && !isLeaving && client.status === 'ready' && client.stream.writable
  const unavailable = (why: string) => new HoldfastError('STORE_UNAVAILABLE', `${address}: ${why}`)
  const wake = (failure?: HoldfastError) => {
    for (const settle of [...waiting]) settle(failure)
  }

  function onError(error: Error) {
    const why = reasonOf(error)
    if (why !== undefined) lastFailure = why
    // A refused SELECT would leave the connection, usable, on database 0.
    if (error instanceof ReplyError) client.stream.destroy()
    if (isPermanent(error.message)) {
      wake(new HoldfastError('STORE_UNAVAILABLE', `${address}: ${error.message}`, { next: denialNext }))
    }
  }

  // A server (or what stands between) that accepts the connection and then says nothing.
  function onConnect() {
    clearTimeout(handshakeTimer)
    handshakeTimer = setTimeout(() => {
      lastFailure = `not ready ${options.connectDeadlineMs} ms after the connection was accepted`
      client.stream.destroy()
    }, options.connectDeadlineMs)
  }

  function onReady() {
    clearTimeout(handshakeTimer)
    healthy = true
    connections += 1
    lastFailure = ''
    wake()
  }

  function onClose() {
    clearTimeout(handshakeTimer)
    healthy = false
    isLeaving = false
  }

  // ioredis gives up for good when creating the socket throws; a link does not.
  function onEnd() {
    if (closed) return
    setTimeout(() => {
      if (!closed && client.status === 'end') client.connect().catch(() => undefined)
    }, lastRetryMs)
  }

  client.on('error', onError)
  client.on('connect', onConnect)
  client.on('ready', onReady)
  client.on('close', onClose)
  client.on('end', onEnd)
  client.connect().catch(() => undefined)

  function nextReady(waitMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (failure?: HoldfastError) => {
        clearTimeout(timer)
        waiting.delete(settle)
        if (failure === undefined) resolve()
        else reject(failure)
      }
      const timer = setTimeout(
        () => settle(unavailable(`no connection within the deadline (${lastFailure || 'no answer'})`)),
        waitMs,
      )
      waiting.add(settle)
    })
  }

  async function whenUsable(deadlineMs: number): Promise<void> {
    const deadlineAt = performance.now() + deadlineMs
    while (!isUsable()) {
      if (closed) throw unavailable('this connection was closed')
      await nextReady(Math.max(0, deadlineAt - performance.now()))
    }
  }

  function failureOf(args: readonly Argument[], error: Error): Error {
    if (!(error instanceof ReplyError))
      return unanswered(args, `the connection was lost (${lastFailure || 'closed'})`)
    const failure = failureOfReply(error.message)
    healthy = !isHoldfastError(failure, 'STORE_UNAVAILABLE')
    // A demoted primary keeps its connections; the address may lead elsewhere by now.
    if (/^READONLY|^ERR WAIT cannot be used with replica/.test(error.message)) client.stream.destroy()
    return movedTo(error.message) === undefined ? failure : leaveFor(error.message, failure)
  }

  function leaveFor(moved: string, failure: Error): Moved {
    // Without a host it is that of who said so: it is looked up.
    const at = movedTo(moved)
    hint.at = at?.startsWith(':') ? undefined : at
    if (client.status === 'ready') isLeaving = true
    if (underWay === 0) client.stream.destroy()
    return new Moved(failure)
  }

  /** The command is on the socket when this returns, unless the connection was lost a moment ago. */
  function write(args: readonly Argument[], deadlineMs: number, options: SendOptions): Promise<unknown> {
    if (!isUsable()) return Promise.reject(unavailable(`not connected (${lastFailure || 'lost just now'})`))
    const stream = client.stream
    // Upper case keeps ioredis from reshaping replies (HGETALL into an object and the like).
    const name = String(args[0]).toUpperCase()
    const command = new Command(name, args.slice(1), { replyEncoding: options.buffers ? null : 'utf8' })
    underWay += 1
    return new Promise<unknown>((resolve, reject) => {
      // After a stalled event loop the answer may be waiting in the socket: read once more, then judge.
      const timer = setTimeout(() => setImmediate(expire), Math.max(0, deadlineMs))
      function expire() {
        if (command.isSettled) return
        healthy = false
        reject(unanswered(args, `no answer within ${options.deadlineMs} ms`))
        // The socket may be half open, and a late answer must find nobody.
        stream.destroy()
      }
      command.promise.then(
        (reply: unknown) => {
          clearTimeout(timer)
          settled()
          healthy = true
          resolve(reply)
        },
        (error: Error) => {
          clearTimeout(timer)
          settled()
          reject(failureOf(args, error))
        },
      )
      client.sendCommand(command)
      options.onSent?.()
    })
  }

  function settled() {
    underWay -= 1
    if (underWay > 0) return
    onIdle()
    if (isLeaving) client.stream.destroy()
  }

  /** Resolves when nothing is under way; the deadlines of what is bound it. */
  function idle(): Promise<void> {
    return new Promise((resolve) => {
      if (underWay === 0) resolve()
      else onIdle = resolve
    })
  }

  /** Where another node serves the slot nothing was done: the same is sent there, within the deadline. */
  async function following<Answer>(
    options: SendOptions,
    send: (options: SendOptions) => Promise<Answer>,
  ): Promise<Answer> {
    const startedAt = performance.now()
    const leftMs = () => options.deadlineMs - (performance.now() - startedAt)
    for (let moves = 0; ; moves += 1) {
      try {
        return await send({ ...options, deadlineMs: leftMs() })
      } catch (error) {
        if (!(error instanceof Moved)) throw error
        if (moves === movesAtMost || leftMs() <= 0) throw error.failure
        await whenUsable(leftMs())
      }
    }
  }

  const sendOnce = (args: readonly Argument[], options: SendOptions) =>
    isUsable() ? write(args, options.deadlineMs, options) : sendLater(args, options)

  async function sendLater(args: readonly Argument[], options: SendOptions): Promise<unknown> {
    const startedAt = performance.now()
    await whenUsable(options.deadlineMs)
    return write(args, options.deadlineMs - (performance.now() - startedAt), options)
  }

  async function sendAll(
    commands: readonly (readonly Argument[])[],
    options: SendOptions,
  ): Promise<unknown[]> {
    const startedAt = performance.now()
    if (!isUsable()) await whenUsable(options.deadlineMs)
    const left = options.deadlineMs - (performance.now() - startedAt)
    const stream = client.stream
    stream.cork()
    const answers = commands.map((args) => write(args, left, { ...options, onSent: undefined }))
    stream.uncork()
    options.onSent?.()
    return Promise.all(answers)
  }

  async function close(): Promise<void> {
    if (closed) return
    closed = true
    wake(unavailable('this connection was closed'))
    await idle()
    clearTimeout(handshakeTimer)
    client.disconnect()
    client.stream?.destroy()
  }

  return {
    get healthy() {
      return healthy && isUsable()
    },
    get connections() {
      return connections
    },
    send: (args, options) =>
      kind === 'cluster' ? following(options, (given) => sendOnce(args, given)) : sendOnce(args, options),
    sendAll: (commands, options) =>
      kind === 'cluster'
        ? following(options, (given) => sendAll(commands, given))
        : sendAll(commands, options),
    whenUsable,
    reset: () => {
      client.stream?.destroy()
    },
    close,
  }
}
