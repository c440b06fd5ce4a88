import { connect } from 'node:net'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openClient } from '../../src/client/open-client.js'
import { HoldfastError } from '../../src/contract/errors.js'
import type { HubCalls } from '../../src/contract/hub.js'
import { openHub } from '../../src/hub/open-hub.js'
import { openHubSet } from '../../src/hub/open-hub-set.js'
import { hubSetOf } from '../../src/set/hub-set-of.js'
import type { TestServer } from '../support/server.js'
import { until } from '../support/until.js'
import { messageOf, openSetStage, type SetStage, serveSet } from './stage.js'

// What a message costs in a set: calls of its own hub, and of no other. Counted where they arrive.

let stage: SetStage
beforeAll(async () => {
  stage = await openSetStage()
})
afterAll(() => stage?.close())

const messages = 200

test('a message on the record is one function call on its hub, and none on another', async () => {
  const set = await openHubSet({ redis: stage.server.url, hubs: stage.names })
  const monitor = await monitored(stage.server)
  const ids: string[] = []
  for (let sent = 0; sent < messages; sent += 1) {
    const hub = stage.names[sent % stage.names.length] ?? ''
    const { id } = await set.accept(messageOf(stage.conversationOf(hub), { to: [{ host: 'counted' }] }))
    ids.push(id)
  }
  const seen = await monitor.end()
  await set.close()

  const accepts = seen.filter((line) => /"(hf_accept\w*|hf_fan_out)"/.test(line))
  expect(accepts).toHaveLength(messages)
  const each = stage.names.map((hub) => accepts.filter((line) => line.includes(`{${hub}}`)).length)
  expect(each).toEqual(stage.names.map((hub) => ids.filter((id) => id.startsWith(`${hub}:`)).length))
  for (const line of accepts) expect(tagsIn(line)).toHaveLength(1)
})

test('messages of one hub leave the others alone, whatever they are asked for', async () => {
  const set = await openHubSet({ redis: stage.server.url, hubs: stage.names })
  const monitor = await monitored(stage.server)
  const conversation = stage.conversationOf('hf-1')
  for (let sent = 0; sent < messages; sent += 1) {
    const { id } = await set.accept(messageOf(conversation, { to: [{ host: 'counted' }] }))
    if (sent % 20 > 0) continue
    await set.message(id)
    await set.delivery(`${id}.1`)
    await set.why(`${id}.1`)
    await set.cancel(`${id}.1`, { reason: 'counted', actor: 'kim' })
    await set.waitFor(id, 10)
  }
  const seen = await monitor.end()
  await set.close()
  // Every hub looks now and then whether its server is still the one it attested, message or none.
  const calls = seen.filter((line) => /"(fcall|fcall_ro)"/i.test(line) && !line.includes('"hf_attest"'))
  expect(calls.length).toBeGreaterThanOrEqual(messages)
  expect(calls.filter((line) => !line.includes('{hf-1}'))).toEqual([])
})

test('over HTTP a message is one request to its hub', async () => {
  const lines: { hub?: string; method?: string; path?: string }[] = []
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const served = await serveSet({ redis: stage.server.url, hubs: stage.names, log })
  const client = openClient({ url: served.url, hubs: stage.names })
  const conversation = stage.conversationOf('hf-2')
  const requests = () => lines.filter(({ method }) => method !== undefined)
  for (let sent = 0; sent < 20; sent += 1) await client.accept(messageOf(conversation))
  await until(() => requests().length >= 20, { what: 'the requests being told of' })
  await client.close()
  await served.close()
  expect(requests()).toHaveLength(20)
  for (const each of requests()) expect(each).toMatchObject({ hub: 'hf-2', path: '/v1/messages' })
})

test('a set of one is that hub itself: the same object, the same ids, no hub in what it answers', async () => {
  const hub = await openHub({ redis: stage.server.url, hub: 'hf-0' })
  expect(hubSetOf(new Map([['hf-0', hub]]))).toBe(hub)
  await hub.close()
  const one = await openHubSet({ redis: stage.server.url, hubs: ['hf-0'] })
  const { id } = await one.accept(messageOf('c1', { to: [{ host: 'alone' }] }))
  expect(id).toMatch(/^\d+-\d+$/)
  expect(await one.message(id)).toMatchObject({ id })
  expect(await one.host('alone')).not.toHaveProperty('hub')
  await one.close()
})

test('a set that cannot be opened is closed again, and says which hub it was', async () => {
  const connections = () => connectionsOf(stage.server)
  const before = connections()
  const error = await openHubSet({ redis: stage.server.url, hubs: ['hf-0', 'nowhere', 'hf-1'] }).catch(
    (caught: unknown) => caught,
  )
  expect(error).toBeInstanceOf(HoldfastError)
  expect(error).toMatchObject({ code: 'STORE_UNKNOWN', message: expect.stringContaining('hub nowhere: ') })
  const some = await openHubSet({
    redis: stage.server.url,
    hubs: ['hf-0', 'nowhere', 'hf-1'],
    withoutSome: true,
  })
  await expect(some.counts()).rejects.toMatchObject({
    message: expect.stringMatching(/ hub nowhere: (?!hub)/),
  })
  expect(await some.message('hf-1:0-0').catch((caught: unknown) => caught)).toMatchObject({
    code: 'MESSAGE_NOT_FOUND',
  })
  await some.close()
  await until(() => connections() <= before, { what: 'the connections being closed' })
  await expect(openHubSet({ redis: stage.server.url, hubs: [] })).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
  })
})

test('an error that is none of the catalogue goes through as it is', async () => {
  const broken = { fences: () => Promise.reject(new Error('a fault')) } as unknown as HubCalls
  const set = hubSetOf(new Map([...stage.names].map((name) => [name, broken])))
  await expect(set.fences()).rejects.toThrow(/^a fault$/)
})

function connectionsOf(server: TestServer): number {
  return server
    .cli('CLIENT', 'LIST')
    .split('\n')
    .filter((line) => line.includes('name=holdfast')).length
}

function tagsIn(line: string): string[] {
  return [...new Set([...line.matchAll(/\{(hf-\d)\}/g)].map(([, tag = '']) => tag))]
}

/** Everything that clients say to the server from now on; what its functions do is left out. */
async function monitored(server: TestServer): Promise<{ end(): Promise<readonly string[]> }> {
  const socket = connect(server.port, '127.0.0.1')
  let text = ''
  socket.setEncoding('utf8')
  socket.on('data', (chunk: string) => {
    text += chunk
  })
  socket.write('MONITOR\r\n')
  await until(() => text.startsWith('+OK'), { what: 'MONITOR being answered' })
  return {
    end: async () => {
      server.cli('ECHO', 'the end of it')
      await until(() => text.includes('the end of it'), { what: 'all being told' })
      socket.destroy()
      return text.split('\r\n').filter((line) => !/^\+[\d.]+ \[\d+ lua\]/.test(line))
    },
  }
}
