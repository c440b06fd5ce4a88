import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { prepareMessage } from '../../src/contract/message.js'
import { createNode } from '../../src/node/create-node.js'
import type { Attempt } from '../../src/node/executor.js'
import { commandExecutor } from '../../src/node/executors/command.js'
import { startHubServer } from '../support/http.js'
import { freshPath, startNode, stopNodes } from '../support/nodes.js'
import { makeRecord, settlement, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

let server: TestServer
const records: TestRecord[] = []

beforeAll(async () => {
  server = await startTestServer()
})

afterAll(async () => {
  await stopNodes()
  for (const record of records) await record.close()
  await server?.stop()
})

async function open(name: string, settings: Parameters<typeof makeRecord>[2] = {}): Promise<TestRecord> {
  const record = await makeRecord(server, name, settings)
  records.push(record)
  return record
}

async function attemptOf(record: TestRecord, id: string) {
  await settlement(record, id)
  const [attempt] = (await record.hub.delivery(id)).attempts
  if (attempt === undefined) throw new Error(`${id} has no attempt`)
  return attempt
}

const payloads: Readonly<Record<string, string | Buffer>> = {
  'a JSON text whose numbers no parser keeps': '{"id":130775545883395173,"a":[],"f":1.10,"n":null}',
  'four-byte emoji': '{"say":"😀👩‍👩‍👧‍👦 𝕳"}',
  'line ends, NUL and quotes': 'a\r\n\0"\'\\ \u2028 b',
  nothing: '',
  'invalid UTF-8': Buffer.from([0xff, 0xfe, 0xc3, 0x28, 0x00, 0x0d, 0x0a, 0xed, 0xa0, 0x80]),
  'every byte': Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)),
}

