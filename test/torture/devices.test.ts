import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { cutLast, entriesOf, flipPayload, lastStep, liveFile, payloadRegions } from '../../torture/aof.mjs'
import { startHttpProxy } from '../../torture/proxy/http.mjs'
import { httpScanner, requestLineOf } from '../../torture/proxy/http-frames.mjs'
import { pieces, type Relay, wholeMessages } from '../../torture/proxy/proxy.mjs'
import { isRepeatable } from '../../torture/proxy/repeats.mjs'
import { startRespProxy } from '../../torture/proxy/resp.mjs'
import { respScanner, wordsOf } from '../../torture/proxy/resp-frames.mjs'
import { createRandom } from '../../torture/random.mjs'
import { until } from '../support/until.js'

const ends: (() => unknown)[] = []

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

function command(...words: (string | Buffer)[]): Buffer {
  const parts = words.flatMap((word) => [`$${Buffer.byteLength(word)}\r\n`, word, '\r\n'])
  return Buffer.concat([`*${words.length}\r\n`, ...parts].map((part) => Buffer.from(part)))
}

/** Both sides of every place where a text can be cut, and one byte at a time. */
function cuts(bytes: Buffer): Buffer[][] {
  const halves = Array.from({ length: bytes.length + 1 }, (_, at) => [
    bytes.subarray(0, at),
    bytes.subarray(at),
  ])
  return [...halves, Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))]
}

function texts(parts: readonly Buffer[]): string[] {
  return parts.map((part) => part.toString('latin1'))
}

describe('RESP messages', () => {
  const messages = [
    command('PING'),
    command('FCALL', 'hf_accept', '1', '{hf}', Buffer.from([0, 13, 10, 255, 42, 49, 13, 10]), ''),
    Buffer.from('PING inline\r\n'),
    Buffer.from('+OK\r\n'),
    Buffer.from('-ERR no\r\n'),
    Buffer.from(':12\r\n'),
    Buffer.from('$-1\r\n'),
    Buffer.from('$0\r\n\r\n'),
    Buffer.from('*-1\r\n'),
    Buffer.from('*0\r\n'),
    Buffer.from('*2\r\n*1\r\n*2\r\n$1\r\na\r\n*0\r\n%1\r\n+a\r\n$-1\r\n'),
    Buffer.from('>2\r\n+push\r\n_\r\n'),
  ]

  test('are told apart wherever the bytes are cut', () => {
    for (const cut of cuts(Buffer.concat(messages))) {
      const split = wholeMessages(respScanner())
      expect(texts(cut.flatMap(split))).toEqual(texts(messages))
    }
  })

  test('are known by their first words', () => {
    expect(wordsOf(command('FCALL', 'hf_claim', '1', '{hf}', 'more'))).toEqual([
      'FCALL',
      'hf_claim',
      '1',
      '{hf}',
    ])
    expect(wordsOf(command('PING'))).toEqual(['PING'])
  })
})

