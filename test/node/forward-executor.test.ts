import { createHash, randomBytes } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { isHoldfastError } from '../../src/contract/errors.js'
import type { Outcome } from '../../src/contract/outcomes.js'
import type { Attempt } from '../../src/node/executor.js'
import { type ForwardExecutorOptions, forwardExecutor } from '../../src/node/executors/forward.js'
import { certificate } from '../support/certificate.js'
import { deadUrl, type Peer, serveBytes, servePlain, serveTls } from '../support/peers.js'

const peers: Peer[] = []

afterEach(async () => {
  const started = peers.splice(0)
  try {
    await Promise.all(started.map((peer) => peer.allClosed())) // an attempt leaves no connection behind
  } finally {
    await Promise.all(started.map((peer) => peer.stop()))
  }
})

async function started(starting: Promise<Peer>): Promise<Peer> {
  const peer = await starting
  peers.push(peer)
  return peer
}

const message = { id: '1700000000000-4', conversation: 'c42', sender: 'billing' }

function attemptWith(parts: Partial<Attempt> = {}): Attempt {
  const payload = parts.payload ?? Buffer.from('hello')
  return {
    id: '1700000000000-4.0/2',
    deliveryId: '1700000000000-4.0',
    number: 2,
    replay: false,
    epoch: 3,
    hub: 'hf',
    host: 'h1',
    node: 'n1',
    target: { host: 'h1' },
    message: { ...message, sha256: sha256(payload) },
    payload,
    signal: new AbortController().signal,
    ...parts,
  }
}

function sha256(bytes: Buffer | string): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function run(
  url: string,
  parts?: Partial<Attempt>,
  options?: Partial<ForwardExecutorOptions>,
): Promise<Outcome> {
  const childStarted = () => Promise.reject(new Error('there is no child'))
  return forwardExecutor({ url, ...options }).run(attemptWith(parts), { childStarted })
}

/** One attempt against a target that answers like this. */
async function answeredBy(
  listener: RequestListener,
  parts?: Partial<Attempt>,
  options?: Partial<ForwardExecutorOptions>,
) {
  const peer = await started(servePlain(listener))
  return run(peer.url, parts, options)
}

function reply(
  status: number,
  headers: OutgoingHttpHeaders = {},
  body: string | Buffer = '',
): RequestListener {
  return (request, response) => {
    request.resume()
    response.writeHead(status, headers).end(body)
  }
}

/** One attempt against a target that reads the request and then writes these bytes, or acts. */
async function spokenTo(
  speak: (socket: Socket) => void,
  parts?: Partial<Attempt>,
  options?: Partial<ForwardExecutorOptions>,
) {
  const peer = await started(
    serveBytes((socket) => {
      let text = ''
      socket.on('data', (bytes) => {
        text += bytes
        if (text.endsWith('hello')) speak(socket)
      })
    }),
  )
  return run(peer.url, parts, options)
}

function resultOf(outcome: Outcome): Record<string, unknown> {
  if (outcome.kind !== 'result') throw new Error(`no result: ${JSON.stringify(outcome)}`)
  return JSON.parse(outcome.result)
}

function particularsOf(outcome: Outcome): Record<string, unknown> {
  if (outcome.kind === 'result') throw new Error('a result has no particulars')
  return JSON.parse(outcome.errorJson ?? 'null')
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks)
}

