import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hubNames, hubOf } from '../../src/contract/hub-set.js'
import { keysOf } from '../../src/record/keys.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { answerOf, errorOf, makeFolder, type Running, runCli, startCli } from './run-cli.js'
import { commandsIn } from './run-here.js'

// A set of hubs through the command line: on the record, and through one that is served.

const hubs = 'hf-0..hf-2'
const names = hubNames(hubs)
const folder = makeFolder()
const { path: cwd } = folder
const here = commandsIn(cwd)
const { refused } = here
const answer = (args: readonly string[], env?: Readonly<Record<string, string>>) =>
  here.answer<Record<string, unknown>>(args, env)

let server: TestServer
let serving: Running | undefined
let url: string
const onRecord = () => ({ HOLDFAST_REDIS: server.url, HOLDFAST_HUBS: hubs })
const through = () => ({ HOLDFAST_URL: url, HOLDFAST_HUBS: hubs })

beforeAll(async () => {
  server = await startTestServer()
  const made = await answerOf(['init', '--hubs', hubs, '--redis', server.url], { cwd })
  expect(made).toMatchObject({ hubs: names.map((hub) => ({ hub, made: true })) })
  serving = startCli(['serve', '--redis', server.url, '--hubs', hubs, '--listen', '127.0.0.1:0'], { cwd })
  const lines = (await serving.said('"msg":"serving"')).trim().split('\n')
  const said = JSON.parse(lines.find((line) => line.includes('"msg":"serving"')) ?? '{}')
  expect(said).toMatchObject({ hubs: names })
  url = String(said.url)
})
afterAll(async () => {
  serving?.child.kill('SIGTERM')
  expect(await serving?.ended).toMatchObject({ code: 0 })
  await server?.stop()
  folder.remove()
})

function conversationOf(hub: string): string {
  for (let tried = 0; ; tried += 1) if (hubOf(`c${tried}`, names) === hub) return `c${tried}`
}

describe('naming a set', () => {
  test('hub-of says where a conversation lives, and asks nobody', async () => {
    for (const hub of names) {
      const conversation = conversationOf(hub)
      const said = await answer(['hub-of', conversation, '--hubs', hubs])
      expect(said).toEqual({ conversation, hub })
    }
    expect(await answer(['hub-of', 'c1'])).toEqual({ conversation: 'c1', hub: 'hf' })
  })

  test('one hub and a set are not given together, unless one weighs more', async () => {
    const both = await refused(['hub-of', 'c1', '--hub', 'a', '--hubs', hubs])
    expect(both).toMatchObject({ exit: 2, message: expect.stringContaining('--hub and --hubs: give one') })
    const env = { HOLDFAST_HUBS: hubs }
    expect(await answer(['hub-of', 'c1', '--hub', 'a'], env)).toMatchObject({ hub: 'a' })
    writeFileSync(join(cwd, 'holdfast.config.json'), JSON.stringify({ hubs: 'x,y' }))
    expect(['x', 'y']).toContain((await answer(['hub-of', 'c1'])).hub)
    expect(await answer(['hub-of', 'c1'], { HOLDFAST_HUB: 'b' })).toMatchObject({ hub: 'b' })
    writeFileSync(join(cwd, 'holdfast.config.json'), '{}')
  })

  test('names that make no set are refused as usage', async () => {
    for (const text of ['hf-2..hf-0', 'a,a', 'A', 'hf-0..hf-99']) {
      const ended = await refused(['hub-of', 'c1', `--hubs=${text}`])
      expect(ended).toMatchObject({ exit: 2, message: expect.stringContaining('--hubs: ') })
    }
  })

  test('dev is one hub', async () => {
    const ended = await refused(['dev', '--hubs', hubs])
    expect(ended).toMatchObject({ exit: 2, next: expect.stringContaining('--hubs') })
  })
})

