import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { cut } from '../../src/cli/screen.js'
import type { Snapshot } from '../../src/cli/top-reading.js'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { startTerminal, type Terminal } from '../support/terminal.js'
import { until } from '../support/until.js'
import { answerOf, makeFolder, type Running, servedUrl, startCli } from './run-cli.js'
import { commandsIn } from './run-here.js'

// A hub at a glance: as text, as JSON a line, and on a screen of its own in a pseudo terminal.

const mainFile = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const folder = makeFolder()
const { path: cwd } = folder
const here = commandsIn(cwd)
let server: TestServer
let record: OpenRecord
let serving: Running | undefined
let url: string
let terminal: Terminal | undefined
let heldId: string

const enter = '\u001b[?1049h'
const restored = '\u001b[?25h\u001b[?1049l'

beforeAll(async () => {
  server = await startTestServer()
  record = await openRecord(server, { name: 'hf' })
  await record.config('stale_after_ms', 600_000) // nodes of this test send no heartbeats
  const [id = ''] = await record.acceptMany(40, { to: [{ host: 'build-1' }], conversation: 'c42' })
  heldId = id
  await record.functions.holdDelivery(id, 'kim', 'look\u001b[31m at it')
  await record.functions.pause('host:build-1', 'drain', 'kim')
  await record.join('build-1', 'n1')
  serving = startCli(['serve', '--redis', server.url, '--listen', '127.0.0.1:0'], { cwd })
  url = await servedUrl(serving)
})
afterEach(() => terminal?.stop())
afterAll(async () => {
  serving?.child.kill('SIGTERM')
  await serving?.ended
  await record?.close()
  await server?.stop()
  folder.remove()
})

async function open(args: readonly string[] = [], size: { rows?: number; columns?: number } = {}) {
  const env = { HOLDFAST_REDIS: server.url }
  terminal = await startTerminal([process.execPath, mainFile, 'top', ...args], { cwd, env, ...size })
  return terminal
}

describe.each(['on the record', 'through a hub'] as const)('%s', (way) => {
  const env = () => (way === 'on the record' ? { HOLDFAST_REDIS: server.url } : { HOLDFAST_URL: url })

  test('where stdout is no terminal it is one reading as text', async () => {
    const { code, stdout, stderr } = await here.run(['top'], env())
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^STATES +queued +39 /m)
    expect(stdout).toMatch(/^ +held +1 /m)
    expect(stdout).toMatch(/^RATES +accepted +-/m)
    expect(stdout).toMatch(/^FENCES 1\n +pause:host:build-1 +drain +by kim +for /m)
    expect(stdout).toMatch(new RegExp(`^ +held +${heldId} .*build-1 +look\\\\u001b\\[31m at it$`, 'm'))
    expect(stdout).toMatch(/^build-1 +39 +0 +n1 +live /m)
    expect(stdout).not.toContain('\u001b')
  })

  test('in JSON it is one document, or with time one a line, with rates from the second on', async () => {
    const once = await here.answer<Snapshot>(['top', '--once'], env())
    expect(once).toMatchObject({
      overview: { hub: 'hf', deliveries: { queued: 39, held: 1 } },
      fences: [{ fence: 'pause:host:build-1' }],
      held: [{ id: heldId }],
      unknown: [],
      hosts: [{ host: 'build-1' }],
      more: [],
    })
    const running = startCli(['top', '--json', '--every', '300'], { cwd, env: env() })
    let written = ''
    running.child.stdout?.on('data', (text: string) => {
      written += text
    })
    const rated = () => written.split('\n').some((line) => line.includes('"rates":{"accepted":'))
    await until(rated, { timeoutMs: 30_000, what: 'rates' })
    running.child.kill('SIGTERM')
    const { code, stdout } = await running.ended
    expect(code).toBe(0)
    for (const line of stdout.trimEnd().split('\n')) expect(JSON.parse(line)).toHaveProperty('overview.at')
  })
})

