import { readFileSync } from 'node:fs'
import { connect as connectTcp, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { defaultLimits, type Limits } from '../../src/http/limits.js'
import { certificate } from '../support/certificate.js'
import { startHubServer } from '../support/http.js'
import { type HubServerProcess, spawnHubServer } from '../support/hub-server.js'
import { exchangeRaw, openRaw, type RawAnswer, type RawConnection, requestText } from '../support/raw-http.js'
import { makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// Clients that mean no good, or are broken, against hubs in processes of their own. Each hub has a record of its
// own on one server; what is refused must not have touched it.

const marker = requestText('GET /livez', { connection: 'close' })
const megabyte = 1024 * 1024

interface Hub {
  readonly record: TestRecord
  readonly server: HubServerProcess
}

let redis: TestServer
/** Small limits of time. */
let brisk: Hub
/** Limits as they are by default, but for the rate, and for lag: a machine that is busy with others makes it lag. */
let usual: Hub
/** Small limits of everything else. */
let tight: Hub
/** Principals of the tight hub: a rate is for each. */
const tokens = { fast: '', calm: '', many: '', slow: '', large: '', ahead: '' }

const briskLimits = { headersMs: 1000, requestMs: 2000, idleMs: 1500, ratePerSecond: 0 }
const tightLimits = { stalledMs: 2000, ratePerSecond: 3, underWay: 4, arrivingBytes: megabyte }
const soonMs = 6000

beforeAll(async () => {
  redis = await startTestServer()
  const [first, second] = await Promise.all([
    open('brisk', briskLimits),
    open('usual', { headersMs: 12_000, requestMs: 12_000, ratePerSecond: 0, lagMs: 0 }),
  ])
  brisk = first
  usual = second
  tight = await open('tight', tightLimits, async (record) => {
    for (const name of Object.keys(tokens) as (keyof typeof tokens)[]) {
      tokens[name] = (await record.hub.addPrincipal({ name, role: 'operator' }, 'tests')).token ?? ''
    }
  })
})

afterAll(async () => {
  await Promise.all([brisk, usual, tight].map((hub) => hub?.server.stop()))
  await Promise.all([brisk, usual, tight].map((hub) => hub?.record.close()))
  await redis?.stop()
})

async function open(
  name: string,
  limits: Partial<Limits>,
  prepare: (record: TestRecord) => Promise<void> = async () => undefined,
): Promise<Hub> {
  const record = await makeRecord(redis, name)
  await prepare(record)
  return { record, server: await spawnHubServer({ redis: redis.url, hub: name, limits }) }
}

describe('slow clients', () => {
  const body = (headers: Record<string, string>, begun = '') =>
    requestText('POST /v1/messages', { 'idempotency-key': 'slow', ...headers }) + begun
  const json = { 'content-type': 'application/json' }
  const long = { 'content-length': '1000' }
  const kinds: readonly (readonly [
    name: string,
    first: string,
    drip: string,
    statuses: readonly number[],
  ])[] = [
    ['nothing at all', '', '', [408]],
    ['half a head', 'GET /livez HTTP/1.1\r\nHos', '', [408]],
    ['a header, byte by byte', 'GET /livez HTTP/1.1\r\nx: ', 'a', [408]],
    ['header after header', 'GET /livez HTTP/1.1\r\n', 'x: y\r\n', [408]],
    ['a head, and never its body', body({ ...json, ...long }), '', [408]],
    ['a body, byte by byte', body({ ...json, ...long }, '{'), ' ', [408]],
    ['a body, chunk by chunk', body({ ...json, 'transfer-encoding': 'chunked' }), '1\r\n \r\n', [408]],
    ['a body that is refused already', body(long), ' ', [415]],
    ['a body that nobody reads', requestText('GET /v1/counts', long), ' ', [200]],
  ]
  const each = 20
  /** Descriptors of the hub without clients. */
  let idle = 0

  beforeAll(() => {
    idle = brisk.server.descriptors()
  })

  it('are closed within the limits, with a 408 where they had no answer, and hold nobody else up', async () => {
    const { server } = brisk
    const witness = witnessOf(brisk)
    const startedAt = performance.now()
    const opened = kinds.flatMap(([name, first, drip, statuses]) =>
      Array.from({ length: each }, () => ({
        name,
        statuses,
        connection: dripping(server.port, first, drip),
      })),
    )
    for (const { name, statuses, connection } of opened) {
      const answers = await connection.over()
      expect([name, ...answers.map(({ status }) => status)]).toEqual([name, ...statuses])
      expect(answers[0]?.json === undefined ? 'no problem' : answers[0].json['code'], name).toEqual(
        { 408: 'DEADLINE_EXCEEDED', 415: 'UNSUPPORTED_MEDIA_TYPE', 200: undefined }[statuses[0] ?? 0],
      )
    }
    expect(performance.now() - startedAt).toBeLessThan(briskLimits.requestMs + 1000 + soonMs)
    await witness.expectServed(10)
    await until(() => server.descriptors() <= idle, { what: 'every socket closed' })
  })

  it('are closed when they close their half before the request is whole', async () => {
    const { server } = brisk
    const whole = requestText('GET /v1/counts')
    for (const [first, statuses] of [
      ['', []],
      ['GET /livez HTTP/1.1\r\nHos', [400]],
      [body({ ...json, ...long }, '{'), [400]],
      [whole, [200]],
    ] as const) {
      const connection = openRaw(server.port)
      connection.write(first)
      if (first === whole) await connection.answered(1)
      connection.socket.end()
      expect((await connection.over()).map(({ status }) => status)).toEqual(statuses)
    }
    await until(() => server.descriptors() <= idle, { what: 'every socket closed' })
  })

  it('are closed when they do not read what they asked for', async () => {
    const { server } = tight
    const before = server.descriptors()
    // More than the buffers of the system take, from a hub that closes where nothing moves.
    const ask = requestText('GET /docs/static/swagger-ui-bundle.js').repeat(12)
    const deaf = Array.from({ length: 5 }, () => openRaw(server.port, { reading: false }))
    for (const connection of deaf) connection.write(ask)
    const taken = () => server.descriptors() >= before + deaf.length
    await until(taken, { what: 'every connection taken up' })
    await until(() => server.descriptors() <= before, { timeoutMs: 20_000, what: 'the deaf ones closed' })
    for (const { socket } of deaf) socket.destroy()
  })

  it('that do not even shake hands are closed by a hub with TLS', async () => {
    const secure = await startHubServer(brisk.record, {
      tls: { certificate: certificate.cert, key: certificate.key },
      limits: briskLimits,
    })
    const socket = connectTcp(Number(new URL(secure.url).port), '127.0.0.1')
    let isOver = false
    socket
      .on('error', () => undefined)
      .on('close', () => {
        isOver = true
      })
    await until(() => isOver, {
      timeoutMs: briskLimits.headersMs + soonMs,
      what: 'the end of the connection',
    })
    await secure.close()
  })
})

describe('ten thousand sockets', () => {
  const [, most] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
  const count = Math.min(10_000, Number(most) - 500)

  it('that send nothing, or half a request, are closed by the hub, which serves others meanwhile', async () => {
    if (count < 10_000) console.warn(`${count} sockets only: at most ${most} files may be open here`)
    const { server } = usual
    await warmUp(server)
    const before = { descriptors: server.descriptors(), residentBytes: server.residentBytes() }
    const half = 'GET /livez HTTP/1.1\r\nHos'
    const headers = { 'idempotency-key': 'half', 'content-type': 'application/json', 'content-length': '9' }
    const begun = `${requestText('POST /v1/messages', headers)}{`
    const sockets: Socket[] = []
    const over = new Set<Socket>()
    const firsts = ['', '', '', half, begun]
    const witness = witnessOf(usual)
    while (sockets.length < count) {
      for (let at = 0; at < 250 && sockets.length < count; at += 1) {
        const socket = connectTcp(server.port, '127.0.0.1')
        socket
          .on('error', () => undefined)
          .on('close', () => over.add(socket))
          .resume()
        socket.write(firsts[sockets.length % firsts.length] ?? '')
        sockets.push(socket)
      }
      const taken = () => server.descriptors() >= before.descriptors + sockets.length - over.size
      await until(taken, { what: `${sockets.length} connections taken up` })
    }
    const peak = { sockets: server.descriptors() - before.descriptors, residentBytes: server.residentBytes() }
    expect(peak.sockets, 'open at the same time').toBeGreaterThanOrEqual(count)
    await until(() => over.size === count, { timeoutMs: 30_000, everyMs: 100, what: 'every socket closed' })
    await witness.expectServed(100)
    const back = () =>
      server.descriptors() <= before.descriptors &&
      server.residentBytes() <= before.residentBytes + 50 * megabyte
    const figures = () => {
      const bytes = [before.residentBytes, peak.residentBytes, server.residentBytes()]
      return `resident MB before, at the peak, now: ${bytes.map((each) => Math.round(each / megabyte))}`
    }
    await until(back, { timeoutMs: 10_000, everyMs: 100, what: 'sockets and memory as before' }).finally(() =>
      console.info(figures(), server.descriptors() - before.descriptors),
    )
  }, 120_000)
})

describe('shapes of HTTP that others may read otherwise', () => {
  const host = 'Host: 127.0.0.1\r\n'
  const smuggled = requestText('POST /v1/hosts/smuggled/drain')
  const post = (headers: string, rest: string) =>
    `POST /v1/hosts/h/drain HTTP/1.1\r\n${host}${headers}\r\n${rest}`
  const chunked = 'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n'
  const get = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\n${host}${headers}\r\n`
  const manyHeaders = (each: (at: number) => string) =>
    Array.from({ length: 2000 }, (_, at) => each(at)).join('')

  /** Answered by this status alone and closed: no reader agrees on what comes next. */
  const closed: readonly (readonly [name: string, status: number, text: string])[] = [
    ['a carriage return in a header', 400, get('/v1/hosts', 'x: a\rb\r\n')],
    ['a header injected by a bare newline', 400, get('/v1/hosts', 'x: a\nauthorization: b\r\n')],
    ['NUL in a header', 400, get('/v1/hosts', 'x: a\0b\r\n')],
    ['a folded header', 400, get('/v1/hosts', 'x: a\r\n b\r\n')],
    ['a blank before the colon', 400, get('/v1/hosts', 'content-length : 5\r\n')],
    ['lines ended by newlines', 400, get('/v1/hosts').replaceAll('\r\n', '\n')],
    ['Content-Length, then Transfer-Encoding', 400, post(`Content-Length: 5\r\n${chunked}`, '0\r\n\r\n')],
    ['Transfer-Encoding, then Content-Length', 400, post(`${chunked}Content-Length: 5\r\n`, '0\r\n\r\n')],
    ['two lengths', 400, post('Content-Length: 0\r\nContent-Length: 5\r\n', '')],
    ['one length twice', 400, post('Content-Length: 5\r\nContent-Length: 5\r\n', 'hello')],
    ['a list of lengths', 400, post('Content-Length: 5, 5\r\n', 'hello')],
    ['a length below zero', 400, post('Content-Length: -5\r\n', 'hello')],
    ['a length with a sign', 400, post('Content-Length: +5\r\n', 'hello')],
    ['a length in hex', 400, post('Content-Length: 0x5\r\n', 'hello')],
    ['a length beyond all numbers', 400, post('Content-Length: 99999999999999999999\r\n', 'hello')],
    ['an unknown transfer coding', 400, post('Transfer-Encoding: xchunked\r\n', '0\r\n\r\n')],
    ['chunked, and another coding over it', 400, post('Transfer-Encoding: chunked, gzip\r\n', '0\r\n\r\n')],
    ['chunked twice', 400, post(`${chunked}Transfer-Encoding: chunked\r\n`, '0\r\n\r\n')],
    ['a chunk size that is no number', 400, post(chunked, 'ZZ\r\nhello\r\n0\r\n\r\n')],
    ['a chunk size below zero', 400, post(chunked, '-5\r\nhello\r\n0\r\n\r\n')],
    ['a chunk size beyond all numbers', 400, post(chunked, 'fffffffffffffffff\r\nhello\r\n0\r\n\r\n')],
    ['a chunk longer than its size', 400, post(chunked, '3\r\nhello\r\n0\r\n\r\n')],
    ['chunks ended by newlines', 400, post(chunked, '2\n{}\n0\n\n')],
    ['a chunk extension without end', 400, post(chunked, `2;${'a'.repeat(70_000)}\r\n{}\r\n0\r\n\r\n`)],
    ['a length among the trailers', 400, post(chunked, '2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n')],
    ['a header over 16 KiB', 431, get('/livez', `x: ${'a'.repeat(17_000)}\r\n`)],
    ['a path over 16 KiB', 431, get(`/${'a'.repeat(17_000)}`)],
    ['a version of the future', 400, get('/livez').replace('HTTP/1.1', 'HTTP/3.0')],
    ['the preface of HTTP/2', 400, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['an unknown method', 400, get('/livez').replace('GET', 'GETX')],
    ['a blank in the path', 400, get('/v1/ho sts')],
    ['a tab in the path', 400, get('/v1/ho\tsts')],
    ['bytes over 127 in the path', 400, get('/v1/hosts/\xc3\xa4')],
    ['a path without its slash', 400, get('livez')],
    ['a TLS handshake', 400, '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
  ]

  /** Answered by this status, and the next request on the connection as if nothing had been. */
  const answered: readonly (readonly [name: string, status: number, text: string])[] = [
    ['no header Host', 400, 'GET /livez HTTP/1.1\r\n\r\n'],
    ['two headers Host', 400, get('/v1/hosts', 'Host: elsewhere\r\n')],
    ['two tokens', 400, get('/v1/hosts', 'Authorization: Bearer a\r\nAuthorization: Bearer b\r\n')],
    [
      '2,000 headers',
      431,
      get(
        '/v1/hosts',
        manyHeaders((at) => `a${at}:\r\n`),
      ),
    ],
    [
      '2,000 times one header',
      431,
      get(
        '/v1/hosts',
        manyHeaders(() => 'a:\r\n'),
      ),
    ],
    ['the absolute form of another host', 400, get('http://elsewhere/v1/hosts')],
    ['the absolute form with a name before the host', 400, get('http://127.0.0.1@elsewhere/v1/hosts')],
    ['the absolute form of this host', 200, get('http://127.0.0.1/v1/hosts')],
    ['a path that begins as an authority', 404, get('//127.0.0.1/v1/hosts')],
    ['%zz in the path', 400, get('/v1/hosts/%zz/pending')],
    ['half an escape', 400, get('/v1/hosts/%/pending')],
    ['half an escape at the end', 400, get('/v1/hosts%')],
    ['overlong UTF-8 in the path', 400, get('/v1/hosts/%c0%ae%c0%ae/pending')],
    ['half a character in the path', 400, get('/v1/hosts/%e4/pending')],
    ['a surrogate in the path', 400, get('/v1/hosts/%ed%a0%80/pending')],
    ['%00 in the path', 400, get('/v1/hosts/%00/pending')],
    ['%00 after a host', 400, get('/v1/hosts/a%00/pending')],
    ['%2e%2e as a host', 400, get('/v1/hosts/%2e%2e/pending')],
    ['%2f in a host', 400, get('/v1/hosts/a%2fb/pending')],
    ['a newline in a host', 400, get('/v1/hosts/a%0d%0ax:%20y/pending')],
    ['a newline after a route', 404, get('/v1/counts%0d%0ax:%20y')],
    ['dots in the path', 404, get('/v1/hosts/../counts')],
    ['dots in the path of a file', 404, get('/docs/static/..%2f..%2fpackage.json')],
    ['a host of 1,999 bytes', 400, get(`/v1/hosts/${'a'.repeat(1999)}/pending`)],
    ['a host of 3,000 bytes', 400, get(`/v1/hosts/${'a'.repeat(3000)}/pending`)],
    ['a host of 15,000 bytes', 400, get(`/v1/hosts/${'a'.repeat(15_000)}/pending`)],
    ['a path that names a property of objects', 404, get('/__proto__')],
    ['a query that names a property of objects', 400, get('/v1/held?__proto__=1')],
    ['a query member twice', 400, get('/v1/held?limit=1&limit=2')],
    ['an escape in the query that is none', 400, get('/v1/held?limit=%zz')],
    ['a query of 10,000 bytes', 400, get(`/v1/held?cursor=${'a'.repeat(10_000)}`)],
    ['a fragment', 400, get('/v1/held#limit=1')],
    ['a method that the route does not know', 405, get('/v1/counts').replace('GET', 'PATCH')],
    ['OPTIONS', 405, get('/v1/counts').replace('GET', 'OPTIONS')],
    ['TRACE', 405, get('/v1/counts').replace('GET', 'TRACE')],
    ['OPTIONS of everything', 405, get('*').replace('GET', 'OPTIONS')],
    ['a method of WebDAV', 404, get('/v1/counts').replace('GET', 'PROPFIND')],
    ['a route that is none', 404, get('/v2/messages')],
    [
      'a request in the body of another',
      200,
      get('/v1/counts', `Content-Length: ${smuggled.length}\r\n`) + smuggled,
    ],
    [
      'a request in the body of one that is refused',
      415,
      post(`Content-Type: text/plain\r\nContent-Length: ${smuggled.length}\r\n`, smuggled),
    ],
    [
      'a request in the body of one with a bad path',
      400,
      get('/v1/hosts/%zz', `Content-Length: ${smuggled.length}\r\n`) + smuggled,
    ],
  ]

  it('are answered once and closed where the parser is lost', async () => {
    const before = await usual.record.dump()
    for (const [name, status, text] of closed) {
      const answers = await exchangeRaw(usual.server.port, text + smuggled + marker)
      expect([name, ...answers.map((each) => each.status)]).toEqual([name, status])
      expectProblem(answers[0], name)
    }
    expect(await usual.record.dump()).toEqual(before)
  })

  it('are answered in their place where they are understood', async () => {
    const before = await usual.record.dump()
    for (const [name, status, text] of answered) {
      const answers = await exchangeRaw(usual.server.port, text + marker).catch((error: unknown) => {
        throw new Error(name, { cause: error })
      })
      expect([name, ...answers.map((each) => each.status)]).toEqual([name, status, 200])
      if (status !== 200) expectProblem(answers[0], name)
      expect(answers[1]?.body, name).toBe('ok\n')
    }
    expect(await usual.record.dump()).toEqual(before)
  })

  it('are closed without a word where an answer could be taken for that of another request', async () => {
    const { server, record } = usual
    await record.join('h', 'waiter')
    const claim = JSON.stringify({ node: 'waiter', incarnation: 1, request: 1, waitMs: 30_000 })
    const waits = requestText('POST /v1/hosts/h/claim', { 'content-type': 'application/json' }, claim)
    for (const [first, statuses] of [
      [waits, []],
      [requestText('GET /v1/events'), [200]],
    ] as const) {
      const connection = openRaw(server.port)
      connection.write(first)
      await until(async () => (await waitingOn(server)) >= 1, { what: 'the request being waited for' })
      connection.write('\xff\xff\r\n\r\n')
      await connection.over()
      const heads = connection.answers().map(({ status }) => status)
      expect(heads.filter((status) => status !== 200)).toEqual([])
      expect(heads.length).toBeLessThanOrEqual(statuses.length)
      await until(async () => (await waitingOn(server)) === 0, { what: 'nothing being waited for' })
    }
  })

  it('are closed where they are no version of HTTP, or a tunnel through the hub', async () => {
    const tunnel = get('elsewhere:443').replace('GET', 'CONNECT')
    for (const [text, statuses] of [
      ['GET /v1/hosts\r\n\r\n', [400]],
      [`GET /v1/hosts\r\nx: y HTTP/1.1\r\n${host}\r\n`, [400]],
      [tunnel, []],
    ] as const) {
      const answers = await exchangeRaw(usual.server.port, text)
      expect(answers.map(({ status }) => status)).toEqual(statuses)
    }
  })

  it('are answered as ever where they ask for another protocol', async () => {
    for (const protocol of ['websocket', 'h2c']) {
      const connection = openRaw(usual.server.port)
      connection.write(get('/v1/counts', `Upgrade: ${protocol}\r\nConnection: upgrade\r\n`))
      await connection.answered(1)
      connection.write(marker)
      expect((await connection.over()).map(({ status }) => status)).toEqual([200, 200])
    }
  })
})

describe('bodies over the limits', () => {
  const json = { 'content-type': 'application/json' }
  const keyed = { ...json, 'idempotency-key': 'over' }
  const fence = 'PUT /v1/fences/pause/hub'
  const message = 'POST /v1/messages'
  const over: readonly (readonly [
    line: string,
    headers: Record<string, string>,
    bytes: number,
    code: string,
  ])[] = [
    [fence, json, defaultLimits.smallBodyBytes + 1, 'BODY_TOO_LARGE'],
    ['POST /delivery-report', json, defaultLimits.bodyBytes + 1, 'BODY_TOO_LARGE'],
    [message, keyed, defaultLimits.bodyBytes, 'PAYLOAD_TOO_LARGE'],
  ]

  it('are refused by their Content-Length, before a byte of them is sent', async () => {
    for (const [line, headers, bytes, code] of over) {
      const connection = openRaw(usual.server.port)
      connection.write(requestText(line, { ...headers, 'content-length': String(bytes) }))
      const [answer] = await connection.answered(1)
      expect([answer?.status, answer?.json?.['code']]).toEqual([413, code])
      connection.socket.destroy()
    }
  })

  it('are refused without a Content-Length once they are over it, and the connection goes on', async () => {
    const piece = ' '.repeat(0x4_0000)
    for (const [line, headers, bytes, code] of over) {
      const connection = openRaw(usual.server.port)
      connection.write(requestText(line, { ...headers, 'transfer-encoding': 'chunked' }))
      const pieces = Math.ceil(bytes / piece.length) + 1
      connection.write(`40000\r\n${piece}\r\n`.repeat(pieces))
      await connection.answered(1)
      connection.write(`0\r\n\r\n${marker}`)
      const answers = await connection.over()
      expect(answers.map(({ status }) => status)).toEqual([413, 200])
      expect(answers[0]?.json?.['code']).toBe(code)
    }
  })

  it('are refused so that a client which is still sending reads it', async () => {
    const body = Buffer.alloc(24 * megabyte, ' ')
    for (let tries = 0; tries < 5; tries += 1) {
      const reply = await fetch(`${usual.server.url}/v1/fences/pause/hub`, {
        method: 'PUT',
        headers: json,
        body,
      })
      expect([reply.status, ((await reply.json()) as { code: string }).code]).toEqual([413, 'BODY_TOO_LARGE'])
    }
  })

  it('leave room for the largest payload beside the most and longest recipients', async () => {
    const to = Array.from({ length: 10_000 }, (_, at) => ({ session: String(at).padStart(255, 's') }))
    const payloadBase64 = Buffer.alloc(megabyte, 1).toString('base64')
    const body = JSON.stringify({ conversation: 'c', sender: 's', to, payloadBase64 })
    const before = await usual.record.dump()
    const reply = await fetch(`${usual.server.url}/v1/messages`, { method: 'POST', headers: keyed, body })
    expect([reply.status, ((await reply.json()) as { code: string }).code]).toEqual([422, 'NO_ROUTE'])
    expect(await usual.record.dump()).toEqual(before)
  })

  it('are measured by max_payload_bytes and max_recipients as they stand now', async () => {
    const { record, server } = usual
    await record.config('max_payload_bytes', '001000')
    await record.config('max_recipients', 10)
    const head = requestText(message, { ...keyed, 'content-length': '80000' })
    const refused = async () => {
      const connection = openRaw(server.port)
      connection.write(head)
      // A body that is waited for is not answered: the next request would be its first bytes.
      const answer = await Promise.race([connection.answered(1), sleep(100, undefined)])
      connection.socket.destroy()
      return answer?.[0]?.json?.['code'] === 'PAYLOAD_TOO_LARGE'
    }
    await until(refused, { what: 'the new bound' })
    const send = async (payload: Record<string, unknown>, key: string) => {
      const body = JSON.stringify({ conversation: 'c', sender: 's', to: [{ host: 'sized' }], ...payload })
      const headers = { ...json, 'idempotency-key': key }
      const reply = await fetch(`${server.url}/v1/messages`, { method: 'POST', headers, body })
      return [reply.status, ((await reply.json()) as { code?: string }).code]
    }
    const bytes = (count: number) => ({ payloadBase64: Buffer.alloc(count).toString('base64') })
    expect(await send({ payload: 'x'.repeat(998) }, 'text-fits')).toEqual([201, undefined])
    expect(await send(bytes(1000), 'bytes-fit')).toEqual([201, undefined])
    const before = await record.dump()
    expect(await send({ payload: 'x'.repeat(999) }, 'text')).toEqual([413, 'PAYLOAD_TOO_LARGE'])
    expect(await send(bytes(1001), 'bytes')).toEqual([413, 'PAYLOAD_TOO_LARGE'])
    expect(await send(bytes(60_000), 'more')).toEqual([413, 'PAYLOAD_TOO_LARGE'])
    expect(await record.dump()).toEqual(before)
    await record.send('HDEL', record.keys.config, 'max_payload_bytes', 'max_recipients')
  })
})

describe('too much at once', () => {
  const as = (name: keyof typeof tokens) => ({ authorization: `Bearer ${tokens[name]}` })
  const ask = (name: keyof typeof tokens, path = '/v1/counts') =>
    openAnd(requestText(`GET ${path}`, as(name)))
  const openAnd = (text: string) => {
    const connection = openRaw(tight.server.port)
    connection.write(text)
    return connection
  }
  const firstOf = async (connection: RawConnection) => {
    const [answer] = await connection.answered(1)
    connection.socket.destroy()
    return answer
  }

  it('of one principal is told when to come back, and others are served', async () => {
    const { record } = tight
    const burst = tightLimits.ratePerSecond * 10
    const before = await record.dump()
    const answers: (RawAnswer | undefined)[] = []
    for (let at = 0; at < burst + 10; at += 1) answers.push(await firstOf(ask('fast')))
    const refused = answers.filter((answer) => answer?.status !== 200)
    expect(answers.slice(0, burst).map((answer) => answer?.status)).toEqual(Array(burst).fill(200))
    expect(refused.length).toBe(10)
    for (const answer of refused) {
      expect([answer?.status, answer?.json?.['code']]).toEqual([429, 'RATE_LIMITED'])
      expect(Number(answer?.headers['retry-after'])).toBeGreaterThanOrEqual(1)
      expect(Number(answer?.headers['retry-after'])).toBeLessThanOrEqual(10)
    }
    const body = JSON.stringify({ conversation: 'c', to: [{ host: 'h' }], payload: 1 })
    const headers = { ...as('fast'), 'content-type': 'application/json', 'idempotency-key': 'rate' }
    expect((await firstOf(openAnd(requestText('POST /v1/messages', headers, body))))?.status).toBe(429)
    expect((await firstOf(ask('fast', '/livez')))?.status).toBe(200)
    expect((await firstOf(ask('calm')))?.status).toBe(200)
    expect(await record.dump()).toEqual(before)
  })

  it('is shed while the record stands still, and health is answered', async () => {
    redis.freeze()
    try {
      const all = Array.from({ length: 12 }, () => ask('many'))
      const shed = () => all.filter((connection) => connection.answers().length === 1)
      await until(() => shed().length >= 12 - tightLimits.underWay, { what: 'the refusals' })
      expect((await firstOf(ask('many', '/livez')))?.status).toBe(200)
      expect([200, 503]).toContain((await firstOf(ask('many', '/readyz')))?.status)
      const answers = shed().map((connection) => connection.answers()[0])
      expect(answers.length).toBe(12 - tightLimits.underWay)
      for (const answer of answers) {
        expect([answer?.status, answer?.json?.['code'], answer?.headers['retry-after']]).toEqual([
          503,
          'OVERLOADED',
          '1',
        ])
      }
      redis.thaw()
      const statuses = await Promise.all(all.map(async (connection) => (await firstOf(connection))?.status))
      expect(statuses.filter((status) => status === 200).length).toBe(tightLimits.underWay)
    } finally {
      redis.thaw()
    }
  })

  it('does not mean requests whose bodies are still on their way', async () => {
    const headers = { ...as('slow'), 'content-type': 'application/json', 'content-length': '100' }
    const begun = Array.from({ length: 4 * tightLimits.underWay }, () => {
      return openAnd(`${requestText('PUT /v1/fences/pause/hub', headers)}{`)
    })
    await until(() => tight.server.descriptors() > begun.length, { what: 'the connections taken up' })
    expect((await firstOf(ask('slow')))?.status).toBe(200)
    for (const { socket } of begun) socket.destroy()
  })

  it('is not what clients left that sent requests ahead, and went', async () => {
    const counts = requestText('GET /v1/counts', as('ahead'))
    const events = requestText('GET /v1/events', as('ahead'))
    for (let tries = 0; tries < 3; tries += 1) {
      const connection = openAnd(events + counts.repeat(tightLimits.underWay))
      await until(() => connection.socket.bytesRead > 0, { what: 'the events' })
      connection.socket.destroy()
      await until(async () => (await firstOf(ask('ahead')))?.status === 200, {
        everyMs: 300,
        what: 'room for others',
      })
    }
  })

  it('means bodies that come to more bytes together than the hub takes', async () => {
    const body = JSON.stringify({ conversation: 'c', to: [{ host: 'h' }], payload: 'x'.repeat(300_000) })
    const send = (key: string) => {
      const headers = { ...as('large'), 'content-type': 'application/json', 'idempotency-key': key }
      return openAnd(requestText('POST /v1/messages', headers, body).slice(0, -1))
    }
    const begun = ['one', 'two', 'three', 'four'].map(send)
    const refused = await until(() => begun.find((connection) => connection.answers().length === 1))
    const [answer] = refused.answers()
    expect([answer?.status, answer?.json?.['code']]).toEqual([503, 'OVERLOADED'])
    const others = begun.filter((connection) => connection !== refused)
    for (const connection of others) connection.write('}')
    const statuses = await Promise.all(others.map(async (connection) => (await firstOf(connection))?.status))
    expect(statuses).toEqual([201, 201, 201])
    refused.socket.destroy()
  })
})

describe('after all that', () => {
  it('every hub accepts, its record is whole, and nothing went wrong unseen', async () => {
    await Promise.all([brisk, usual, tight].map(expectSound))
  })

  async function expectSound({ record, server }: Hub): Promise<void> {
    const body = JSON.stringify({
      conversation: 'c',
      sender: 's',
      to: [{ host: 'last' }],
      payload: 'still here',
    })
    const headers = {
      'content-type': 'application/json',
      'idempotency-key': 'last',
      ...(record === tight.record && { authorization: `Bearer ${tokens.calm}` }),
    }
    const reply = await fetch(`${server.url}/v1/messages`, { method: 'POST', headers, body })
    expect(reply.status).toBe(201)
    await record.checkInvariants()
    expect(server.log.filter(({ level = 60 }) => level >= 40)).toEqual([])
    expect(await server.stop()).toBe(0)
  }
})

function expectProblem(answer: RawAnswer | undefined, about: string): void {
  expect(answer?.headers['content-type'], about).toBe('application/problem+json')
  expect(answer?.json, about).toMatchObject({ status: answer?.status, code: expect.any(String) })
}

/** Writes, and then the drip every now and then until the connection is over. */
function dripping(port: number, first: string, drip: string): RawConnection {
  const connection = openRaw(port)
  connection.write(first)
  const timer = setInterval(() => {
    if (connection.isOver) clearInterval(timer)
    else if (drip !== '' && connection.socket.writable) connection.write(drip)
  }, 100)
  return connection
}

async function waitingOn({ url }: HubServerProcess): Promise<number> {
  const page = await (await fetch(`${url}/metrics`)).text()
  return Number(/^holdfast_http_waiting (\d+)$/m.exec(page)?.[1])
}

/** As much work as a hub has soon done, so that what it holds then is what it holds when it works. */
async function warmUp({ port, url }: HubServerProcess): Promise<void> {
  const text = requestText('GET /v1/counts', { connection: 'close' })
  await Promise.all(
    Array.from({ length: 20 }, async () => {
      for (let at = 0; at < 50; at += 1) {
        await exchangeRaw(port, text)
        await (await fetch(`${url}/v1/hosts`)).text()
      }
    }),
  )
}

interface Witness {
  /** Ends it: it was served so often at least, each time, and soon. */
  expectServed(least: number): Promise<void>
}

/** A client that behaves, one request after the other. */
function witnessOf({ server, record }: Hub): Witness {
  /** What it was answered other than that it was done. */
  const refusals: string[] = []
  let longestMs = 0
  let isOver = false
  let sent = 0
  async function once(): Promise<void> {
    sent += 1
    const headers = { connection: 'close', 'content-type': 'application/json' }
    const body = JSON.stringify({ conversation: 'c', sender: 's', to: [{ host: 'w' }], payload: sent })
    const text =
      sent % 5 === 0
        ? requestText('POST /v1/messages', { ...headers, 'idempotency-key': `${record.name}-${sent}` }, body)
        : requestText('GET /v1/counts', headers)
    const startedAt = performance.now()
    const [answer] = await exchangeRaw(server.port, text)
    longestMs = Math.max(longestMs, performance.now() - startedAt)
    const { status = 0, body: reply = '' } = answer ?? {}
    if (status !== 200 && status !== 201) refusals.push(`${status} ${reply}`)
  }
  async function run(): Promise<void> {
    while (!isOver) await once()
  }
  const running = run()
  return {
    expectServed: async (least) => {
      isOver = true
      await running
      expect(refusals).toEqual([])
      expect(sent).toBeGreaterThanOrEqual(least)
      expect(longestMs).toBeLessThan(5000)
    },
  }
}
