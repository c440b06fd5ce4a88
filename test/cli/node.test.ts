import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import type { UnknownEntry } from '../../src/contract/delivery-views.js'
import { type Hub, initRecord, openHub } from '../../src/hub/open-hub.js'
import { openMirror } from '../../src/node/mirror.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'
import { answerOf, errorOf, makeFolder, type Running, runCli, startCli } from './run-cli.js'

let server: TestServer
let hub: Hub
let folder: ReturnType<typeof makeFolder>
let cwd: string
let started: Running[]
let messages = 0

beforeAll(async () => {
  server = await startTestServer()
  await initRecord({ redis: server.url })
  hub = await openHub({ redis: server.url })
})
afterAll(async () => {
  await hub.close()
  await server.stop()
})
beforeEach(() => {
  folder = makeFolder()
  cwd = folder.path
  started = []
})
afterEach(async () => {
  writeFileSync(join(cwd, 'go'), '')
  for (const { child } of started) if (child.exitCode === null) child.kill('SIGTERM')
  await Promise.all(started.map(({ ended }) => ended))
  folder.remove()
})

function startNode(host: string, exec: string, ...more: string[]): Running {
  const args = ['node', '--host', host, '--exec', exec, '--redis', server.url, ...more]
  const running = startCli(args, { cwd })
  started.push(running)
  return running
}

async function accept(host: string, payload: string | Uint8Array<ArrayBuffer> = 'x'): Promise<string> {
  messages += 1
  const accepted = await hub.accept({
    key: `k${messages}`,
    conversation: 'c',
    sender: 's',
    to: [{ host }],
    payload,
  })
  return `${accepted.id}.1`
}

const settled = (id: string) =>
  until(async () => {
    const view = await hub.delivery(id)
    return view.settledAt === undefined ? undefined : view
  })

const untilGo = 'touch entered; while [ ! -e go ] && [ -e entered ]; do sleep 0.02; done; echo finished'
const entered = () => until(() => existsSync(join(cwd, 'entered')))

test('runs the command with the payload, byte for byte; its mirror is in the data folder', async () => {
  const payload = Uint8Array.from([...Array(256).keys(), 10, 0])
  const id = await accept('n1', payload)
  const node = startNode('n1', 'cat > payload.bin', '--node', 'a')
  await settled(id)
  expect(readFileSync(join(cwd, 'payload.bin'))).toEqual(Buffer.from(payload))
  expect(existsSync(join(cwd, '.holdfast', 'mirrors', 'n1', 'a.db'))).toBe(true)
  node.child.kill('SIGTERM')
  const ended = await node.ended
  expect(ended).toMatchObject({ code: 0, signal: null, stdout: '' })
  for (const line of ended.stderr.trim().split('\n')) expect(JSON.parse(line)).toHaveProperty('msg')
})

test('drains at the first signal: what runs is finished and reported', async () => {
  const id = await accept('n2')
  const node = startNode('n2', untilGo)
  await entered()
  node.child.kill('SIGINT')
  await node.said('draining')
  writeFileSync(join(cwd, 'go'), '')
  expect(await node.ended).toMatchObject({ code: 0, signal: null })
  const [attempt] = (await hub.delivery(id)).attempts
  expect(attempt).toMatchObject({ outcome: 'result', result: expect.stringContaining('finished') })
})

test('a second signal ends it at once, with 1', async () => {
  await accept('n3')
  const node = startNode('n3', untilGo)
  await entered()
  node.child.kill('SIGTERM')
  await node.said('draining')
  node.child.kill('SIGTERM')
  expect(await node.ended).toMatchObject({ code: 1, signal: null })
})

test('an ambiguous exit is shown by unknown ls', async () => {
  const id = await accept('n4')
  startNode('n4', 'exit 3')
  const where = { cwd, env: { HOLDFAST_REDIS: server.url } }
  const entry = await until(async () => {
    const { unknown } = await answerOf<{ unknown: UnknownEntry[] }>(['unknown', 'ls'], where)
    return unknown.find((each) => each.id === `${id}/1`)
  })
  expect(entry).toMatchObject({ host: 'n4', sinceMs: expect.any(Number), reason: expect.any(String) })
  const shown = await runCli(['unknown', 'ls'], where)
  expect(shown.stdout).toContain(`${id}/1`)
})

test('--timeout ends a command that takes too long, as unknown', async () => {
  const id = await accept('n5')
  startNode('n5', 'sleep 60', '--timeout', '200ms')
  const attempt = await until(async () => {
    const [first] = (await hub.delivery(id)).attempts
    return first?.unknownAt === undefined ? undefined : first
  })
  expect(attempt.status).toBe('executing')
})

test('a mirror that another process holds ends it with 1', async () => {
  const first = startNode('n6', 'true', '--mirror', 'm.db')
  await first.said('joined')
  const second = startNode('n6', 'true', '--mirror', 'm.db', '--json')
  const ended = await second.ended
  expect(ended.code).toBe(1)
  expect(errorOf(ended)).toMatchObject({ code: 'MIRROR_LOCKED', next: expect.any(String) })
})

test('a cloned mirror ends it with 1, and a superseded process ends with 1', async () => {
  const once = startNode('n7', 'true', '--mirror', 'm.db')
  await once.said('joined')
  once.child.kill('SIGTERM')
  await once.ended
  copyFileSync(join(cwd, 'm.db'), join(cwd, 'copy.db'))

  const first = startNode('n7', 'true', '--mirror', 'm.db')
  await first.said('joined')
  const cloned = await startNode('n7', 'true', '--mirror', 'copy.db', '--json').ended
  expect(cloned.code).toBe(1)
  expect(errorOf(cloned).code).toBe('MIRROR_CLONED')

  // Raised by an open that never joined, a copy is ahead.
  await openMirror({ file: join(cwd, 'copy.db'), hub: 'hf', host: 'n7', node: 'n7' }).close()
  await startNode('n7', 'true', '--mirror', 'copy.db').said('joined')
  const superseded = await first.ended
  expect(superseded.code).toBe(1)
  expect(superseded.stderr).toContain('SUPERSEDED')
})

test('without a record it ends with 1 and says what to do', async () => {
  const ended = await startNode('n8', 'true', '--hub', 'none', '--json').ended
  expect(ended.code).toBe(1)
  expect(errorOf(ended)).toMatchObject({
    code: 'STORE_UNKNOWN',
    next: expect.stringContaining('holdfast init'),
  })
})
