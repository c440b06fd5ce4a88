import { connect, createServer, type Server, type Socket } from 'node:net'

/** What a command is known by: text or a pattern in its words joined by spaces, or a function of its words. */
export type CommandMatch = string | RegExp | ((words: readonly string[]) => boolean)

/** A TCP proxy in front of a Redis server that understands commands and replies. Speaks RESP2. */
export interface FaultyProxy {
  readonly port: number
  readonly url: string
  /** The next command that matches runs; its reply is dropped and the client's socket cut. Resolves when cut. */
  cutAfterReply(match: CommandMatch): Promise<void>
  /** The next command that matches never reaches the server; the client's socket is cut. Resolves when cut. */
  cutBeforeSend(match: CommandMatch): Promise<void>
  /** Holds everything back in both directions, sockets open, new connections too; off delivers what was held. */
  blackhole(on: boolean): void
  /** Cuts every connection and refuses new ones until `restore`. */
  refuse(): void
  /** Cuts every connection; new ones are served. */
  cutAll(): void
  /** Drops every rule and delivers what was held. */
  restore(): void
  /** Commands seen that match, whatever became of them. */
  count(match: CommandMatch): number
  close(): Promise<void>
}

interface Rule {
  readonly match: CommandMatch
  readonly done: () => void
}

interface Pair {
  readonly client: Socket
  readonly server: Socket
  cut(): void
  /** Delivers what was held back. */
  release(): void
}

/** Starts a proxy on loopback to a port on loopback. */
export async function startProxy(targetPort: number): Promise<FaultyProxy> {
  const pairs = new Set<Pair>()
  const seen: string[][] = []
  let afterReply: Rule[] = []
  let beforeSend: Rule[] = []
  let dark = false
  let refusing = false

  /** Takes the first rule that matches out of a list. */
  function fired(rules: Rule[], words: readonly string[]): Rule | undefined {
    const at = rules.findIndex((rule) => matches(rule.match, words))
    return at < 0 ? undefined : rules.splice(at, 1)[0]
  }

  function join(client: Socket): void {
    const server = connect(targetPort, '127.0.0.1')
    const awaited: (Rule | undefined)[] = []
    const requests = splitter(commandEnd)
    const replies = splitter(replyEnd)
    let held: (() => void)[] = []

    const pair: Pair = {
      client,
      server,
      cut: () => {
        pairs.delete(pair)
        client.destroy()
        server.destroy()
      },
      release: () => {
        const now = held
        held = []
        for (const act of now) act()
      },
    }
    const act = (step: () => void) => {
      if (dark || held.length > 0) held.push(step)
      else step()
    }

    function onRequest(bytes: Buffer): void {
      for (const command of requests(bytes)) {
        const words = wordsOf(command)
        seen.push(words)
        const refused = fired(beforeSend, words)
        if (refused !== undefined) {
          pair.cut()
          refused.done()
          return
        }
        awaited.push(fired(afterReply, words))
        server.write(command)
      }
    }

    function onReply(bytes: Buffer): void {
      for (const reply of replies(bytes)) {
        const rule = awaited.shift()
        if (rule !== undefined) {
          pair.cut()
          rule.done()
          return
        }
        client.write(reply)
      }
    }

    pairs.add(pair)
    client.on('data', (bytes) => act(() => onRequest(bytes)))
    server.on('data', (bytes) => act(() => onReply(bytes)))
    // An end is held back as well: a partition hides it, and what was sent before it arrives first.
    client.on('end', () => act(() => server.end()))
    server.on('end', () => act(() => client.end()))
    client.on('error', () => act(() => server.destroy()))
    server.on('error', () => act(() => client.destroy()))
    server.on('close', () => pairs.delete(pair))
  }

  const listener = createServer({ allowHalfOpen: true }, (client) => {
    if (refusing) client.destroy()
    else join(client)
  })
  const port = await listen(listener)

  function blackhole(on: boolean): void {
    dark = on
    if (!on) for (const pair of pairs) pair.release()
  }
  function cutAll(): void {
    for (const pair of [...pairs]) pair.cut()
  }

  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    cutAfterReply: (match) => new Promise((done) => void afterReply.push({ match, done })),
    cutBeforeSend: (match) => new Promise((done) => void beforeSend.push({ match, done })),
    blackhole,
    refuse: () => {
      refusing = true
      cutAll()
    },
    cutAll,
    restore: () => {
      afterReply = []
      beforeSend = []
      refusing = false
      blackhole(false)
    },
    count: (match) => seen.filter((words) => matches(match, words)).length,
    close: () =>
      new Promise((resolve) => {
        listener.close(() => resolve())
        cutAll()
      }),
  }
}

function listen(listener: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    listener.once('error', reject)
    listener.listen(0, '127.0.0.1', () => {
      const address = listener.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
}

function matches(match: CommandMatch, words: readonly string[]): boolean {
  if (typeof match === 'function') return match(words)
  const line = words.join(' ')
  return typeof match === 'string' ? line.includes(match) : match.test(line)
}

/** Cuts a byte stream into whole messages; `endOf` answers where the first one ends, or -1. */
function splitter(endOf: (bytes: Buffer, from: number) => number): (bytes: Buffer) => Buffer[] {
  let rest: Buffer = Buffer.alloc(0)
  return (bytes) => {
    rest = Buffer.concat([rest, bytes])
    const whole: Buffer[] = []
    let from = 0
    for (let end = endOf(rest, from); end >= 0; end = endOf(rest, from)) {
      whole.push(rest.subarray(from, end))
      from = end
    }
    rest = rest.subarray(from)
    return whole
  }
}

/** A command is an array of bulk strings, which is a reply as well. */
const commandEnd = replyEnd

/** Where the RESP2 value that starts at `from` ends; -1 when it is not whole yet. */
function replyEnd(bytes: Buffer, from: number): number {
  const lineEnd = bytes.indexOf('\r\n', from)
  if (lineEnd < 0) return -1
  const kind = String.fromCharCode(bytes[from] ?? 0)
  const next = lineEnd + 2
  const size = Number(bytes.toString('latin1', from + 1, lineEnd))
  if (kind === '$') return size < 0 ? next : endWithin(bytes, next + size + 2)
  if (kind !== '*') return next
  let end = next
  for (let item = 0; item < size && end >= 0; item++) end = replyEnd(bytes, end)
  return end
}

function endWithin(bytes: Buffer, end: number): number {
  return end <= bytes.length ? end : -1
}

function wordsOf(command: Buffer): string[] {
  const words: string[] = []
  let at = command.indexOf('\r\n') + 2
  while (at < command.length) {
    const lineEnd = command.indexOf('\r\n', at)
    const size = Number(command.toString('latin1', at + 1, lineEnd))
    words.push(command.toString('utf8', lineEnd + 2, lineEnd + 2 + size))
    at = lineEnd + 2 + size + 2
  }
  return words
}
