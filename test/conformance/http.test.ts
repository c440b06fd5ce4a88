import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Client, openClient } from '../../src/client/open-client.js'
import type { NodeTransport } from '../../src/node/transport.js'
import { openHttpTransport } from '../../src/node/transports/http.js'
import { call } from '../support/http.js'
import { freshPath, startNode, stopNodes } from '../support/nodes.js'
import { until } from '../support/until.js'
import { type CuttingProxy, startCuttingProxy } from './cutting-proxy.js'
import type { Settings } from './environment.js'
import { type HttpEnvironment, type HttpSurface, httpEnvironment } from './environments.js'
import { beat, done, idsOf, item, kim, refused, type Stage, stageOn } from './stage.js'
import { conformance } from './suite.js'

conformance('over HTTP', httpEnvironment)

let environment: HttpEnvironment
let surface: HttpSurface
let stage: Stage
let proxy: CuttingProxy
const closing: (() => Promise<void>)[] = []

async function open(settings: Settings = {}): Promise<void> {
  surface = await environment.makeRecord({ heartbeat_ms: 100, stale_after_ms: 60_000, ...settings })
  stage = stageOn(surface)
  proxy = await startCuttingProxy(surface.url)
  closing.push(proxy.close)
}

/** A node of host `a` behind the proxy. */
async function startBehindProxy(options: Partial<Parameters<typeof startNode>[0]> = {}) {
  const http = { url: proxy.url, token: await surface.token('a') }
  return startNode({ host: 'a', http, concurrency: 4, ...options })
}

async function untilDone(ids: readonly string[]): Promise<void> {
  await until(async () => (await stage.hub.counts())['done'] === ids.length, {
    timeoutMs: 30_000,
    everyMs: 50,
    what: `${ids.length} deliveries done`,
  })
}

/** Every one was executed once, in one attempt, by the owner it had from the start. */
async function expectOnce(ids: readonly string[], executed: readonly { deliveryId: string }[]) {
  expect(executed.map(({ deliveryId }) => deliveryId).toSorted()).toEqual(ids.toSorted())
  for (const view of await Promise.all(ids.map((id) => stage.hub.delivery(id)))) {
    expect(view).toMatchObject({ epoch: 1, takeovers: 0, attempts: [{ status: 'done' }] })
  }
  expect((await stage.hub.counts())['late_reports'] ?? 0).toBe(0)
  expect([await stage.hub.unknown(), await stage.hub.pending()]).toEqual([[], []])
}

const calls = {
  join: /^POST \/v1\/hosts\/a\/nodes\//,
  heartbeat: /^PUT \/v1\/hosts\/a\/nodes\//,
  claim: /\/claim$/,
  mirror: /\/mirror$/,
  ack: /\/ack$/,
  begin: /\/begin$/,
  report: /^POST \/delivery-report$/,
} as const

/** A call to a hub that is gone; on a kept connection that is just being closed it may have been sent. */
const away: unknown = expect.stringMatching(/^(HUB_UNREACHABLE|DEADLINE_EXCEEDED)$/)

function gateOf(): [Promise<void>, () => void] {
  let release = () => {}
  const gate = new Promise<void>((resolve) => {
    release = resolve
  })
  return [gate, () => release()]
}

