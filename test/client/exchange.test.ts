import { randomBytes } from 'node:crypto'
import { EventEmitter, getEventListeners, once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { afterEach, describe, expect, it } from 'vitest'
import {
  ExchangeFailure,
  type ExchangeRequest,
  type Exchanger,
  type ExchangerOptions,
  openExchanger,
  type StreamRequest,
} from '../../src/client/exchange.js'
import { isHoldfastError } from '../../src/contract/errors.js'
import { certificate } from '../support/certificate.js'
import { deadUrl, type Peer, serveBytes, servePlain, serveTls } from '../support/peers.js'

const exchangers: Exchanger[] = []
const peers: Peer[] = []

afterEach(async () => {
  for (const exchanger of exchangers.splice(0)) exchanger.close()
  const started = peers.splice(0)
  try {
    await Promise.all(started.map((peer) => peer.allClosed())) // whatever the test did, no socket is left
  } finally {
    await Promise.all(started.map((peer) => peer.stop()))
  }
})

async function started(starting: Promise<Peer>): Promise<Peer> {
  const peer = await starting
  peers.push(peer)
  return peer
}

function opened(baseUrl: string, options: Partial<ExchangerOptions> = {}): Exchanger {
  const exchanger = openExchanger({ baseUrl, ...options })
  exchangers.push(exchanger)
  return exchanger
}

const ca = { tls: { ca: certificate.cert } }

function post(parts: Partial<ExchangeRequest> = {}): ExchangeRequest {
  return { method: 'POST', path: '/', body: 'hello', deadlineMs: 30_000, ...parts }
}

function get(parts: Partial<StreamRequest> = {}): StreamRequest {
  return { method: 'GET', path: '/', idleMs: 30_000, ...parts }
}

async function failureOf(exchange: Promise<unknown>): Promise<ExchangeFailure> {
  try {
    await exchange
  } catch (error) {
    if (error instanceof ExchangeFailure) return error
    throw error
  }
  throw new Error('the exchange did not fail')
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** Resolves when the whole of a small request has been read. */
async function requestRead(socket: Socket): Promise<void> {
  let text = ''
  while (!text.endsWith('hello')) text += (await once(socket, 'data'))[0]
}

/** A peer that reads the request and then does this. */
function afterRequest(speak: (socket: Socket) => void): Promise<Peer> {
  return started(serveBytes((socket) => void requestRead(socket).then(() => speak(socket))))
}

/** Nothing answers on it, and its first bytes are told. */
async function silent(scheme: 'http' | 'https') {
  const events = new EventEmitter()
  const peer = await started(
    serveBytes((socket) => socket.on('data', (bytes) => events.emit('bytes', bytes)), scheme),
  )
  return { peer, bytes: once(events, 'bytes').then(([bytes]) => bytes as Buffer) }
}

describe('a request and its reply', () => {
  it('arrive as they are', async () => {
    const sent = randomBytes(1 << 20)
    const answer = randomBytes(1 << 20)
    const peer = await started(
      servePlain(async (request, response) => {
        const body = await bodyOf(request)
        const { method, url } = request
        const { host, 'x-a': a, 'content-length': length } = request.headers
        response.writeHead(203, {
          'x-seen': JSON.stringify([method, url, host, a, length, body.equals(sent)]),
        })
        response.end(answer)
      }),
    )
    const exchanger = opened(`${peer.url}/below/`)
    const path = '/a/../%2e%2e/s%20?q=1&r'
    const reply = await exchanger.exchange(post({ method: 'PUT', path, headers: { 'X-A': 'b' }, body: sent }))
    expect(reply.status).toBe(203)
    expect(JSON.parse(String(reply.headers['x-seen']))).toEqual([
      'PUT',
      `/below${path}`,
      `127.0.0.1:${peer.port}`,
      'b',
      '1048576',
      true,
    ])
    expect(reply.body.equals(answer)).toBe(true)
    expect(reply.bodyBytes).toBe(1 << 20)
  })

  it.each([204, 301, 404, 500, 599])('are whole at status %i, which is not followed', async (status) => {
    const peer = await started(
      servePlain((_, response) => response.writeHead(status, { location: '/' }).end()),
    )
    expect(await opened(peer.url).exchange(post())).toMatchObject({ status, body: Buffer.alloc(0) })
    expect(peer.connections()).toBe(1)
  })

  it('pass over TLS, by the name in the certificate or the one given', async () => {
    const peer = await started(serveTls((request, response) => void request.pipe(response)))
    const servername = { tls: { ...ca.tls, servername: 'localhost' } }
    for (const options of [ca, servername]) {
      const reply = await opened(peer.url, options).exchange(post())
      expect(reply.body.toString()).toBe('hello')
    }
  })

  it('show a client certificate', async () => {
    const peer = await started(
      serveTls((_, response) => response.end('known'), { requestCert: true, ca: certificate.cert }),
    )
    const exchanger = opened(peer.url, { tls: { ...ca.tls, ...certificate } })
    expect((await exchanger.exchange(post())).body.toString()).toBe('known')
    // TLS 1.3 lets a client speak before its certificate is judged: the request has left.
    expect(await failureOf(opened(peer.url, ca).exchange(post()))).toMatchObject({ kind: 'cut', sent: true })
  })

  it('do not pass to an unknown certificate, even if Node is told to let them', async () => {
    const peer = await started(serveTls(() => {}))
    const name = 'NODE_TLS_REJECT_UNAUTHORIZED'
    const before = process.env[name]
    process.env[name] = '0'
    try {
      expect(await failureOf(opened(peer.url).exchange(post()))).toMatchObject({
        kind: 'refused',
        sent: false,
      })
    } finally {
      if (before === undefined) delete process.env[name]
      else process.env[name] = before
    }
  })

  it('tell when the whole request has gone', async () => {
    let times = 0
    const events = new EventEmitter()
    const sent = once(events, 'sent')
    const peer = await started(servePlain((_, response) => void sent.then(() => response.end('after'))))
    const onSent = () => {
      times += 1
      events.emit('sent')
    }
    expect((await opened(peer.url).exchange(post({ onSent }))).body.toString()).toBe('after')
    expect(times).toBe(1)
  })
})

describe('connections', () => {
  async function echo(): Promise<Peer> {
    return started(servePlain((request, response) => void request.pipe(response)))
  }

  it('are used again', async () => {
    const peer = await echo()
    const exchanger = opened(peer.url)
    for (let n = 0; n < 3; n++) await exchanger.exchange(post())
    expect(peer.connections()).toBe(1)
  })

  it('are used once when none is kept', async () => {
    const peer = await echo()
    const exchanger = opened(peer.url, { keepAliveMs: 0 })
    for (let n = 0; n < 3; n++) await exchanger.exchange(post())
    expect(peer.connections()).toBe(3)
    await peer.allClosed()
  })

  it('are closed when they were idle for long enough', async () => {
    const peer = await echo()
    await opened(peer.url, { keepAliveMs: 50 }).exchange(post())
    await peer.allClosed()
  })

  it('are so many at most, and requests wait for them', async () => {
    const order: string[] = []
    const peer = await started(
      servePlain((request, response) => {
        order.push(String(request.url))
        request.pipe(response)
      }),
    )
    const exchanger = opened(peer.url, { maxSockets: 2 })
    const paths = Array.from({ length: 20 }, (_, n) => `/${n}`)
    await Promise.all(paths.map((path) => exchanger.exchange(post({ path }))))
    expect(order.toSorted()).toEqual(paths.toSorted())
    expect([peer.connections(), peer.mostOpen()]).toEqual([2, 2])
  })

  it('that the peer closed while idle are not used', async () => {
    const closed = new EventEmitter()
    const peer = await started(
      servePlain((request, response) => {
        request.resume()
        response.end()
        request.socket.once('close', () => closed.emit('close'))
        response.once('finish', () => setImmediate(() => request.socket.end()))
      }),
    )
    const exchanger = opened(peer.url)
    const gone = once(closed, 'close')
    await exchanger.exchange(post())
    await gone
    expect((await exchanger.exchange(post())).status).toBe(200)
    expect(peer.connections()).toBe(2)
  })

  it('that the peer closes when they are used again are cut after the request was sent', async () => {
    let requests = 0
    const peer = await started(
      servePlain((request, response) => {
        requests += 1
        if (requests === 2) request.socket.resetAndDestroy()
        else request.pipe(response)
      }),
    )
    const exchanger = opened(peer.url)
    await exchanger.exchange(post())
    expect(await failureOf(exchanger.exchange(post()))).toMatchObject({
      kind: 'cut',
      sent: true,
      reply: undefined,
    })
    expect(peer.connections()).toBe(1)
    expect((await exchanger.exchange(post())).status).toBe(200)
  })

  it('leave no timer and no listener behind', async () => {
    const peer = await echo()
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = timers()
    const { signal } = new AbortController()
    const request = post({ deadlineMs: 3_600_000, signal })
    const exchanger = opened(peer.url)
    await Promise.all(Array.from({ length: 10 }, () => exchanger.exchange(request)))
    await failureOf(opened(await deadUrl()).exchange(request))
    expect(timers() - before).toBeLessThan(5) // of eleven; the test runner has some of its own
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })
})

describe('nothing was sent', () => {
  it.each<[string, () => Promise<string>, Partial<ExchangerOptions>]>([
    ['nobody listens', deadUrl, {}],
    ['the name has no address', async () => 'http://name.invalid', {}],
    ['the call itself fails, before any packet', async () => 'http://255.255.255.255:9', {}],
    ['the certificate is not trusted', async () => (await started(serveTls(never))).url, {}],
    [
      'the certificate is for another name',
      async () => (await started(serveTls(never))).url,
      { tls: { ...ca.tls, servername: 'other' } },
    ],
    [
      'the peer speaks no TLS',
      async () => (await started(servePlain(never))).url.replace('http', 'https'),
      ca,
    ],
    [
      'the peer ends the handshake',
      async () => (await started(serveBytes((socket) => socket.end(), 'https'))).url,
      ca,
    ],
  ])('when %s', async (_, url, options) => {
    const sent: string[] = []
    const onSent = () => void sent.push('sent')
    const failure = await failureOf(opened(await url(), options).exchange(post({ onSent })))
    expect(failure).toMatchObject({ kind: 'refused', sent: false, reply: undefined })
    expect(failure.cause).toBeInstanceOf(Error)
    expect(failure.message).toMatch(/^refused: .{5}/)
    expect(sent).toEqual([])
  })

  function never(): void {
    throw new Error('a request arrived')
  }

  it('when the time is over before the handshake is, of which only the hello has left', async () => {
    const { peer, bytes } = await silent('https')
    const failure = await failureOf(opened(peer.url, ca).exchange(post({ deadlineMs: 100 })))
    expect(failure).toMatchObject({ kind: 'timed_out', sent: false })
    const [contentType, major, , , , handshakeType] = await bytes
    expect([contentType, major, handshakeType]).toEqual([0x16, 3, 1])
  })

  it('when the time is over before a connection is free, and the others are not held up', async () => {
    const { peer } = await silent('http')
    const exchanger = opened(peer.url, { maxSockets: 1 })
    const first = failureOf(exchanger.exchange(post({ deadlineMs: 300 })))
    const second = failureOf(exchanger.exchange(post({ deadlineMs: 50 })))
    const third = failureOf(exchanger.exchange(post({ deadlineMs: 1000 })))
    expect(await second).toMatchObject({ kind: 'timed_out', sent: false })
    expect(await first).toMatchObject({ kind: 'timed_out', sent: true })
    expect(await third).toMatchObject({ kind: 'timed_out', sent: true })
    await peer.allClosed()
    expect(peer.connections()).toBe(2)
  })

  it('when it is aborted before it begins', async () => {
    const peer = await started(servePlain(never))
    const reason = new Error('no longer wanted')
    const failure = await failureOf(opened(peer.url).exchange(post({ signal: AbortSignal.abort(reason) })))
    expect(failure).toMatchObject({ kind: 'aborted', sent: false, cause: reason })
    expect(peer.connections()).toBe(0)
  })

  it('when it is aborted in the turn it begins', async () => {
    const peer = await started(servePlain(never))
    const controller = new AbortController()
    const failure = failureOf(opened(peer.url).exchange(post({ signal: controller.signal })))
    controller.abort(Object.create(null))
    expect(await failure).toMatchObject({ kind: 'aborted', sent: false })
  })

  it('when it is aborted in the handshake', async () => {
    const { peer, bytes } = await silent('https')
    const controller = new AbortController()
    const failure = failureOf(opened(peer.url, ca).exchange(post({ signal: controller.signal })))
    await bytes
    controller.abort()
    expect(await failure).toMatchObject({ kind: 'aborted', sent: false })
  })

  it.each<[string, Partial<ExchangeRequest>]>([
    ['a header that frames', { headers: { 'Content-Length': '1' } }],
    ['a header that cannot be sent', { headers: { authorization: 'secret\n' } }],
    ['a name that is no header', { headers: { 'a b': 'secret' } }],
    ['a method that is none', { method: 'PO ST' }],
    ['a path that is not escaped', { path: '/secret path' }],
    ['a path of another host', { path: 'http://other/secret' }],
  ])('when it has %s; nothing is held up by it', async (_, parts) => {
    const peer = await started(servePlain((_request, response) => response.end()))
    const exchanger = opened(peer.url, { maxSockets: 1 })
    const refusal: unknown = await exchanger.exchange(post(parts)).catch((error: unknown) => error)
    expect(isHoldfastError(refusal, 'INVALID_ARGUMENT')).toBe(true)
    expect(String(refusal)).not.toContain('secret')
    expect((await exchanger.exchange(post())).status).toBe(200)
    expect(peer.connections()).toBe(1)
  })
})

describe('some of it was sent', () => {
  it('when the time is over without a reply', async () => {
    const { peer } = await silent('http')
    const failure = await failureOf(opened(peer.url).exchange(post({ deadlineMs: 250 })))
    expect(failure).toMatchObject({ kind: 'timed_out', sent: true, reply: undefined })
    expect(failure.message).toBe('timed_out: the limit of 250 ms was reached')
    await peer.allClosed()
  })

  it('when it is aborted after it arrived', async () => {
    const { peer, bytes } = await silent('http')
    const controller = new AbortController()
    const failure = failureOf(opened(peer.url).exchange(post({ signal: controller.signal })))
    await bytes
    controller.abort()
    expect(await failure).toMatchObject({ kind: 'aborted', sent: true, reply: undefined })
    await peer.allClosed()
  })

  it('when the peer does not read all of it', async () => {
    const controller = new AbortController()
    const peer = await started(
      serveBytes((socket) => socket.once('data', () => socket.pause() && controller.abort())),
    )
    const sent: string[] = []
    const { signal } = controller
    const onSent = () => void sent.push('sent')
    const failure = failureOf(
      opened(peer.url).exchange(post({ body: Buffer.alloc(32 << 20), signal, onSent })),
    )
    expect(await failure).toMatchObject({ kind: 'aborted', sent: true })
    expect(sent).toEqual([])
    await peer.stop() // a paused socket does not see its end
  })

  it.each<[string, (socket: Socket) => void]>([
    ['ends', (socket) => socket.end()],
    ['is reset', (socket) => socket.resetAndDestroy()],
    ['ends within the head of the reply', (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-le')],
    ['brings no HTTP', (socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n')],
    ['brings an interim reply alone', (socket) => socket.end('HTTP/1.1 102 Processing\r\n\r\n')],
    ['brings a head without end', (socket) => socket.end(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(40_000)}`)],
  ])('when the connection %s', async (_, speak) => {
    const peer = await afterRequest(speak)
    const failure = await failureOf(opened(peer.url).exchange(post()))
    expect(failure).toMatchObject({ kind: 'cut', sent: true, reply: undefined })
  })

  it.each<[string, string]>([
    ['by its length', 'HTTP/1.1 201 Created\r\ncontent-length: 10\r\n\r\nhalf'],
    ['by its chunks', 'HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n5\r\n'],
  ])('when the body is cut %s; the failure tells what came', async (_, text) => {
    const peer = await afterRequest((socket) => socket.end(text))
    const failure = await failureOf(opened(peer.url).exchange(post()))
    expect(failure).toMatchObject({ kind: 'cut', sent: true, reply: { status: 201, bodyBytes: 4 } })
    expect(failure.reply?.body.toString()).toBe('half')
  })

  it('when the body stalls until the time is over', async () => {
    const peer = await afterRequest((socket) =>
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf'),
    )
    const failure = await failureOf(opened(peer.url).exchange(post({ deadlineMs: 400 })))
    expect(failure).toMatchObject({ kind: 'timed_out', sent: true, reply: { status: 200, bodyBytes: 4 } })
    await peer.allClosed()
  })

  it('when the peer switches to another protocol', async () => {
    const peer = await afterRequest((socket) =>
      socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
    )
    expect(await failureOf(opened(peer.url).exchange(post()))).toMatchObject({
      kind: 'cut',
      sent: true,
      reply: { status: 101 },
    })
    await peer.allClosed()
  })

  it('when the reply is too large', async () => {
    const peer = await started(servePlain((_, response) => response.end(Buffer.alloc(1 << 20))))
    const failure = await failureOf(
      opened(peer.url).exchange(post({ maxReplyBytes: 1000, keepReplyBytes: 10 })),
    )
    expect(failure).toMatchObject({ kind: 'too_large', sent: true, reply: { status: 200 } })
    expect(failure.reply?.body).toHaveLength(10)
    await peer.allClosed()
  })
})

describe('a reply', () => {
  it('is kept in part, read to its end, and its connection used again', async () => {
    const peer = await started(servePlain((_, response) => response.end('0123456789'.repeat(100_000))))
    const exchanger = opened(peer.url)
    for (let n = 0; n < 2; n++) {
      const reply = await exchanger.exchange(post({ keepReplyBytes: 12 }))
      expect([reply.body.toString(), reply.bodyBytes]).toEqual(['012345678901', 1_000_000])
    }
    expect(peer.connections()).toBe(1)
  })

  it('without a length ends with the connection', async () => {
    const peer = await afterRequest((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\nto the end'))
    expect((await opened(peer.url).exchange(post())).body.toString()).toBe('to the end')
  })

  it('that comes before the request was read counts, and the connection is dropped', async () => {
    const peer = await started(
      servePlain((request, response) => {
        request.pause()
        response.writeHead(413).end('too much')
      }),
    )
    const exchanger = opened(peer.url, { keepAliveMs: 60_000 })
    const reply = await exchanger.exchange(post({ body: Buffer.alloc(32 << 20) }))
    expect([reply.status, reply.body.toString()]).toEqual([413, 'too much'])
    await peer.allClosed()
  })
})

describe('a stream', () => {
  /** The response to the one request, once its head is out. */
  async function streaming() {
    const events = new EventEmitter()
    const peer = await started(
      servePlain((_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
        events.emit('response', response)
      }),
    )
    return { peer, response: once(events, 'response').then(([response]) => response as ServerResponse) }
  }

  async function textOf(body: Readable): Promise<string> {
    let text = ''
    for await (const chunk of body) text += chunk
    return text
  }

  /** Waits so long on a monotonic clock: for the time limit of an exchange. */
  async function elapse(deadlineMs: number): Promise<void> {
    const { peer } = await silent('http')
    await failureOf(opened(peer.url).exchange(post({ deadlineMs })))
  }

  it('is read as it comes, to its end', async () => {
    const { peer, response } = await streaming()
    const { status, headers, body } = await opened(peer.url).stream(get())
    expect([status, headers['content-type']]).toEqual([200, 'text/event-stream'])
    const events = await response
    for (const event of ['data: 1\n\n', 'data: 2\n\n']) {
      const came = once(body, 'data')
      events.write(event)
      expect(String((await came)[0])).toBe(event)
    }
    events.end()
    await once(body, 'close')
    expect(body.errored).toBe(null)
  })

  it('of any status resolves at the head', async () => {
    const peer = await started(servePlain((_, response) => response.writeHead(401).end('who?')))
    const { status, body } = await opened(peer.url).stream(get())
    expect([status, await textOf(body)]).toEqual([401, 'who?'])
  })

  it('fails when no head comes', async () => {
    const { peer } = await silent('http')
    const failure = await failureOf(opened(peer.url).stream(get({ idleMs: 250 })))
    expect(failure).toMatchObject({ kind: 'timed_out', sent: true })
    const refused = await failureOf(opened(await deadUrl()).stream(get()))
    expect(refused).toMatchObject({ kind: 'refused', sent: false })
  })

  it('fails when nothing comes any more, also when nobody listens', async () => {
    const { peer, response } = await streaming()
    const { body } = await opened(peer.url).stream(get({ idleMs: 300 }))
    ;(await response).write(': hello\n\n')
    await peer.allClosed()
    expect(await failureOf(textOf(body))).toMatchObject({ kind: 'timed_out', sent: true })
  })

  it('lives as long as something comes', async () => {
    const { peer, response } = await streaming()
    const { body } = await opened(peer.url).stream(get({ idleMs: 1000 }))
    const events = await response
    const text = textOf(body)
    for (let n = 0; n < 4; n++) {
      await elapse(300)
      events.write('.')
    }
    events.end()
    expect(await text).toBe('....')
  })

  it('waits for a slow reader', async () => {
    const { peer, response } = await streaming()
    const { body } = await opened(peer.url).stream(get({ idleMs: 400 }))
    ;(await response).end(Buffer.alloc(16 << 20))
    await elapse(900)
    expect(body.errored).toBe(null)
    expect(await textOf(body)).toHaveLength(16 << 20)
  })

  it.each<[string, string, (events: ServerResponse, act: Acts) => void]>([
    ['cut', 'the peer cuts it', (events) => events.socket?.resetAndDestroy()],
    ['cut', 'the peer ends it before its last chunk', (events) => events.socket?.end()],
    ['aborted', 'its signal is aborted', (_, { controller }) => controller.abort()],
    ['aborted', 'the exchanger is closed', (_, { exchanger }) => exchanger.close()],
  ])('fails as %s when %s', async (kind, _, act) => {
    const { peer, response } = await streaming()
    const acts = { controller: new AbortController(), exchanger: opened(peer.url) }
    const { body } = await acts.exchanger.stream(get({ signal: acts.controller.signal }))
    const events = await response
    const came = once(body, 'data')
    events.write('data: 1\n\n')
    await came
    const failure = failureOf(textOf(body))
    act(events, acts)
    expect(await failure).toMatchObject({ kind, sent: true, reply: { status: 200 } })
  })

  interface Acts {
    readonly controller: AbortController
    readonly exchanger: Exchanger
  }

  it('is whole when the connection breaks after its last byte, however late it is read', async () => {
    const chunk = `4000\r\n${'x'.repeat(0x4000)}\r\n`
    const { peer, bytes } = await answering(
      `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunk.repeat(3)}0\r\n\r\n`,
    )
    const { body } = await opened(peer.url).stream(get())
    ;(await bytes).resetAndDestroy()
    await elapse(50)
    expect(await textOf(body)).toHaveLength(3 * 0x4000)
  })

  /** A peer that answers the first bytes with these; its connection, once they have left. */
  async function answering(text: string) {
    const events = new EventEmitter()
    const peer = await started(
      serveBytes((socket) =>
        socket.once('data', () => socket.write(text, () => events.emit('written', socket))),
      ),
    )
    return { peer, bytes: once(events, 'written').then(([socket]) => socket as Socket) }
  }

  it('ends when its reader leaves', async () => {
    const { peer } = await streaming()
    const { body } = await opened(peer.url).stream(get())
    body.destroy()
    await peer.allClosed()
  })
})

describe('an exchanger', () => {
  it.each<[string, string, Partial<ExchangerOptions>]>([
    ['userinfo', 'http://user:secret@127.0.0.1/', {}],
    ['a user name alone', 'https://secret@127.0.0.1/', {}],
    ['another scheme', 'ftp://127.0.0.1/secret', {}],
    ['no scheme', '/secret', {}],
    ['a host that is none', 'http://user:secret@[::1/', {}],
    ['a query', 'http://127.0.0.1/?token=secret', {}],
    ['a key that is none', 'https://127.0.0.1/', { tls: { cert: certificate.cert, key: 'secret' } }],
  ])('is not opened with %s', (_, url, options) => {
    let refusal: unknown
    try {
      opened(url, options)
    } catch (error) {
      refusal = error
    }
    expect(isHoldfastError(refusal, 'INVALID_ARGUMENT')).toBe(true)
    expect(String(refusal)).not.toContain('secret')
  })

  it('ends everything when it is closed, and begins nothing more', async () => {
    const { peer, bytes } = await silent('http')
    const exchanger = opened(peer.url, { maxSockets: 1 })
    const running = failureOf(exchanger.exchange(post()))
    const waiting = failureOf(exchanger.exchange(post()))
    await bytes
    exchanger.close()
    const later = failureOf(exchanger.exchange(post()))
    expect(await running).toMatchObject({ kind: 'aborted', sent: true })
    expect(await waiting).toMatchObject({ kind: 'aborted', sent: false })
    expect(await later).toMatchObject({ kind: 'aborted', sent: false })
    await peer.allClosed()
    expect(peer.connections()).toBe(1)
  })

  it('closes kept connections', async () => {
    const peer = await started(servePlain((_, response) => response.end()))
    const exchanger = opened(peer.url)
    await Promise.all(Array.from({ length: 5 }, () => exchanger.exchange(post())))
    exchanger.close()
    await peer.allClosed()
  })
})
