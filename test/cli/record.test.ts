import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { DeliveryView, MessageView, WhyReply } from '../../src/contract/delivery-views.js'
import type { FenceView, PendingEntry } from '../../src/contract/host-views.js'
import type { Accepted, DeliveryPage } from '../../src/contract/hub.js'
import { openStore, type Store } from '../../src/record/connections.js'
import { functionsOf } from '../../src/record/functions.js'
import { assembleLibrary, libraryVersion } from '../../src/record/library.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { answerOf, errorOf, makeFolder, type Running, runCli, startCli } from './run-cli.js'
import { commandsIn } from './run-here.js'

// What the command line shows of a record and does to it. Commands run in this process; those with `spawned` in a
// process of their own: the exit code that a shell sees, its stdin and its pipes.

type Sent = Accepted & { key: string }

let server: TestServer
let store: Store
let nowhere: Running
const folder = makeFolder()
const { path: cwd } = folder
beforeAll(async () => {
  server = await startTestServer()
  store = await openStore({ url: server.url, name: 'test' })
  const words = [
    'send',
    '--conversation',
    'c',
    '--to',
    'host:h',
    'x',
    '--redis',
    'redis://127.0.0.1:1',
    '--json',
  ]
  nowhere = startCli(words, { cwd })
})
afterAll(async () => {
  if (nowhere?.child.exitCode === null) nowhere.child.kill('SIGKILL')
  await store?.close()
  await server?.stop()
  folder.remove()
})

const at = (...args: string[]) => [...args, '--redis', server.url]
const here = commandsIn(cwd)
const run = (...args: string[]) => here.run(at(...args))
const answer = <Answer>(...args: string[]) => here.answer<Answer>(at(...args))
const spawned = (...args: string[]) => runCli(at(...args), { cwd })
const send = (...args: string[]) => answer<Sent>('send', '--conversation', 'c1', ...args)

describe('before init', () => {
  test('functions verify finds none and ends with 4; load brings them', async () => {
    const missing = await spawned('functions', 'verify', '--json')
    expect(missing.code).toBe(4)
    expect(JSON.parse(missing.stdout)).toEqual({ kind: 'missing', digest: assembleLibrary().digest })
    expect(await answer('functions', 'load')).toEqual({ kind: 'loaded', version: 2 })
    expect(await answer('functions', 'load')).toEqual({ kind: 'present', version: 2 })
    expect(await answer('functions', 'verify')).toMatchObject({ kind: 'loaded' })
  })

  test('a library that was changed ends with 4 and says what to do', async () => {
    await store.call(['FUNCTION', 'LOAD', 'REPLACE', `${assembleLibrary().code}\n-- changed`])
    const ended = await run('functions', 'verify')
    expect(ended.code).toBe(4)
    expect(ended.stdout).toContain('differs')
    expect(ended.stderr).toContain('next: holdfast functions load')
    await answer('functions', 'load')
  })

  test('a newer library is told as such: loading this one would change nothing', async () => {
    const own = `local LIBRARY_VERSION = ${libraryVersion}`
    const { code } = assembleLibrary()
    expect(code).toContain(own)
    const newer = code.replace(own, 'local LIBRARY_VERSION = 99')
    await store.call(['FUNCTION', 'LOAD', 'REPLACE', newer])
    const ended = await run('functions', 'verify')
    expect(ended.code).toBe(4)
    expect(ended.stderr).toContain(
      `next: use a holdfast of that library: this one has version ${libraryVersion}`,
    )
    expect(ended.stderr).not.toContain('functions load')
    await store.call(['FUNCTION', 'DELETE', 'holdfast'])
    await answer('functions', 'load')
  })

  test('STORE_UNKNOWN, with the next step', async () => {
    const ended = await spawned('delivery', 'ls')
    expect(ended.code).toBe(1)
    expect(ended.stdout).toBe('')
    expect(ended.stderr).toMatch(
      /^STORE_UNKNOWN .* \(on redis:\/\/127\.0\.0\.1:\d+\)\n {2}next: check --redis and --hub; if they are right, run `holdfast init`/,
    )
    expect(errorOf(await run('message', 'show', '1-1', '--json'))).toMatchObject({ code: 'STORE_UNKNOWN' })
  })
})

