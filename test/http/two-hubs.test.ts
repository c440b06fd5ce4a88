import { type ChildProcess, spawn } from 'node:child_process'
import { tmpdir } from 'node:os'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Point } from '../../src/contract/points.js'
import type { ServerOptions } from '../../src/http/server.js'
import { startCli } from '../cli/run-cli.js'
import { type Answer, call, openStream, startHubServer, type TestHubServer } from '../support/http.js'
import { startProxy } from '../support/proxy.js'
import { makeRecord, type OpenRecord, openRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// Two hubs over one record: whatever becomes of one of them, or of Redis, a client that repeats its call under the
// same key gets the one answer.

interface Accepted {
  readonly id: string
  readonly fanOut: string
  readonly deliveries: readonly { readonly id: string; readonly host: string; readonly state: string }[]
  readonly code?: string
  readonly logId?: string
}

interface Hubs {
  readonly record: TestRecord
  readonly one: TestHubServer
  readonly two: TestHubServer
  close(): Promise<void>
}

/** A slow machine is no overload here. */
const serve = (record: OpenRecord, overrides: Partial<ServerOptions> = {}) =>
  startHubServer(record, { limits: { lagMs: 0 }, ...overrides })

async function openHubs(server: TestServer, name: string): Promise<Hubs> {
  const record = await makeRecord(server, name)
  const [one, two] = await Promise.all([serve(record), serve(record)])
  return {
    record,
    one,
    two,
    close: async () => {
      await Promise.all([one.close(), two.close()])
      await record.close()
    },
  }
}

const hostsOf = (count: number) => Array.from({ length: count }, (_, n) => ({ host: `h${n}` }))
const message = { conversation: 'c1', sender: 's1', to: hostsOf(2), payload: { n: 1 } }

function post(
  hub: { readonly url: string },
  key: string,
  body: unknown = message,
  signal?: AbortSignal,
): Promise<Answer<Accepted>> {
  const headers = { 'idempotency-key': key }
  return call<Accepted>(hub.url, { method: 'POST', path: '/v1/messages', body, headers, signal })
}

const wasReplayed = ({ headers }: Answer) => headers.get('idempotency-replayed') === 'true'

async function messagesIn(record: TestRecord): Promise<string[]> {
  const keys = Object.keys(await record.dump())
  return keys.filter((key) => key.startsWith(':message:')).map((key) => key.slice(':message:'.length))
}

const isAccepted = async (record: TestRecord, key: string) =>
  (await record.send('EXISTS', record.keys.idempotency(key))) === 1

let server: TestServer
beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server?.stop())

