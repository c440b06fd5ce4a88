import { afterAll, beforeAll, expect, it } from 'vitest'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

let server: TestServer
let record: OpenRecord

beforeAll(async () => {
  server = await startTestServer()
  record = await openRecord(server)
})
afterAll(async () => {
  await record.close()
  await server.stop()
})

const busy = (...hosts: string[]) => record.functions.busyHosts(hosts)

it('a host is busy for as long as it holds anything, whatever it is', async () => {
  const { functions, keys } = record
  const who = await record.join('worker', 'n1')
  expect(await busy('worker', 'never-seen')).toEqual([])
  const { deliveries } = await record.accept({ to: [{ host: 'worker' }] })
  const id = deliveries[0]?.id ?? ''
  expect(await busy('never-seen', 'worker')).toEqual(['worker'])
  const [delivered] = await record.deliverAll(who)
  expect(await record.send('XLEN', keys.stream('worker'))).toBe(0)
  expect(await busy('worker'), 'awaited').toEqual(['worker'])
  if (delivered === undefined) throw new Error(`${id} was not delivered`)
  const { attempt, grant } = await record.begin(who, delivered, 'g')
  await functions.report(who, [{ id: attempt, grant, key: 'k', outcome: { kind: 'result', result: '1' } }])
  expect(await busy('worker'), 'all is done').toEqual([])
})

it('parked, stranded, a ghost in the pending list and a wrong type are something as well', async () => {
  const { functions, keys, send } = record
  const who = await record.join('parks', 'n1')
  await functions.pause('conversation:parked', 'wait', 'kim')
  await record.accept({ conversation: 'parked', to: [{ host: 'parks' }] })
  await record.claimAll(who)
  await send('XTRIM', keys.stream('parks'), 'MAXLEN', '0')
  expect(await busy('parks'), 'parked').toEqual(['parks'])

  await send('ZADD', keys.stranded, '1', 'gone')
  const ghost = await record.join('ghost', 'n1')
  await record.accept({ to: [{ host: 'ghost' }] })
  await record.claimAll(ghost)
  await send('XTRIM', keys.stream('ghost'), 'MAXLEN', '0')
  await send('SET', keys.stream('wrong'), 'x')
  expect(await busy('gone', 'ghost', 'wrong', 'idle')).toEqual(['gone', 'ghost', 'wrong'])
})

it('refuses what is no host', async () => {
  await record.refused('INVALID_ARGUMENT', () => busy('Example'))
  await record.refused('INVALID_ARGUMENT', () => busy())
})
