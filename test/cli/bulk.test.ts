import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { startTerminal } from '../support/terminal.js'
import { errorOf, makeFolder, type Running, servedUrl, startCli } from './run-cli.js'
import { commandsIn } from './run-here.js'

// Acts on many deliveries, and the bars that long work shows: on a terminal, and nowhere else.

const mainFile = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
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

describe.each(['on the record', 'through a hub'] as const)('many at once, %s', (way) => {
  const host = way === 'on the record' ? 'r' : 'h'
  const env = () => (way === 'on the record' ? { HOLDFAST_REDIS: server.url } : { HOLDFAST_URL: url })
  const act = (verb: string, ...words: string[]) =>
    here.run(['delivery', verb, '--host', host, '--reason', 'tidy', ...words], env())

  test('they are counted first, then acted on; a dry run only counts', async () => {
    await record.acceptMany(130, { to: [{ host }], conversation: `c-${host}` })
    const dry = await act('hold', '--state', 'queued', '--dry-run', '--json')
    expect(dry).toMatchObject({ code: 0, stderr: '130 deliveries match\n' })
    expect(JSON.parse(dry.stdout)).toEqual({ matched: 130, done: 0, refused: [], dryRun: true })
    expect(Number(server.cli('ZCARD', '{hf}:held'))).toBe(0)

    const held = await act('hold', '--state', 'queued', '--conversation', `c-${host}`)
    expect(held).toMatchObject({ code: 0, stderr: '130 deliveries match\n' })
    expect(held.stdout).toMatch(/^matched +130\ndone +130\nrefused +0$/m)
    expect(Number(server.cli('ZCARD', '{hf}:held'))).toBe(130)

    const none = await act('release', '--state', 'held', '--because', 'poison', '--json')
    expect(JSON.parse(none.stdout)).toMatchObject({ matched: 0, done: 0 })
    const released = await act('release', '--state', 'held', '--because', 'tidy', '--json')
    expect(JSON.parse(released.stdout)).toEqual({ matched: 130, done: 130, refused: [], dryRun: false })
    expect(Number(server.cli('ZCARD', '{hf}:held'))).toBe(0)
  })

  test('what is refused is told one by one, and ends with 1', async () => {
    const ended = await act('release', '--state', 'queued')
    expect(ended.code).toBe(1)
    expect(ended.stdout).toMatch(/^refused +130$/m)
    expect(ended.stdout).toMatch(/NOT_HELD/)
    expect((await act('cancel', '--state', 'queued')).code).toBe(0)
  })
})

test('one by its id or many by their state: neither, or both, is wrong usage and changes nothing', async () => {
  const at = ['--reason', 'tidy', '--json', '--redis', server.url]
  for (const words of [
    ['release'],
    ['release', '--host', 'h'],
    ['release', '1-1.1', '--state', 'held'],
    ['cancel', '1-1.1', '--dry-run'],
    ['hold', '1-1.1', '--host', 'h'],
    ['hold', '--state', 'failed'],
  ]) {
    const ended = await here.run(['delivery', ...words, ...at])
    expect(ended.code).toBe(2)
    expect(errorOf(ended).message).toMatch(/ID: |--state: /)
  }
})

describe('bars', () => {
  const bar = /[#.]{30} \d+% \d+ of \d+/
  async function inTerminal(words: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const command = [process.execPath, mainFile, ...words]
    const terminal = await startTerminal(command, { cwd, env: { HOLDFAST_REDIS: server.url, ...env } })
    return { code: await terminal.ended(), output: terminal.output() }
  }

  test('audit, all sweeps and acts on many show how far they are', async () => {
    await record.acceptMany(120, { to: [{ host: 'bars' }] })
    const audit = await inTerminal(['audit'])
    expect(audit).toMatchObject({ code: 0, output: expect.stringMatching(/audit [#.]{30} \d+% \d+ of \d+/) })
    const sweeps = await inTerminal(['sweep', 'run', 'all'])
    expect(sweeps.output).toMatch(/sweeps #{30} 100% 12 of 12/)
    const act = ['delivery', 'cancel', '--state', 'queued', '--host', 'bars', '--reason', 'tidy']
    expect((await inTerminal(act)).output).toMatch(/cancel #{30} 100% 120 of 120/)
  })

  test('through a hub, sweeps show theirs', async () => {
    const ended = await inTerminal(['sweep', 'run', 'all'], { HOLDFAST_URL: url, HOLDFAST_REDIS: '' })
    expect(ended.output).toMatch(/sweeps #{30} 100% 12 of 12/)
  })

  test('a send that waits for many shows how many are settled', async () => {
    const words = ['send', '--conversation', 'c', '--to', 'host:w1', '--to', 'host:w2', 'x', '--wait']
    const ended = await inTerminal([...words, '--timeout', '300ms'])
    expect(ended).toMatchObject({ code: 1, output: expect.stringMatching(/settled \.{30} 0% 0 of 2/) })
  })

  test('what a retired host and a moved session leave behind', async () => {
    await record.acceptMany(20, { to: [{ host: 'old' }] })
    const retired = await inTerminal(['host', 'retire', 'old', '--reason', 'sold'])
    expect(retired).toMatchObject({
      code: 0,
      output: expect.stringMatching(/emptying old \.{30} 0% 0 of 20/),
    })

    await record.functions.openSession('agent-7', { host: 'here', scope: '/srv' }, 'kim')
    await record.functions.join({ host: 'there', node: 'n', incarnation: 1 }, 'i1', ['/srv'], '0-0')
    await record.acceptMany(20, { to: [{ session: 'agent-7' }] })
    const move = ['session', 'rehome', 'agent-7', '--host', 'there', '--reason', 'nearer']
    const moved = await inTerminal(move)
    expect(moved).toMatchObject({
      code: 0,
      output: expect.stringMatching(/moving agent-7 \.{30} 0% 0 of 20/),
    })
  })

  test('never beside JSON, without colour, on a dumb terminal, or where nothing is to be measured', async () => {
    const quiet = await Promise.all([
      inTerminal(['audit', '--json']),
      inTerminal(['audit'], { TERM: 'dumb' }),
      inTerminal(['audit'], { NO_COLOR: '1' }),
      inTerminal(['sweep', 'run', 'claims']),
    ])
    for (const { output } of quiet) {
      expect(output).toMatch(/"conservation"|recipients accepted|^claims /m)
      expect(output).not.toMatch(bar)
    }
    expect(await here.run(['audit', '--redis', server.url])).toMatchObject({ code: 0, stderr: '' })
  })
})
