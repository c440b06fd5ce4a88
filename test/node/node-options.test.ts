import { describe, expect, it } from 'vitest'
import type { HubAddress } from '../../src/client/index.js'
import { isHoldfastError } from '../../src/contract/errors.js'
import {
  commandExecutor,
  commandProbe,
  createNode,
  createSupervisor,
  forwardExecutor,
  httpProbe,
  type HubAddress as NodeAddress,
} from '../../src/node/index.js'
import { checkedOptions } from '../../src/node/node-options.js'

// Options that are none, or of another form, are refused by their names before anything is started. Nobody listens where
// these nodes would connect, and none of their mirrors is ever opened.

/** What is said of a call that is refused. */
function refusal(call: () => unknown): string {
  try {
    call()
  } catch (error) {
    if (isHoldfastError(error, 'INVALID_ARGUMENT')) return error.message.slice(error.code.length + 1)
    throw error
  }
  throw new Error('was taken')
}

const basics = { host: 'a', redis: 'redis://127.0.0.1:1', mirror: 'unused.db' }
const execute = () => 'done'
const good = { ...basics, execute }
const known =
  'host, node, hub, hubs, redis, http, mirror, execute, executor, probe, idempotent, probeTimeLimitMs, concurrency, buffer, timeLimitMs, graceMs, drainMs, scopes, log, luaDir, onPoint'
const count = 'must be a whole number from 1 to 2147483647'

describe('createNode', () => {
  it('reaches a hub as a client does, the name to verify included', () => {
    const http: HubAddress = { url: 'https://127.0.0.1:1', tls: { servername: 'hub.example' } }
    const asNode: NodeAddress = http
    expect(checkedOptions({ host: 'a', mirror: 'unused.db', http: asNode, execute }).reach).toEqual({ http })
  })

  it.each<[options: unknown, says: string]>([
    [undefined, 'options: is required'],
    [null, 'options: must be an object, not null'],
    ['a', 'options: must be an object, not a string'],
    [
      {},
      'host: is required; mirror: is required; takes `redis` or `http`, and neither is given; takes `execute` or `executor`, and neither is given',
    ],
    [
      { ...good, concurency: 2, idempotant: true },
      `unknown members "concurency", "idempotant" (known: ${known})`,
    ],
    [
      { ...good, mirror: undefined, mirrror: 'x' },
      `mirror: is required; unknown member "mirrror" (known: ${known})`,
    ],
    [{ ...good, execute: 5 }, 'execute: must be a function, not 5'],
    [
      { ...good, probe: 'true', idempotent: 'no', scopes: '/tmp' },
      'probe: must be a function, or a prober, which has a method ask, not a string; idempotent: must be true or false, not a string; scopes: must be a list, not a string',
    ],
    [
      { ...good, concurrency: 0, drainMs: '5s', graceMs: 1.5 },
      `concurrency: ${count}, not 0; graceMs: ${count}, not 1.5; drainMs: ${count}, not a string`,
    ],
    [{ ...good, executor: { run: execute } }, 'takes `execute` or `executor`, and both are given'],
    [
      { ...basics, executor: execute },
      'executor: must be an executor, which has a method run, not a function',
    ],
    [{ ...good, http: { url: 'http://h' } }, 'takes `redis` or `http`, and both are given'],
    [{ ...good, hub: 'a', hubs: ['b'] }, 'takes `hub` or `hubs`, and both are given'],
    [
      { ...good, hubs: ['b', 'b'], node: 'ä' },
      'node: must be 1 to 255 bytes of printable ASCII, not "ä"; hubs: hub b is named twice',
    ],
    [
      { ...good, log: { info: execute } },
      'log: must be a logger, which has debug, info, warn and error, not an object',
    ],
    [
      { ...good, redis: { url: 'redis://h', tls: { cq: 'x' } } },
      'redis.tls: unknown member "cq" (known: ca, cert, key, servername)',
    ],
  ])('%#: says all that is wrong', (options, says) => {
    expect(refusal(() => createNode(options as typeof good))).toBe(`createNode: ${says}`)
  })

  it('shows no secret of an address', () => {
    const redis = { uri: 'redis://:hunter2@h' }
    const http = { url: 'http://h', tokens: 'hunter2' }
    for (const reach of [{ redis }, { redis: undefined, http }]) {
      const text = refusal(() => createNode({ ...good, ...reach } as unknown as typeof good))
      expect(text).toContain('unknown member')
      expect(text).not.toContain('hunter2')
    }
  })

  it('uses what it is given, and no copy of it', () => {
    class Asker {
      readonly #answer = { kind: 'outcome_unknown', errorCode: 'x' } as const
      ask = async () => this.#answer
    }
    const prober = new Asker()
    const executor = { run: prober.ask }
    const taken = checkedOptions({ ...basics, executor, probe: prober, log: console, hub: undefined })
    expect(taken.prober).toBe(prober)
    expect(taken.executor).toBe(executor)
    expect(taken).toMatchObject({ hub: 'hf', node: 'a', concurrency: 8, buffer: 32, idempotent: false })
  })
})

describe('what a node is made of', () => {
  it.each<[name: string, call: (options: never) => unknown, options: unknown, says: string]>([
    [
      'commandExecutor',
      commandExecutor,
      { comand: 'true' },
      'command: is required; unknown member "comand" (known: ',
    ],
    [
      'commandExecutor',
      commandExecutor,
      { command: 'true', killGraceMs: '5s' },
      'killGraceMs: must be a whole number',
    ],
    [
      'forwardExecutor',
      forwardExecutor,
      { url: 'http://h/', header: {} },
      'unknown member "header" (known: url, headers,',
    ],
    [
      'httpProbe',
      httpProbe,
      { url: 7, timeout: 1 },
      'url: must be a URL, not 7; unknown member "timeout" (known: ',
    ],
    ['commandProbe', commandProbe, 'true', 'options: must be an object, not a string'],
    [
      'createSupervisor',
      createSupervisor,
      { restartBudget: -1, comand: [] },
      'hub: is required; session: is required; ',
    ],
  ])('%s refuses %#', (name, call, options, says) => {
    const text = refusal(() => call(options as never))
    expect(text.slice(0, name.length + 2 + says.length)).toBe(`${name}: ${says}`)
  })
})
