import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JsonSchema, OpenApiDocument, Operation } from '../../src/http/openapi-document.js'
import { certificate } from '../support/certificate.js'
import { type HubServerProcess, spawnHubServer } from '../support/hub-server.js'
import { makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

// Bodies and names that mean no good, for every operation of /openapi.json. Whatever is refused says where it is
// wrong, shows nothing of what was sent, and leaves the record as it was.

interface Problem {
  readonly code: string
  readonly detail: string
  readonly pointer?: string
}

interface Answer<Body = Problem> {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly json: Body
}

/** The hub alone can tell a wrong one, and does not know where it stood. */
const cursor = /^#\/cursor$/

let redis: TestServer
let record: TestRecord
let server: HubServerProcess
let token: string
let message: string
let delivery: string
/** Every operation, with its method and path. */
let operations: ReadonlyMap<string, Operation & { readonly method: string; readonly path: string }>
let schemas: Readonly<Record<string, JsonSchema>>

beforeAll(async () => {
  redis = await startTestServer()
  record = await makeRecord(redis, 'bodies')
  token = (await record.hub.addPrincipal({ name: 'tests', role: 'operator' }, 'tests')).token ?? ''
  const accepted = await record.accept({ to: [{ host: 'a' }] })
  message = accepted.id
  delivery = accepted.deliveries[0]?.id ?? ''
  await record.join('a', 'n1')
  server = await spawnHubServer({
    redis: redis.url,
    hub: 'bodies',
    limits: { ratePerSecond: 0, loginTries: 0 },
  })
  const { json: document } = await ask<OpenApiDocument>('GET', '/openapi.json')
  schemas = document.components.schemas
  operations = new Map(
    Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => {
        return [operation.operationId, { ...operation, method: method.toUpperCase(), path }] as const
      }),
    ),
  )
})

afterAll(async () => {
  await server?.stop()
  await record?.close()
  await redis?.stop()
})

const hash = 'a'.repeat(64)
const speaker = { node: 'n1', incarnation: 1 }
const bulk = {
  filter: { state: 'held', host: 'a', conversation: 'c', session: 's', reason: 'r' },
  reason: 'r',
}
const bulks = [
  { ...bulk, dryRun: false, limit: 10 },
  { ...bulk, cursor: 'a cursor' },
]
const step = { ...speaker, items: [{ id: '1-1.1', epoch: 1 }] }
const report = { attempt: '1-1.1/1', grant: 'g', key: 'k' }
const reported = (outcome: object, about: object = report) => {
  return { host: 'a', ...speaker, reports: [{ ...about, outcome }] }
}