describe('what the target is given', () => {
  async function seen(parts?: Partial<Attempt>, options?: Partial<ForwardExecutorOptions>) {
    const requests: { method: string; url: string; headers: IncomingHttpHeaders; body: Buffer }[] = []
    const peer = await started(
      servePlain(async (request, response) => {
        const { method = '', url = '', headers } = request
        requests.push({ method, url, headers, body: await bodyOf(request) })
        response.end()
      }),
    )
    const outcome = await run(`${peer.url}/hook/?queue=a%20b`, parts, options)
    const [request] = requests
    if (request === undefined) throw new Error(`nothing arrived: ${JSON.stringify(outcome)}`)
    return request
  }

  it.each<[string, Buffer]>([
    ['nothing', Buffer.alloc(0)],
    ['every byte', Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))],
    ['1 MiB', randomBytes(1 << 20)],
  ])('the payload byte for byte: %s', async (_, payload) => {
    const { body, headers } = await seen({ payload })
    expect(body.equals(payload)).toBe(true)
    expect([headers['content-length'], headers['transfer-encoding']]).toEqual([
      `${payload.length}`,
      undefined,
    ])
  })

  it('the context', async () => {
    const { method, url, headers } = await seen()
    expect([method, url]).toEqual(['POST', '/hook/?queue=a%20b'])
    const { host, ...rest } = headers
    expect(host).toMatch(/^127\.0\.0\.1:\d+$/)
    expect(rest).toEqual({
      connection: 'close',
      'content-length': '5',
      'content-type': 'application/octet-stream',
      'idempotency-key': '1700000000000-4.0/2',
      traceparent: `00-${sha256(message.id).slice(0, 32)}-${sha256('1700000000000-4.0/2').slice(0, 16)}-01`,
      'holdfast-attempt': '1700000000000-4.0/2',
      'holdfast-attempt-number': '2',
      'holdfast-conversation': 'c42',
      'holdfast-delivery': '1700000000000-4.0',
      'holdfast-epoch': '3',
      'holdfast-hub': 'hf',
      'holdfast-host': 'h1',
      'holdfast-message': '1700000000000-4',
      'holdfast-node': 'n1',
      'holdfast-sender': 'billing',
      'holdfast-sha256': sha256('hello'),
    })
  })

  it('session, parent, content type and configured headers, where there are any', async () => {
    const { headers } = await seen(
      {
        target: { host: 'h1', session: 'agent-7' },
        message: {
          ...message,
          sha256: sha256('hello'),
          parent: 'p1',
          contentType: 'text/plain; charset=utf-8',
        },
      },
      { headers: { Authorization: 'Bearer t', 'X-A': 'b' } },
    )
    expect(headers).toMatchObject({
      'holdfast-session': 'agent-7',
      'holdfast-parent': 'p1',
      'content-type': 'text/plain; charset=utf-8',
      authorization: 'Bearer t',
      'x-a': 'b',
    })
  })

  it('ids of every printable character, so that percent-decoding gives them back', async () => {
    const printable = String.fromCharCode(...Array.from({ length: 95 }, (_, n) => n + 0x20))
    const ids = [printable, ' ', ' a b ', '100%', '%20']
    for (const session of ids) {
      const { headers } = await seen({
        target: { host: 'h1', session },
        message: { ...message, sender: session, sha256: '0' },
      })
      for (const name of ['holdfast-session', 'holdfast-sender']) {
        expect(decodeURIComponent(String(headers[name]))).toBe(session)
      }
    }
  })

  it.each<[string, ForwardExecutorOptions['traceparent'] & object]>([
    [
      'throws',
      () => {
        throw new Error('no tracer')
      },
    ],
    ['has none', () => undefined],
    ['has one that is no traceparent', () => '00-abc\r\nx: y'],
    ['has the invalid one', () => `00-${'0'.repeat(32)}-${'0'.repeat(16)}-00`],
  ])('a traceparent of our own when the tracer %s', async (_, traceparent) => {
    expect((await seen({}, { traceparent })).headers.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)
  })

  it("the tracer's traceparent", async () => {
    const given = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-00`
    expect((await seen({}, { traceparent: () => given })).headers.traceparent).toBe(given)
  })
})

describe('the status decides', () => {
  const session = { target: { host: 'h1', session: 'agent-7' } }

  it.each<[number, Outcome['kind']]>([
    [300, 'outcome_unknown'],
    [302, 'outcome_unknown'],
    [304, 'outcome_unknown'],
    [307, 'outcome_unknown'],
    [400, 'terminal'],
    [401, 'terminal'],
    [402, 'terminal'],
    [403, 'terminal'],
    [404, 'terminal'],
    [405, 'terminal'],
    [406, 'terminal'],
    [408, 'outcome_unknown'],
    [409, 'outcome_unknown'],
    [410, 'terminal'],
    [411, 'terminal'],
    [412, 'terminal'],
    [413, 'terminal'],
    [414, 'terminal'],
    [415, 'terminal'],
    [417, 'terminal'],
    [421, 'not_sent'],
    [422, 'terminal'],
    [423, 'outcome_unknown'],
    [424, 'terminal'],
    [425, 'not_sent'],
    [426, 'terminal'],
    [428, 'terminal'],
    [429, 'not_sent'],
    [431, 'terminal'],
    [451, 'terminal'],
    [499, 'terminal'],
    [500, 'outcome_unknown'],
    [501, 'outcome_unknown'],
    [502, 'outcome_unknown'],
    [503, 'outcome_unknown'],
    [504, 'outcome_unknown'],
    [511, 'outcome_unknown'],
    [600, 'outcome_unknown'],
    [999, 'outcome_unknown'],
  ])('%i is %s', async (status, kind) => {
    const outcome = await answeredBy(reply(status, { location: '/', 'retry-after': '7' }))
    expect(outcome).toEqual({
      kind,
      errorCode: `http_${status}`,
      errorJson: JSON.stringify({ status, retryAfter: '7' }),
    })
  })

  it.each([200, 201, 202, 204, 205, 206, 299])('%i is a result', async (status) => {
    expect(resultOf(await answeredBy(reply(status)))).toEqual({ status, body: '' })
  })

  it.each([404, 410])('%i is a missing session, when the delivery has one', async (status) => {
    const outcome = await answeredBy(reply(status), session)
    expect(outcome).toMatchObject({ kind: 'terminal', errorCode: 'target_session_missing' })
  })

  it.each<[number, string, Outcome['kind'], string]>([
    [302, 'not_sent', 'not_sent', 'http_302'],
    [409, 'not_sent', 'not_sent', 'http_409'],
    [404, 'not_sent', 'not_sent', 'http_404'],
    [404, 'outcome_unknown', 'outcome_unknown', 'http_404'],
    [404, 'terminal', 'terminal', 'target_session_missing'],
    [429, 'outcome_unknown', 'outcome_unknown', 'http_429'],
    [500, 'terminal', 'terminal', 'http_500'],
    [503, 'not_sent', 'not_sent', 'http_503'],
    [422, 'maybe', 'outcome_unknown', 'http_422'],
    [422, 'result', 'outcome_unknown', 'http_422'],
    [200, 'not_sent', 'outcome_unknown', 'contradictory_reply'],
    [200, 'terminal', 'outcome_unknown', 'contradictory_reply'],
  ])("but %i with the target's word %s is %s", async (status, word, kind, errorCode) => {
    expect(await answeredBy(reply(status, { 'Holdfast-Outcome': word }), session)).toMatchObject({
      kind,
      errorCode,
    })
  })

  it('a 200 may say that it is a result', async () => {
    expect(resultOf(await answeredBy(reply(200, { 'holdfast-outcome': 'result' })))).toEqual({
      status: 200,
      body: '',
    })
  })

  it('switching protocols is no answer', async () => {
    const outcome = await spokenTo((socket) =>
      socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
    )
    expect(outcome).toMatchObject({ kind: 'outcome_unknown', errorCode: 'http_101' })
  })

  it.each<[string, Outcome['kind'], string]>([
    ['422 Unprocessable', 'terminal', 'http_422'],
    ['429 Too Many', 'not_sent', 'http_429'],
    ['500 Error', 'outcome_unknown', 'http_500'],
    ['503 Busy\r\nholdfast-outcome: not_sent', 'not_sent', 'http_503'],
  ])('of a refusal also when its body is cut, or stalls: %s', async (head, kind, errorCode) => {
    const text = `HTTP/1.1 ${head}\r\ncontent-length: 10\r\n\r\nhalf`
    const cut = await spokenTo((socket) => socket.end(text))
    const stalled = await spokenTo((socket) => socket.write(text), {}, { timeoutMs: 400 })
    for (const outcome of [cut, stalled]) {
      expect(outcome).toMatchObject({ kind, errorCode })
      expect(particularsOf(outcome)).toMatchObject({ body: 'half', cut: true })
    }
  })
})

describe('nothing left', () => {
  it.each<[string, () => Promise<string>]>([
    ['nobody listens', deadUrl],
    ['the name has no address', async () => 'http://name.invalid/'],
    ['the certificate is not trusted', async () => (await started(serveTls(reply(200)))).url],
    [
      'the peer speaks no TLS',
      async () => (await started(servePlain(reply(200)))).url.replace('http', 'https'),
    ],
  ])('when %s', async (_, url) => {
    const outcome = await run(await url())
    expect(outcome).toMatchObject({ kind: 'not_sent', errorCode: 'not_connected' })
    expect(particularsOf(outcome).message).toMatch(/^refused: ./)
  })

  it.each<[string, Partial<ForwardExecutorOptions>, AbortSignal | undefined]>([
    ['timed_out', { timeoutMs: 50 }, undefined],
    ['timed_out', {}, AbortSignal.timeout(50)],
  ])('when the handshake takes longer than the limit: %s', async (errorCode, options, signal) => {
    const peer = await started(serveBytes(() => {}, 'https'))
    expect(await run(peer.url, signal && { signal }, options)).toMatchObject({ kind: 'not_sent', errorCode })
  })

  it.each<[string, unknown]>([
    ['timed_out', new DOMException('over', 'TimeoutError')],
    ['aborted', new Error('the node stops')],
  ])('when it is aborted before the start: %s', async (errorCode, reason) => {
    const peer = await started(servePlain(reply(200)))
    const outcome = await run(peer.url, { signal: AbortSignal.abort(reason) })
    expect(outcome).toMatchObject({ kind: 'not_sent', errorCode })
    expect(peer.connections()).toBe(0)
  })

  it('when the attempt has no HTTP form', async () => {
    const peer = await started(servePlain(reply(200)))
    const bad = { message: { ...message, sha256: '0', contentType: 'text/plain\n; x' } }
    expect(await run(peer.url, bad)).toMatchObject({ kind: 'not_sent', errorCode: 'invalid_request' })
    expect(peer.connections()).toBe(0)
  })
})

describe('nobody can tell', () => {
  it.each<[string, (socket: Socket) => void]>([
    ['ends', (socket) => socket.end()],
    ['is reset', (socket) => socket.resetAndDestroy()],
    ['ends within the head', (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-')],
    ['brings no HTTP', (socket) => socket.end('what?\r\n\r\n')],
  ])('when the connection %s', async (_, speak) => {
    expect(await spokenTo(speak)).toMatchObject({ kind: 'outcome_unknown', errorCode: 'cut' })
  })

  it('when no reply comes within the limit', async () => {
    const outcome = await spokenTo(() => {}, {}, { timeoutMs: 250 })
    expect(outcome).toMatchObject({ kind: 'outcome_unknown', errorCode: 'timed_out' })
    expect(particularsOf(outcome)).toEqual({ message: 'timed_out: the limit of 250 ms was reached' })
  })

  it.each<[string, unknown]>([
    ['timed_out', new DOMException('over', 'TimeoutError')],
    ['aborted', new Error('the node stops')],
    ['aborted', undefined],
  ])('when it is aborted after the request arrived: %s', async (errorCode, reason) => {
    const controller = new AbortController()
    const outcome = await spokenTo(() => controller.abort(reason), { signal: controller.signal })
    expect(outcome).toMatchObject({ kind: 'outcome_unknown', errorCode })
  })

  it('when the limit comes while a 2xx reply is still spoken', async () => {
    const text = 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf'
    const outcome = await spokenTo((socket) => socket.write(text), {}, { timeoutMs: 400 })
    expect(outcome).toMatchObject({ kind: 'outcome_unknown', errorCode: 'timed_out' })
    expect(particularsOf(outcome)).toMatchObject({ status: 200, body: 'half', cut: true })
  })
})

describe('a result', () => {
  it('has JSON as the target wrote it', async () => {
    const json = '{ "id":130775545883395173,\n"f":1.10, "f":2, "s":"\\u00e9 é" }'
    const outcome = await answeredBy(reply(200, { 'content-type': 'application/json; charset=utf-8' }, json))
    expect(outcome).toEqual({
      kind: 'result',
      result: `{"status":200,"contentType":"application/json; charset=utf-8","json":${json}}`,
    })
  })

  it.each(['application/json', 'Application/JSON', 'application/problem+json', 'application/vnd.x+json;v=1'])(
    'has JSON of type %s',
    async (type) => {
      expect(resultOf(await answeredBy(reply(200, { 'content-type': type }, '[1]')))).toMatchObject({
        json: [1],
      })
    },
  )

  it.each<[string, string, string]>([
    ['is none', 'application/json', '{"a":'],
    ['is empty', 'application/json', ''],
    ['is two', 'application/json', '1 2'],
    ['has a byte order mark', 'application/json', '\ufeff{}'],
    ['has another type', 'text/plain', '{}'],
    ['has a type that only looks so', 'application/jsonp', '{}'],
    ['is too deep to write again', 'application/json', `${'['.repeat(50_000)}${']'.repeat(50_000)}`],
  ])('has text when the JSON %s', async (_, contentType, body) => {
    const outcome = await answeredBy(reply(200, { 'content-type': contentType }, body))
    expect(resultOf(outcome)).toEqual({ status: 200, contentType, body })
  })

  it('is base64 when it is not UTF-8', async () => {
    const outcome = await answeredBy(reply(200, {}, Buffer.from([0xff, 0, 0x78])))
    expect(resultOf(outcome)).toEqual({ status: 200, bodyBase64: '/wB4' })
  })

  it.each([8, 60, 61, 62, 63, 64, 100])('fits %i bytes, cut between characters', async (maxResultBytes) => {
    const outcome = await answeredBy(reply(200, {}, '€'.repeat(30)), {}, { maxResultBytes })
    const { body, ...rest } = resultOf(outcome)
    expect(rest).toEqual({ status: 200, truncated: true, bodyBytes: 90 })
    expect(body).toMatch(/^€*$/)
    const bytes = outcome.kind === 'result' ? Buffer.byteLength(outcome.result) : 0
    expect(bytes <= maxResultBytes || body === '').toBe(true)
  })

  it('fits whatever it holds, and the rest is read', async () => {
    const outcome = await answeredBy(
      reply(200, { 'content-type': 'application/json' }, Buffer.alloc(3_000_000)),
    )
    expect(resultOf(outcome)).toMatchObject({ status: 200, truncated: true, bodyBytes: 3_000_000 })
    const bytes = outcome.kind === 'result' ? Buffer.byteLength(outcome.result) : 0
    expect(bytes).toBeLessThanOrEqual(262_144)
    expect(bytes).toBeGreaterThan(200_000)
  })

  it('has JSON over the limit as text in part', async () => {
    const json = JSON.stringify('x'.repeat(300))
    const outcome = await answeredBy(
      reply(200, { 'content-type': 'application/json' }, json),
      {},
      { maxResultBytes: 200 },
    )
    expect(resultOf(outcome)).toMatchObject({
      body: expect.stringMatching(/^"x+$/),
      truncated: true,
      bodyBytes: 302,
    })
  })

  it('is one although its body never ends: the connection is ended', async () => {
    const outcome = await answeredBy((request, response) => {
      request.resume()
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(1 << 20)));
      }
      response.on('drain', more)
      more()
    })
    const { bodyBytes, ...rest } = resultOf(outcome)
    expect(rest).toMatchObject({ status: 200, truncated: true, cut: true })
    expect(bodyBytes).toBeGreaterThan(8 << 20)
  })

  it('is one although its body was cut after a 2xx', async () => {
    const head = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n'
    expect(resultOf(await spokenTo((socket) => socket.end(`${head}12`)))).toEqual({
      status: 200,
      contentType: 'application/json',
      body: '12',
      cut: true,
    })
  })
})

describe('particulars', () => {
  it.each<[string, Buffer, object]>([
    ['text', Buffer.from('why'), { body: 'why' }],
    ['bytes', Buffer.from([0xff]), { bodyBase64: '/w==' }],
    [
      'long text',
      Buffer.from('€'.repeat(2000)),
      { body: '€'.repeat(1365), truncated: true, bodyBytes: 6000 },
    ],
    [
      'many bytes',
      Buffer.alloc(5000, 0xff),
      { bodyBase64: Buffer.alloc(3072, 0xff).toString('base64'), truncated: true, bodyBytes: 5000 },
    ],
  ])('hold the first of the body: %s', async (_, body, expected) => {
    const outcome = await answeredBy(reply(422, {}, body), {}, { maxResultBytes: 1000 })
    expect(particularsOf(outcome)).toEqual({ status: 422, ...expected })
  })

  it('hold no secret', async () => {
    const secrets = ['s3cret', 'qu3ry']
    const headers = { authorization: 'Bearer s3cret', 'x-key': 's3cret' }
    const events = new EventEmitter()
    const stops = new AbortController()
    const peer = await started(serveBytes((socket) => events.emit('socket', socket)))
    const running = run(`${peer.url}/?token=qu3ry`, { signal: stops.signal }, { headers })
    const [socket] = await once(events, 'socket')
    await once(socket, 'data')
    stops.abort()
    const outcomes = [
      await running,
      await run(`${await deadUrl()}/?token=qu3ry`, {}, { headers }),
      await run('http://name.invalid/?token=qu3ry', {}, { headers }),
      await run(`${(await started(serveTls(reply(200)))).url}/?token=qu3ry`, {}, { headers }),
      await spokenTo((bytes) => bytes.end('junk'), {}, { headers }),
      await answeredBy(reply(500), {}, { headers }),
      await answeredBy(reply(200), {}, { headers }),
      await answeredBy(reply(200), { message: { ...message, sha256: '\n' } }, { headers }),
    ]
    for (const outcome of outcomes) {
      for (const secret of secrets) expect(JSON.stringify(outcome)).not.toContain(secret)
    }
  })
})

describe('options', () => {
  it.each<[string, ForwardExecutorOptions]>([
    ['userinfo in the URL', { url: 'http://user:secret@127.0.0.1/' }],
    ['another scheme', { url: 'file:///secret' }],
    ['no URL', { url: 'secret' }],
    ['a header that cannot be sent', { url: 'http://127.0.0.1', headers: { authorization: 'secret\n' } }],
    ['a name that is no header', { url: 'http://127.0.0.1', headers: { 'x y': 'secret' } }],
    ['a header that frames', { url: 'http://127.0.0.1', headers: { 'Transfer-Encoding': 'secret' } }],
    ['a header of the executor', { url: 'http://127.0.0.1', headers: { 'Idempotency-Key': 'secret' } }],
    ['a header of Holdfast', { url: 'http://127.0.0.1', headers: { 'Holdfast-Epoch': 'secret' } }],
    ['TLS material that is none', { url: 'https://127.0.0.1', tls: { ca: 'secret', cert: 'secret' } }],
  ])('are refused with %s', (_, options) => {
    let refusal: unknown
    try {
      forwardExecutor(options)
    } catch (error) {
      refusal = error
    }
    expect(isHoldfastError(refusal, 'INVALID_ARGUMENT')).toBe(true)
    expect(String(refusal)).not.toContain('secret')
  })

  it('take an authority for TLS', async () => {
    const peer = await started(serveTls(reply(200, {}, 'safe')))
    expect(resultOf(await run(peer.url, {}, { tls: { ca: certificate.cert } }))).toMatchObject({
      body: 'safe',
    })
  })

  it('run attempts side by side, each on a connection of its own', async () => {
    const events = new EventEmitter()
    let waiting = 0
    const peer = await started(
      servePlain((request, response) => {
        request.resume()
        waiting += 1
        events.once('all', () => response.end())
        if (waiting === 150) events.emit('all')
      }),
    )
    events.setMaxListeners(150)
    const executor = forwardExecutor({ url: peer.url })
    const runs = Array.from({ length: 150 }, () =>
      executor.run(attemptWith(), { childStarted: async () => {} }),
    )
    const kinds = new Set((await Promise.all(runs)).map((outcome) => outcome.kind))
    expect([...kinds]).toEqual(['result'])
    expect(peer.connections()).toBe(150)
  })
})
