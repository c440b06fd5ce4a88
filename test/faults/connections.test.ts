import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { prepareMessage } from '../../src/contract/message.js'
import { openHub } from '../../src/hub/open-hub.js'
import { openStore } from '../../src/record/connections.js'
import { type Functions, functionsOf } from '../../src/record/functions.js'
import { startNode, stopNodes } from '../support/nodes.js'
import { type FaultyProxy, startProxy } from '../support/proxy.js'
import { makeRecord, settlement, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

let server: TestServer
let proxy: FaultyProxy
const closing: (() => Promise<void>)[] = []

beforeAll(async () => {
  server = await startTestServer()
  proxy = await startProxy(server.port)
})

afterEach(async () => {
  proxy.restore()
  await stopNodes()
  for (const close of closing.splice(0)) await close()
})

afterAll(async () => {
  await proxy?.close()
  await server?.stop()
})

async function open(name: string): Promise<TestRecord> {
  const record = await makeRecord(server, name)
  closing.push(record.close)
  return record
}

const message = {
  key: 'k1',
  conversation: 'c1',
  sender: 's1',
  to: [{ host: 'h1' }, { host: 'h2' }],
  payload: 'p',
}

const cuts = {
  'its reply is lost': 'cutAfterReply',
  'it never arrives': 'cutBeforeSend',
} as const

describe('faults.md 14: the socket is cut around one call, and the caller goes on by itself', () => {
  for (const [what, cut] of Object.entries(cuts) as [string, 'cutAfterReply' | 'cutBeforeSend'][]) {
    it(`accept: ${what}: one message, and its ids are the answer`, async () => {
      const record = await open(`accept-${cut.toLowerCase()}`)
      const hub = await openHub({ redis: proxy.url, hub: record.name })
      closing.push(hub.close)
      const gone = proxy[cut]('hf_accept')
      const accepted = await hub.accept(message)
      await gone
      const stored = Object.keys(await record.dump()).filter((key) => key.startsWith(':message:'))
      expect(stored).toEqual([`:message:${accepted.id}`])
      expect(accepted.deliveries.map(({ id, host }) => [id, host])).toEqual([
        [`${accepted.id}.1`, 'h1'],
        [`${accepted.id}.2`, 'h2'],
      ])
      expect(accepted.fanOut).toBe('complete')
      await record.checkInvariants()
    })

    for (const verb of ['claim', 'take', 'begin', 'report'] as const) {
      it(`${verb}: ${what}: one epoch step, one grant, one execution, one outcome`, async () => {
        const record = await open(`${verb}-${cut.toLowerCase()}`)
        const ids: string[] = []
        for (let at = 0; at < 3; at += 1) {
          // Begun by a call of its own is what has to wait behind another of its lane.
          const conversation = verb === 'begin' ? 'c' : `c${at}`
          const { deliveries } = await record.accept({ conversation, to: [{ host: 'h1' }] })
          ids.push(deliveries[0]?.id ?? '')
        }
        const gone = proxy[cut](`hf_${verb}`)
        const node = await startNode({ redis: proxy.url, hub: record.name, host: 'h1' })
        await gone
        for (const id of ids) {
          expect(await settlement(record, id)).toBe('done')
          expect(await record.hub.delivery(id)).toMatchObject({
            epoch: 1,
            takeovers: 0,
            attempts: [{ status: 'done' }],
          })
        }
        expect(node.executed.map((attempt) => attempt.id).sort()).toEqual(ids.map((id) => `${id}/1`).sort())
        expect(node.logs.map(({ log }) => log)).not.toContain('the attempt was cut off')
        expect((await record.hub.counts())['late_reports'] ?? 0).toBe(0)
        expect(await record.hub.unknown()).toEqual([])
        expect(await record.hub.pending()).toEqual([])
        await record.checkInvariants()
      })
    }
  }
})

describe('faults.md 14: a call whose reply was lost is repeated and gets the first answer', () => {
  const who = { host: 'h1', node: 'n1', incarnation: 1 }
  const outcome = { kind: 'result', result: '{"n":1}' } as const
  const item = (id: string) => ({ id, epoch: 1 })
  type Steps = Readonly<Record<string, (functions: Functions, id: string) => Promise<unknown>>>
  const steps: Steps = {
    claim: async (functions) => {
      const { deliveries } = await functions.claim(who, 1, 10)
      return deliveries.map(({ id, epoch, how, state, payload }) => [id, epoch, how, state, String(payload)])
    },
    mirror: (functions, id) => functions.mirror(who, [item(id)]),
    ack: (functions, id) => functions.ack(who, [item(id)]),
    begin: (functions, id) => functions.begin(who, [{ ...item(id), grant: 'g1' }]),
    report: (functions, id) => functions.report(who, [{ id: `${id}/1`, grant: 'g1', key: 'r1', outcome }]),
  }

  for (const [last, verb] of Object.keys(steps).entries()) {
    it(`${verb}: nothing moves a second time`, async () => {
      const record = await open(`repeat-${verb}`)
      const [reference, lossy] = [await open(`repeat-${verb}-whole`), await lossyFunctions(record)]
      await record.join('h1', 'n1')
      await reference.join('h1', 'n1')
      const id = (await record.accept({ to: [{ host: 'h1' }], payload: 'p' })).deliveries[0]?.id ?? ''
      const otherId = (await reference.accept({ to: [{ host: 'h1' }], payload: 'p' })).deliveries[0]?.id ?? ''
      const [lost] = Object.values(steps).slice(last, last + 1)
      if (lost === undefined) throw new Error('no such step')
      for (const step of Object.values(steps).slice(0, last)) {
        await step(record.functions, id)
        await step(reference.functions, otherId)
      }
      const whole = JSON.stringify(await lost(reference.functions, otherId)).replaceAll(otherId, id)

      const gone = proxy.cutAfterReply(`hf_${verb}`)
      await expect(lost(lossy, id)).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
      await gone
      const after = await record.dump()
      const again = await lost(lossy, id)
      const first = JSON.parse(whole) as object
      const known = verb === 'report' ? [{ ...(first as object[])[0], replayed: true }] : first
      expect(again).toEqual(known)
      expect(await record.dump()).toEqual(after)
      await record.checkInvariants()
    })
  }

  it('accept: the ids of the first', async () => {
    const record = await open('repeat-accept')
    const lossy = await lossyFunctions(record)
    const prepared = prepareMessage(message)
    const gone = proxy.cutAfterReply('hf_accept')
    await expect(lossy.accept(prepared)).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    await gone
    const after = await record.dump()
    const again = await lossy.accept(prepared)
    expect(again).toMatchObject({ replayed: true, recipients: 2, made: 2 })
    expect(after).toHaveProperty([`:message:${again.id}`])
    expect(await record.dump()).toEqual(after)
  })

  async function lossyFunctions(record: TestRecord): Promise<Functions> {
    const store = await openStore({ url: proxy.url, name: 'lossy', deadlineMs: 5000 })
    closing.push(store.close)
    return functionsOf(store, record.keys.tag)
  }
})

describe('faults.md 14: a connection that says nothing at all', () => {
  it('a node behind it goes on when it comes back, and has done everything once', async () => {
    const record = await open('silent')
    const node = await startNode({ redis: proxy.url, hub: record.name, host: 'h1' })
    proxy.blackhole(true)
    const { deliveries } = await record.accept({ to: [{ host: 'h1' }] })
    const id = deliveries[0]?.id ?? ''
    proxy.cutAll()
    proxy.blackhole(false)
    expect(await settlement(record, id)).toBe('done')
    expect(node.executed).toHaveLength(1)
    await record.checkInvariants()
  })
})