describe('HTTP messages', () => {
  const requests = [
    'POST /v1/messages HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n{"\r\n}',
    'GET /v1/fences HTTP/1.1\r\nHost: a\r\n\r\n',
    'PUT /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na\r\n\r\n1;x=y\r\n\n\r\n0\r\nT: 1\r\n\r\n',
    'DELETE /y HTTP/1.1\r\nContent-Length: 0\r\n\r\n',
  ].map((text) => Buffer.from(text))
  const replies = [
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\n{}',
    'HTTP/1.1 204 No Content\r\n\r\n',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n\r\n\r\n\r\n0\r\n\r\n',
    'HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n',
  ].map((text) => Buffer.from(text))

  test.each([
    ['requests', () => httpScanner(), requests],
    ['answers', () => httpScanner({}), replies],
  ])('%s are told apart wherever the bytes are cut', (_, scanner, messages) => {
    for (const cut of cuts(Buffer.concat(messages))) {
      const split = wholeMessages(scanner())
      expect(texts(cut.flatMap(split))).toEqual(texts(messages))
    }
  })

  test('an answer to HEAD has no body; one without a length ends with the connection', () => {
    const head = wholeMessages(httpScanner({ methodOf: () => 'HEAD' }))
    expect(head(Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n'))).toHaveLength(1)
    const stream = pieces(httpScanner({}))
    expect(stream(Buffer.from('HTTP/1.1 200 OK\r\n\r\ndata: 1\n\n'))).toMatchObject([{ ends: false }])
    expect(stream(Buffer.from('HTTP/1.1 200 OK\r\n\r\n'))).toMatchObject([{ starts: false, ends: false }])
  })

  test('are known by method and path', () => {
    expect(requests.map(requestLineOf)).toEqual([
      ['POST', '/v1/messages'],
      ['GET', '/v1/fences'],
      ['PUT', '/x'],
      ['DELETE', '/y'],
    ])
  })
})

test('only what its caller repeats by itself arrives twice', () => {
  expect(isRepeatable(['FCALL', 'hf_begin', '1', '{hf}'])).toBe(true)
  expect(isRepeatable(['FCALL', 'hf_pause', '1', '{hf}'])).toBe(false)
  expect(isRepeatable(['EVALSHA', 'hf_begin'])).toBe(false)
  expect(isRepeatable(['POST', '/v1/hosts/a/claim?x=1'])).toBe(true)
  expect(isRepeatable(['PUT', '/v1/fences/pause/hub'])).toBe(false)
})

/** A server that counts what it got and answers each command with its number. */
async function countingServer() {
  const seen: string[][] = []
  const server = createServer((socket) => {
    const split = wholeMessages(respScanner())
    socket.on('error', () => undefined)
    socket.on('data', (bytes) => {
      for (const message of split(bytes)) socket.write(`:${seen.push(wordsOf(message))}\r\n`)
    })
  })
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => sockets.add(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, seen }
}

function client(proxy: Relay) {
  const socket = connect(proxy.port, '127.0.0.1')
  const state = { got: '', isOpen: true }
  socket.on('data', (bytes) => {
    state.got += bytes
  })
  socket.on('error', () => undefined)
  socket.on('close', () => {
    state.isOpen = false
  })
  ends.push(() => socket.destroy())
  return { state, send: (...words: string[]) => socket.write(command(...words)) }
}

async function viaProxy() {
  const server = await countingServer()
  const proxy = await startRespProxy(server.port)
  ends.push(proxy.close)
  return { proxy, seen: server.seen, ...client(proxy) }
}

describe('a proxy to a server', () => {
  test('passes on what nobody troubles', async () => {
    const { seen, send, state } = await viaProxy()
    send('PING')
    send('SET', 'a', 'b')
    await until(() => state.got === ':1\r\n:2\r\n')
    expect(seen).toEqual([['PING'], ['SET', 'a', 'b']])
  })

  test('sends a command twice and swallows the second answer', async () => {
    const { proxy, seen, send, state } = await viaProxy()
    const end = proxy.add({
      onRequest: ({ words }) => (words[0] === 'FCALL' ? { kind: 'duplicate' } : undefined),
    })
    send('FCALL', 'hf_claim')
    send('PING')
    await until(() => state.got === ':1\r\n:3\r\n')
    expect(seen).toEqual([['FCALL', 'hf_claim'], ['FCALL', 'hf_claim'], ['PING']])
    end()
    send('FCALL', 'hf_claim')
    await until(() => state.got === ':1\r\n:3\r\n:4\r\n')
  })

  test('sends the copy later, by a connection of its own', async () => {
    const { proxy, seen, send, state } = await viaProxy()
    proxy.add({
      onRequest: ({ words }) => (words[0] === 'FCALL' ? { kind: 'duplicate', afterMs: 30 } : undefined),
    })
    send('FCALL', 'hf_claim')
    send('PING')
    await until(() => state.got === ':1\r\n:2\r\n')
    await until(() => seen.length === 3)
    expect(seen).toEqual([['FCALL', 'hf_claim'], ['PING'], ['FCALL', 'hf_claim']])
    expect(state.got).toBe(':1\r\n:2\r\n')
  })

  test('drops an answer and cuts the connection', async () => {
    const { proxy, seen, send, state } = await viaProxy()
    send('PING')
    await until(() => state.got === ':1\r\n')
    proxy.add({ onRequest: () => ({ kind: 'cut-reply', share: 0 }) })
    send('SET', 'a', 'b')
    await until(() => !state.isOpen)
    expect([state.got, seen.length]).toEqual([':1\r\n', 2])
  })

  test('cuts within a request, which then never arrives', async () => {
    const { proxy, seen, send, state } = await viaProxy()
    proxy.add({ onRequest: () => ({ kind: 'cut', share: 0.9 }) })
    send('SET', 'a', 'b')
    await until(() => !state.isOpen)
    await until(() => proxy.connections() === 0)
    expect(seen).toEqual([])
  })

  test('cuts the connections that are picked', async () => {
    const { proxy, send, state } = await viaProxy()
    const other = client(proxy)
    send('PING')
    other.send('PING')
    await until(() => state.got !== '' && other.state.got !== '')
    let asked = 0
    expect(proxy.cut(() => asked++ === 0)).toBe(1)
    await until(() => !state.isOpen || !other.state.isOpen)
    expect([state.isOpen, other.state.isOpen].filter(Boolean)).toHaveLength(1)
  })

  test('keeps the order of what it delays', async () => {
    const { proxy, seen, send, state } = await viaProxy()
    const random = createRandom('delays')
    proxy.add({ delayMs: () => random.int(0, 20) })
    for (let n = 1; n <= 20; n += 1) send('ECHO', String(n))
    await until(() => seen.length === 20)
    expect(seen.map(([, n]) => n)).toEqual(Array.from({ length: 20 }, (_, at) => String(at + 1)))
    await until(() => state.got.endsWith(':20\r\n'))
  })

  test('holds everything in the dark and delivers it afterwards, also what was sent by one that gave up', async () => {
    const { proxy, seen, send, state } = await viaProxy()
    send('PING')
    await until(() => state.got === ':1\r\n')
    const light = proxy.add({ isDark: true })
    send('SET', 'a', 'b')
    const late = connect(proxy.port, '127.0.0.1')
    await new Promise<void>((resolve) => late.write(command('SET', 'late', 'b'), () => resolve()))
    late.destroy()
    await until(() => proxy.connections() === 2)
    expect([seen.length, state.got, state.isOpen]).toEqual([1, ':1\r\n', true])
    light()
    await until(() => seen.length === 3 && state.got.endsWith('\r\n'))
    await until(() => proxy.connections() === 1)
  })

  test('leaves a client with a connection to nobody, until its next byte', async () => {
    const { proxy, seen, send, state } = await viaProxy()
    send('PING')
    await until(() => state.got === ':1\r\n')
    const end = proxy.halfOpen(() => true)
    expect(state.isOpen).toBe(true)
    end()
    expect(state.isOpen).toBe(true)
    send('PING')
    await until(() => !state.isOpen)
    expect(seen).toHaveLength(1)
  })

  test('ends the client with the server', async () => {
    const { proxy, send, state } = await viaProxy()
    send('PING')
    await until(() => state.got === ':1\r\n')
    await ends.shift()?.()
    await until(() => !state.isOpen && proxy.connections() === 0)
  })
})

describe('a proxy to a hub', () => {
  async function hub() {
    const seen: string[] = []
    const server = createHttpServer(async (request, reply) => {
      const body = await bodyOf(request)
      seen.push(`${request.method} ${request.url} ${body}`)
      reply.end(`answer ${seen.length}`)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const proxy = await startHttpProxy((server.address() as AddressInfo).port)
    ends.push(proxy.close, () => {
      server.closeAllConnections()
      server.close()
    })
    return { seen, proxy }
  }

  async function bodyOf(request: IncomingMessage): Promise<string> {
    let text = ''
    for await (const part of request) text += part
    return text
  }

  async function post(proxy: Relay, body: string): Promise<string> {
    const answer = await fetch(`${proxy.url}/v1/messages`, { method: 'POST', body })
    return await answer.text()
  }

  test('sends a request twice; its caller gets the first answer', async () => {
    const { seen, proxy } = await hub()
    proxy.add({
      onRequest: ({ words }) => (isRepeatable(words) ? { kind: 'duplicate', afterMs: 20 } : undefined),
    })
    expect(await post(proxy, 'a')).toBe('answer 1')
    await until(() => seen.length === 2)
    expect(new Set(seen)).toEqual(new Set(['POST /v1/messages a']))
    expect(await post(proxy, 'b')).toBe('answer 3')
  })

  test('drops an answer after the request was served', async () => {
    const { seen, proxy } = await hub()
    const end = proxy.add({ onRequest: () => ({ kind: 'cut-reply', share: 0 }) })
    await expect(post(proxy, 'a')).rejects.toThrow('fetch failed')
    end()
    expect(await post(proxy, 'b')).toBe('answer 2')
    expect(seen).toEqual(['POST /v1/messages a', 'POST /v1/messages b'])
  })
})

describe('an append-only file', () => {
  const payload = 'bytes of a payload\r\n$3\r\n'
  const steps = [
    [command('SELECT', '0')],
    [
      command('MULTI'),
      command('HSET', '{hf}:message:m', 'a', 'b'),
      command('SET', '{hf}:payload:m', payload),
      command('EXEC'),
    ],
    [command('INCR', 'a')],
    [command('MULTI'), command('XADD', '{hf}:log', '1-0', 'a', 'b'), command('EXEC')],
  ]

  function dataFolder(count: number): string {
    const dir = mkdtempSync(join(tmpdir(), 'holdfast-aof-'))
    ends.push(() => rmSync(dir, { recursive: true, force: true }))
    mkdirSync(join(dir, 'appendonlydir'))
    const manifest = [
      'file appendonly.aof.1.base.rdb seq 1 type b',
      'file appendonly.aof.1.incr.aof seq 1 type i',
    ]
    writeFileSync(join(dir, 'appendonlydir', 'appendonly.aof.manifest'), `${manifest.join('\n')}\n`)
    writeFileSync(liveFile(dir), Buffer.concat(steps.slice(0, count).flat()))
    return dir
  }

  test('is read command by command', () => {
    const all = steps.flat()
    const bytes = Buffer.concat(all)
    expect(texts(entriesOf(bytes).map(({ from, to }) => bytes.subarray(from, to)))).toEqual(texts(all))
  })

  test.each([1, 2, 3, 4])('is cut within its last step, whichever it is (%i)', (count) => {
    const dir = dataFolder(count)
    const before = readFileSync(liveFile(dir))
    const { from, to } = lastStep(before)
    expect(before.subarray(from, to)).toEqual(Buffer.concat(steps[count - 1] ?? []))
    const { left, of } = cutLast(dir, createRandom(`cut ${count}`))
    expect(of).toBe(to - from)
    expect(readFileSync(liveFile(dir))).toEqual(before.subarray(0, from + left))
  })

  test('gets one bit of a payload flipped, and nothing else', () => {
    const dir = dataFolder(4)
    const before = readFileSync(liveFile(dir))
    expect(payloadRegions(before).map(({ from, to }) => before.toString('utf8', from, to))).toEqual([payload])
    const at = flipPayload(dir, createRandom('flip'))?.at ?? -1
    const after = readFileSync(liveFile(dir))
    const changed = [...after.keys()].filter((n) => after[n] !== before[n])
    expect(changed).toEqual([at])
    expect(after.length).toBe(before.length)
  })
})
