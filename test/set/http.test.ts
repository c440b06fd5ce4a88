import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Client, openClient } from '../../src/client/open-client.js'
import type { HubEvent } from '../../src/contract/events.js'
import { certificate } from '../support/certificate.js'
import { call } from '../support/http.js'
import { until } from '../support/until.js'
import { messageOf, openSetStage, type SetStage, serveSet } from './stage.js'

// A set at one address: each hub whole below its name, and the health of all of them at the root.

let stage: SetStage
let url: string
beforeAll(async () => {
  stage = await openSetStage()
  url = stage.served.url
})
afterAll(() => stage?.close())

describe('the root', () => {
  test('names the hubs, and is alive', async () => {
    expect(await call(url, { path: '/hubs' })).toMatchObject({ status: 200, json: { hubs: stage.names } })
    expect(await call(url, { path: '/livez' })).toMatchObject({ status: 200, text: 'ok\n' })
  })

  test('is ready when every hub is, and says which is not', async () => {
    const ready = () => call<{ ready: boolean; notReady: string[]; hubs: object }>(url, { path: '/readyz' })
    await until(async () => (await ready()).status === 200, { what: 'the set being ready' })
    expect(Object.keys((await ready()).json.hubs)).toEqual(stage.names)
    const { keys, send } = stage.record('hf-1')
    await send('RENAME', keys.identity, `${keys.tag}:aside`)
    const not = await until(
      async () => {
        const answer = await ready()
        return answer.status === 503 ? answer : undefined
      },
      { what: 'the set not being ready' },
    )
    await send('RENAME', `${keys.tag}:aside`, keys.identity)
    expect(not.json).toMatchObject({ ready: false, notReady: ['hf-1'], hubs: { 'hf-0': { ready: true } } })
    await until(async () => (await ready()).status === 200, { what: 'the set being ready again' })
  })

  test('shows the metrics of every hub once, by hub, and those of the process once', async () => {
    await stage.client.accept(messageOf(stage.conversationOf('hf-2'), { to: [{ host: 'm' }] }))
    const { text, status } = await call(url, { path: '/metrics' })
    expect(status).toBe(200)
    const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name)
    expect(names).toHaveLength(new Set(names).size)
    expect(names).toContain('process_cpu_seconds_total')
    for (const hub of stage.names) {
      expect(text).toMatch(new RegExp(`^holdfast_deliveries\\{state="queued",hub="${hub}"\\} \\d+$`, 'm'))
    }
    const figures = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    expect(figures).toHaveLength(new Set(figures.map((line) => line.replace(/ \S+$/, ''))).size)
    const helps = [...text.matchAll(/^# HELP (\S+)/gm)]
    expect(helps).toHaveLength(names.length)
  })

  test.each(['/v1/messages', '/hubs/none/livez', '/hubs/', '/openapi.json', '/hubs/hf-0x/livez'])(
    '%s is no route; the hubs are named',
    async (path) => {
      const { status, json } = await call<{ code: string; detail: string }>(url, { path })
      expect(status).toBe(404)
      expect(json).toMatchObject({ code: 'ROUTE_NOT_FOUND', detail: expect.stringContaining('hf-0, hf-1') })
    },
  )

  test('refuses other methods with those it knows', async () => {
    const { status, headers } = await call(url, { method: 'POST', path: '/hubs', body: {} })
    expect(status).toBe(405)
    expect(headers.get('allow')).toBe('GET, HEAD')
  })
})

describe('below the name of a hub', () => {
  const below = (path: string) => `/hubs/hf-1${path}`

  test('is all that a hub serves', async () => {
    const conversation = stage.conversationOf('hf-1')
    const body = { conversation, sender: 's', to: [{ host: 'a' }], payload: { n: 1 } }
    const headers = { 'idempotency-key': 'by hand' }
    const made = await call<{ id: string }>(url, {
      method: 'POST',
      path: below('/v1/messages'),
      body,
      headers,
    })
    expect(made.status).toBe(201)
    expect(made.json.id).toMatch(/^\d+-\d+$/)
    expect(await stage.client.message(`hf-1:${made.json.id}`)).toMatchObject({ key: 'by hand', conversation })
    for (const path of ['/livez', '/readyz', '/metrics', '/openapi.json', '/docs', '/v1/held?limit=1']) {
      expect((await call(url, { path: below(path) })).status, path).toBe(200)
    }
    expect((await call(url, { path: below('/v1/messages/0-0') })).json).toMatchObject({
      code: 'MESSAGE_NOT_FOUND',
    })
  })

  test('the page of the interface finds its parts, and the document says where the hub is', async () => {
    const { text } = await call(url, { path: below('/docs') })
    const parts = [...text.matchAll(/(?:href|src)="(\/[^"]+)"/g)].map(([, path = '']) => path)
    expect(parts.length).toBeGreaterThan(3)
    for (const path of parts) expect((await call(url, { path })).status, path).toBe(200)
    const { json } = await call<{ servers: unknown }>(url, { path: below('/openapi.json') })
    expect(json.servers).toEqual([{ url: '/hubs/hf-1' }])
  })
})

describe('the events of a set', () => {
  test('come from every hub, each with its hub and its place there; each goes on where it was', async () => {
    const client = openClient({ url, hubs: stage.names, actor: 'kim' })
    const seen: HubEvent[] = []
    const over = new AbortController()
    const reading = read(client, seen, { signal: over.signal })
    // A stream begins with what is new once it is connected: sends until each of them is.
    let sent = 0
    await until(
      async () => {
        for (const hub of stage.names) {
          sent += 1
          await client.accept(messageOf(stage.conversationOf(hub), { to: [{ host: `e${sent}` }] }))
        }
        return new Set(seen.map(({ hub }) => hub)).size === stage.names.length
      },
      { what: 'an event of every hub' },
    )
    over.abort()
    await reading
    for (const { hub = '', ...event } of seen) {
      if (event.kind !== 'entry') continue
      for (const { ids } of event.entry.changes)
        for (const id of ids) expect(id.startsWith(`${hub}:`)).toBe(true)
    }
    const lastEventId = Object.fromEntries(
      stage.names.map((name) => [name, seen.find(({ hub }) => hub === name)?.id ?? '']),
    )
    const firsts = new Map(stage.names.map((name) => [name, seen.find(({ hub }) => hub === name)]))
    const again: HubEvent[] = []
    const rest = new AbortController()
    const resumed = read(client, again, { lastEventId, signal: rest.signal })
    const expected = seen.filter((event) => event !== firsts.get(event.hub ?? ''))
    const keyOf = ({ hub, id }: HubEvent) => `${hub} ${id}`
    await until(() => expected.every((event) => again.some((each) => keyOf(each) === keyOf(event))), {
      what: 'all that came after the first of each hub',
    })
    rest.abort()
    await resumed
    for (const first of firsts.values()) expect(again.map(keyOf)).not.toContain(keyOf(first as HubEvent))
    await client.close()
  })

  test('a place that names no hub is refused', async () => {
    for (const lastEventId of ['1-0', { elsewhere: '1-0' }]) {
      expect(() => stage.client.events({ lastEventId })).toThrow(/INVALID_ARGUMENT/)
    }
    const one = openClient({ url: `${url}/hubs/hf-0` })
    await expect(one.events({ lastEventId: { 'hf-0': '1-0' } }).next()).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    })
    await one.close()
  })

  test('sweeps are run on every hub', async () => {
    const runs = await stage.client.runSweep('audit')
    expect(runs.map(({ hub, name }) => [hub, name])).toEqual(stage.names.map((hub) => [hub, 'audit']))
  })
})