describe('faults.md 25: one key over two hubs', () => {
  let hubs: Hubs
  afterEach(() => hubs.close())

  it.each([2, 200])('fifty parallel posts to %i recipients are one message', async (recipients) => {
    hubs = await openHubs(server, `parallel-${recipients}`)
    const { record, one, two } = hubs
    const body = { ...message, to: hostsOf(recipients) }
    const posts = Array.from({ length: 50 }, (_, n) => post(n % 2 === 0 ? one : two, 'order-17', body))
    const answers = await Promise.all(posts)
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(49).fill(200), 201])
    for (const answer of answers) expect(wasReplayed(answer)).toBe(answer.status === 200)
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    const [first] = answers.map(({ json }) => json)
    expect(await messagesIn(record)).toEqual([first?.id])
    expect(first?.fanOut).toBe('complete')
    expect(first?.deliveries.map(({ host }) => host)).toEqual(body.to.map(({ host }) => host))
    await record.checkInvariants()
  })

  it('with one byte or one recipient changed is refused by both, and the first is untouched', async () => {
    hubs = await openHubs(server, 'mismatch')
    const { record, one, two } = hubs
    const first = await post(one, 'order-17')
    const seen = await call(two.url, { path: `/v1/messages/${first.json.id}` })
    const before = await record.dump()
    const others = [
      { ...message, payload: { n: 2 } },
      JSON.stringify(message).replace('{"n":1}', '{"n": 1}'),
      { ...message, payload: undefined, payloadBase64: 'eyJuIjoyfQ==' },
      { ...message, to: hostsOf(3) },
      { ...message, to: hostsOf(1) },
      { ...message, to: [{ host: 'h0' }, { host: 'h2' }] },
      { ...message, conversation: 'c2' },
      { ...message, sender: 's2' },
      { ...message, parent: 'p' },
    ]
    for (const body of others) {
      for (const hub of [one, two]) {
        const answer = await post(hub, 'order-17', body)
        expect([answer.status, answer.json.code], JSON.stringify(body)).toEqual([422, 'IDEMPOTENCY_MISMATCH'])
        expect(answer.headers.get('content-type')).toContain('application/problem+json')
      }
    }
    expect(await record.dump()).toEqual(before)
    expect((await call(one.url, { path: `/v1/messages/${first.json.id}` })).json).toEqual(seen.json)
    expect((await post(two, 'order-17')).text).toBe(first.text)
  })

  it('is the same message in another envelope around the same payload bytes', async () => {
    hubs = await openHubs(server, 'envelope')
    const { record, one, two } = hubs
    const payload = '{"id":130775545883393173, "f":1.10,"e":"\\u00e9"}'
    const first = await post(
      one,
      'k',
      `{"conversation":"c","sender":"s","to":[{"host":"a"},{"host":"b"}],"payload":${payload}}`,
    )
    expect(first.status).toBe(201)
    const before = await record.dump()
    const envelopes = [
      `{"payload":${payload},"to":[{"host":"b"},{"host":"a"}],"sender":"s","conversation":"c"}`,
      `\n{ "conversation" :\t"c", "to": [ { "host" : "a" } , {"host":"b"}, {"host":"a"} ],\r\n"payload" :  ${payload} , "sender": "\\u0073" }\n`,
      `{"conversation":"c","sender":"s","to":[{"host":"a"},{"host":"b"}],"payload":${payload},"executeBy":"2100-01-01T00:00:00Z"}`,
      `{"conversation":"c","sender":"s","to":[{"host":"a"},{"host":"b"}],"payloadBase64":"${Buffer.from(payload).toString('base64')}","contentType":"application/json"}`,
    ]
    for (const envelope of envelopes) {
      const again = await post(two, 'k', envelope)
      expect([again.status, again.text]).toEqual([200, first.text])
      expect(wasReplayed(again)).toBe(true)
    }
    expect(await record.dump()).toEqual(before)
    const payloadKey = record.keys.payload(first.json.id)
    expect(await record.send('GET', payloadKey)).toBe(payload)
  })

  it('answers the states as they are now, on both', async () => {
    hubs = await openHubs(server, 'states')
    const { record, one, two } = hubs
    await post(one, 'k')
    await record.deliverAll(await record.join('h1', 'n1'))
    for (const hub of [one, two]) {
      const { deliveries } = (await post(hub, 'k')).json
      expect(deliveries.map(({ state }) => state)).toEqual(['queued', 'delivered'])
    }
  })
})

interface DyingHub {
  readonly url: string
  readonly ended: Promise<NodeJS.Signals | number | null>
}

const children = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})

