import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { entryText } from '../../src/cli/tail.js'
import { hubNames, hubOf } from '../../src/contract/hub-set.js'
import type { LogEvent } from '../../src/contract/wire-log.js'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'
import { answerOf, makeFolder, type Running, servedUrl, startCli } from './run-cli.js'
import { commandsIn } from './run-here.js'

// The log on a line an entry: what was, and what comes, on the record and through a hub.

const folder = makeFolder()
const { path: cwd } = folder
const here = commandsIn(cwd)
let server: TestServer
let record: OpenRecord
let serving: Running | undefined
let url: string

beforeAll(async () => {
  server = await startTestServer()
  record = await openRecord(server, { name: 'hf' })
  await record.accept({ to: [{ host: 'build-1' }, { host: 'build-2' }] })
  await record.functions.pause('host:build-1', 'looks\u001b[31m odd', 'kim')
  serving = startCli(['serve', '--redis', server.url, '--listen', '127.0.0.1:0'], { cwd })
  url = await servedUrl(serving)
})
afterAll(async () => {
  serving?.child.kill('SIGTERM')
  await serving?.ended
  await record?.close()
  await server?.stop()
  folder.remove()
})

interface Followed extends Running {
  /** Waits for a line of stdout with the text. */
  line(text: string): Promise<string>
  lines(): string[]
}

function follow(args: readonly string[], env: Readonly<Record<string, string>>): Followed {
  const running = startCli(['tail', ...args], { cwd, env })
  let written = ''
  running.child.stdout?.on('data', (text: string) => {
    written += text
  })
  const lines = () => written.split('\n').filter(Boolean)
  const line = (text: string) =>
    until(() => lines().find((each) => each.includes(text)), { timeoutMs: 30_000, what: text })
  return { ...running, line, lines }
}

const accept = (key: string) => record.accept({ key, to: [{ host: 'build-1' }] })

describe.each(['on the record', 'through a hub'] as const)('%s', (way) => {
  const env = () => (way === 'on the record' ? { HOLDFAST_REDIS: server.url } : { HOLDFAST_URL: url })
  const tail = (...args: string[]) => here.run(['tail', '--no-follow', ...args], env())

  test('the last entries, the newest below, each on a line without control characters', async () => {
    const time = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`
    const {
      code,
      stdout: accepted,
      stderr,
    } = await tail('--verb', 'accept,lift', '--host', 'build-2', '-n', '1')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const { stdout: paused } = await tail('--verb', 'pause', '-n', '1000')
    expect(accepted).toMatch(
      new RegExp(`^${time} accept \\S+: runnable at build-1, build-2; key=.+ recipients=2\n$`),
    )
    expect(paused).toMatch(new RegExp(`^${time} pause kim: .*scope=host:build-1 reason=.*u001b\\[31m odd`))
    expect(paused).not.toContain('\u001b[31m')
    expect((await tail('-n', '1', '--actor', 'kim')).stdout).toMatch(/^\S+ pause kim: [^\n]*\n$/)
    expect((await tail('-n', '0')).stdout).toBe('')
  })

  test('of an actor, a host, or about something, in JSON a line', async () => {
    const entries = async (...args: string[]) => {
      const { stdout } = await tail('--json', ...args)
      return stdout
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as LogEvent)
    }
    expect(await entries('--actor', 'kim')).toMatchObject([{ verb: 'pause', actor: 'kim' }])
    expect((await entries('--host', 'build-2')).every(({ hosts }) => hosts.includes('build-2'))).toBe(true)
    expect(await entries('--about', 'pause:host:build-1')).toMatchObject([
      { verb: 'pause', id: expect.any(String) },
    ])
    expect(await entries('--about', 'nothing of this name')).toEqual([])
  })

  test('then what comes, once each, until a signal', async () => {
    const key = `next ${way}`
    const followed = follow(['-n', '1', '--verb', 'accept'], env())
    await followed.line('accept')
    await accept(key)
    await followed.line(`key="${key}"`)
    await accept(`${key} again`)
    await followed.line(`key="${key} again"`)
    expect(followed.lines()).toHaveLength(3)
    followed.child.kill('SIGINT')
    expect(await followed.ended).toMatchObject({ code: 0, signal: null, stderr: '' })
  })

  test('ends when nobody reads it any more', async () => {
    const followed = follow(['--verb', 'accept', '-n', '1'], env())
    await followed.line('accept')
    followed.child.stdout?.destroy()
    for (let sent = 0; followed.child.exitCode === null; sent += 1) {
      await accept(`unread ${way} ${sent}`)
    }
    expect(await followed.ended).toMatchObject({ code: 0, stderr: '' })
  })
})

test('a gap is told on stderr', async () => {
  const followed = follow(['-n', '1', '--verb', 'accept'], { HOLDFAST_REDIS: server.url })
  await followed.line('accept')
  const last = server.cli('XREVRANGE', '{hf}:log', '+', '-', 'COUNT', '1').split('\n')[0] ?? ''
  server.cli('XDEL', '{hf}:log', last)
  await accept('behind the gap')
  await followed.line('behind the gap')
  followed.child.kill('SIGTERM')
  const { code, stderr } = await followed.ended
  expect(code).toBe(0)
  expect(stderr).toContain(`gap: the log no longer reaches back to ${last}`)
})

test('what is no verb, number or host is wrong usage', async () => {
  const at = ['--json', '--redis', server.url]
  for (const words of [
    ['--verb', 'Accept'],
    ['-n', 'x'],
    ['-n', '10001'],
    ['--host', '-'],
  ]) {
    expect(await here.refused(['tail', ...words, ...at])).toMatchObject({ exit: 2, code: 'INVALID_ARGUMENT' })
  }
})

test('of a set: the logs of all hubs, each entry with its hub, none twice and none missed', async () => {
  const hubs = 'set-0..set-2'
  const names = hubNames(hubs)
  const env = { HOLDFAST_REDIS: server.url, HOLDFAST_HUBS: hubs }
  await answerOf(['init', '--hubs', hubs], { cwd, env })
  const conversationOf = (hub: string) => {
    for (let tried = 0; ; tried += 1) if (hubOf(`c${tried}`, names) === hub) return `c${tried}`
  }
  const send = (hub: string, key: string) =>
    here.answer(['send', '--conversation', conversationOf(hub), '--to', 'host:h', '--key', key, 'x'], env)
  // The newest entries are all of one hub: where the others' logs end is known all the same.
  for (let each = 0; each < 3; each += 1) await send('set-1', `before-${each}`)
  const followed = follow(['-n', '2', '--verb', 'accept'], env)
  await followed.line('before-2')
  for (const hub of names) await send(hub, `after-${hub}`)
  for (const hub of names) expect(await followed.line(`after-${hub}`)).toContain(` ${hub} accept `)
  expect(followed.lines().map((line) => /key=(\S+)/.exec(line)?.[1])).toHaveLength(5)
  followed.child.kill('SIGINT')
  expect((await followed.ended).code).toBe(0)
})

test('many ids and long details are cut', () => {
  const ids = Array.from({ length: 100 }, (_, at) => `1-1.${at}`)
  const text = entryText({
    id: '1-1',
    at: 0,
    verb: 'claim',
    actor: 'h/n',
    changes: [{ ids, from: 'queued', to: 'claimed' }],
    hosts: '*',
    details: { note: 'x'.repeat(1000) },
  })
  expect(text).toContain('queued -> claimed 1-1.0, 1-1.1, 1-1.2 and 97 more; runnable at many hosts; note=')
  expect(text.length).toBeLessThan(400)
})
