import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { openHub } from '../../src/hub/open-hub.js'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

let server: TestServer
let record: OpenRecord

beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server?.stop())
beforeEach(async () => {
  record = await openRecord(server)
  await record.config('inline_fan_out', 2)
})
afterEach(async () => {
  await record.checkInvariants()
  await record.close()
})

const to = (count: number) => Array.from({ length: count }, (_, at) => ({ host: `h${at}` }))
const owing = async () => Number(await record.send('ZCARD', record.keys.obligations))

it('a starting hub completes the fan-outs that were cut, by itself', async () => {
  const cut = [await record.accept({ to: to(300) }), await record.accept({ to: to(3) })]
  expect(await owing()).toBe(2)
  const hub = await openHub({ redis: server.url, hub: record.name })
  await until(async () => (await owing()) === 0)
  for (const [at, { id }] of cut.entries()) {
    expect(await hub.message(id)).toMatchObject({ fanOut: 'complete', recipients: at === 0 ? 300 : 3 })
  }
  await hub.close()
})

it('two starting hubs make nothing twice', async () => {
  for (let each = 0; each < 20; each += 1) await record.accept({ to: to(20) })
  const hubs = await Promise.all([1, 2].map(() => openHub({ redis: server.url, hub: record.name })))
  await until(async () => (await owing()) === 0)
  expect((await hubs[0]?.counts())?.['queued']).toBe(400)
  await Promise.all(hubs.map((hub) => hub.close()))
})

it('tells what it made', async () => {
  const hub = await openHub({ redis: server.url, hub: record.name })
  expect(await hub.repair()).toEqual({ messages: 0, deliveries: 0, stuck: 0 })
  await record.accept({ to: to(10) })
  expect(await hub.repair()).toEqual({ messages: 1, deliveries: 8, stuck: 0 })
  await hub.close()
})

type Damage = readonly [what: string, apply: (id: string) => Promise<unknown>]

const damages: readonly Damage[] = [
  ['whose message row is gone', (id) => record.send('DEL', record.keys.message(id))],
  ['that names too few recipients', (id) => record.send('DEL', record.keys.recipients(id))],
  [
    'whose recipients are of another type',
    async (id) => {
      await record.send('DEL', record.keys.recipients(id))
      await record.send('SET', record.keys.recipients(id), 'x')
    },
  ],
  [
    'that names a recipient which is none',
    (id) => record.send('LSET', record.keys.recipients(id), 0, 'host:A'),
  ],
]

it.each(damages)('an obligation %s does not starve the others', async (_, damage) => {
  const damaged = await record.accept({ to: to(4) })
  const sound = await record.accept({ to: to(4) })
  await damage(damaged.id)
  record.damaged(`${damaged.id}.1`, `${damaged.id}.2`)
  const errors: unknown[] = []
  const hub = await openHub({
    redis: server.url,
    hub: record.name,
    onRepairError: (error) => errors.push(error),
  })
  expect(await hub.repair()).toMatchObject({ stuck: 1 })
  expect(await hub.message(sound.id)).toMatchObject({ fanOut: 'complete' })
  expect(errors).toEqual([])
  expect(await owing()).toBe(1)
  await hub.close()
})