describe('faults.md 12: payloads and texts', () => {
  it('a function gets every payload byte for byte', async () => {
    const record = await open('exact-function')
    const got = new Map<string, Buffer>()
    await startNode({
      redis: server.url,
      hub: record.name,
      host: 'h1',
      execute: (attempt: Attempt) => void got.set(attempt.deliveryId, attempt.payload),
    })
    for (const [what, payload] of Object.entries(payloads)) {
      const { deliveries } = await record.hub.accept(message({ key: what.replaceAll(' ', '-'), payload }))
      const id = deliveries[0]?.id ?? ''
      expect(await settlement(record, id), what).toBe('done')
      expect(got.get(id)?.toString('hex'), what).toBe(Buffer.from(payload).toString('hex'))
    }
    await record.checkInvariants()
  })

  it('a command gets every payload byte for byte on its standard input', async () => {
    const record = await open('exact-command')
    const executor = commandExecutor({ command: 'od -An -v -tx1' })
    await startNode({ redis: server.url, hub: record.name, host: 'h1', executor })
    for (const [what, payload] of Object.entries(payloads)) {
      const { deliveries } = await record.hub.accept(message({ key: what.replaceAll(' ', '-'), payload }))
      const { result = '{}' } = await attemptOf(record, deliveries[0]?.id ?? '')
      const { stdout } = JSON.parse(result) as { stdout: string }
      expect(stdout.replace(/\s/g, ''), what).toBe(Buffer.from(payload).toString('hex'))
    }
  })

  it('what a command prints comes back exact: text as text, other bytes as base64', async () => {
    const record = await open('exact-output')
    await startNode({
      redis: server.url,
      hub: record.name,
      host: 'h1',
      executor: commandExecutor({ command: 'cat' }),
    })
    for (const [what, payload] of Object.entries(payloads)) {
      const { deliveries } = await record.hub.accept(message({ key: what.replaceAll(' ', '-'), payload }))
      const { result = '{}' } = await attemptOf(record, deliveries[0]?.id ?? '')
      const { stdout, stdoutBase64 } = JSON.parse(result) as { stdout?: string; stdoutBase64?: string }
      const back =
        stdoutBase64 === undefined ? Buffer.from(stdout ?? '?') : Buffer.from(stdoutBase64, 'base64')
      expect(back.toString('hex'), what).toBe(Buffer.from(payload).toString('hex'))
    }
  })

  it('a lone surrogate is refused at the door, and nothing is stored', async () => {
    const record = await open('surrogates')
    for (const payload of ['\ud800', 'a\udc00b', '{"x":"\ud83d"}']) {
      await record.refused('INVALID_ARGUMENT', () => record.hub.accept(message({ payload })))
    }
    for (const member of ['key', 'conversation', 'sender', 'parent', 'contentType']) {
      await record.refused('INVALID_ARGUMENT', () => record.hub.accept(message({ [member]: 'x\ud800' })))
      await record.refused('INVALID_ARGUMENT', () => record.hub.accept(message({ [member]: '😀' })))
    }
  })

  it('texts of a function cut at a limit stay valid', async () => {
    const record = await open('cut-function')
    const texts = [2046, 2047, 2048, 4000].map((length) => `${'x'.repeat(length)}😀😀`)
    texts.push('\ud800 alone', '😀'.repeat(3000))
    await startNode({
      redis: server.url,
      hub: record.name,
      host: 'h1',
      execute: ({ payload }) => {
        const error = new Error(texts[Number(payload)])
        error.name = `${'N'.repeat(254)}😀`
        throw error
      },
    })
    for (const at of texts.keys()) {
      const { deliveries } = await record.hub.accept(message({ key: `k${at}`, payload: String(at) }))
      const { errorCode = '', errorJson = '' } = await attemptOf(record, deliveries[0]?.id ?? '')
      expect(errorCode).toMatch(/^[\x20-\x7e]{1,255}$/)
      const { message: told } = JSON.parse(errorJson) as { message: string }
      expect(errorJson.isWellFormed()).toBe(true)
      expect(told.length).toBeGreaterThan(0)
      expect(texts[at]?.startsWith(told), told).toBe(true)
    }
    await record.checkInvariants()
  })

  it('texts of a command cut at a limit stay valid', async () => {
    const record = await open('cut-command')
    const command = `yes 😀 | tr -d '\\n' | head -c 300000; yes 😀 | tr -d '\\n' | head -c 9001 >&2; exit $(cat)`
    await startNode({
      redis: server.url,
      hub: record.name,
      host: 'h1',
      executor: commandExecutor({ command }),
    })
    for (const code of ['0', '65', '3']) {
      const { deliveries } = await record.hub.accept(message({ key: `k${code}`, payload: code }))
      const attempt = await attemptOf(record, deliveries[0]?.id ?? '')
      const body = JSON.parse(attempt.result ?? attempt.errorJson ?? '') as Record<string, string>
      if (code === '0') expect(body['stdout']).toMatch(/^(😀)+$/u)
      else expect(body['stderr']).toMatch(/^(😀)+\ufffd?$/u)
    }
  })

  it.each(['redis', 'http'] as const)(
    'a function’s result may be as large as the hub has it (%s)',
    async (transport) => {
      const record = await open(`large-result-${transport}`, { max_result_bytes: 500_000 })
      const hub = await startHubServer(record)
      try {
        const value = 'x'.repeat(400_000)
        const reach = transport === 'http' ? { http: { url: hub.url } } : { redis: server.url }
        const { node } = await startNode({ ...reach, hub: record.name, host: 'h1', execute: () => value })
        const { deliveries } = await record.accept({ to: [{ host: 'h1' }] })
        const attempt = await attemptOf(record, deliveries[0]?.id ?? '')
        expect(attempt.result === JSON.stringify(value)).toBe(true)
        await node.stop()
      } finally {
        await hub.close()
      }
    },
  )

  it('a result over the limit of the record is left out, and says so as JSON', async () => {
    const record = await open('cut-result', { max_result_bytes: 256 })
    await startNode({ redis: server.url, hub: record.name, host: 'h1', execute: () => '😀'.repeat(200) })
    const { deliveries } = await record.hub.accept(message({}))
    const { status, result = '' } = await attemptOf(record, deliveries[0]?.id ?? '')
    expect(status).toBe('done')
    expect(JSON.parse(result)).toHaveProperty('omitted')
  })
})

function message(parts: object) {
  return { key: 'k', conversation: 'c1', sender: 's1', to: [{ host: 'h1' }], payload: 'p', ...parts }
}

const badHosts = [
  'Example',
  'example.',
  'ex%61mple',
  '{a}',
  'a*',
  'a b',
  'a\0',
  '\0',
  'a'.repeat(64),
  '',
  '-a',
]
badHosts.push('a_', '.', 'a/b', 'a:b', 'ä', 'a\n')