/** Well-formed bodies of every operation: among them they have every member. */
const samples: Readonly<Record<string, readonly object[]>> = {
  acceptMessage: [
    {
      conversation: 'c',
      sender: 's',
      to: [{ host: 'a' }, { session: 'never-seen' }],
      payload: { a: 1 },
      parent: 'p',
      deliverBy: 4_102_444_800_000,
      executeBy: '2100-01-01T00:00:00Z',
    },
    { conversation: 'c', sender: 's', to: [{ host: 'a' }], payloadBase64: 'AAAA', contentType: 'x/y' },
  ],
  resendMessage: [{ to: [{ host: 'a' }, { session: 'never-seen' }] }],
  releaseDeliveries: bulks,
  rejectDeliveries: bulks,
  holdDeliveries: bulks,
  cancelDeliveries: bulks,
  releaseDelivery: [{ reason: 'r' }],
  rejectDelivery: [{ reason: 'r' }],
  holdDelivery: [{ reason: 'r' }],
  cancelDelivery: [{ reason: 'r' }],
  setFence: [{ reason: 'r', until: '2100-01-01T00:00:00Z' }],
  drainHost: [{}],
  retireHost: [{ reason: 'r' }],
  configure: [{ heartbeat_ms: 2000, open_hosts: 1 }],
  addPrincipal: [
    { name: 'p1', role: 'node', host: 'a', scopes: ['/srv'] },
    { name: 'p2', role: 'producer', anySender: false, certificate: certificate.cert },
    { name: 'p3', role: 'viewer', tokenSha256: 'a'.repeat(64) },
  ],
  revokePrincipal: [{ reason: 'r' }],
  join: [{ incarnation: 1, instance: 'i1', scopes: ['/srv'], lastLogId: '0-0' }],
  heartbeat: [
    {
      incarnation: 1,
      lastLogId: '0-0',
      progress: 1,
      blocking: { sumMs: 1, longestMs: 1 },
      mirror: { commits: 1, sumMs: 1, longestMs: 1 },
    },
  ],
  mirror: [step],
  ack: [step],
  refuse: [{ ...speaker, items: [{ id: '1-1.1', epoch: 1, verdict: 'failed', reason: 'r' }] }],
  begin: [{ ...speaker, items: [{ id: '1-1.1', epoch: 1, grant: 'g', idempotent: false }] }],
  claim: [{ ...speaker, request: 1, count: 1, waitMs: 0, payloads: 'json' }],
  claimEffect: [{ type: 't', payloadHash: hash, executor: 'e', grant: 'g', timeLimitMs: 1000 }],
  takeOverEffect: [
    {
      executor: 'e',
      grant: 'g',
      payloadHash: hash,
      basis: 'probe',
      epoch: 1,
      startedAt: 1,
      timeLimitMs: 1000,
    },
  ],
  settleEffect: [
    { executor: 'e', grant: 'g', epoch: 1, outcome: { kind: 'result', result: 1 } },
    { executor: 'e', grant: 'g', epoch: 1, outcome: { kind: 'terminal', errorCode: 'e', errorJson: 1 } },
  ],
  resolveEffect: [{ as: 'result', evidence: 'e', force: false, result: 1 }],
  openSession: [{ host: 'a', scope: '/srv/a', restartBudget: 1, parent: 'p', asOperator: false }],
  closeSession: [{ epoch: 1, reason: 'reload', drained: false, abandoned: 0, terminal: false }],
  rehomeSession: [{ host: 'a', reason: 'r' }],
  resolveAttempt: [{ as: 'result', evidence: 'e', force: false, result: 1 }],
  resolveDelivery: [{ as: 'queued', evidence: 'e' }],
  runSweep: [{}],
  login: [{ token: 'hft_unknown' }],
  logout: [{}],
  report: [
    reported({ kind: 'result', result: 1 }),
    reported({ kind: 'outcome_unknown', errorCode: 'e' }, { ...report, ended: false }),
    reported({ kind: 'terminal', errorCode: 'e', errorJson: 1 }, { delivery: '1-1.1', grant: 'g', key: 'k' }),
  ],
}