/** A hub in a process of its own, which kills itself the n-th time it reaches a point. */
async function startDyingHub(record: TestRecord, point: Point, nth: number): Promise<DyingHub> {
  const script = fileURLToPath(new URL('../support/dying-hub-server.mjs', import.meta.url))
  const options = { redis: record.store.url, hub: record.name, at: { point, nth, signal: 'SIGKILL' } }
  const child = spawn(process.execPath, [script, JSON.stringify(options)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.add(child)
  const ended = new Promise<NodeJS.Signals | number | null>((resolve) => {
    child.once('close', (code, signal) => {
      children.delete(child)
      resolve(signal ?? code)
    })
  })
  const url = await new Promise<string>((resolve, reject) => {
    const lines = createInterface({ input: child.stdout })
    lines.once('line', (line) => resolve((JSON.parse(line) as { url: string }).url))
    lines.once('close', () => reject(new Error('the hub ended before it served')))
  })
  return { url, ended }
}

describe('a hub killed in the middle of a post', () => {
  const few = 2
  const many = 300
  // 300 recipients are made in four calls: 128 by accept, then 64, 64 and 44.
  const deaths = [
    { point: 'accept.before', nth: 1, recipients: few, madeBefore: 0 },
    { point: 'accept.sent', nth: 1, recipients: few },
    { point: 'accept.answered', nth: 1, recipients: few, madeBefore: 2 },
    { point: 'fan_out.before', nth: 1, recipients: many, madeBefore: 128 },
    { point: 'fan_out.sent', nth: 2, recipients: many },
    { point: 'fan_out.answered', nth: 3, recipients: many, madeBefore: 300 },
  ] as const

  let hubs: Hubs
  let dying: DyingHub[]
  beforeAll(async () => {
    hubs = await openHubs(server, 'killed')
    dying = await Promise.all(deaths.map(({ point, nth }) => startDyingHub(hubs.record, point, nth)))
  })
  afterAll(async () => {
    for (const child of children) child.kill('SIGKILL')
    await hubs?.close()
  })

  it.each(deaths.map((death, at) => ({ ...death, at })))(
    'at $point ($nth) with $recipients recipients: the repeat elsewhere has the complete answer at once',
    async ({ at, point, recipients, ...death }) => {
      const { record, one, two } = hubs
      const hub = dying[at]
      if (hub === undefined) throw new Error('no hub')
      const key = `killed-${at}`
      const body = { ...message, conversation: key, to: hostsOf(recipients) }
      const lost = await post(hub, key, body).catch((error: unknown) => error)
      expect(lost).toBeInstanceOf(Error)
      expect(await hub.ended).toBe('SIGKILL')
      if ('madeBefore' in death) {
        const made = Object.values(await record.dump()).filter(
          (each) => each.type === 'hash' && each.value['conversation'] === key && 'host' in each.value,
        )
        expect(made).toHaveLength(death.madeBefore)
      }
      const from = performance.now()
      const answer = await post(two, key, body)
      expect(performance.now() - from).toBeLessThan(2000)
      if (point === 'accept.before') expect(answer.status).toBe(201)
      else if (point !== 'accept.sent') expect(answer.status).toBe(200)
      expect(wasReplayed(answer)).toBe(answer.status === 200)
      expect(answer.json.fanOut).toBe('complete')
      const hosts = answer.json.deliveries.map(({ host }) => host)
      expect(hosts).toEqual(body.to.map(({ host }) => host))
      expect((await post(one, key, body)).text).toBe(answer.text)
      await record.checkInvariants()
    },
  )

  it('owes nothing in the end', async () => {
    const { record } = hubs
    expect(await record.send('ZCARD', record.keys.obligations)).toBe(0)
    expect(await messagesIn(record)).toHaveLength(deaths.length)
  })
})

describe('a hub that shuts down', () => {
  let hubs: Hubs
  beforeAll(async () => {
    hubs = await openHubs(server, 'shutdown')
  })
  afterAll(() => hubs?.close())

  it('answers what is under way and refuses what comes then, and everything it took on is there', async () => {
    const { record } = hubs
    const proxy = await startProxy(server.port)
    let sent = 0
    const onPoint = (point: Point) => {
      if (point === 'accept.before') sent += 1
    }
    const hub = await serve(record, { redis: proxy.url, onPoint })
    proxy.blackhole(true)
    const keys = Array.from({ length: 20 }, (_, n) => `under-way-${n}`)
    const underWay = keys.map((key) => post(hub, key))
    await until(() => sent === keys.length, { what: 'twenty posts under way' })
    const closed = hub.close()
    const late = await post(hub, 'late')
    expect([late.status, late.json.code]).toEqual([503, 'SHUTTING_DOWN'])
    expect(late.headers.get('retry-after')).toBe('1')
    expect(late.headers.get('content-type')).toContain('application/problem+json')
    const ready = await call(hub.url, { path: '/readyz' })
    expect(ready.status).toBe(503)
    expect(ready.json).toMatchObject({ checks: { serving: { ok: false } } })
    expect((await call(hub.url, { path: '/livez' })).status).toBe(200)
    proxy.blackhole(false)
    for (const { status, json } of await Promise.all(underWay)) {
      expect([status, json.fanOut]).toEqual([201, 'complete'])
    }
    await closed
    await expect(post(hub, 'later')).rejects.toThrow()
    expect(await isAccepted(record, 'late')).toBe(false)
    await proxy.close()
  })

  it('by SIGTERM under load: each post is answered, or was never taken on', async () => {
    const { record } = hubs
    const args = [
      'serve',
      '--redis',
      record.store.url,
      '--hub',
      record.name,
      '--listen',
      '127.0.0.1:0',
      '--json',
    ]
    const serving = startCli(args, { cwd: tmpdir() })
    const said = await serving.said('"serving"')
    const url = /"url":"([^"]+)"/.exec(said)?.[1] ?? ''
    const answers = new Map<string, Answer<Accepted> | undefined>()
    let keys = 0
    let stopping = false

    async function load(): Promise<void> {
      for (;;) {
        keys += 1
        const key = `term-${keys}`
        const answer = await post({ url }, key).catch(() => undefined)
        answers.set(key, answer)
        if (stopping && answer?.status !== 201) return
        if (answer === undefined) throw new Error('the hub was gone before it was told to')
      }
    }

    const node = await record.join('idle', 'n1')
    const body = { node: node.node, incarnation: 1, request: 1, waitMs: 30_000 }
    const poll = call(url, { method: 'POST', path: '/v1/hosts/idle/claim', body })
    const { json } = await post({ url }, 'waited-for')
    const wait = call(url, { path: `/v1/messages/${json.id}?waitMs=30000` })
    const stream = await openStream(url, { path: '/v1/events' })
    const workers = Array.from({ length: 16 }, load)
    await until(() => answers.size > 200, { what: 'some load' })
    stopping = true
    const from = performance.now()
    serving.child.kill('SIGTERM')
    await Promise.all(workers)
    expect(await poll).toMatchObject({ status: 200, json: { deliveries: [] } })
    expect(await wait).toMatchObject({ status: 200, json: { id: json.id } })
    await stream.ended
    expect(await serving.ended).toMatchObject({ code: 0 })
    expect(performance.now() - from).toBeLessThan(5000)

    for (const [key, answer] of answers) {
      if (answer?.status === 201) continue
      if (answer !== undefined) expect([answer.status, answer.json.code]).toEqual([503, 'SHUTTING_DOWN'])
      expect(await isAccepted(record, key), `${key}: ${answer?.status ?? 'cut off'}`).toBe(false)
    }
    const accepted = [...answers.values()].filter((answer) => answer?.status === 201)
    const known = new Set(await messagesIn(record))
    expect(accepted.filter((answer) => !known.has(answer?.json.id ?? ''))).toEqual([])
    await record.checkInvariants()
  })
})

