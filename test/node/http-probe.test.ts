import type { RequestListener } from 'node:http'
import { afterEach, expect, it } from 'vitest'
import { isHoldfastError } from '../../src/contract/errors.js'
import type { Outcome } from '../../src/contract/outcomes.js'
import type { Attempt } from '../../src/node/executor.js'
import { type HttpProbeOptions, httpProbe } from '../../src/node/probes/http.js'
import { deadUrl, type Peer, serveBytes, servePlain } from '../support/peers.js'
import { notExecuted, openAttempt, parsed, payload } from '../support/probing.js'

const failed = (errorJson: object) => ({ kind: 'outcome_unknown', errorCode: 'probe_failed', errorJson })

const peers: Peer[] = []
afterEach(async () => {
  const started = peers.splice(0)
  try {
    await Promise.all(started.map((peer) => peer.allClosed())) // a question leaves no connection behind
  } finally {
    await Promise.all(started.map((peer) => peer.stop()))
  }
})

async function started(starting: Promise<Peer>): Promise<Peer> {
  const peer = await starting
  peers.push(peer)
  return peer
}

const says =
  (body: string | Buffer, status = 200, headers: Record<string, string> = {}): RequestListener =>
  (request, response) => {
    request.resume()
    response.writeHead(status, headers).end(body)
  }

async function askedOf(
  listener: RequestListener,
  options: Partial<HttpProbeOptions> = {},
  parts: Partial<Attempt> = {},
) {
  const { url } = await started(servePlain(listener))
  return httpProbe({ url, ...options }).ask(openAttempt(parts))
}

const text = '{ "n": 1.10, "big": 130775545883395173, "u": "\\u00e9", "😀": [ ] }'

it.each<[string, string, Outcome]>([
  ['a result, byte for byte', ` {"result" : ${text} ,"kind":"result"}\n`, { kind: 'result', result: text }],
  ['a result of nothing', '{"kind":"result"}', { kind: 'result', result: 'null' }],
  ['a terminal', '{"kind":"terminal","errorCode":"declined"}', { kind: 'terminal', errorCode: 'declined' }],
  [
    'a terminal with particulars, byte for byte',
    `{"kind":"terminal","errorCode":"declined","errorJson":${text}}`,
    { kind: 'terminal', errorCode: 'declined', errorJson: text },
  ],
  [
    'a terminal with a code that the record does not take',
    '{"kind":"terminal","errorCode":"größe"}',
    { kind: 'terminal', errorCode: 'gr??e' },
  ],
  ['not_executed', '{"kind":"not_executed","since":1}', notExecuted],
  ['unknown', '{"kind":"unknown"}', { kind: 'outcome_unknown', errorCode: 'probe_unknown' }],
])('that answers %s', async (_, body, outcome) => {
  expect(await askedOf(says(body))).toEqual(outcome)
})

it.each([201, 202, 203, 204, 301, 307, 400, 404, 409, 425, 429, 500, 503])(
  'that answers %i knows nothing, whatever it says beside it',
  async (status) => {
    const body = status === 204 ? '' : '{"kind":"not_executed"}'
    const outcome = await askedOf(says(body, status, { location: '/elsewhere' }))
    expect(parsed(outcome)).toEqual(failed({ status }))
  },
)