const canary = 'canary-7f3a'
const longText = JSON.stringify(`${canary} `.repeat(850))
/** What stands in the place of a member, as JSON text. */
const wrongValues = ['null', '[]', '{}', '""', '-1', '1e400', 'true', longText]
/** Members that are any JSON, and what else is right where it does not look so. */
const opaque = /\/(payload|result|errorJson)$/
const right: readonly (readonly [pointer: RegExp, values: readonly string[]])[] = [
  [opaque, wrongValues],
  [/^#\/(dryRun|anySender|force|drained|asOperator)$/, ['true']],
  [/\/(idempotent|ended)$/, ['true']],
  [/^#\/(to|scopes)$/, ['[]']],
  [/^#\/payloadBase64$/, ['""']],
  [/^#\/lastLogId$/, ['""']],
]

describe('bodies of which one member is wrong', () => {
  it('are made of samples that have every member of every body there is', () => {
    const withBody = [...operations.values()].filter(({ requestBody }) => requestBody !== undefined)
    expect(withBody.map(({ operationId }) => operationId).sort()).toEqual(Object.keys(samples).sort())
    for (const { operationId, requestBody } of withBody) {
      const schema = requestBody?.content['application/json']?.schema ?? {}
      const sampled = (samples[operationId] ?? []).flatMap((sample) => pathsIn(sample).map(pointerOf))
      const general = new Set(sampled.map((pointer) => pointer.replaceAll(/\/\d+(?=\/|$)/g, '/*')))
      expect([...general], operationId).toEqual(expect.arrayContaining(membersOf(schema)))
    }
  })

  it.each(Object.keys(samples))('%s: are refused by what is wrong, and change nothing', async (id) => {
    const before = await record.dump()
    const bodies = (samples[id] ?? []).flatMap((sample) =>
      pathsIn(sample).flatMap((path) => wrongValues.map((value) => ({ sample, path, value }))),
    )
    await inParallel(bodies, async ({ sample, path, value }) => {
      const pointer = pointerOf(path)
      if (right.some(([where, values]) => where.test(pointer) && values.includes(value))) return
      const answer = await send(id, { body: withValue(sample, path, value) })
      expectRefused(answer, pointer, `${pointer} ${value.slice(0, 20)}`)
    })
    expect(await record.dump()).toEqual(before)
  })

  it.each(Object.keys(samples))('%s: are refused where there is one too many, or one twice', async (id) => {
    const before = await record.dump()
    const [sample = {}] = samples[id] ?? []
    const objects = [[], ...pathsIn(sample)].filter((path) => {
      return isObject(valueAt(sample, path)) && !opaque.test(pointerOf(path))
    })
    const more = ['"unknown":1', '"__proto__":{"polluted":1}', '"constructor":{"prototype":{"polluted":1}}']
    const many = Array.from({ length: 100_000 }, (_, at) => `"_${at.toString(36)}":0`).join(',')
    for (const path of objects) {
      const own = JSON.stringify(valueAt(sample, path)).slice(1, -1)
      const text = (members: string) => withValue(sample, path, `{${own}${own === '' ? '' : ','}${members}}`)
      for (const member of more) {
        const answer = await send(id, { body: text(member) })
        expectRefused(answer, pointerOf(path), member)
      }
      const [name, value] = Object.entries(valueAt(sample, path) as object)[0] ?? []
      if (name === undefined) continue
      const escaped = `\\u${name.charCodeAt(0).toString(16).padStart(4, '0')}${name.slice(1)}`
      for (const again of [name, escaped]) {
        const answer = await send(id, { body: text(`"${again}":${JSON.stringify(value)}`) })
        expect([answer.status, answer.json.code]).toEqual([400, 'INVALID_ARGUMENT'])
        expect(answer.json.detail).toContain('duplicate member')
      }
    }
    const own = JSON.stringify(sample).slice(1, -1)
    expectRefused(await send(id, { body: `{${own}${own === '' ? '' : ','}${many}}` }), '#', '100,000 members')
    expect(await record.dump()).toEqual(before)
  })

  it.each(Object.keys(samples))('%s: are taken when they are right', async (id) => {
    for (const sample of samples[id] ?? []) {
      if ('cursor' in sample) continue // no cursor is right but one that was handed out
      const answer = await send(id, { body: JSON.stringify(sample) })
      expect([answer.status < 500, answer.json?.code]).not.toEqual([true, 'INVALID_ARGUMENT'])
    }
  })
})

describe('what is said of a request that was meant well', () => {
  const good = { conversation: 'c', to: [{ host: 'a' }], payload: 1 }
  const known = 'conversation, sender, to, payload, payloadBase64, contentType, parent, deliverBy, executeBy'
  const time = 'must be RFC 3339 with an offset, or Unix milliseconds'
  it.each<[body: object | string, says: string]>([
    ['', '# must be a JSON object; the body is empty or null'],
    ['null', '# must be a JSON object; the body is empty or null'],
    ['[]', '# must be an object, not a list'],
    [{ ...good, to: undefined }, '#/to is required'],
    [{ ...good, to: [{ hosst: 'a' }] }, '#/to/0 must be { host } or { session }, not { hosst }'],
    [{ ...good, deliverBy: 'tomorrow' }, `#/deliverBy ${time}, not "tomorrow"`],
    [{ ...good, deliverBy: 1.5 }, `#/deliverBy ${time}, not 1.5`],
    [{ ...good, zzz: 1 }, `# unknown member "zzz" (known: ${known})`],
  ])('%j', async (body, says) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const { status, json } = await send('acceptMessage', { body: text })
    expect([status, json.code, json.detail]).toEqual([400, 'INVALID_ARGUMENT', says])
  })

  it('a key that is missing, a setting that is none, a number that is too large, a kind that is none', async () => {
    const keyless = await fetch(`${server.url}/v1/messages`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(good),
    })
    expect(((await keyless.json()) as Problem).detail).toBe('header:/idempotency-key is required')
    const setting = await send('configure', { body: '{"heartbeat":1}' })
    expect(setting.json.detail).toMatch(/^# unknown member "heartbeat" \(known: accept_everysec, .*_ms\)$/)
    const page = await ask<Problem>('GET', '/v1/deliveries?limit=7000')
    expect(page.json.detail).toBe('query:/limit must be at most 1000, not 7000')
    const { json } = await send('report', { body: JSON.stringify(reported({ kind: 'canary' })) })
    expect(json.detail).toBe(
      '#/reports/0/outcome/kind must be one of result, terminal, not_sent, outcome_unknown',
    )
  })
})

describe('documents', () => {
  const head = '{"conversation":"c","sender":"s","to":[{"host":"a"}],"payload":'
  const notObjects = ['[]', '"text"', '1', 'true', '[{}]']
  const accept = async (body: string | Buffer, key: string) =>
    send('acceptMessage', { body, headers: { 'idempotency-key': key } })

  it('that are no object are refused by every operation, and so is no document at all', async () => {
    const before = await record.dump()
    for (const id of Object.keys(samples)) {
      const optional = operations.get(id)?.requestBody?.required === false
      for (const body of optional ? notObjects : [...notObjects, 'null', '']) {
        expectRefused(await send(id, { body }), '#', `${id} ${body}`)
      }
    }
    expect(await record.dump()).toEqual(before)
  })

  it('that are no JSON, or no UTF-8, are refused with the place', async () => {
    const before = await record.dump()
    const bytes = (...codes: number[]) =>
      Buffer.from([...Buffer.from(`${head}"`), ...codes, ...Buffer.from('"}')])
    const bad: readonly (readonly [what: string, body: string | Buffer])[] = [
      ['half a document', head],
      ['two documents', `${head}1}{}`],
      ['a comma too many', `${head}1,}`],
      ['single quotes', "{'reason':'r'}"],
      ['a comment', `${head}1/* */}`],
      ['NaN', `${head}NaN}`],
      ['Infinity', `${head}Infinity}`],
      ['undefined', `${head}undefined}`],
      ['a hexadecimal number', `${head}0x10}`],
      ['a leading zero', `${head}01}`],
      ['a plus sign', `${head}+1}`],
      ['a point without digits', `${head}1.}`],
      ['a bare minus', `${head}-}`],
      ['a control character in a string', `${head}"a\nb"}`],
      ['NUL in a string', bytes(0)],
      ['NUL after the document', `${head}1}\0`],
      ['an unknown escape', `${head}"\\x41"}`],
      ['half an escape', `${head}"\\u12"}`],
      ['a byte order mark', `\ufeff${head}1}`],
      ['UTF-16', Buffer.from(`${head}1}`, 'utf16le')],
      ['a byte that starts nothing', bytes(0xff)],
      ['half a character', bytes(0xe4)],
      ['an overlong character', bytes(0xc0, 0x80)],
      ['a surrogate in UTF-8', bytes(0xed, 0xa0, 0x80)],
      ['a character beyond Unicode', bytes(0xf5, 0x80, 0x80, 0x80)],
      ['65 arrays in another', `${head}${'['.repeat(64)}${']'.repeat(64)}}`],
      ['100,000 arrays in another', `${head}${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
      ['100,000 objects in another', `${head}${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}}`],
      ['a million open arrays', '['.repeat(1_000_000)],
      ['a member of the payload twice', `${head}{"a":1,"b":{"a":2,"\\u0061":3}}}`],
    ]
    for (const [what, body] of bad) {
      const answer = await accept(body, 'never')
      expect([what, answer.status, answer.json.code]).toEqual([what, 400, 'INVALID_ARGUMENT'])
      expect(answer.json.detail, what).toMatch(/ at (line \d+, column \d+|byte \d+)/)
    }
    expect(await record.dump()).toEqual(before)
  })

  it('with payloads that others would change are kept to the byte', async () => {
    const payloads = [
      '{"id":130775545883395173,"a":[],"f":1.10,"n":null}',
      '{"huge":1e999,"least":-1e-999,"zero":-0,"exact":12345678901234567890.123456789}',
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{}},"toString":1}',
      '{"2":"b","1":"a","é":"😀","lone":"\\ud800","pair":"\\ud83d\\ude00"}',
      ` [ 1 , "\\u0061" ] `,
      `{${Array.from({ length: 60_000 }, (_, at) => `"m${at}":0`).join(',')}}`,
      `${'['.repeat(63)}${']'.repeat(63)}`,
      `[${Array(200_000).fill('0').join(',')}]`,
      '"__proto__"',
    ]
    for (const [at, payload] of payloads.entries()) {
      const answer = await accept(`${head}${payload}}`, `exact-${at}`)
      expect([payload.slice(0, 40), answer.status]).toEqual([payload.slice(0, 40), 201])
      const { id } = answer.json as unknown as { id: string }
      expect(await record.send('GET', record.keys.payload(id))).toBe(payload.trim())
    }
    expect(({} as Record<string, unknown>)['polluted']).toBe(undefined)
  })

  it('with numbers that are no whole number in their range are refused', async () => {
    const before = await record.dump()
    const numbers = [
      '0',
      '-0',
      '1.5',
      '-1',
      '1e999',
      '-1e999',
      '9007199254740993',
      '1e21',
      '1e-1',
      '"1"',
      '[1]',
    ]
    for (const number of [...numbers, '1'.repeat(100_000)]) {
      const join = await send('join', { body: `{"incarnation":${number},"instance":"i1"}` })
      expectRefused(join, '#/incarnation', number.slice(0, 20))
    }
    for (const number of ['0.5', '-1', '1e999', '9007199254740993', '"1"']) {
      const mirror = await send('mirror', { body: withValue(step, ['items', 0, 'epoch'], number) })
      expectRefused(mirror, '#/items/0/epoch', number)
    }
    expect(await record.dump()).toEqual(before)
  })

  it('with text that has no UTF-8 form are refused where it is text', async () => {
    const before = await record.dump()
    for (const text of ['"\\ud800"', '"\\udc00x"', `"${'ä'.repeat(513)}"`]) {
      expectRefused(await send('holdDelivery', { body: `{"reason":${text}}` }), '#/reason', text.slice(0, 20))
    }
    expect(await record.dump()).toEqual(before)
  })

  it('with half a million wrong elements are refused before anybody looks at each', async () => {
    const zeros = Array(500_000).fill('0').join(',')
    const startedAt = performance.now()
    const to = await accept(`{"conversation":"c","sender":"s","payload":1,"to":[${zeros}]}`, 'long')
    expect([to.status, to.json.code, to.json.pointer]).toEqual([400, 'TOO_MANY_RECIPIENTS', '#/to'])
    const scopes = await send('join', { body: `{"incarnation":1,"instance":"i","scopes":[${zeros}]}` })
    expectRefused(scopes, '#/scopes', 'scopes')
    const reports = await send('report', {
      body: `{"host":"a","node":"n","incarnation":1,"reports":[${zeros}]}`,
    })
    expectRefused(reports, '#/reports', 'reports')
    expect(performance.now() - startedAt).toBeLessThan(6000)
  })

  it('of other types, or coded, are refused', async () => {
    const before = await record.dump()
    const body = '{"reason":"r"}'
    const typed = async (headers: Record<string, string>, bytes: string | Buffer = body) => {
      return (await send('holdDelivery', { body: Buffer.from(bytes), headers })).status
    }
    const json = 'application/json'
    const types = [
      'text/plain',
      'text/json',
      'application/jsonx',
      'application/json-patch+json',
      'application/problem+json',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      `${json};charset=utf-16`,
      `${json}; charset="iso-8859-1"`,
      `text/plain, ${json}`,
      '*/*',
      'json',
      '',
    ]
    for (const type of types) expect([type, await typed({ 'content-type': type })]).toEqual([type, 415])
    for (const coding of ['gzip', 'deflate', 'br', 'gzip, identity']) {
      const headers = { 'content-type': json, 'content-encoding': coding }
      expect([coding, await typed(headers), await typed(headers, gzipSync(body))]).toEqual([coding, 415, 415])
    }
    expect(await record.dump()).toEqual(before)
    for (const type of [json, `${json}; charset=utf-8`, `${json};charset="UTF-8"`, 'Application/JSON']) {
      const taken = await typed({ 'content-type': type, 'content-encoding': 'identity' })
      expect([type, [200, 409].includes(taken)]).toEqual([type, true])
    }
  })
})

describe('names', () => {
  const badHosts = [
    ...['Example', 'example.', '.example', '-a', 'ex%61mple', '{a}', 'a*', 'a b', 'a\0', '\0', 'ä', 'a/b'],
    ...['../a', 'a\n', 'a\r\nb', '[a]', 'a?b', 'a#b', 'x'.repeat(64), 'x'.repeat(300), '__proto__'],
  ]
  const badIds = ['a\0b', 'ä', 'a\nb', '\u007f', 'x'.repeat(256), 'x'.repeat(1900)]
  const badNumbers = ['x', '1', '1-1.', '1-1.1.1', '{a}', '-1-1.1', '1-1.1\0', '1-1.١', '__proto__']
  const place = (member: string) => `path:/${member}`

  it('of hosts are refused in every path', async () => {
    const before = await record.dump()
    for (const { operationId, path } of operations.values()) {
      if (!path.includes('{host}')) continue
      await inParallel(badHosts, async (host) => {
        const [sample] = samples[operationId] ?? []
        const answer = await send(operationId, { params: { host }, body: sample && JSON.stringify(sample) })
        expectRefused(answer, place('host'), `${operationId} ${host}`)
      })
    }
    expect(await record.dump()).toEqual(before)
  })

  it('of hosts are refused in every body and query', async () => {
    const before = await record.dump()
    for (const [id, bodies] of Object.entries(samples)) {
      for (const sample of bodies) {
        const paths = pathsIn(sample).filter((path) => path.at(-1) === 'host')
        await inParallel(
          paths.flatMap((path) => [...badHosts, ''].map((host) => ({ path, host }))),
          async ({ path, host }) => {
            const answer = await send(id, { body: withValue(sample, path, JSON.stringify(host)) })
            expectRefused(answer, pointerOf(path), `${id} ${host}`)
          },
        )
      }
    }
    for (const host of [...badHosts, '']) {
      const path = `/v1/deliveries?host=${encodeURIComponent(host)}`
      expectRefused(await ask<Problem>('GET', path), 'query:/host', host)
    }
    expect(await record.dump()).toEqual(before)
  })

  it('of everything else are refused in every path', async () => {
    const before = await record.dump()
    const bad: Readonly<Record<string, readonly string[]>> = {
      node: badIds,
      name: badIds,
      id: badNumbers,
      kind: ['Pause', 'pause ', 'drop', '__proto__', 'constructor', '\0'],
      scope: [
        'conversation:',
        'conversation:ä',
        'host:Example',
        'host:',
        'hubs',
        'session:a\0',
        '\ud800',
        'x:y',
      ],
    }
    const badBefore = [
      ['/v1/effects/', badIds],
      ['/v1/sessions/', badIds],
      ['/v1/attempts/', [...badNumbers, '1-1.1', '1-1.1/', '1-1.1/x', '1-1.1/1/1', '1-1.1/1\0']],
    ] as const
    for (const { operationId, path } of operations.values()) {
      for (const [, member = ''] of path.matchAll(/\{(\w+)\}/g)) {
        if (member === 'host') continue
        const wrong = badBefore.find(([start]) => path.startsWith(start))?.[1] ?? bad[member] ?? []
        await inParallel(wrong, async (name) => {
          const [sample] = samples[operationId] ?? []
          const answer = await send(operationId, {
            params: { [member]: name },
            body: sample && JSON.stringify(sample),
          })
          expect([operationId, name, answer.status]).toEqual([operationId, name, 400])
          expect(answer.json.code, name).toBe('INVALID_ARGUMENT')
        })
      }
    }
    expect(await record.dump()).toEqual(before)
  })

  it('of keys are refused in the header', async () => {
    const before = await record.dump()
    const [sample = {}] = samples['acceptMessage'] ?? []
    for (const key of ['', ' ', 'x'.repeat(256), 'k\u00e4y']) {
      const answer = await send('acceptMessage', {
        body: JSON.stringify(sample),
        headers: { 'idempotency-key': key },
      })
      expectRefused(answer, 'header:/idempotency-key', key)
    }
    expect(await record.dump()).toEqual(before)
  })

  it('that look like patterns, paths or tags are names and nothing else', async () => {
    const odd = [
      '{bodies}',
      '{x}:fences',
      'a*',
      'a b',
      'a/b',
      '../../x',
      '%61',
      'a:b',
      '__proto__',
      'constructor',
      '\'"\\',
    ]
    const before = new Set(Object.keys(await record.dump()))
    for (const node of odd) {
      expect(
        (await send('join', { params: { node }, body: '{"incarnation":1,"instance":"i"}' })).status,
      ).toBe(200)
      const scope = `conversation:${node}`
      expect((await send('setFence', { params: { scope }, body: '{"reason":"r"}' })).status).toBe(200)
    }
    const { json } = await ask<{ nodes: readonly { node: string }[] }>('GET', '/v1/hosts/a')
    expect(json.nodes.map(({ node }) => node)).toEqual(expect.arrayContaining(odd))
    const fences = await ask<{ fences: readonly { fence: string }[] }>('GET', '/v1/fences')
    expect(fences.json.fences.map(({ fence }) => fence)).toEqual(
      expect.arrayContaining(odd.map((name) => `pause:conversation:${name}`)),
    )
    const made = Object.keys(await record.dump()).filter((key) => !before.has(key))
    expect(made.filter((key) => !key.startsWith(':node:a/') && key !== ':fences')).toEqual([])
    expect(made.filter((key) => key.startsWith(':node:a/')).length).toBe(odd.length)
    for (const name of odd) {
      expect((await send('liftFence', { params: { scope: `conversation:${name}` } })).status).toBe(200)
    }
  })
})

describe('after all that', () => {
  it('the hub accepts, its record is whole, and nothing went wrong unseen', async () => {
    const body = JSON.stringify({ conversation: 'last', sender: 's', to: [{ host: 'last' }], payload: 1 })
    expect((await send('acceptMessage', { body, headers: { 'idempotency-key': 'last' } })).status).toBe(201)
    await record.checkInvariants()
    expect(server.log.filter(({ level = 60 }) => level >= 40)).toEqual([])
  })
})

interface Sent {
  readonly body?: string | Buffer | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly params?: Readonly<Record<string, string>>
}

/** Calls an operation. */
async function send(id: string, { body, headers, params = {} }: Sent): Promise<Answer> {
  const { method, path } = operations.get(id) ?? { method: 'GET', path: '/none' }
  const own: Readonly<Record<string, string>> = {
    id: idIn(path),
    host: id === 'retireHost' ? 'retired' : 'a',
    node: 'n1',
    kind: 'pause',
    scope: 'conversation:c',
    name: id === 'runSweep' ? 'claims' : 'nobody',
    ...params,
  }
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encoded(own[name] ?? ''))
  const route = id === 'leave' ? `${filled}?incarnation=1` : filled
  return await ask<Problem>(method, route, body, { 'idempotency-key': 'sample', ...headers })
}

/** An id of what the path is about. */
function idIn(path: string): string {
  const [, kind = ''] = /^\/v1\/(\w+)/.exec(path) ?? []
  return (
    { messages: message, effects: 'effect', sessions: 'session', attempts: `${delivery}/1` }[kind] ?? delivery
  )
}

async function ask<Body>(
  method: string,
  path: string,
  body?: string | Buffer,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer<Body>> {
  const response = await fetch(`${server.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body }),
  })
  const text = await response.text()
  const isJson = /^application\/(problem\+)?json/.test(response.headers.get('content-type') ?? '')
  const json = (isJson && text !== '' ? JSON.parse(text) : undefined) as Body
  return { status: response.status, headers: response.headers, text, json }
}

/** Percent-encoded; a lone surrogate as the three bytes that it would be. */
function encoded(name: string): string {
  return name.isWellFormed() ? encodeURIComponent(name) : '%ED%A0%80'
}

/** Refused, about this place or one in it or around it, with nothing of what was sent. */
/** What zod says by itself: true, and of no help to whoever wrote the request. */
const librarysWords = /Invalid (input|option|key|value|ISO|string)|Unrecognized|Too (small|big)|, received /

function expectRefused(answer: Answer, pointer: string, about: string): void {
  const { status, headers, json, text } = answer
  expect([about, status >= 400 && status < 500, headers.get('content-type')]).toEqual([
    about,
    true,
    'application/problem+json',
  ])
  expect(json.code, about).toMatch(/^[A-Z_]+$/)
  if (cursor.test(pointer) && json.code === 'INVALID_ARGUMENT') return
  const told = json.pointer ?? 'no pointer'
  const near = told === pointer || told.startsWith(`${pointer}/`) || pointer.startsWith(`${told}/`)
  expect([about, told, near]).toEqual([about, told, true])
  expect(text, about).not.toContain(canary)
  expect(text, about).not.toMatch(librarysWords)
  expect(text.length, about).toBeLessThan(5000)
}

async function inParallel<Item>(items: readonly Item[], run: (item: Item) => Promise<void>): Promise<void> {
  const queue = [...items]
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) await run(next)
    }),
  )
}