/** How long a client waits before it repeats a call that was refused. */
const retryMs = 50
/** Between two posts of one producer: the load is steady, not all that the machine can do. */
const paceMs = 5
const beatMs = 250

interface Refusal {
  readonly of: 'post' | 'claim'
  readonly answer: Answer<{ readonly code?: string }>
}

/** Producers and a node that repeat each call until it is answered, over both hubs in turn. */
function startLoad({ record, one, two }: Hubs) {
  const refusals: Refusal[] = []
  const accepted: string[] = []
  const claimed: string[] = []
  const over = new AbortController()
  let turn = 0
  let keys = 0
  let lastLogId = '0-0'

  /** Repeats a call until its answer is a good one; undefined at the end of the load. */
  async function answered(of: Refusal['of'], ask: (hub: TestHubServer) => Promise<Answer<Accepted>>) {
    while (!over.signal.aborted) {
      turn += 1
      const answer = await ask(turn % 2 === 0 ? one : two)
      if (answer.status < 300) return answer
      refusals.push({ of, answer })
      await sleep(retryMs)
    }
    return undefined
  }

  async function produce(): Promise<void> {
    while (!over.signal.aborted) {
      keys += 1
      const key = `load-${keys}`
      const body = { ...message, to: [{ host: 'a' }], conversation: `c${keys % 10}` }
      const answer = await answered('post', (hub) => post(hub, key, body))
      if (answer !== undefined) accepted.push(answer.json.deliveries[0]?.id ?? '')
      await sleep(paceMs)
    }
  }

  async function consume(): Promise<void> {
    await record.join('a', 'n1')
    for (let request = 1; !over.signal.aborted; request += 1) {
      const body = { node: 'n1', incarnation: 1, request, count: 50, waitMs: 100 }
      const path = '/v1/hosts/a/claim'
      const answer = await answered('claim', (hub) => call(hub.url, { method: 'POST', path, body }))
      claimed.push(...(answer?.json.deliveries ?? []).map(({ id }) => id))
      if (answer !== undefined && answer.json.deliveries.length > 0)
        lastLogId = answer.json.logId ?? lastLogId
    }
  }

  /** As every node does: a server that started anew is attested by it. */
  async function beat(): Promise<void> {
    while (!over.signal.aborted) {
      turn += 1
      const { url } = turn % 2 === 0 ? one : two
      const body = { incarnation: 1, lastLogId }
      await call(url, { method: 'PUT', path: '/v1/hosts/a/nodes/n1', body })
      await sleep(beatMs)
    }
  }

  const running = Promise.all([produce(), produce(), produce(), consume(), beat()])
  return {
    refusals,
    accepted,
    claimed,
    end: async () => {
      over.abort()
      await running
    },
  }
}

