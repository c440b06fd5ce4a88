import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

/** An HTTP proxy on loopback that loses answers. Requests are told by `<method> <path>`. */
export interface CuttingProxy {
  readonly url: string
  /** The next request that matches reaches the hub; its whole answer is dropped and the socket cut. Resolves then. */
  cutAfterReply(match: RegExp): Promise<void>
  /** The next request that matches never reaches the hub; the socket is cut. Resolves then. */
  cutBeforeSend(match: RegExp): Promise<void>
  /** As if the hub had died: cuts every connection, and refuses new ones until `restore`. */
  refuse(): void
  restore(): void
  close(): Promise<void>
}

interface Rule {
  readonly match: RegExp
  readonly done: () => void
}

/** Starts a proxy to this hub. */
export async function startCuttingProxy(target: string): Promise<CuttingProxy> {
  const sockets = new Set<Socket>()
  const afterReply: Rule[] = []
  const beforeSend: Rule[] = []
  let refusing = false

  /** Takes the first rule that matches out of a list. */
  function fired(rules: Rule[], { method, url }: IncomingMessage): Rule | undefined {
    const at = rules.findIndex(({ match }) => match.test(`${method} ${url}`))
    return at < 0 ? undefined : rules.splice(at, 1)[0]
  }

  function cut(incoming: IncomingMessage, rule: Rule): void {
    incoming.socket.destroy()
    rule.done()
  }

  async function pass(incoming: IncomingMessage, answer: ServerResponse): Promise<void> {
    const body = Buffer.concat(await incoming.toArray())
    const unsent = fired(beforeSend, incoming)
    if (unsent !== undefined) return cut(incoming, unsent)
    const { method, headers, url = '/' } = incoming
    const outgoing = request(new URL(url, target), { method, headers, agent: false })
    outgoing.on('error', () => incoming.socket.destroy())
    answer.once('close', () => outgoing.destroy())
    outgoing.on('response', async (reply) => {
      const text = Buffer.concat(await reply.toArray())
      const lost = fired(afterReply, incoming)
      if (lost !== undefined) return cut(incoming, lost)
      answer.writeHead(reply.statusCode ?? 500, reply.headers).end(text)
    })
    // As it was written: a URL object would fold paths such as `/nodes/..`.
    outgoing.path = url
    outgoing.end(body)
  }

  const server = createServer((incoming, answer) => {
    pass(incoming, answer).catch(() => incoming.socket.destroy())
  })
  server.on('connection', (socket) => {
    if (refusing) socket.destroy()
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  function cutAll(): void {
    for (const socket of sockets) socket.destroy()
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cutAfterReply: (match) => new Promise((done) => void afterReply.push({ match, done })),
    cutBeforeSend: (match) => new Promise((done) => void beforeSend.push({ match, done })),
    refuse: () => {
      refusing = true
      cutAll()
    },
    restore: () => {
      refusing = false
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        cutAll()
      }),
  }
}
