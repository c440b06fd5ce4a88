import { type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { text as textOf } from 'node:stream/consumers'
import { pino } from 'pino'
import { type HubServer, type ServerOptions, startServer } from '../../src/http/server.js'
import { sweepsOnDemand } from '../../src/sweeps/on-demand.js'
import { certificate } from './certificate.js'
import type { OpenRecord } from './record.js'

/** A hub over HTTP in this process. */
export interface TestHubServer extends HubServer {
  /** What it logged, at every level: lines of JSON. */
  readonly lines: readonly string[]
}

/** Serves a test record on a free port of loopback. Close it before its record. */
export async function startHubServer(
  record: OpenRecord,
  overrides: Partial<ServerOptions> = {},
): Promise<TestHubServer> {
  const lines: string[] = []
  const server = await startServer({
    redis: record.store.url,
    hub: record.name,
    listen: { host: '127.0.0.1', port: 0 },
    sweeps: sweepsOnDemand,
    log: pino({ level: 'trace' }, { write: (line) => void lines.push(line) }),
    ...overrides,
    // The test and its server share an event loop, on a machine that is busy.
    limits: { lagMs: 0, ...overrides.limits },
  })
  return { ...server, lines }
}

/** One request. A body that is no text is sent as JSON. */
export interface Asked {
  /** GET when absent. */
  readonly method?: string | undefined
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly token?: string | undefined
  readonly signal?: AbortSignal | undefined
}

export interface Answer<Body = unknown> {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** Undefined where the answer is no JSON. */
  readonly json: Body
}

export async function call<Body = unknown>(url: string, asked: Asked): Promise<Answer<Body>> {
  const response = await send(url, asked)
  const text = await response.text()
  const isJson = /^application\/(problem\+)?json/.test(response.headers.get('content-type') ?? '')
  const json = (isJson && text !== '' ? JSON.parse(text) : undefined) as Body
  return { status: response.status, headers: response.headers, text, json }
}

export interface ClientCertificate {
  readonly cert: string
  readonly key: string
}

/** An answer as it came, with the headers of Node. */
export interface Spoken {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly json: unknown
}

/** One request with whatever headers, as fetch would not send them; under a client certificate where one is given. */
export async function speak(
  url: string,
  { method = 'GET', path, body, headers, token }: Asked,
  client?: ClientCertificate,
): Promise<Spoken> {
  const options = {
    method,
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...headers,
    },
  }
  const secure = url.startsWith('https:')
  const request = secure
    ? requestHttps(`${url}${path}`, { ...options, ...client, ca: certificate.cert })
    : requestHttp(`${url}${path}`, options)
  request.end(body === undefined ? undefined : JSON.stringify(body))
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve).once('error', reject)
  })
  const text = await textOf(response)
  const isJson = /json/.test(response.headers['content-type'] ?? '')
  const { statusCode: status = 0, headers: answered } = response
  return { status, headers: answered, text, json: isJson && text !== '' ? JSON.parse(text) : undefined }
}

/** An answer that goes on, such as that of /v1/events. */
export interface Stream {
  readonly status: number
  /** What has come so far. */
  text(): string
  /** Resolves when it is over, whoever ended it. */
  readonly ended: Promise<void>
  /** Goes away. */
  close(): Promise<void>
}

export async function openStream(url: string, asked: Asked): Promise<Stream> {
  const leaving = new AbortController()
  const response = await send(url, { ...asked, signal: leaving.signal })
  let text = ''
  const read = async () => {
    const decoder = new TextDecoder()
    for await (const chunk of response.body ?? []) text += decoder.decode(chunk, { stream: true })
  }
  const ended = read().catch(() => undefined)
  return {
    status: response.status,
    text: () => text,
    ended,
    close: async () => {
      leaving.abort()
      await ended
    },
  }
}

function send(url: string, { method = 'GET', path, body, headers, token, signal }: Asked): Promise<Response> {
  return fetch(`${url}${path}`, {
    method,
    redirect: 'manual',
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  })
}