describe.concurrent('Redis does not work for a while', () => {
  const backMs = 5000

  /** Breaks Redis under load, mends it, and expects everything to work again soon. */
  async function survives(
    name: string,
    how: {
      /** Breaks it; resolves when it may be mended. */
      breaks(own: TestServer, load: ReturnType<typeof startLoad>, hubs: Hubs): Promise<void>
      mends(own: TestServer, hubs: Hubs): Promise<unknown>
      readonly codes: readonly string[]
    },
  ): Promise<void> {
    const own = await startTestServer()
    const hubs = await openHubs(own, name)
    const { record, one, two } = hubs
    const load = startLoad(hubs)
    await until(() => load.accepted.length > 20 && load.claimed.length > 20, { what: 'load' })
    const stream = await openStream(one.url, { path: '/v1/events' })
    await how.breaks(own, load, hubs)

    const mendedAt = performance.now()
    await how.mends(own, hubs)
    const [posted, claims, told] = [load.accepted.length, load.claimed.length, stream.text().length]
    const back = (check: () => boolean | Promise<boolean>, what: string) =>
      until(check, { timeoutMs: backMs, everyMs: 25, what: `${name}: ${what}` })
    await Promise.all([
      back(() => load.accepted.length > posted + 20, 'posts are answered'),
      back(() => load.claimed.length > claims + 20, 'claims are answered'),
      back(() => stream.text().length > told, 'events come'),
      ...[one, two].map((hub) =>
        back(async () => (await call(hub.url, { path: '/readyz' })).status === 200, 'ready'),
      ),
    ])
    expect(performance.now() - mendedAt).toBeLessThan(backMs)
    await load.end()
    await stream.close()

    expect(load.refusals.length).toBeGreaterThan(0)
    for (const { status, headers, json } of load.refusals.map(({ answer }) => answer)) {
      expect([status, headers.get('content-type'), headers.get('retry-after')]).toEqual([
        503,
        'application/problem+json',
        '1',
      ])
      expect(how.codes).toContain(json.code)
    }
    expect(new Set(load.accepted).size).toBe(load.accepted.length)
    expect(new Set(load.claimed).size).toBe(load.claimed.length)
    const rows = Object.keys(await record.dump()).filter((key) => key.startsWith(':delivery:'))
    const known = new Set(rows.map((key) => key.slice(':delivery:'.length)))
    expect([...load.accepted, ...load.claimed].filter((id) => !known.has(id))).toEqual([])
    await record.checkInvariants()
    await hubs.close()
    await own.stop()
  }

  const refused = (load: ReturnType<typeof startLoad>, what: Refusal['of'], code: string) =>
    until(() => load.refusals.some(({ of, answer }) => of === what && answer.json.code === code), {
      timeoutMs: 25_000,
      what: `a ${what} refused as ${code}`,
    })

  it('faults.md 16: a primary that turns read-only', () =>
    survives('read-only', {
      breaks: async (own, load) => {
        own.cli('REPLICAOF', '127.0.0.1', '1')
        await refused(load, 'claim', 'STORE_UNAVAILABLE')
        // A post is tried again for ten seconds before it is refused.
        await refused(load, 'post', 'STORE_UNAVAILABLE')
      },
      mends: async (own) => own.cli('REPLICAOF', 'NO', 'ONE'),
      codes: ['STORE_UNAVAILABLE', 'DEADLINE_EXCEEDED', 'NOT_ATTESTED'],
    }))

  it('a server that answers nobody', () =>
    survives('paused', {
      breaks: async (_, load, { record }) => {
        await record.send('CLIENT', 'PAUSE', 7000, 'ALL')
        await refused(load, 'claim', 'DEADLINE_EXCEEDED')
      },
      mends: (_, { record }) => until(() => record.send('PING'), { what: 'an answer' }),
      codes: ['STORE_UNAVAILABLE', 'DEADLINE_EXCEEDED'],
    }))

  it('faults.md 17: a server that is killed, and comes back', () =>
    survives('restarted', {
      breaks: async (own, load, { one }) => {
        await own.kill9()
        await refused(load, 'claim', 'STORE_UNAVAILABLE')
        await until(async () => (await call(one.url, { path: '/readyz' })).status === 503, {
          what: 'unready',
        })
      },
      mends: (own) => own.restart(),
      codes: ['STORE_UNAVAILABLE', 'DEADLINE_EXCEEDED', 'NOT_ATTESTED'],
    }))
})

