import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type MessageInput, type PreparedMessage, prepareMessage } from '../../src/contract/message.js'
import { openStore } from '../../src/record/connections.js'
import { type FanOutReply, functionsOf } from '../../src/record/functions.js'
import { comparable, hashOf, type OpenRecord, openRecord, withoutIds } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

let server: TestServer
let record: OpenRecord
/** On which each message is accepted by a call of its own. */
let twin: OpenRecord

beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server?.stop())
beforeEach(async () => {
  record = await openRecord(server)
  twin = await openRecord(server)
})
afterEach(async () => {
  for (const each of [record, twin]) {
    await each.checkInvariants()
    await each.close()
  }
})

function message(key: string, changes: Partial<MessageInput> = {}): PreparedMessage {
  const usual = { conversation: 'c1', sender: 's', to: [{ host: 'a' }], payload: `payload of ${key}` }
  return prepareMessage({ key, ...usual, ...changes })
}

const hosts = (count: number) => Array.from({ length: count }, (_, at) => ({ host: `h${at}` }))
const many = (count: number) => Array.from({ length: count }, (_, at) => message(`k${at}`))

type Answer = FanOutReply | Error

function told(answer: Answer): unknown {
  if (answer instanceof Error) return answer.message.replace(/\{t\d+\}/, '{t}')
  const { logId, ...rest } = answer
  return rest
}

function codeOf(answer: Answer | undefined): string {
  return answer instanceof Error && 'code' in answer ? String(answer.code) : 'accepted'
}

function accepted(answer: Answer | undefined): FanOutReply {
  if (answer === undefined || answer instanceof Error) throw answer ?? new Error('no answer')
  return answer
}

/** One call answers and leaves behind what as many calls do, one after the other, on the twin. */
async function likeSingles(
  messages: readonly PreparedMessage[],
  prepare: (on: OpenRecord) => Promise<unknown> = async () => undefined,
): Promise<readonly Answer[]> {
  for (const on of [record, twin]) await prepare(on)
  const singles: Answer[] = []
  for (const each of messages) {
    singles.push(await twin.functions.accept(each).catch((error: unknown) => error as Error))
  }
  const answers = await record.functions.acceptBatch(messages)
  expect(withoutIds(answers.map(told))).toEqual(withoutIds(singles.map(told)))
  expect(comparable(await record.dump())).toEqual(comparable(await twin.dump()))
  return answers
}

async function logEntries(on: OpenRecord): Promise<Record<string, string>[]> {
  const entries = (await on.send('XRANGE', on.keys.log, '-', '+')) as [string, string[]][]
  return entries.map(([id, fields]) => ({ id, ...hashOf(fields) }))
}