describe.each(['on the record', 'through a hub'] as const)('%s', (way) => {
  const env = () => (way === 'on the record' ? onRecord() : through())
  const host = way === 'on the record' ? 'r' : 'h'

  async function send(hub: string, to = host): Promise<string> {
    const words = ['send', '--conversation', conversationOf(hub), '--to', `host:${to}`, 'hello']
    return String((await answer([...words, '--key', `${hub} ${to}`], env())).id)
  }

  test('messages, deliveries and lists are of the set', async () => {
    const ids: string[] = []
    for (const hub of names) ids.push(await send(hub))
    expect(ids.map((id) => id.split(':')[0])).toEqual(names)
    for (const id of ids) {
      expect(await answer(['message', 'show', id], env())).toMatchObject({ id })
      expect(await answer(['delivery', 'why', `${id}.1`], env())).toMatchObject({ id: `${id}.1` })
    }
    const { deliveries } = await answer(['delivery', 'ls', '--host', host], env())
    expect(deliveries).toMatchObject(ids.map((id) => ({ id: `${id}.1` })))
    const { hosts } = await answer(['host', 'ls'], env())
    expect(hosts).toEqual(expect.arrayContaining(names.map((hub) => expect.objectContaining({ hub, host }))))
    expect(await answer(['audit'], env())).toMatchObject({ disagreements: [] })
    const { runs } = await answer(['sweep', 'run', 'retention'], env())
    expect(runs).toMatchObject(names.map((hub) => ({ hub, name: 'retention' })))
    expect(await refused(['message', 'show', '1-0'], env())).toMatchObject({ exit: 2 })
  })

  test('a wide fence that is partial is shown as that, and finished by the same command', async () => {
    const pause = ['fence', 'pause', `host:${host}`, '--reason', 'stop']
    await answer(pause, env())
    server.cli('HDEL', keysOf('hf-1').fences, `pause:host:${host}`)
    const ls = async () => (await answer(['fence', 'ls'], env()))['fences'] as object[]
    expect(await ls()).toMatchObject([{ fence: `pause:host:${host}`, missing: ['hf-1'] }])
    await answer(pause, env())
    expect((await ls())[0]).not.toHaveProperty('missing')
    await answer(['fence', 'lift', 'pause', `host:${host}`], env())
    expect(await ls()).toEqual([])
  })

  test('one that a hub does not take fails, and says how to go on', async () => {
    server.cli('RENAME', keysOf('hf-2').identity, 'aside')
    const ended = await refused(['fence', 'block', 'host:z', '--reason', 'stop'], env()).finally(() =>
      server.cli('RENAME', 'aside', keysOf('hf-2').identity),
    )
    expect(ended).toMatchObject({
      exit: 1,
      code: 'SET_INCOMPLETE',
      message: expect.stringContaining('block:host:z stands on hf-0, hf-1; not on hf-2'),
    })
    await answer(['fence', 'block', 'host:z', '--reason', 'stop'], env())
    await answer(['fence', 'lift', 'block', 'host:z'], env())
  })

  test('settings are of every hub', async () => {
    await answer(['config', 'set', 'max_redrive', '4'], env())
    server.cli('HSET', keysOf('hf-1').config, 'max_redrive', '5')
    const { settings } = await answer(['config', 'get', 'max_redrive'], env())
    expect(settings).toMatchObject([
      { name: 'max_redrive', value: 4 },
      { name: 'hf-1:max_redrive', value: 5 },
    ])
  })
})

describe('on the record alone', () => {
  test('doctor and functions look at every hub', async () => {
    const { findings } = await answer(['doctor'], onRecord())
    expect(new Set((findings as { hub: string }[]).map(({ hub }) => hub))).toEqual(new Set(names))
    expect(await answer(['functions', 'verify'], onRecord())).toMatchObject({
      hubs: names.map((hub) => ({ hub, kind: 'loaded' })),
    })
  })

  test('init again changes nothing; a hub that has no record is named', async () => {
    const again = await answerOf(['init', '--hubs', hubs, '--redis', server.url], { cwd })
    expect(again).toMatchObject({ hubs: names.map((hub) => ({ hub, made: false })) })
    const ended = await runCli(['held', 'ls', '--hubs', 'hf-0,hf-9', '--redis', server.url, '--json'], {
      cwd,
    })
    expect(errorOf(ended)).toMatchObject({
      code: 'STORE_UNKNOWN',
      message: expect.stringContaining('hub hf-9: '),
    })
  })

  test('a set of one answers as one hub does', async () => {
    const env = { HOLDFAST_REDIS: server.url, HOLDFAST_HUBS: 'hf-0' }
    const sent = await answer(['send', '--conversation', 'c', '--to', 'host:one', 'x', '--key', 'one'], env)
    expect(sent.id).toMatch(/^\d+-\d+$/)
    expect(await answer(['functions', 'verify'], env)).toMatchObject({ kind: 'loaded' })
  })
})

test('a principal is added on every hub, with one token; from then on it is asked for', async () => {
  const added = await answer(['principal', 'add', 'operator', '--name', 'root'], through())
  expect(added).toMatchObject({ principal: { name: 'root' }, token: expect.stringMatching(/^hft_/) })
  const env = { ...through(), HOLDFAST_TOKEN: String(added.token) }
  expect((await answer(['principal', 'ls'], env)).principals).toHaveLength(1)
  expect(await refused(['held', 'ls'], through())).toMatchObject({ code: 'UNAUTHENTICATED' })
})