test('of a set: sums, with the hub that has it', async () => {
  const env = { HOLDFAST_REDIS: server.url, HOLDFAST_HUBS: 'a,b' }
  await answerOf(['init'], { cwd, env })
  await here.answer(['send', '--conversation', 'c1', '--to', 'host:h', 'x'], env)
  const { stdout } = await here.run(['top', '--once'], env)
  expect(stdout).toMatch(/^a,b {2}/)
  expect(stdout).toMatch(/^STATES +queued +1 /m)
  expect(stdout).toMatch(/^[ab]:h +1 /m)
})

describe('on a screen', () => {
  test('fits 80 by 24, switches, pauses, helps, and gives the screen back', async () => {
    const { shows, screen, type, output, ended } = await open(['--every', '250'])
    await shows(/STATES +queued +39/)
    expect(output()).toContain(`${enter}\u001b[?25l`)
    const lines = screen()
    expect(lines).toHaveLength(24)
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(80)
    expect(lines.at(-1)).toContain('q quit')
    type('\t')
    await shows(/\[hosts\][\s\S]*build-1 +39 +0 +n1 +live/)
    type('\t')
    await shows(/\[held\][\s\S]*DELIVERY/)
    type('\t')
    await shows(/\[unknown\][\s\S]*nothing/)
    type('?')
    await shows('KEYS')
    type('p')
    await shows('PAUSED')
    type('\t')
    await shows('[overview]')
    await record.acceptMany(1, { to: [{ host: 'build-1' }] })
    expect((await shows('PAUSED')).match(/queued +39/)).not.toBeNull()
    type('p')
    await shows(/every 250ms[\s\S]*queued +40 /)
    type('q')
    expect(await ended()).toBe(0)
    expect(output().endsWith(restored)).toBe(true)
  })

  test('fits a smaller terminal, and ends with Ctrl-C', async () => {
    const small = await open([], { rows: 8, columns: 40 })
    await small.shows(/STATES +queued +\d+/)
    expect(small.screen()).toHaveLength(8)
    for (const line of small.screen()) expect(line.length).toBeLessThanOrEqual(40)
    small.type('\u0003')
    expect(await small.ended()).toBe(0)
  })

  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('%s gives the terminal back too', async (signal) => {
    const { shows, output, pid, ended } = await open()
    await shows(/STATES +queued/)
    process.kill(pid, signal)
    expect(await ended()).toBe(0)
    expect(output().endsWith(restored)).toBe(true)
  })

  test('the terminal takes lines again afterwards', async () => {
    const script = `'${process.execPath}' '${mainFile}' top; stty -a; exit 3`
    const env = { HOLDFAST_REDIS: server.url }
    terminal = await startTerminal(['sh', '-c', script], { cwd, env })
    await terminal.shows(/STATES +queued/)
    terminal.type('q')
    expect(await terminal.ended()).toBe(3)
    const after = terminal.output().slice(terminal.output().lastIndexOf(restored))
    expect(after).toMatch(/[^-]icanon/)
    expect(after).toMatch(/[^-]echo /)
  })

  test('says since when the hub is away, goes on showing what it knew, and finds it again', async () => {
    const { shows, type, ended } = await open(['--every', '250'])
    await shows(/STATES +queued/)
    await server.kill9()
    expect(await shows(/the hub is away since \d{4}-\d\d-\d\dT/)).toMatch(/STATES +queued +\d+/)
    await server.restart()
    await until(async () => !(await shows(/STATES/)).includes('is away'), { timeoutMs: 30_000 })
    type('q')
    expect(await ended()).toBe(0)
  })
})

test('a line is cut at the columns that it takes, not at its characters', () => {
  expect(cut('abcdef', 4)).toBe('abcd')
  expect(cut('漢字kana', 5)).toBe('漢字k')
  expect(cut('漢字', 3)).toBe('漢')
  expect(cut('ab', 4)).toBe('ab')
})