type Path = readonly (string | number)[]

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Every member and element, not looking into what is any JSON. */
function pathsIn(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null || opaque.test(pointerOf(path))) return []
  return Object.entries(value).flatMap(([name, inner]) => {
    const own = [...path, Array.isArray(value) ? Number(name) : name]
    return [own, ...pathsIn(inner, own)]
  })
}

function pointerOf(path: Path): string {
  return ['#', ...path].join('/')
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce((at, name) => (at as Readonly<Record<string | number, unknown>>)[name], value)
}

/** The sample as JSON text, with this text at the path. */
function withValue(sample: object, path: Path, text: string): string {
  const last = path.at(-1)
  if (last === undefined) return text
  const copy = structuredClone(sample)
  const parent = valueAt(copy, path.slice(0, -1)) as Record<string | number, unknown>
  parent[last] = hole
  return JSON.stringify(copy).replace(JSON.stringify(hole), () => text)
}

const hole = 'here goes the value'

/** Pointers of every member that a schema knows, `*` for elements. */
function membersOf(schema: JsonSchema, pointer = '#'): string[] {
  const { $ref, properties = {}, items, anyOf = [], oneOf = [] } = schema
  if ($ref !== undefined) return membersOf(schemas[$ref.split('/').at(-1) ?? ''] ?? {}, pointer)
  return [
    ...Object.entries(properties).flatMap(([name, inner]) => {
      return [`${pointer}/${name}`, ...membersOf(inner, `${pointer}/${name}`)]
    }),
    ...(items === undefined ? [] : [`${pointer}/*`, ...membersOf(items, `${pointer}/*`)]),
    ...[...anyOf, ...oneOf].flatMap((inner) => membersOf(inner, pointer)),
  ]
}