describe('accept_batch', () => {
  it('accepts each message as accept would', async () => {
    const deliverBy = 4_000_000_000_000
    const binary = Buffer.from([0, 255, 13, 10, 0x7b])
    const answers = await likeSingles(
      [
        message('plain'),
        message('two', { to: [{ host: 'b' }, { host: 'a' }], sender: 'other', conversation: 'c2' }),
        message('bytes', { payload: binary, contentType: 'application/octet-stream', parent: 'p1' }),
        message('late', { deliverBy, executeBy: deliverBy + 1, to: [{ session: 's/1' }, { session: 's2' }] }),
        message('nobody', { to: [] }),
        { ...message('twice'), recipients: ['host:c', 'host:c'] },
        message('empty', { payload: '', resendOf: '1764430000000-000000' }),
      ],
      async (on) => {
        for (const session of ['s/1', 's2']) await on.send('HSET', on.keys.session(session), 'host', 'b')
      },
    )
    expect(answers.map(codeOf)).toEqual(Array.from({ length: 7 }, () => 'accepted'))
    const stored = await record.store.call(['GET', record.keys.payload(accepted(answers[2]).id)], {
      buffers: true,
    })
    expect(stored).toEqual(binary)
    expect(accepted(answers[5])).toMatchObject({ recipients: 1, made: 1 })
  })

  it('writes one entry of the log, and mints sortable ids that follow from it', async () => {
    const answers = (
      await record.functions.acceptBatch([
        message('k0', { to: hosts(2) }),
        message('k1', { to: [{ host: 'h1' }, { host: 'b' }] }),
        message('k2', { sender: 'other', to: [] }),
      ])
    ).map(accepted)
    const entries = await logEntries(record)
    expect(entries).toEqual([
      {
        id: answers[0]?.logId,
        verb: 'accept',
        actor: 'several',
        messages: '3',
        recipients: '4',
        hosts: 'h0 h1 b',
      },
    ])
    const [ms = '', sequence = ''] = (entries[0]?.['id'] ?? '').split('-')
    const first = Number(sequence) * 100
    expect(answers.map(({ id }) => id)).toEqual(
      [0, 1, 2].map((at) => `${ms}-${String(first + at).padStart(8, '0')}`),
    )
    expect(new Set(answers.map(({ logId }) => logId)).size).toBe(1)
  })

  it('names the sender in the log where all have the same, and the key where only one was accepted', async () => {
    const known = message('known')
    await record.functions.accept(known)
    await record.functions.acceptBatch([message('k0'), message('k1')])
    await record.functions.acceptBatch([known, message('k2'), { ...message('bad'), sender: '' }])
    const [, both, one] = await logEntries(record)
    expect(both).toMatchObject({ actor: 's', messages: '2', recipients: '2', hosts: 'a' })
    expect(both).not.toHaveProperty('key')
    expect(one).toMatchObject({ actor: 's', key: 'k2', recipients: '1', hosts: 'a' })
    expect(one).not.toHaveProperty('messages')
  })

  it('gives ids that never repeat and rise from call to call', async () => {
    const ids: string[] = []
    for (let call = 0; call < 30; call += 1) {
      const batch = Array.from({ length: 1 + (call % 4) }, (_, at) => message(`${call}.${at}`))
      ids.push(...(await record.functions.acceptBatch(batch)).map((each) => accepted(each).id))
      ids.push((await record.functions.accept(message(`single ${call}`))).id)
    }
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.toSorted()).toEqual(ids)
  })

  it('takes a hundred, over many hosts, and their deliveries keep their order', async () => {
    const answers = await record.functions.acceptBatch(many(100))
    expect(answers.map(codeOf)).toEqual(Array.from({ length: 100 }, () => 'accepted'))
    const node = await record.join('a', 'n1')
    const claimed = await record.claimAll(node)
    expect(claimed.map(({ id }) => id)).toEqual(answers.map((each) => `${accepted(each).id}.1`))
    expect(claimed.map(({ payload }) => String(payload))).toEqual(
      many(100).map(({ payload }) => `${payload}`),
    )
  })

  it('owes the rest beyond inline_fan_out, message by message', async () => {
    const answers = await likeSingles(
      [message('k0', { to: hosts(5) }), message('k1', { to: hosts(2) }), message('k2', { to: hosts(3) })],
      (on) => on.config('inline_fan_out', 2),
    )
    expect(answers.map((each) => accepted(each).made)).toEqual([2, 2, 2])
    const owing = [answers[0], answers[2]].map((each) => accepted(each).id)
    expect(await record.send('ZRANGE', record.keys.obligations, 0, -1)).toEqual(owing)
    for (const id of owing) {
      const { made, recipients } = await record.functions.fanOut(id, 10)
      expect(made).toBe(recipients)
    }
    expect(await record.send('ZCARD', record.keys.obligations)).toBe(0)
  })

  it('answers a repeated batch with the first ids, changing nothing', async () => {
    const batch = [message('k0', { to: hosts(3) }), message('k1')]
    const first = (await record.functions.acceptBatch(batch)).map(accepted)
    const before = await record.dump()
    const again = (await record.functions.acceptBatch(batch.toReversed())).map(accepted)
    expect(again.map(({ id }) => id)).toEqual(first.map(({ id }) => id).toReversed())
    expect(again).toMatchObject([
      { replayed: true, recipients: 1, made: 1, deliveries: [] },
      { replayed: true, recipients: 3, made: 3, deliveries: [] },
    ])
    expect(await record.dump()).toEqual(before)
  })

  it('takes a key that comes again within the batch for the repeat that it is', async () => {
    const answers = await likeSingles([
      message('k', { payload: 'p', to: hosts(2) }),
      message('k', { payload: 'p', to: hosts(2).toReversed() }),
      message('k', { payload: 'other', to: hosts(2) }),
      message('k2'),
      message('k', { payload: 'p', to: hosts(2) }),
    ])
    expect(answers.map(codeOf)).toEqual([
      'accepted',
      'accepted',
      'IDEMPOTENCY_MISMATCH',
      'accepted',
      'accepted',
    ])
    const { id } = accepted(answers[0])
    expect([1, 4].map((at) => accepted(answers[at]))).toMatchObject([
      { id, replayed: true, made: 2, deliveries: [] },
      { id, replayed: true, made: 2, deliveries: [] },
    ])
    expect(answers[2]).toMatchObject({ message: expect.stringContaining(`belongs to message ${id} `) })
    const stored = await record.send('GET', record.keys.payload(id))
    expect(stored).toBe('p')
  })

  it('judges the next of a key for itself where the first of it was refused', async () => {
    const answers = await likeSingles(
      [message('k', { payload: 'far too long' }), message('k', { payload: 'short' })],
      (on) => on.config('max_payload_bytes', 5),
    )
    expect(answers.map(codeOf)).toEqual(['PAYLOAD_TOO_LARGE', 'accepted'])
  })
})

