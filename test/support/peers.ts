import { createServer as createHttp, type Server as HttpServer, type RequestListener } from 'node:http'
import { createServer as createHttps } from 'node:https'
import { createServer as createNet, type Server, type Socket } from 'node:net'
import type { TlsOptions } from 'node:tls'
import { certificate } from './certificate.js'
import { until } from './until.js'

/** A server on loopback that an HTTP client talks to. */
export interface Peer {
  readonly url: string
  readonly port: number
  /** Connections it ever had. */
  connections(): number
  /** The most it had at a time. */
  mostOpen(): number
  /** Resolves when the other side has closed every connection. */
  allClosed(): Promise<void>
  stop(): Promise<void>
}

/** Serves HTTP; idle connections are kept for longer than any test. */
export function servePlain(listener: RequestListener): Promise<Peer> {
  return start(keeping(createHttp(listener)), 'http')
}

/** Serves HTTPS under the certificate of this folder. */
export function serveTls(listener: RequestListener, options: TlsOptions = {}): Promise<Peer> {
  return start(keeping(createHttps({ ...certificate, ...options }, listener)), 'https')
}

/** Serves bytes: `speak` gets every connection, which is read to its end in any case. */
export function serveBytes(
  speak: (socket: Socket) => void,
  scheme: 'http' | 'https' = 'http',
): Promise<Peer> {
  const server = createNet((socket) => {
    socket.resume()
    speak(socket)
  })
  return start(server, scheme)
}

/** The URL of a port of 127.0.0.1 on which nobody listens. */
export async function deadUrl(): Promise<string> {
  const peer = await serveBytes(() => {})
  await peer.stop()
  return peer.url
}

function keeping<T extends HttpServer>(server: T): T {
  server.keepAliveTimeout = 60_000
  return server
}

async function start(server: Server, scheme: string): Promise<Peer> {
  const sockets = new Set<Socket>()
  let connections = 0
  let mostOpen = 0
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    connections += 1
    mostOpen = Math.max(mostOpen, sockets.size)
    socket.on('error', () => {}) // the client may reset it
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `${scheme}://127.0.0.1:${port}`,
    port,
    connections: () => connections,
    mostOpen: () => mostOpen,
    async allClosed() {
      await until(() => sockets.size === 0, { what: `the end of every connection to port ${port}` })
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}
