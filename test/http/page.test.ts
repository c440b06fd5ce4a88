import { readdirSync, readFileSync } from 'node:fs'
import { get, type IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openSetStage, type SetStage } from '../set/stage.js'
import { call, startHubServer, type TestHubServer } from '../support/http.js'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

// The page of a hub, as `npm run build` made it, and how it reaches a browser.

const built = fileURLToPath(new URL('../../dist/dashboard/', import.meta.url))
const index = readFileSync(join(built, 'index.html'), 'utf8')
const assets = readdirSync(join(built, 'assets')).filter((name) => !/\.(br|gz)$/.test(name))
const policy =
  "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
  "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

let redis: TestServer
let record: OpenRecord
let server: TestHubServer

beforeAll(async () => {
  redis = await startTestServer()
  record = await openRecord(redis)
  server = await startHubServer(record)
  await server.hub.addPrincipal({ name: 'kim', role: 'operator' }, 'tests')
})
afterAll(async () => {
  await server?.close()
  await record?.close()
  await redis?.stop()
})

interface Bytes {
  readonly status: number | undefined
  readonly headers: IncomingHttpHeaders
  readonly bytes: Buffer
}

/** One answer as it stands on the wire: fetch would undo its coding. */
function bytesOf(path: string, coding: string, more: Record<string, string> = {}): Promise<Bytes> {
  return new Promise((resolve, reject) => {
    get(`${server.url}${path}`, { headers: { 'accept-encoding': coding, ...more } }, async (response) => {
      const chunks: Buffer[] = []
      for await (const chunk of response) chunks.push(chunk as Buffer)
      const { statusCode: status, headers } = response
      resolve({ status, headers, bytes: Buffer.concat(chunks) })
    }).once('error', reject)
  })
}

describe('the page', () => {
  it('is served to everyone at the root, and asked for anew each time', async () => {
    const { status, text, headers } = await call(server.url, { path: '/' })
    expect({ status, text }).toEqual({ status: 200, text: index })
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(headers.get('cache-control')).toBe('no-cache')
    const first = await bytesOf('/', 'br')
    const again = await bytesOf('/', 'br', { 'if-none-match': first.headers.etag ?? '' })
    expect({ status: again.status, length: again.bytes.length }).toEqual({ status: 304, length: 0 })
    expect(await call(server.url, { method: 'HEAD', path: '/' })).toMatchObject({ status: 200, text: '' })
  })

  it('says what it may load and that nothing frames it; the answers of the interface keep their own', async () => {
    const { headers } = await call(server.url, { path: '/' })
    expect(headers.get('content-security-policy')).toBe(policy)
    expect(headers.get('x-frame-options')).toBe('DENY')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(headers.get('strict-transport-security')).toBeNull()
    const other = await call(server.url, { path: '/livez' })
    expect(other.headers.get('content-security-policy')).toContain("script-src 'self';")
  })

  it('names its files relative to itself, and needs nothing from elsewhere', () => {
    const named = [...index.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, name = '']) => name)
    expect(named.length).toBeGreaterThan(0)
    for (const name of named) expect(name).toMatch(/^\.\/assets\/[\w-]+-[\w-]{8}\.\w+$/)
    expect(index).not.toMatch(/<script(?![^>]*\ssrc=)/)
    expect(assets.some((name) => name.endsWith('.map'))).toBe(false)
  })

  it.each(assets)('%s is kept for good', async (name) => {
    const { status, headers } = await call(server.url, { path: `/assets/${name}` })
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  })

  it.each(['/', ...assets.filter((name) => name.endsWith('.js')).map((name) => `/assets/${name}`)])(
    '%s is sent as it was compressed when it was built',
    async (path) => {
      const plain = await bytesOf(path, 'identity')
      expect(plain.headers['content-encoding']).toBeUndefined()
      const undo = { br: brotliDecompressSync, gzip: gunzipSync }
      for (const [coding, decompress] of Object.entries(undo)) {
        const { status, headers, bytes } = await bytesOf(path, coding)
        expect({ status, coding: headers['content-encoding'] }).toEqual({ status: 200, coding })
        expect(headers.vary).toMatch(/accept-encoding/i)
        expect(headers['content-type']).toBe(plain.headers['content-type'])
        expect(headers['cache-control']).toBe(plain.headers['cache-control'])
        expect(decompress(bytes).equals(plain.bytes)).toBe(true)
      }
    },
  )

  it.each([
    '/assets/',
    '/assets/none.js',
    `/assets/${assets[0]}.gz`,
    '/assets/..%2findex.html',
    '/..%2f..%2fpackage.json',
    '/index.html.br',
    '//',
    '/v1',
  ])('%s is no file of it', async (path) => {
    expect(await call(server.url, { path })).toMatchObject({ status: 404, json: { code: 'ROUTE_NOT_FOUND' } })
  })

  it.each(['POST', 'PUT', 'DELETE', 'OPTIONS'])('%s is refused with the methods it knows', async (method) => {
    for (const path of ['/', `/assets/${assets[0]}`]) {
      const { status, headers } = await call(server.url, { method, path })
      expect({ status, allow: headers.get('allow') }).toEqual({ status: 405, allow: 'GET, HEAD' })
    }
  })

  it('is no part of the interface that is described', async () => {
    const { json } = await call<{ paths: object }>(server.url, { path: '/openapi.json' })
    expect(Object.keys(json.paths).filter((path) => path === '/' || path.startsWith('/assets'))).toEqual([])
  })
})

it('where the page was not built, its place says what to do', async () => {
  const without = await startHubServer(record, { pageDir: join(built, 'none') })
  try {
    const { status, json } = await call(without.url, { path: '/' })
    expect(status).toBe(404)
    expect(json).toMatchObject({ code: 'ROUTE_NOT_FOUND', next: expect.stringContaining('npm run build') })
    expect((await call(without.url, { path: '/livez' })).status).toBe(200)
  } finally {
    await without.close()
  }
})

describe('a server of a set', () => {
  let stage: SetStage
  beforeAll(async () => {
    stage = await openSetStage()
  })
  afterAll(() => stage?.close())

  it.each(['/', '/hubs/hf-0/', '/hubs/hf-2/?a=1'])('serves the page at %s', async (path) => {
    const { status, text, headers } = await call(stage.served.url, { path })
    expect({ status, text }).toEqual({ status: 200, text: index })
    expect(headers.get('content-security-policy')).toBe(policy)
  })

  it('serves its files below each of these', async () => {
    for (const base of ['/', '/hubs/hf-1/']) {
      const { status } = await call(stage.served.url, { path: `${base}assets/${assets[0]}` })
      expect(status, base).toBe(200)
    }
  })

  it('leads from the name of a hub to its page, wherever the server itself is mounted', async () => {
    for (const method of ['GET', 'HEAD']) {
      const { status, headers } = await call(stage.served.url, { method, path: '/hubs/hf-1' })
      expect({ status, location: headers.get('location') }).toEqual({ status: 307, location: 'hf-1/' })
    }
    const { headers } = await call(stage.served.url, { path: '/hubs/hf-1?a=1' })
    expect(headers.get('location')).toBe('hf-1/?a=1')
    expect((await call(stage.served.url, { method: 'POST', path: '/hubs/hf-1' })).status).toBe(405)
    expect((await call(stage.served.url, { path: '/hubs' })).json).toEqual({ hubs: stage.names })
  })
})