describe('what refuses one message leaves the others:', () => {
  interface Case {
    readonly prepare?: (on: OpenRecord) => Promise<unknown>
    readonly bad: PreparedMessage
  }
  const bad = (changes: Partial<MessageInput>) => message('bad', changes)
  const cases: Record<string, Case> = {
    'INVALID_ARGUMENT, a sender': { bad: { ...bad({}), sender: 'é' } },
    'INVALID_ARGUMENT, a recipient': { bad: { ...bad({}), recipients: ['host:a', 'queue:b'] } },
    'NO_ROUTE, a session never seen': { bad: bad({ to: [{ host: 'a' }, { session: 'never' }] }) },
    'NO_ROUTE, a host never seen': {
      prepare: async (on) => {
        await on.join('a', 'n1')
        await on.config('open_hosts', 0)
      },
      bad: bad({ to: [{ host: 'a' }, { host: 'b' }] }),
    },
    'HOST_FULL, of before': {
      prepare: async (on) => {
        await on.acceptMany(2, { to: [{ host: 'b' }] })
        await on.config('max_queued_per_host', 2)
      },
      bad: bad({ to: [{ host: 'c' }, { host: 'b' }] }),
    },
    'HOST_RETIRED, one of two': {
      prepare: async (on) => {
        await on.join('r', 'n1')
        await on.functions.retire('r', 'kim', 'sold')
      },
      bad: bad({ to: [{ host: 'a' }, { host: 'r' }] }),
    },
    PAYLOAD_TOO_LARGE: {
      prepare: (on) => on.config('max_payload_bytes', 20),
      bad: bad({ payload: 'x'.repeat(21) }),
    },
    TOO_MANY_RECIPIENTS: {
      prepare: (on) => on.config('max_recipients', 2),
      bad: bad({ to: hosts(3) }),
    },
    IDEMPOTENCY_MISMATCH: {
      prepare: (on) => on.functions.accept(bad({ payload: 'first' })),
      bad: bad({ payload: 'second' }),
    },
    MESSAGE_NOT_FOUND: {
      prepare: async (on) => {
        const { id } = await on.functions.accept(bad({}))
        await on.send('DEL', on.keys.message(id))
        on.damaged(`${id}.1`)
      },
      bad: bad({}),
    },
    'RECORD_DAMAGED, a stream': {
      prepare: (on) => on.send('SET', on.keys.stream('b'), 'broken by hand'),
      bad: bad({ to: [{ host: 'a' }, { host: 'b' }] }),
    },
  }

  it.each(Object.keys(cases))('%s', async (name) => {
    const { prepare, bad: refused } = cases[name] ?? { bad: bad({}) }
    const [code = ''] = name.split(',')
    const batch = [message('k0'), refused, message('k1', { sender: 'other' })]
    const answers = await likeSingles(batch, prepare)
    expect(answers.map(codeOf)).toEqual(['accepted', code, 'accepted'])
    // Refused alone it changes nothing, as accept does.
    const before = await record.dump()
    expect((await record.functions.acceptBatch([refused])).map(codeOf)).toEqual([code])
    expect(await record.dump()).toEqual(before)
  })

  it('HOST_FULL counts what the same call queued before, deliveries of sessions too', async () => {
    const to = (...names: string[]) => ({ to: names.map((host) => ({ host })) })
    const answers = await likeSingles(
      [
        message('k0', { to: [{ session: 's1' }, { session: 's2' }] }),
        message('k1'),
        message('k2'),
        message('k3', to('b', 'a')),
        message('k4', to('b')),
        message('k0', { to: [{ session: 's1' }, { session: 's2' }] }),
      ],
      async (on) => {
        for (const session of ['s1', 's2']) await on.send('HSET', on.keys.session(session), 'host', 'a')
        await on.config('max_queued_per_host', 3)
      },
    )
    expect(answers.map(codeOf)).toEqual([
      'accepted',
      'accepted',
      'HOST_FULL',
      'HOST_FULL',
      'accepted',
      'accepted',
    ])
    expect(answers[2]).toMatchObject({
      message: expect.stringMatching(/host a has 3 entries queued, max_queued_per_host is 3/),
    })
    expect(accepted(answers[5])).toMatchObject({ replayed: true })
  })

  it('INVALID_ARGUMENT, whatever is malformed in it', async () => {
    const good = message('good')
    const malformed: Partial<Record<keyof PreparedMessage, unknown>>[] = [
      { key: '' },
      { key: 'x'.repeat(256) },
      { fingerprint: '' },
      { conversation: 'tab\there' },
      { sender: 'é' },
      { parent: 'é' },
      { contentType: 'é' },
      { sha256: '' },
      { deliverBy: '-1' },
      { executeBy: '1.5' },
      { resendOf: 'é' },
      { recipients: ['host:A'] },
      { recipients: ['queue:a'] },
      { recipients: ['session:'] },
    ]
    const batch = malformed.map((change, at) => ({ ...message(`bad ${at}`), ...change }) as PreparedMessage)
    const answers = await likeSingles([...batch, good])
    expect(answers.map(codeOf)).toEqual([...malformed.map(() => 'INVALID_ARGUMENT'), 'accepted'])
  })

  it('a key of a wrong type under its idempotency key', async () => {
    await record.send('RPUSH', record.keys.idempotency('bad'), 'broken by hand')
    const answers = await record.functions.acceptBatch([message('k0'), message('bad'), message('k1')])
    expect([answers[0], answers[2]].map(codeOf)).toEqual(['accepted', 'accepted'])
    expect(answers[1]).toBeInstanceOf(Error)
    expect(answers[1]).toMatchObject({ message: expect.stringMatching(/^WRONGTYPE /) })
    expect(await record.send('LRANGE', record.keys.idempotency('bad'), 0, -1)).toEqual(['broken by hand'])
    expect(await record.send('HGET', record.keys.counts, 'queued')).toBe('2')
  })

  it('a session whose row is of a wrong type', async () => {
    await record.send('SET', record.keys.session('s'), 'broken by hand')
    const answers = await record.functions.acceptBatch([
      message('k0'),
      message('bad', { to: [{ session: 's' }] }),
      message('k1'),
    ])
    expect(answers.map((each) => each instanceof Error)).toEqual([false, true, false])
    expect(answers[1]).toMatchObject({ message: expect.stringMatching(/^WRONGTYPE /) })
    await record.send('DEL', record.keys.session('s'))
  })
})

