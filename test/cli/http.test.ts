import { writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { MessageView } from '../../src/contract/delivery-views.js'
import type { PrincipalAdded } from '../../src/contract/hub.js'
import type { PrincipalView } from '../../src/contract/principal-views.js'
import { startServer } from '../../src/http/server.js'
import { type Hub, initRecord, openHub } from '../../src/hub/open-hub.js'
import { freePort } from '../../src/record/embedded.js'
import { sweepsOnDemand } from '../../src/sweeps/on-demand.js'
import { certificate } from '../support/certificate.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'
import { answerOf, errorOf, makeFolder, type Running, runCli, servedUrl, startCli } from './run-cli.js'
import { commandsIn } from './run-here.js'

// The command line and a hub over HTTP: `serve`, what goes through --url, principals, nodes. Long-running and
// writing commands are spawned; what only reads, or is refused, runs in this process.

let server: TestServer
let hub: Hub
let serving: Running
let url: string
const folder = makeFolder()
const { path: cwd } = folder
const started: Running[] = []
const tokens: Record<string, string> = {}

beforeAll(async () => {
  server = await startTestServer()
  await initRecord({ redis: server.url })
  hub = await openHub({ redis: server.url })
  serving = start('serve', '--redis', server.url, '--listen', '127.0.0.1:0')
  url = await servedUrl(serving)
})
afterAll(async () => {
  for (const { child } of started) if (child.exitCode === null) child.kill('SIGKILL')
  await Promise.all(started.map(({ ended }) => ended))
  await hub?.close()
  await server?.stop()
  folder.remove()
})

function start(...args: string[]): Running {
  const running = startCli(args, { cwd })
  started.push(running)
  return running
}

/** A principal added on the record, by its token. */
async function add(name: string, role: 'producer' | 'node', host?: string): Promise<string> {
  const { token = '' } = await hub.addPrincipal({ name, role, ...(host && { host }) }, 'test')
  tokens[name] = token
  return token
}

const { answer: answerHere, refused: refusedHere } = commandsIn(cwd)
const as = (token: string) => ({ HOLDFAST_URL: url, HOLDFAST_TOKEN: token })

let messages = 0
async function accept(host: string, payload = 'x') {
  messages += 1
  const message = { key: `k${messages}`, conversation: 'c', sender: 's', to: [{ host }], payload }
  return await hub.accept(message)
}

const settled = (id: string) =>
  until(
    async () => {
      const view = await hub.message(id)
      return view.settledAt === undefined ? undefined : view
    },
    { timeoutMs: 30_000, what: `the end of ${id}` },
  )

describe('before there are principals', () => {
  test('off loopback nothing is served, and the reason is given', async () => {
    const ended = await runCli(['serve', '--redis', server.url, '--listen', ':0', '--json'], { cwd })
    expect(ended).toMatchObject({ code: 1, stdout: '' })
    expect(errorOf(ended)).toMatchObject({
      code: 'AUTHENTICATION_REQUIRED',
      message: expect.stringContaining('0.0.0.0 is not loopback, and no principal exists'),
      next: expect.stringContaining('holdfast principal add operator'),
    })
  })

  test('on loopback everyone is the operator, under the name of --actor', async () => {
    await answerHere(['fence', 'pause', 'host:h0', '--reason', 'r', '--actor', 'kim', '--url', url])
    expect(await hub.fences()).toMatchObject([{ fence: 'pause:host:h0', actor: 'kim' }])
    await answerHere(['fence', 'lift', 'pause', 'host:h0', '--url', url])
    const sent = ['send', '--conversation', 'c', '--to', 'host:h0', 'x', '--url', url]
    const { id } = await answerOf<{ id: string }>(sent, { cwd })
    expect(await hub.message(id)).toMatchObject({ sender: userInfo().username })
  })

  test('the first principal, added through the hub, ends that at once', async () => {
    const words = ['principal', 'add', 'operator', '--name', 'kim', '--actor', 'root', '--url', url]
    const { principal, token = '' } = await answerOf<PrincipalAdded>(words, { cwd })
    expect(principal).toMatchObject({ name: 'kim', role: 'operator', credential: 'token', createdBy: 'root' })
    expect(token).toMatch(/^hft_[\w-]{43}$/)
    tokens['kim'] = token
    expect(await refusedHere(['host', 'ls', '--url', url])).toMatchObject({
      exit: 1,
      code: 'UNAUTHENTICATED',
    })
  })
})

describe('principals', () => {
  test('add shows the token once, ls shows it never, revoke works at once', async () => {
    const added = await runCli(
      ['principal', 'add', 'producer', '--name', 'gone', '--any-sender', '--redis', server.url],
      { cwd },
    )
    expect(added).toMatchObject({ code: 0, stderr: 'this token is shown now and never again\n' })
    const token = /^token +(hft_\S+)$/m.exec(added.stdout)?.[1] ?? ''
    expect(await answerHere(['message', 'show', (await accept('h0')).id], as(token))).toMatchObject({
      sender: 's',
    })

    const listed = await runCli(['principal', 'ls'], { cwd, env: as(tokens['kim'] ?? '') })
    expect(listed).toMatchObject({ code: 0, stderr: '' })
    expect(listed.stdout).toMatch(/^NAME +ROLE +CREDENTIAL +ADDED$/m)
    expect(listed.stdout).toMatch(/^gone +producer, any sender +token /m)
    expect(listed.stdout).not.toContain('hft_')

    const words = ['principal', 'revoke', 'gone', '--reason', 'left', '--redis', server.url]
    const revoked = await answerOf<PrincipalView>(words, { cwd })
    expect(revoked).toMatchObject({ name: 'gone', revokedAt: expect.any(Number), revokedReason: 'left' })
    await until(async () => (await refusedHere(['host', 'ls'], as(token))).code === 'UNAUTHENTICATED')
    const { principals } = await answerHere<{ principals: PrincipalView[] }>(
      ['principal', 'ls'],
      as(tokens['kim'] ?? ''),
    )
    expect(principals.map(({ name }) => name)).toEqual(['kim', 'gone'])
  })

  test.each([
    [['node'], ['--host: is required for a node']],
    [
      ['producer', '--host', 'h', '--scope', '/srv', '--cert', 'none'],
      ['--host: is for a node alone', '--scope: is for a node alone', '--cert: names no file'],
    ],
    [
      ['viewer', '--any-sender', '--name', ''],
      ['--any-sender: is for a producer alone', '--name: must be'],
    ],
    [
      ['king', '--host', 'H'],
      ['ROLE: must be one of producer, node, operator, viewer', '--host: must match'],
    ],
  ])('add %j is refused with every problem', async (args, problems) => {
    const { exit, code, message } = await refusedHere(['principal', 'add', ...args, '--redis', server.url])
    expect({ exit, code }).toEqual({ exit: 2, code: 'INVALID_ARGUMENT' })
    for (const problem of problems) expect(message).toContain(problem)
    if (problems.length > 1) expect(message).toContain(`${problems.length} problems`)
  })

  test('a name is not used twice, and who never was cannot be revoked', async () => {
    const kim = as(tokens['kim'] ?? '')
    expect(await refusedHere(['principal', 'add', 'viewer', '--name', 'gone'], kim)).toMatchObject({
      exit: 1,
      code: 'PRINCIPAL_EXISTS',
    })
    expect(await refusedHere(['principal', 'revoke', 'nobody', '--reason', 'r'], kim)).toMatchObject({
      exit: 3,
      code: 'PRINCIPAL_NOT_FOUND',
    })
  })
})

describe('through --url', () => {
  test('the sender of a message is the principal', async () => {
    const token = await add('billing', 'producer')
    const args = ['send', '--conversation', 'c', '--to', 'host:h1', '--key', 'b-1', 'hello', '--url', url]
    const sent = await runCli([...args, '--token', token], { cwd, env: { USER: 'someone' } })
    expect(sent).toMatchObject({ code: 0, stderr: '' })
    expect(sent.stdout).toMatch(/^accepted +now$/m)
    const id = /^message +(\S+)$/m.exec(sent.stdout)?.[1] ?? ''
    expect(await hub.message(id)).toMatchObject({ sender: 'billing', key: 'b-1', bytes: 5 })

    expect(await answerHere(args, as(token))).toMatchObject({ id, replayed: true })
    const shown = await answerHere<MessageView>(['message', 'show', id], as(token))
    expect(shown).toEqual(await hub.message(id))
    expect(await refusedHere([...args, '--sender', 'kim'], as(token))).toMatchObject({
      exit: 1,
      code: 'FORBIDDEN',
    })
    expect(await refusedHere(['held', 'ls'], as(token))).toMatchObject({ exit: 1, code: 'FORBIDDEN' })
  })

  test('lists and views are those of the record', async () => {
    const { deliveries } = await accept('h2')
    const id = deliveries[0]?.id ?? ''
    await hub.holdDelivery(id, { reason: 'look first', actor: 'kim' })
    const onRecord = { HOLDFAST_REDIS: server.url }
    const verbs = [
      ['delivery', 'ls'],
      ['delivery', 'ls', '--host', 'h2', '--state', 'held', '--limit', '1'],
      ['delivery', 'show', id],
      ['delivery', 'why', id],
      ['held', 'ls'],
      ['pending', 'ls'],
      ['unknown', 'ls'],
      ['fence', 'ls'],
      ['host', 'ls'],
      ['config', 'get'],
      ['principal', 'ls'],
    ]
    for (const verb of verbs) {
      const found = await answerHere(verb, as(tokens['kim'] ?? ''))
      expect(found, verb.join(' ')).toEqual(await answerHere(verb, onRecord))
      expect(JSON.stringify(found).length, verb.join(' ')).toBeGreaterThan(10)
    }
  })

  test('acts are those of the principal, whatever --actor says', async () => {
    const env = as(tokens['kim'] ?? '')
    const paused = await runCli(['fence', 'pause', 'host:h3', '--reason', 'new disk', '--actor', 'eve'], {
      cwd,
      env,
    })
    expect(paused).toMatchObject({ code: 0, stderr: '' })
    expect(paused.stdout).toMatch(/^stands +pause:host:h3$/m)
    expect(await hub.fences()).toMatchObject([{ fence: 'pause:host:h3', reason: 'new disk', actor: 'kim' }])
    expect(await answerHere(['fence', 'lift', 'pause', 'host:h3'], env)).toMatchObject({
      fence: 'pause:host:h3',
    })
    expect(await answerHere(['config', 'set', 'max_takeovers', '7'], env)).toMatchObject({
      settings: [{ name: 'max_takeovers', value: 7 }],
    })
    const { deliveries } = await accept('h3')
    const id = deliveries[0]?.id ?? ''
    const cancelled = await answerHere(['delivery', 'cancel', id, '--reason', 'too late'], env)
    expect(cancelled).toMatchObject({ id, state: 'failed' })
    expect(await refusedHere(['delivery', 'show', '1-1.1'], env)).toMatchObject({
      exit: 3,
      code: 'DELIVERY_NOT_FOUND',
    })
  })

  test.each([
    ['an unknown token', (): string[] => ['--url', url, '--token', 'hft_nobody'], 1, 'UNAUTHENTICATED'],
    ['a hub and a record at once', () => ['--url', url, '--redis', server.url], 2, 'INVALID_ARGUMENT'],
  ])('%s is refused', async (_, where, exit, code) => {
    expect(await refusedHere(['host', 'ls', ...where()])).toMatchObject({ exit, code })
  })

  test.each(['init', 'serve', 'dev', 'functions load', 'functions verify'])(
    '%s works on the record itself',
    async (verb) => {
      expect(await refusedHere([...verb.split(' '), '--url', url])).toMatchObject({
        exit: 2,
        message: expect.stringContaining('--url: this works on the record itself'),
        next: expect.stringContaining('HOLDFAST_URL'),
      })
    },
  )

  test('a hub that is not there fails at once', async () => {
    const nowhere = `http://127.0.0.1:${await freePort()}`
    const startedAt = performance.now()
    expect(await refusedHere(['host', 'ls', '--url', nowhere])).toMatchObject({
      exit: 1,
      code: 'HUB_UNREACHABLE',
      next: expect.stringContaining('--url'),
    })
    expect(performance.now() - startedAt).toBeLessThan(5000)
  })

  test('over TLS, with a client certificate that a principal pins', async () => {
    const files = { cert: join(cwd, 'cert.pem'), key: join(cwd, 'key.pem') }
    writeFileSync(files.cert, certificate.cert)
    writeFileSync(files.key, certificate.key)
    const words = [
      'principal',
      'add',
      'viewer',
      '--name',
      'glass',
      '--cert',
      files.cert,
      '--redis',
      server.url,
    ]
    expect(await answerHere(words)).not.toHaveProperty('token')
    const secure = await startServer({
      redis: server.url,
      listen: { host: '127.0.0.1', port: 0 },
      tls: { certificate: certificate.cert, key: certificate.key },
      log: pino({ level: 'silent' }),
      sweeps: sweepsOnDemand,
    })
    try {
      const trusting = ['host', 'ls', '--url', secure.url, '--ca', files.cert]
      const shown = [...trusting, '--client-cert', files.cert, '--client-key', files.key]
      expect(await answerHere(shown)).toHaveProperty('hosts')
      expect(await refusedHere(trusting)).toMatchObject({ exit: 1, code: 'UNAUTHENTICATED' })
      expect(await refusedHere(['host', 'ls', '--url', secure.url])).toMatchObject({
        exit: 1,
        code: 'HUB_UNREACHABLE',
      })
    } finally {
      await secure.close()
    }
  })
})

describe('nodes', () => {
  test('node --url runs deliveries of its host alone, and leaves on SIGTERM', async () => {
    const token = await add('node:n1', 'node', 'n1')
    const args = ['node', '--url', url, '--token', token, '--exec', 'cat']
    const other = start(...args, '--host', 'n2', '--json')
    const node = start(...args, '--host', 'n1')
    const { id } = await accept('n1', 'over HTTP')
    const { deliveries } = await settled(id)
    expect(deliveries[0]?.attempts).toMatchObject([
      { outcome: 'result', result: expect.stringContaining('"stdout":"over HTTP"') },
    ])
    node.child.kill('SIGTERM')
    expect(await node.ended).toMatchObject({ code: 0, signal: null, stdout: '' })
    const n1 = await hub.host('n1')
    expect(n1?.nodes).toMatchObject([{ node: 'n1', state: 'left' }])

    const ended = await other.ended
    expect(ended.code).toBe(1)
    expect(errorOf(ended)).toMatchObject({ code: 'FORBIDDEN', message: expect.stringContaining('host n1') })
  })

  test('node --forward posts each delivery to a URL', async () => {
    const posted: { headers: IncomingHttpHeaders; body: string }[] = []
    const target = createServer(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += String(chunk)
      posted.push({ headers: request.headers, body })
      response.setHeader('content-type', 'application/json')
      response.end('{"done": true}')
    })
    await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve))
    const { port } = target.address() as AddressInfo
    const forward = `http://127.0.0.1:${port}/hook?from=holdfast`
    const node = start('node', '--redis', server.url, '--host', 'f1', '--forward', forward)
    const { id } = await accept('f1', 'forwarded')
    const { deliveries } = await settled(id)
    expect(deliveries[0]?.attempts).toMatchObject([
      { outcome: 'result', result: expect.stringContaining('"json":{"done": true}') },
    ])
    expect(posted).toMatchObject([{ body: 'forwarded', headers: { 'idempotency-key': `${id}.1/1` } }])
    node.child.kill('SIGTERM')
    expect(await node.ended).toMatchObject({ code: 0 })
    await new Promise((resolve) => target.close(resolve))
  })

  test.each([
    [['node', '--host', 'h'], '--exec: give one of --exec and --forward'],
    [['node', '--host', 'h', '--exec', 'true', '--forward', 'http://h/'], 'give one of --exec and --forward'],
    [['node', '--host', 'h', '--forward', 'ftp://h/'], '--forward: must be http:// or https://'],
    [['dev', '--forward', 'http://h/'], '--host: is required with --exec and --forward'],
    [['serve', '--listen', '8090', '--tls-cert', 'none'], '3 problems'],
  ])('%j is wrong usage', async (args, problem) => {
    expect(await refusedHere(args)).toMatchObject({ exit: 2, message: expect.stringContaining(problem) })
  })
})