describe('only over HTTP', () => {
  beforeAll(async () => {
    environment = await httpEnvironment()
  })
  afterEach(async () => {
    await stopNodes()
    for (const close of closing.splice(0)) await close()
    await stage.record.checkInvariants()
    await surface.close()
  })
  afterAll(() => environment?.close())

  describe('the connection of a node is cut around a call: it goes on, and executes everything once', () => {
    it.each(Object.keys(calls) as (keyof typeof calls)[])('%s', async (verb) => {
      await open()
      const ids = await stage.acceptMany(2)
      const lost = proxy.cutAfterReply(calls[verb])
      const unsent = verb === 'join' ? proxy.cutBeforeSend(calls.join) : undefined
      const node = await startBehindProxy()
      await lost
      if (unsent === undefined) {
        const second = proxy.cutBeforeSend(calls[verb])
        ids.push(...(await stage.acceptMany(2, { conversation: 'c2' })))
        await second
      } else await unsent
      await untilDone(ids)
      await expectOnce(ids, node.executed)
      expect(node.logs.map(({ log }) => log)).not.toContain('the attempt was cut off')
    })

    it('claim, while it waits: what it was answered is asked for again', async () => {
      await open()
      const node = await startBehindProxy()
      await stage.untilWaiting()
      const lost = proxy.cutAfterReply(calls.claim)
      const ids = await stage.acceptMany(1)
      await lost
      await untilDone(ids)
      await expectOnce(ids, node.executed)
    })

    it('refuse: it is held once', async () => {
      await open()
      const [id = ''] = await stage.acceptMany(1)
      await stage.record.send('SET', stage.record.keys.payload(id.split('.')[0] ?? ''), 'another')
      const lost = proxy.cutAfterReply(/\/refuse$/)
      const node = await startBehindProxy()
      await lost
      const ids = await stage.acceptMany(1)
      await untilDone(ids)
      expect(await stage.hub.held()).toMatchObject([{ id, reason: 'payload_corrupt' }])
      expect((await stage.hub.delivery(id)).epoch).toBe(2)
      expect(idsOf(node.executed)).toEqual(ids.map((each) => `${each}/1`))
    })

    it('leave: it has left, and another goes on at once', async () => {
      await open()
      const [gate, release] = gateOf()
      const node = await startBehindProxy({ node: 'gone', execute: () => gate })
      const ids = await stage.acceptMany(2)
      await until(() => node.executed.length === 1)
      const heir = await stage.join({ node: 'heir' })
      await heir.claimAll()
      const lost = proxy.cutAfterReply(/^DELETE /)
      const stopped = node.node.stop()
      release()
      await lost
      await stopped
      expect(await node.node.closed).toMatchObject({ kind: 'stopped' })
      const taken = await heir.claimAll()
      expect(taken).toMatchObject([{ id: ids[1], how: 'takeover', epoch: 2 }])
      expect((await stage.hub.delivery(ids[1] ?? '')).takeovers).toBe(0)
    })
  })

  describe('a call whose answer was lost', () => {
    it('is answered the first answer, step by step, and moves nothing a second time', async () => {
      await open()
      const transport = openHttpTransport({ url: proxy.url, token: await surface.token('a') })
      closing.push(() => transport.close())
      const who = { host: 'a', node: 'n1', incarnation: 1 }
      await transport.join(who, 'i1', [], '0-0')
      const [id = ''] = await stage.acceptMany(1)
      const waiting = { waitMs: 0, signal: new AbortController().signal }
      const one = { id, epoch: 1 }
      const report = { id: `${id}/1`, grant: 'g', key: 'k', outcome: done }
      const steps = {
        claim: async () => {
          const { deliveries } = await transport.claim(who, 1, 10, waiting)
          return deliveries.map(({ payload, ...rest }) => ({ ...rest, said: payload.toString() }))
        },
        mirror: () => transport.mirror(who, [one], {}),
        ack: () => transport.ack(who, [one], {}),
        begin: () => transport.begin(who, [{ ...one, grant: 'g' }], {}),
        report: () => transport.report(who, [report], {}),
      } as const
      const wanted = {
        claim: [expect.objectContaining({ ...one, how: 'new', said: 'payload 1' })],
        mirror: [{ ...one, ok: true, state: 'mirrored' }],
        ack: [{ ...one, ok: true, state: 'delivered' }],
        begin: [{ ...one, ok: true, state: 'delivered', attempt: 1 }],
        report: [{ ...one, ok: true, state: 'delivered', attempt: 1, outcome: 'result', replayed: true }],
      }
      for (const verb of ['claim', 'mirror', 'ack', 'begin', 'report'] as const) {
        const gone = proxy.cutAfterReply(calls[verb])
        await expect(steps[verb](), verb).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
        await gone
        const after = await stage.record.dump()
        expect(await steps[verb](), verb).toEqual(wanted[verb])
        expect(await stage.record.dump(), verb).toEqual(after)
      }
    })

    async function lossyClient(): Promise<Client> {
      const operator = await stage.hub.addPrincipal(
        { name: `lossy-${stage.record.name}-${performance.now()}`, role: 'operator' },
        'kim',
      )
      const client = openClient({ url: proxy.url, token: operator.token })
      closing.push(client.close)
      return client
    }

    it('accept and resend repeat themselves: one message each', async () => {
      await open()
      const client = await lossyClient()
      const message = { key: 'k', conversation: 'c', sender: 's', to: [{ host: 'a' }], payload: 'p' }
      const ids: string[] = []
      for (const [cut, key] of [
        ['cutAfterReply', 'k1'],
        ['cutBeforeSend', 'k2'],
      ] as const) {
        const gone = proxy[cut](/^POST \/v1\/messages$/)
        const accepted = await client.accept({ ...message, key })
        await gone
        expect(accepted.replayed).toBe(cut === 'cutAfterReply')
        const again = proxy[cut](/\/resend$/)
        ids.push(accepted.id, (await client.resend(accepted.id, { key: `${key} again` })).id)
        await again
      }
      const stored = Object.keys(await stage.record.dump()).filter((key) => key.startsWith(':message:'))
      expect(stored.toSorted()).toEqual(ids.map((id) => `:message:${id}`).toSorted())
    })

    it("an operator's act is made once, and says that it may have been done", async () => {
      await open()
      const client = await lossyClient()
      const [id = ''] = await stage.acceptMany(1)
      const cases = [
        [/^PUT \/v1\/fences/, () => client.pause('hub', kim)],
        [/^DELETE \/v1\/fences/, () => client.lift('pause', 'hub', 'kim')],
        [/\/hold$/, () => client.holdDelivery(id, kim)],
        [/\/release$/, () => client.release(id, kim)],
      ] as const
      for (const [match, act] of cases) {
        const gone = proxy.cutAfterReply(match)
        await expect(act()).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
        await gone
      }
      expect(await stage.hub.fences()).toEqual([])
      expect(await stage.hub.delivery(id)).toMatchObject({ state: 'queued', epoch: 2 })
      const unsent = proxy.cutBeforeSend(/\/cancel$/)
      await expect(client.cancel(id, kim)).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
      await unsent
      expect(await stage.hub.delivery(id)).toMatchObject({ state: 'queued' })
      proxy.refuse()
      await expect(client.cancel(id, kim)).rejects.toMatchObject({ code: away })
    })
  })

  describe('the hub goes away while nodes work, and comes back', () => {
    /** So many handlers have run, and more are to come. */
    async function working(count: number) {
      const ids: string[] = []
      for (let at = 0; at < count; at += 1) {
        ids.push(...(await stage.acceptMany(1, { conversation: `c${at % 5}` })))
      }
      const [gate, release] = gateOf()
      let entered = 0
      const execute = async () => {
        entered += 1
        if (entered > count / 3) await gate
        await nextTurn()
      }
      return { ids, release, execute, entered: () => entered }
    }

    it('it is shut down and opened again on its port: nothing is lost or done twice', async () => {
      await open()
      const { ids, release, execute, entered } = await working(40)
      const node = await startNode({ ...(await surface.nodeReach('a')), host: 'a', execute, concurrency: 4 })
      await until(() => entered() > 13)
      const reopen = await surface.closeServer()
      release() // what runs ends while nobody can be told
      await until(() => node.logs.some(({ log }) => log === 'no answer; the same call is repeated'))
      await expect(stage.hub.drain('a', 'kim')).rejects.toMatchObject({ code: away })
      await reopen()
      await untilDone(ids)
      await expectOnce(ids, node.executed)
      await node.node.stop()
      expect(await node.node.closed).toEqual({ kind: 'left' })
    })

    it('it dies in the middle of everything: nothing is lost or done twice', async () => {
      await open()
      const { ids, release, execute, entered } = await working(40)
      const node = await startBehindProxy({ execute })
      await until(() => entered() > 13)
      for (let round = 0; round < 3; round += 1) {
        proxy.refuse()
        if (round === 1) release()
        await until(() => node.logs.filter(({ log }) => log.startsWith('no answer')).length > round)
        proxy.restore()
        ids.push(...(await stage.acceptMany(2, { conversation: `c${round}` })))
      }
      await untilDone(ids)
      await expectOnce(ids, node.executed)
      expect(node.logs.map(({ log }) => log)).not.toContain('the attempt was cut off')
    })

    it('a waiting node is told by the hub that shuts down, and claims again once it is back', async () => {
      await open()
      const node = await startNode({ ...(await surface.nodeReach('a')), host: 'a' })
      await stage.untilWaiting()
      const from = performance.now()
      const reopen = await surface.closeServer()
      expect(performance.now() - from).toBeLessThan(5000)
      await reopen()
      const ids = await stage.acceptMany(1)
      await untilDone(ids)
      await expectOnce(ids, node.executed)
    })

    it('a node starts without a hub, and waits for it', async () => {
      await open()
      proxy.refuse()
      const starting = startBehindProxy()
      const ids = await stage.acceptMany(1)
      proxy.restore()
      const node = await starting
      await untilDone(ids)
      await expectOnce(ids, node.executed)
    })

    it('a node that stops while the hub is away keeps what it knows; its next start reports it', async () => {
      await open()
      const mirror = freshPath('db')
      const [gate, release] = gateOf()
      const first = await startBehindProxy({ mirror, execute: () => gate, drainMs: 300, graceMs: 100 })
      const ids = await stage.acceptMany(1)
      await until(() => first.executed.length === 1)
      proxy.refuse()
      release()
      await first.node.stop()
      expect(await first.node.closed).toMatchObject({ kind: 'stopped' })
      proxy.restore()
      const second = await startBehindProxy({ mirror })
      await untilDone(ids)
      expect([first.executed.length, second.executed.length]).toEqual([1, 0])
    })
  })

  describe('who may speak', () => {
    it('a node whose principal is revoked ends as failed, though it only waits', async () => {
      await open({ heartbeat_ms: 60_000 })
      const { node } = await startNode({ ...(await surface.nodeReach('sold')), host: 'sold' })
      await stage.untilWaiting()
      const from = performance.now()
      await stage.hub.revokePrincipal('node-sold', kim)
      expect(await node.closed).toMatchObject({ kind: 'failed', error: { code: 'UNAUTHENTICATED' } })
      expect(performance.now() - from).toBeLessThan(5000)
    })

    it('a node with the token of another host, of nobody or of no node does not start', async () => {
      await open()
      const { url } = surface
      const token = await surface.token('b')
      const viewer = await stage.hub.addPrincipal({ name: 'vera', role: 'viewer' }, 'kim')
      for (const [given, code] of [
        [token, 'FORBIDDEN'],
        [viewer.token, 'FORBIDDEN'],
        ['hft_unknown', 'UNAUTHENTICATED'],
        [undefined, 'UNAUTHENTICATED'],
      ] as const) {
        await expect(startNode({ host: 'a', http: { url, token: given } })).rejects.toMatchObject({ code })
      }
      await expect(
        startNode({ host: 'b', http: { url, token }, scopes: ['/srv/work', '/etc'] }),
      ).rejects.toMatchObject({ code: 'SCOPE_NOT_AUTHORISED' })
      const { node } = await startNode({ host: 'b', http: { url, token }, scopes: ['/srv/work'] })
      await node.stop()
      expect(await node.closed).toEqual({ kind: 'left' })
    })

    it('the actor of an act is the principal, whatever is said', async () => {
      await open()
      const mallory = { ...kim, actor: 'mallory' }
      await stage.hub.hold('hub', mallory)
      const [id = ''] = await stage.acceptMany(1)
      await stage.hub.cancel(id, mallory)
      expect(await stage.hub.fences()).toMatchObject([{ actor: 'kim' }])
      expect(await stage.record.fields(id)).toMatchObject({ failed_by: 'kim' })
      await stage.hub.lift('hold', 'hub', 'mallory')
      expect(JSON.stringify(await stage.record.dump())).not.toContain('mallory')
    })

    it('a node of another host may make none of the calls', async () => {
      await open()
      const node = await stage.join()
      const { id, epoch } = await node.takeOne('mirrored')
      const transport: NodeTransport = await stage.transport('b')
      const { who } = node
      const about = { id, epoch }
      const waiting = { waitMs: 10_000, signal: new AbortController().signal }
      const all = {
        join: () => transport.join({ ...who, incarnation: 2 }, 'i2', [], '0-0'),
        heartbeat: () => transport.heartbeat(who, beat),
        claim: () => transport.claim(who, 5, 1, waiting),
        mirror: () => transport.mirror(who, [about], {}),
        ack: () => transport.ack(who, [about], {}),
        refuse: () => transport.refuse(who, [{ ...about, verdict: 'failed', reason: 'x' }]),
        begin: () => transport.begin(who, [{ ...about, grant: 'g' }], {}),
        report: () => transport.report(who, [{ id, grant: 'g', key: 'k', outcome: done }], {}),
        leave: () => transport.leave(who),
      }
      for (const each of Object.values(all)) await refused(stage, 'FORBIDDEN', each)
      expect(await node.ack(item(about))).toMatchObject([{ ok: true, state: 'delivered' }])
    })
  })

  it('accept refuses what it would have to leave out', async () => {
    await open()
    const { id } = await stage.accept()
    await refused(stage, 'INVALID_ARGUMENT', () => stage.accept({ resendOf: id }))
    const padded = await stage.hub.accept({ key: ' k', conversation: 'c', to: [], payload: '' }).catch(String)
    expect(padded).toContain('INVALID_ARGUMENT')
  })

  it('a JSON payload that was posted reaches the node as its exact source text', async () => {
    await open()
    const text =
      '{ "z":1,"a":12345678901234567890,"n":1.10,"e":1E2,"s":"\\u00e9\\/\\ud83d\\ude00 é😀", "l":[ 1 , 2 ] }'
    const { token } = await stage.hub.addPrincipal({ name: 'billing', role: 'producer' }, 'kim')
    const posted = await call(surface.url, {
      method: 'POST',
      path: '/v1/messages',
      headers: { 'idempotency-key': 'k' },
      ...(token === undefined ? {} : { token }),
      body: `{"conversation":"c","to":[{"host":"a"}],"payload": ${text} }`,
    })
    expect(posted.status).toBe(201)
    const [claimed] = await (await stage.join()).claimAll()
    expect(claimed?.payload.toString()).toBe(text)
    expect(claimed?.message).toMatchObject({ contentType: 'application/json', sender: 'billing' })
  })
})