test('a set of one is served at the root, without a prefix, and reached there', async () => {
  const served = await serveSet({ redis: stage.server.url, hubs: ['hf-0'] })
  expect((await call(served.url, { path: '/v1/held' })).status).toBe(200)
  expect((await call(served.url, { path: '/hubs/hf-0/v1/held' })).status).toBe(404)
  expect((await call(served.url, { path: '/hubs' })).status).toBe(404)
  const { json } = await call<object>(served.url, { path: '/openapi.json' })
  expect(json).not.toHaveProperty('servers')
  const client = openClient({ url: served.url, hubs: ['hf-0'] })
  expect((await client.accept(messageOf('c1', { sender: 's' }))).id).toMatch(/^\d+-\d+$/)
  await client.close()
  await served.close()
})

test('a set that is closed answers what is under way, then listens no more', async () => {
  const served = await serveSet({ redis: stage.server.url, hubs: stage.names })
  const client = openClient({ url: served.url, hubs: stage.names })
  const { id } = await client.accept(messageOf(stage.conversationOf('hf-1'), { to: [{ host: 'slow' }] }))
  const waiting = call<{ id: string }>(served.url, {
    path: `/hubs/hf-1/v1/messages/${id.split(':')[1]}?waitMs=30000`,
  })
  const isWaiting = async () => {
    const { text } = await call(served.url, { path: '/metrics' })
    return text.includes('holdfast_http_waiting{hub="hf-1"} 1')
  }
  await until(isWaiting, { what: 'the wait being under way' })
  await Promise.all([served.close(), served.close()])
  expect(await waiting).toMatchObject({ status: 200, json: { id: id.split(':')[1] } })
  await expect(fetch(served.url)).rejects.toThrow()
  await client.close()
})

test('over HTTPS the hubs see the certificate that a principal pins', async () => {
  const tls = { certificate: certificate.cert, key: certificate.key }
  const served = await serveSet({ redis: stage.server.url, hubs: stage.names, tls })
  const own = { ca: certificate.cert, cert: certificate.cert, key: certificate.key }
  await stage.set.addPrincipal({ name: 'pinned', role: 'operator', certificate: certificate.cert }, 'kim')
  const client = openClient({
    url: served.url.replace('127.0.0.1', 'localhost'),
    hubs: stage.names,
    tls: own,
  })
  expect((await client.principals()).map(({ name }) => name)).toEqual(['pinned'])
  const accepted = await client.accept({ ...messageOf(stage.conversationOf('hf-1')), sender: 'pinned' })
  expect(accepted.id.startsWith('hf-1:')).toBe(true)
  await client.close()
  const stranger = openClient({
    url: served.url.replace('127.0.0.1', 'localhost'),
    hubs: stage.names,
    tls: { ca: certificate.cert },
  })
  await expect(stranger.counts()).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
  await stranger.close()
  await served.close()
})

async function read(
  client: Client,
  seen: HubEvent[],
  options: Parameters<Client['events']>[0],
): Promise<void> {
  for await (const event of client.events(options)) seen.push(event)
}