test('dev says where it serves', async () => {
  const dev = start('dev', '--listen', '127.0.0.1:0', '--data', join(cwd, 'dev'))
  const said = await dev.said('holdfast send')
  const own = /^http +(http:\/\/127\.0\.0\.1:\d+)$/m.exec(said)?.[1] ?? ''
  expect((await fetch(`${own}/livez`)).status).toBe(200)
  expect(await answerHere(['host', 'ls', '--url', own])).toEqual({ hosts: [] })
  dev.child.kill('SIGTERM')
  expect(await dev.ended).toMatchObject({ code: 0, signal: null, stdout: '' })
})

test('serve that cannot use its certificate starts nothing', async () => {
  const file = join(cwd, 'no.pem')
  writeFileSync(file, 'no certificate')
  const words = ['serve', '--redis', server.url, '--tls-cert', file, '--tls-key', file]
  expect(await refusedHere(words)).toMatchObject({
    exit: 2,
    message: expect.stringContaining('--tls-cert and --tls-key'),
  })
})

// Last: it ends the hub that the others use.
test('serve answers who waits, and ends on SIGTERM with 0', async () => {
  const headers = { authorization: `Bearer ${tokens['kim']}` }
  const { id } = await accept('nobody')
  const waiting = fetch(`${url}/v1/messages/${id}?waitMs=60000`, { headers })
  await until(async () => {
    const metrics = await (await fetch(`${url}/metrics`, { headers })).text()
    return /^holdfast_http_waiting 1$/m.test(metrics)
  })
  const startedAt = performance.now()
  serving.child.kill('SIGTERM')
  const answer = await waiting
  expect(answer.status).toBe(200)
  expect(await answer.json()).toMatchObject({ id, deliveries: [{ state: 'queued' }] })
  expect(await serving.ended).toMatchObject({ code: 0, signal: null, stdout: '' })
  expect(performance.now() - startedAt).toBeLessThan(8000)
  await expect(fetch(`${url}/livez`)).rejects.toThrow()
})
