import { afterAll, beforeAll, expect, test } from 'vitest'
import { call, startHubServer, type TestHubServer } from '../support/http.js'
import { makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

// Who sees which messages, and reads what they carry.

let server: TestServer
let record: TestRecord
let hub: TestHubServer
const tokens: Record<string, string> = {}
const ids: Record<string, string> = {}

beforeAll(async () => {
  server = await startTestServer()
  record = await makeRecord(server, 'messages')
  for (const sender of ['billing', 'shipping']) {
    ids[sender] = (await record.accept({ sender, key: `key-${sender}`, payload: `<b>${sender}</b>` })).id
  }
  const principals = [
    { name: 'kim', role: 'operator' },
    { name: 'eve', role: 'viewer' },
    { name: 'billing', role: 'producer' },
    { name: 'relay', role: 'producer', anySender: true },
    { name: 'build', role: 'node', host: 'a' },
  ] as const
  for (const each of principals)
    tokens[each.name] = (await record.hub.addPrincipal(each, 'tests')).token ?? ''
  hub = await startHubServer(record)
})
afterAll(async () => {
  await hub?.close()
  await record?.close()
  await server?.stop()
})

const ask = (who: string, path: string) =>
  call<{ code?: string; messages?: { id: string }[] }>(hub.url, { path, token: tokens[who] })
const payloadOf = (sender: string) => `/v1/messages/${ids[sender]}/payload`

async function listed(who: string, query = ''): Promise<(string | undefined)[]> {
  const { json } = await ask(who, `/v1/messages${query}`)
  return json.messages?.map(({ id }) => Object.keys(ids).find((name) => ids[name] === id)) ?? [json.code]
}

test('a producer sees its own messages, whatever it asks for; others see all', async () => {
  for (const who of ['kim', 'eve', 'relay']) expect(await listed(who)).toEqual(['shipping', 'billing'])
  expect(await listed('billing')).toEqual(['billing'])
  expect(await listed('billing', '?sender=billing')).toEqual(['billing'])
  expect(await listed('billing', '?sender=shipping')).toEqual(['FORBIDDEN'])
  expect(await listed('billing', `?id=${ids['shipping']}`)).toEqual([])
  expect(await listed('billing', '?key=key-shipping')).toEqual([])
  expect(await listed('kim', '?key=key-shipping')).toEqual(['shipping'])
  expect(await listed('build')).toEqual(['FORBIDDEN'])
})

test('a payload is for operators and its producer, and for viewers where the setting says so', async () => {
  const statuses = async (sender: string) =>
    Promise.all(
      ['kim', 'relay', 'billing', 'eve', 'build'].map(
        async (who) => (await ask(who, payloadOf(sender))).status,
      ),
    )
  expect(await statuses('billing')).toEqual([200, 200, 200, 403, 403])
  expect(await statuses('shipping')).toEqual([200, 200, 403, 403, 403])
  await record.config('viewer_payloads', 1)
  expect(await statuses('shipping')).toEqual([200, 200, 403, 200, 403])
  await record.config('viewer_payloads', '01')
  expect(await statuses('shipping')).toEqual([200, 200, 403, 200, 403])
  await record.config('viewer_payloads', 2)
  expect((await ask('eve', payloadOf('shipping'))).json.code).toBe('FORBIDDEN')
})

test('no browser takes a payload for a page', async () => {
  const { text, headers } = await ask('kim', payloadOf('billing'))
  expect(text).toBe('<b>billing</b>')
  const named = (name: string) => headers.get(name)
  expect({
    type: named('content-type'),
    disposition: named('content-disposition'),
    sniffing: named('x-content-type-options'),
    policy: named('content-security-policy'),
    caching: named('cache-control'),
  }).toEqual({
    type: 'application/octet-stream',
    disposition: 'attachment',
    sniffing: 'nosniff',
    policy: 'sandbox',
    caching: 'no-store',
  })
  expect((await ask('kim', '/v1/messages/1-1/payload')).json.code).toBe('MESSAGE_NOT_FOUND')
})