describe('a batch that cannot be accepted at all', () => {
  it.each(['counts', 'log'] as const)('changes nothing where :%s is of a wrong type', async (name) => {
    await record.send('SET', record.keys[name], 'broken by hand')
    const before = await record.dump()
    const answers = await record.functions
      .acceptBatch([message('k0'), message('k1')])
      .catch((error: unknown) => [error as Error])
    expect(answers.map((each) => each instanceof Error)).not.toContain(false)
    if (name === 'counts') expect(answers.map(codeOf)).toEqual(['RECORD_DAMAGED', 'RECORD_DAMAGED'])
    expect(await record.dump()).toEqual(before)
    await record.send('DEL', record.keys[name])
  })

  it('is refused as a list: no message, more than a hundred', async () => {
    await record.refused('INVALID_ARGUMENT', () => record.functions.acceptBatch([]))
    await record.refused('INVALID_ARGUMENT', () => record.functions.acceptBatch(many(101)))
  })

  it('is refused as a list where a count of recipients does not add up', async () => {
    const words = (key: string, count: string | number, recipients: readonly string[]) => {
      const { fingerprint, conversation, sender, sha256, payload } = message(key)
      const rest = ['', '', sha256, '', '', '', payload]
      return [count, key, fingerprint, conversation, sender, ...rest, ...recipients]
    }
    const call = (...args: (string | number | Buffer)[][]) =>
      record.store.fcall('hf_accept_batch', record.keys.tag, args.flat())
    const good = words('good', 1, ['host:a'])
    for (const count of [2, 13, 1e9, -1, 1.5, 'x', '', 'nan', 'inf']) {
      await record.refused('INVALID_ARGUMENT', () => call(good, words('bad', count, ['host:a'])))
    }
    // One too low: the recipient that is left over is taken for the next count.
    await record.refused('INVALID_ARGUMENT', () => call(good, words('bad', 0, ['host:a'])))
    await record.refused('INVALID_ARGUMENT', () => call(words('bad', 0, ['host:a']), good))
    await record.refused('INVALID_ARGUMENT', () => call(good, [0]))
    await record.refused('INVALID_ARGUMENT', () => call(good, words('bad', 1, [])))
    expect(await call(good)).toEqual(['results', [expect.arrayContaining(['replayed', 0, 'made', 1])]])
  })

  it('is refused for another key than a tag', async () => {
    for (const tag of ['{T1}', `${record.keys.tag}:x`, 'hf']) {
      await record.refused('INVALID_ARGUMENT', () => record.store.fcall('hf_accept_batch', tag, []))
    }
  })
})