describe('after init', () => {
  beforeAll(async () => {
    const made = await answer<{ storeId: string; generation: number; made: boolean }>('init')
    expect(made).toEqual({ storeId: expect.any(String), generation: 0, made: true })
    const ended = await run('init')
    expect(ended.code).toBe(0)
    expect(ended.stdout).toContain(made.storeId)
    expect(ended.stdout).toMatch(/record +present/)
  })

  test('init --after-loss is refused while nothing is lost', async () => {
    const ended = await run('init', '--after-loss', '--json')
    expect(ended.code).toBe(1)
    expect(errorOf(ended).code).toBe('NOTHING_LOST')
  })

  test('send makes a delivery a recipient; message and delivery show it', async () => {
    const words = ['--to', 'host:a1', '--to', 'host:a2', '--to', 'host:a1', '--sender', 'me', '--key', 'k1']
    const sent = await answerOf<Sent>(at('send', '--conversation', 'c1', ...words, 'hello'), { cwd })
    expect(sent).toMatchObject({ key: 'k1', fanOut: 'complete', replayed: false })
    expect(sent.deliveries.map((each) => each.host)).toEqual(['a1', 'a2'])
    const again = await send('--to', 'host:a2', '--to', 'host:a1', '--sender', 'me', '--key', 'k1', 'hello')
    expect(again).toEqual({ ...sent, replayed: true })

    const message = await answer<MessageView>('message', 'show', sent.id)
    expect(message).toMatchObject({ id: sent.id, sender: 'me', bytes: 5, recipients: 2, fanOut: 'complete' })
    const [first] = message.deliveries
    expect(await answer<DeliveryView>('delivery', 'show', `${sent.id}.1`)).toEqual(first)
    expect(await answer<WhyReply>('delivery', 'why', `${sent.id}.1`)).toMatchObject({
      reason: 'stranded',
      host: 'a1',
    })

    for (const words of [
      ['message', 'show', sent.id],
      ['delivery', 'show', `${sent.id}.1`],
      ['delivery', 'why', `${sent.id}.1`],
    ]) {
      const ended = await run(...words)
      expect(ended).toMatchObject({ code: 0, stderr: '' })
      expect(ended.stdout).toContain(`${sent.id}.1`)
      expect(ended.stdout).not.toContain('\u001b')
    }
  })

  test('another content under a key is refused', async () => {
    await send('--to', 'host:a1', '--key', 'k2', 'one')
    const ended = await run('send', '--conversation', 'c1', '--to', 'host:a1', '--key', 'k2', 'two', '--json')
    expect(ended.code).toBe(1)
    expect(errorOf(ended).code).toBe('IDEMPOTENCY_MISMATCH')
  })

  test('without a key a fresh one is told, for retries', async () => {
    const ended = await run('send', '--conversation', 'c1', '--to', 'host:a1', 'x')
    expect(ended.code).toBe(0)
    expect(ended.stderr).toMatch(/^key ([0-9a-f-]{36}) \(a retry must pass --key \1\)\n$/)
  })

  test('a session never seen is no route, and nothing is accepted', async () => {
    const before = server.cli('DBSIZE')
    const ended = await run('send', '--conversation', 'c1', '--to', 'session:s1', 'x', '--json')
    expect(ended.code).toBe(1)
    expect(errorOf(ended).code).toBe('NO_ROUTE')
    expect(server.cli('DBSIZE')).toBe(before)
  })

  test('a payload that is a directory is wrong usage', async () => {
    const ended = await run('send', '--conversation', 'c1', '--to', 'host:a1', '--payload', cwd, '--json')
    expect(ended.code).toBe(2)
    expect(errorOf(ended)).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: 'INVALID_ARGUMENT --payload: names no file that can be read',
    })
  })

  test('a recipient that lost its --to is not taken for the payload', async () => {
    const ended = await run('send', '--conversation', 'c1', '--to', 'host:a1', 'host:a2')
    expect(ended.code).toBe(2)
    expect(ended.stderr).toContain('looks like a recipient')
  })

  test('payload bytes from stdin are exact', async () => {
    const input = Buffer.from([...Array(256).keys(), 13, 10, 0, 10])
    const args = at(
      'send',
      '--conversation',
      'c1',
      '--to',
      'host:bytes',
      '--payload',
      '-',
      '--content-type',
      'a/b',
    )
    const sent = await answerOf<Sent>(args, { cwd, input })
    const stored = await store.call(['GET', `{hf}:payload:${sent.id}`], { buffers: true })
    expect(stored).toEqual(input)
    expect(await answer('message', 'show', sent.id)).toMatchObject({ contentType: 'a/b', bytes: 260 })
  })

  test('delivery ls filters, and goes on from a cursor', async () => {
    for (const text of ['1', '2', '3']) await send('--to', 'host:page', text)
    const first = await answer<DeliveryPage>(
      'delivery',
      'ls',
      '--host',
      'page',
      '--state',
      'queued',
      '--limit',
      '2',
    )
    expect(first.deliveries).toHaveLength(2)
    const rest = await answer<DeliveryPage>(
      'delivery',
      'ls',
      '--host',
      'page',
      '--state',
      'queued',
      '--cursor',
      first.cursor ?? '',
    )
    expect(rest.deliveries).toHaveLength(1)
    expect(rest.cursor).toBeUndefined()
    const ended = await run('delivery', 'ls', '--host', 'page', '--limit', '1')
    expect(ended.stdout.trim().split('\n')).toHaveLength(2)
    expect(ended.stderr).toMatch(/^there is more: --cursor '.+'\n$/)
    expect(await answer('delivery', 'ls', '--state', 'held')).toEqual({ deliveries: [] })
  })

  test.each([
    [['message', 'show', '1-1'], 3, 'MESSAGE_NOT_FOUND'],
    [['delivery', 'show', '1-1.1'], 3, 'DELIVERY_NOT_FOUND'],
    [['delivery', 'why', '1-1.1'], 3, 'DELIVERY_NOT_FOUND'],
    [['fence', 'lift', 'pause', 'hub'], 3, 'FENCE_NOT_FOUND'],
    [['message', 'show', 'x'], 2, 'INVALID_ARGUMENT'],
    [['fence', 'lift', 'pasue', 'hub'], 2, 'INVALID_ARGUMENT'],
    [['fence', 'pause', 'everything', '--reason', 'r'], 2, 'INVALID_ARGUMENT'],
    [['delivery', 'ls', '--cursor', 'x'], 2, 'INVALID_ARGUMENT'],
  ])('%j ends with %d %s', async (args, exit, code) => {
    const ended = await run(...args, '--json')
    expect(ended.code).toBe(exit)
    expect(errorOf(ended).code).toBe(code)
    expect(errorOf(ended).next).not.toBe('')
    expect(ended.stdout).toBe('')
  })

  test.each([
    [['message', 'show', '1-1'], 3],
    [['fence', 'lift', 'pasue', 'hub', '--json'], 2],
  ])('%j ends with %d in a process of its own, with the same output', async (args, code) => {
    const ended = await spawned(...args)
    expect(ended).toEqual(await run(...args))
    expect(ended).toMatchObject({ code, stdout: '' })
  })

  test('fences are set, listed with any field of the hash, and lifted', async () => {
    const set = await answer(
      'fence',
      'pause',
      'conversation:c9',
      '--reason',
      'asked',
      '--actor',
      'kim',
      '--until',
      '1h',
    )
    expect(set).toMatchObject({ fence: 'pause:conversation:c9' })
    const env = { HOLDFAST_ACTOR: 'env-kim' }
    await here.answer(at('fence', 'block', 'host:h9', '--reason', 'gone'), env)
    server.cli('HSET', '{hf}:fences', 'pasue:hub', '\u001b[31mtypo')
    const { fences } = await answer<{ fences: FenceView[] }>('fence', 'ls')
    expect(fences).toEqual([
      { fence: 'block:host:h9', known: true, reason: 'gone', actor: 'env-kim', at: expect.any(Number) },
      { fence: 'pasue:hub', known: false, reason: '\u001b[31mtypo' },
      {
        fence: 'pause:conversation:c9',
        known: true,
        reason: 'asked',
        actor: 'kim',
        at: expect.any(Number),
        until: expect.any(Number),
      },
    ])
    const shown = await run('fence', 'ls')
    expect(shown.stdout).toContain('no rule reads this field')
    expect(shown.stdout).not.toContain('\u001b')
    const lifted = await run('fence', 'lift', 'pause', 'conversation:c9')
    expect(lifted).toMatchObject({ code: 0, stderr: '' })
    expect(lifted.stdout).toContain('pause:conversation:c9')
    expect(await answer('fence', 'lift', 'block', 'host:h9')).toMatchObject({ fence: 'block:host:h9' })
  })

  test('pending ls shows what is claimed, and where list and row disagree', async () => {
    const sent = await send('--to', 'host:p1', 'x')
    const who = { host: 'p1', node: 'n1', incarnation: 1 }
    const functions = functionsOf(store, '{hf}')
    await functions.join(who, 'test-instance', [], '')
    await functions.claim(who, 1, 10)
    const list = async () => {
      const { pending } = await answer<{ pending: (PendingEntry & { disagrees: string[] })[] }>(
        'pending',
        'ls',
        '--host',
        'p1',
      )
      return pending
    }
    expect(await list()).toEqual([
      {
        host: 'p1',
        entry: expect.any(String),
        consumer: 'n1',
        idleMs: expect.any(Number),
        delivery: `${sent.id}.1`,
        state: 'claimed',
        epoch: 1,
        owner: expect.any(String),
        disagrees: [],
      },
    ])
    server.cli('HSET', `{hf}:delivery:${sent.id}.1`, 'owner', 'n2')
    expect((await list())[0]?.disagrees).toEqual(["the row's owner is n2"])
    server.cli('DEL', `{hf}:delivery:${sent.id}.1`)
    expect((await list())[0]?.disagrees).toEqual(['the row is missing'])
    expect((await run('pending', 'ls')).stdout).toContain('the row is missing')
  })

  test('a reader that goes away is no failure', async () => {
    const running = startCli(at('delivery', 'ls'), { cwd })
    running.child.stdout?.destroy()
    const ended = await running.ended
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' })
  })

  test('an answer that a full disk does not take is told in one line, with 1', async () => {
    const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
    const words = at('send', '--conversation', 'c1', '--to', 'host:a1', '--key', 'full', 'x')
    const full = openSync('/dev/full', 'w')
    const child = spawn(process.execPath, [main, ...words], { cwd, stdio: ['ignore', full, 'pipe'] })
    closeSync(full)
    let stderr = ''
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    const [code] = await once(child, 'close')
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^holdfast send: the answer could not be written \(ENOSPC.*\n$/),
    ])
    const again = await answer<Sent>('send', '--conversation', 'c1', '--to', 'host:a1', '--key', 'full', 'x')
    expect(again).toMatchObject({ replayed: true })
  })
})

// Last: it takes its whole deadline, which it spends beside the other tests.
test('a server that is not there is a failure that may be retried, under the same key', async () => {
  const ended = await nowhere.ended
  expect(ended.code).toBe(1)
  expect(ended.stderr, 'a second later, while it waits').toMatch(
    /^redis:\/\/127\.0\.0\.1:1: .*ECONNREFUSED.*; waiting for it\n/,
  )
  expect(errorOf(ended)).toMatchObject({ code: 'STORE_UNAVAILABLE' })
  expect(errorOf(ended).next).toMatch(/--key [0-9a-f-]{36}/)
})