it.each<[string, string | Buffer]>([
  ['nothing', ''],
  ['no JSON', 'not_executed'],
  ['half of it', '{"kind":"not_executed"'],
  ['two of it', '{"kind":"not_executed"}{"kind":"unknown"}'],
  ['a member twice', '{"kind":"unknown","kind":"not_executed"}'],
  ['a member twice, one of them escaped', '{"kind":"unknown","k\\u0069nd":"not_executed"}'],
  ['a member twice, further in', '{"kind":"result","result":{"a":1,"a":2}}'],
  [
    'invalid UTF-8',
    Buffer.concat([Buffer.from('{"kind":"not_executed","x":"'), Buffer.from([0xff]), Buffer.from('"}')]),
  ],
  ['a byte order mark', '\ufeff{"kind":"not_executed"}'],
  ['a word', '"not_executed"'],
  ['a list', '[{"kind":"not_executed"}]'],
  ['another kind', '{"kind":"not_sent"}'],
  ['no kind', '{"not_executed":true}'],
  ['a terminal without a code', '{"kind":"terminal"}'],
  ['a terminal with an empty code', '{"kind":"terminal","errorCode":""}'],
  ['a terminal whose code is no text', '{"kind":"terminal","errorCode":7}'],
  ['more than a reply may hold', `{"kind":"not_executed","x":"${'x'.repeat(1 << 20)}"}`],
])('that answers %s knows nothing', async (_, body) => {
  const outcome = await askedOf(says(body))
  expect(outcome).toMatchObject({
    kind: 'outcome_unknown',
    errorCode: expect.stringMatching(/^probe_(answer|failed)$/),
  })
})

it('on which nobody listens knows nothing', async () => {
  const outcome = await httpProbe({ url: await deadUrl() }).ask(openAttempt())
  expect(parsed(outcome)).toMatchObject(failed({ why: expect.any(String) }))
})

it.each<[string, string]>([
  ['before its head', ''],
  ['in its head', 'HTTP/1.1 200 OK\r\nContent-Le'],
  ['in its body', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"kind":"not_executed"}'],
  ['in a chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n17\r\n{"kind":"not_executed"}\r\n'],
])('that cuts the connection %s knows nothing', async (_, bytes) => {
  const { url } = await started(serveBytes((socket) => socket.end(bytes)))
  expect(parsed(await httpProbe({ url }).ask(openAttempt()))).toMatchObject(
    failed({ why: expect.any(String) }),
  )
})

it('that does not answer in time knows nothing', async () => {
  const limit = new AbortController()
  const silent: RequestListener = (request) => {
    request.resume()
    limit.abort(new DOMException('the limit', 'TimeoutError'))
  }
  const outcome = await askedOf(silent, {}, { signal: limit.signal })
  expect(parsed(outcome)).toMatchObject(failed({ why: 'aborted' }))
})

it('is posted the payload, with the headers of an attempt and Holdfast-Probe', async () => {
  const seen: object[] = []
  const listener: RequestListener = async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    seen.push({
      method: request.method,
      url: request.url,
      body: Buffer.concat(chunks),
      headers: request.headers,
    })
    response.end('{"kind":"unknown"}')
  }
  const { url } = await started(servePlain(listener))
  await httpProbe({ url: `${url}/asked?by=me`, headers: { authorization: 'Bearer t' } }).ask(openAttempt())
  expect(seen).toEqual([
    {
      method: 'POST',
      url: '/asked?by=me',
      body: payload,
      headers: expect.objectContaining({
        authorization: 'Bearer t',
        'holdfast-probe': '1',
        'holdfast-replay': '1',
        'idempotency-key': 'm1.1/2',
        'holdfast-attempt': 'm1.1/2',
        'holdfast-epoch': '3',
        'holdfast-session': 'agent%207',
      }),
    },
  ])
})

it.each<[string, HttpProbeOptions]>([
  ['no URL', { url: 'here' }],
  ['another scheme', { url: 'ftp://127.0.0.1/' }],
  ['a user', { url: 'http://kim@127.0.0.1/' }],
  ['a header of ours', { url: 'http://127.0.0.1/', headers: { 'Holdfast-Probe': '0' } }],
  ['a header that is none', { url: 'http://127.0.0.1/', headers: { x: 'a\nb' } }],
])('is refused with %s', (_, options) => {
  expect(() => httpProbe(options)).toThrow(
    expect.toSatisfy((error) => isHoldfastError(error, 'INVALID_ARGUMENT')),
  )
})