describe('faults.md 3: FLUSHALL', () => {
  let own: TestServer
  let hubs: Hubs
  afterEach(async () => {
    await hubs?.close()
    await own?.stop()
  })

  const readiness = async (hub: TestHubServer) => {
    const { status, json } = await call<{ checks: { record: { why?: string } } }>(hub.url, {
      path: '/readyz',
    })
    return { status, why: json.checks.record.why ?? '' }
  }

  /** Loses everything under both hubs, and sees that nothing comes into being again. */
  async function lose(name: string): Promise<void> {
    own = await startTestServer()
    hubs = await openHubs(own, name)
    const { record, one, two } = hubs
    const node = await record.join('a', 'n1')
    await post(one, 'before')
    own.cli('FLUSHALL')
    for (const hub of [one, two]) {
      const at = `/v1/hosts/a`
      const who = { node: 'n1', incarnation: 1 }
      const answers = [
        await post(hub, 'lost'),
        await call(hub.url, { method: 'POST', path: `${at}/claim`, body: { ...who, request: 1 } }),
        await call(hub.url, { method: 'PUT', path: `${at}/nodes/${node.node}`, body: { incarnation: 1 } }),
        await call(hub.url, {
          method: 'POST',
          path: `${at}/nodes/n2`,
          body: { incarnation: 1, instance: 'i' },
        }),
        await call(hub.url, { method: 'PUT', path: '/v1/fences/pause/hub', body: { reason: 'r' } }),
        await call(hub.url, { path: '/v1/hosts' }),
        await call(hub.url, { path: '/v1/events' }),
      ]
      for (const { status, headers, json } of answers) {
        expect(status, JSON.stringify(json)).toBe(503)
        expect(json).toMatchObject({ code: 'STORE_UNKNOWN' })
        expect(headers.get('content-type')).toBe('application/problem+json')
        expect(headers.get('retry-after')).toBe('5')
      }
      // Several of its looks see it, each in its own time.
      const told = async () => (await readiness(hub)).why.includes('STORE_UNKNOWN')
      await until(told, { what: 'the record not being right' })
      expect((await readiness(hub)).status).toBe(503)
      expect(hub.lines.filter((line) => line.includes('the record is not right'))).toHaveLength(1)
    }
    expect(own.cli('DBSIZE')).toBe('0')
  }

  it('is told by every call and by readiness; after init --after-loss both hubs work and are ready', async () => {
    await lose('flushed')
    const { record, one, two } = hubs
    const made = await record.functions.init('made-again', true)
    expect(made).toMatchObject({ storeId: 'made-again', made: true })
    expect(made.generation).toBeGreaterThan(0)
    for (const [hub, status] of [
      [one, 201],
      [two, 200],
    ] as const) {
      expect((await post(hub, 'before')).status).toBe(status)
      await until(async () => (await readiness(hub)).status === 200, { timeoutMs: 3000, what: 'ready' })
      expect(hub.lines.filter((line) => line.includes('the record is right again'))).toHaveLength(1)
    }
    const node = await record.join('h0', 'n1', 2)
    const { deliveries } = await record.claim(node)
    expect(deliveries).toMatchObject([{ epoch: made.generation * 1_000_000 }])
  })

  it('followed by an init that knows of no loss: another record, for which these hubs are not ready', async () => {
    await lose('replaced')
    const { record, one, two } = hubs
    await record.functions.init('stranger', false)
    for (const hub of [one, two]) {
      await until(async () => (await readiness(hub)).why.includes('another'), { what: 'the reason' })
      expect((await readiness(hub)).status).toBe(503)
    }
    const fresh = await serve(await openRecord(own, { name: record.name, init: false }))
    await until(async () => (await readiness(fresh)).status === 200, { what: 'ready' })
    await fresh.close()
  })
})