describe('many batches at the same time', () => {
  it('make one message a key and one delivery a recipient, counted once', async () => {
    const store = await openStore({ url: server.url, name: 'second' })
    const second = functionsOf(store, record.keys.tag)
    await record.config('inline_fan_out', 3)
    const keyed = (number: number) => message(`k${number}`, { to: hosts(1 + (number % 4)) })
    // Each key is in two batches, in other company.
    const batches = Array.from({ length: 40 }, (_, batch) =>
      Array.from({ length: 10 }, (_, at) => keyed(((batch % 20) * 10 + at * (batch < 20 ? 1 : 7)) % 200)),
    )
    const answers = await Promise.all(
      batches.map((batch, at) => (at % 2 === 0 ? record.functions : second).acceptBatch(batch)),
    )
    await store.close()
    const ids = new Map<string, Set<string>>()
    const firsts = new Map<string, number>()
    for (const [batch, replies] of answers.entries()) {
      for (const [at, answer] of replies.entries()) {
        const key = batches[batch]?.[at]?.key ?? ''
        const { id, replayed } = accepted(answer)
        ids.set(key, (ids.get(key) ?? new Set()).add(id))
        if (!replayed) firsts.set(key, (firsts.get(key) ?? 0) + 1)
      }
    }
    expect([...ids.values()].filter(({ size }) => size !== 1)).toEqual([])
    expect([...firsts.values()].filter((times) => times !== 1)).toEqual([])
    expect(firsts.size).toBe(ids.size)
    const messages = Object.keys(await record.dump()).filter((key) => key.startsWith(':message:'))
    expect(messages).toHaveLength(ids.size)
    const wanted = [...ids.keys()].reduce((total, key) => total + 1 + (Number(key.slice(1)) % 4), 0)
    const counts = hashOf(await record.send('HGETALL', record.keys.counts))
    const owing = (await record.send('ZRANGE', record.keys.obligations, 0, -1)) as string[]
    expect(Number(counts['recipients'])).toBe(wanted)
    expect(Number(counts['queued'])).toBe(wanted - owing.length)
    await record.checkInvariants()
    for (const id of owing) await record.functions.fanOut(id, 10)
    expect(await record.send('HGET', record.keys.counts, 'queued')).toBe(String(wanted))
  })
})