describe('faults.md 13: names', () => {
  for (const host of badHosts) {
    it(`host ${JSON.stringify(host).slice(0, 20)} is refused everywhere, and no key appears`, async () => {
      const record = records.find(({ name }) => name === 'names') ?? (await open('names'))
      const keysBefore = server.cli('DBSIZE')
      const { store, keys, hub, functions } = record
      const refused = (call: () => Promise<unknown>) => record.refused('INVALID_ARGUMENT', call)

      await refused(() => hub.accept(message({ to: [{ host }] })))
      await refused(() => hub.pending(host))
      await refused(() => hub.deliveries({ host }))
      await refused(async () => createNode({ ...nodeOptions(record), host }))

      const { payload, ...rest } = prepareMessage(message({ to: [{ host: 'h1' }] }))
      const header = [
        rest.key,
        rest.fingerprint,
        rest.conversation,
        rest.sender,
        '',
        '',
        rest.sha256,
        '',
        '',
        '',
      ]
      await refused(() => store.fcall('hf_accept', keys.tag, [...header, payload, `host:${host}`]))
      await refused(() => store.fcall('hf_join', keys.tag, [host, 'n1', 1, 'i1', '[]', '0-0']))
      await refused(() => functions.claim({ host, node: 'n1', incarnation: 1 }, 1, 1))
      await refused(() => functions.pause(`host:${host}`, 'why', 'who'))
      expect(server.cli('DBSIZE')).toBe(keysBefore)
    })
  }

  it('a hub name of no host form is refused, by the SDK and by every function', async () => {
    const record = await open('hub-names')
    for (const tag of ['{Example}', '{a b}', '{}', 'hf', '{a}{b}', '{a}:x', '{a*}', '']) {
      for (const name of ['hf_init', 'hf_accept', 'hf_join', 'hf_claim', 'hf_fan_out', 'hf_begin']) {
        await record.refused('INVALID_ARGUMENT', () => record.store.fcall(name, tag, ['x', 0]))
      }
    }
    for (const hub of ['Example', '{a}', 'a b', '', 'a'.repeat(64)]) {
      await record.refused('INVALID_ARGUMENT', async () => createNode({ ...nodeOptions(record), hub }))
    }
  })

  it('no name reaches another key or slot, and lanes stay apart', async () => {
    const other = await open('bystander')
    await other.accept({})
    const untouched = await other.dump()
    const record = await open('nasty')
    const names = [
      '{x}',
      'a/b',
      'a:b',
      '%2F',
      '*',
      'a b',
      '}{',
      '{nasty}:identity',
      '..',
      'a%2Fb',
      '[a-z]',
      '?',
    ]
    const lanes: [conversation: string, session?: string][] = [
      ...names.map((name): [string] => [name]),
      ...names.map((name): [string, string] => ['c', name]),
      ['a', 'b'],
      ['a/b', 'c'],
      ['a', 'b/c'],
      ['a/b/', 'c'],
    ]
    for (const [, session] of lanes) {
      if (session !== undefined) await record.send('HSET', record.keys.session(session), 'host', 'h1')
    }
    await record.hub.pause('hub', { reason: 'to park all', actor: 'test' })
    const ran: [string, string | undefined][] = []
    for (const node of names) {
      const who = await record.join('h1', node)
      await record.claim(who, 10)
      await record.functions.leave(who)
    }
    const ids: string[] = []
    for (const [at, [conversation, session]] of lanes.entries()) {
      const name = names[at % names.length] ?? ''
      const to = [session === undefined ? { host: 'h1' } : { session }]
      const accepted = await record.hub.accept(
        message({ key: `${name}${at}`, conversation, sender: name, parent: name, to }),
      )
      ids.push(accepted.deliveries[0]?.id ?? '')
    }
    await startNode({
      ...nodeOptions(record),
      node: '{x}/a:b *%2F',
      execute: (attempt) => void ran.push([attempt.message.conversation, attempt.target.session]),
    })
    const parked = async () => Object.keys(await record.dump()).filter((key) => key.startsWith(':lane:'))
    await until(async () => (await parked()).length === lanes.length, { what: 'every lane parked' })
    await record.checkInvariants()
    await record.hub.lift('pause', 'hub', 'test')
    for (const id of ids) expect(await settlement(record, id)).toBe('done')

    const sorted = (pairs: readonly [string, string?][]) => pairs.map((pair) => JSON.stringify(pair)).sort()
    expect(sorted(ran.map(([c, s]) => (s === undefined ? [c] : [c, s])))).toEqual(sorted(lanes))
    await record.checkInvariants()
    expect(await other.dump()).toEqual(untouched)
    const keys = server.cli('--raw', 'KEYS', '{nasty}*').split('\n')
    expect(keys.length).toBeGreaterThan(ids.length)
    expect(new Set(keys.map(slotOf))).toEqual(new Set([slotOf('{nasty}')]))
    const all = server.cli('--raw', 'KEYS', '*').split('\n')
    expect(all.filter((key) => !records.some(({ keys: { tag } }) => key.startsWith(`${tag}:`)))).toEqual([])
  })
})

function nodeOptions(record: TestRecord) {
  const { name: hub } = record
  return { redis: server.url, hub, host: 'h1', mirror: freshPath('db'), execute: () => 'done' }
}

/** The cluster slot of a key: CRC16 (XMODEM) of what stands in the first braces, if anything does. */
function slotOf(key: string): number {
  const open = key.indexOf('{')
  const close = key.indexOf('}', open + 1)
  const hashed = open >= 0 && close > open + 1 ? key.slice(open + 1, close) : key
  let crc = 0
  for (const byte of Buffer.from(hashed)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit += 1) crc = ((crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff
  }
  return crc % 16_384
}
