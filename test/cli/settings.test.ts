import { writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { readSettings } from '../../src/cli/config.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { answerOf, errorOf, makeFolder, runCli } from './run-cli.js'
import { commandsIn } from './run-here.js'

let folder: ReturnType<typeof makeFolder>
beforeEach(() => {
  folder = makeFolder()
  return () => folder.remove()
})

function writeConfig(content: unknown): void {
  writeFileSync(
    join(folder.path, 'holdfast.config.json'),
    typeof content === 'string' ? content : JSON.stringify(content),
  )
}

describe('reading settings', () => {
  test('defaults', () => {
    expect(readSettings({}, {}, folder.path)).toEqual({
      settings: { hub: 'hf', data: '.holdfast', actor: userInfo().username },
      problems: [],
    })
  })

  test('flags over environment over file', () => {
    writeConfig({ redis: 'redis://file:1', hub: 'file', data: 'file', actor: 'file' })
    const env = {
      HOLDFAST_REDIS: 'redis://env:1',
      HOLDFAST_HUB: 'env',
      HOLDFAST_DATA: 'env',
      HOLDFAST_ACTOR: '',
    }
    const flags = { redis: 'redis://flag:1', hub: 'flag' }
    expect(readSettings(flags, env, folder.path).settings).toEqual({
      redis: 'redis://flag:1',
      hub: 'flag',
      data: 'env',
      actor: 'file',
    })
  })

  test('every problem at once, from every source', () => {
    writeConfig({ redsi: 'x', hub: 'Bad Hub', actor: 7 })
    const { problems } = readSettings({ data: '' }, { HOLDFAST_REDIS: 'http://h:1' }, folder.path)
    expect(problems).toHaveLength(5)
    const text = problems.join('\n')
    expect(text).toContain('holdfast.config.json: unknown member "redsi"')
    expect(text).toContain('holdfast.config.json: hub: must match')
    expect(text).toContain('holdfast.config.json: actor: ')
    expect(text).toContain(
      'HOLDFAST_REDIS: a Redis URL starts with redis://, redis-sentinel:// or redis-cluster://',
    )
    expect(text).toContain('--data: names no folder')
  })

  test.each([
    ['{"hub"', 'is no JSON'],
    ['[]', 'holdfast.config.json: must be an object, not a list'],
  ])('a file that holds %s', (content, problem) => {
    writeConfig(content)
    expect(readSettings({}, {}, folder.path).problems.join()).toContain(problem)
  })

  test('a URL that is none is not repeated: it may hold a password', () => {
    const { problems } = readSettings({ redis: 'redis//:secret@h' }, {}, folder.path)
    expect(problems.join()).toContain('--redis: ')
    expect(problems.join()).not.toContain('secret')
  })
})

describe('reading the settings of a hub over HTTP', () => {
  const [urlA, urlB] = ['http://a:1', 'https://b:2/below']
  const httpOf = (flags: Record<string, string>, env: Record<string, string> = {}) => {
    const { settings, problems } = readSettings(flags, env, folder.path)
    expect(problems).toEqual([])
    return settings
  }
  const problemsOf = (flags: Record<string, string>, env: Record<string, string> = {}) =>
    readSettings(flags, env, folder.path).problems

  test('flags over environment over file, each member by itself', () => {
    const [ca, cert, key] = ['ca', 'cert', 'key'].map((name) => {
      writeFileSync(join(folder.path, name), name)
      return join(folder.path, name)
    })
    writeConfig({ url: urlA, token: 'file', ca, clientCert: 'none', actor: 'kim' })
    expect(problemsOf({})).toEqual(['holdfast.config.json: clientCert: names no file that can be read'])
    writeConfig({ url: urlA, token: 'file', ca, actor: 'kim' })
    expect(httpOf({})).toMatchObject({ http: { url: urlA, token: 'file', ca }, actor: 'kim' })
    expect(httpOf({}, { HOLDFAST_TOKEN: 'env', HOLDFAST_CA: '' }).http).toEqual({
      url: urlA,
      token: 'env',
      ca,
    })
    const env = { HOLDFAST_TOKEN: 'env', HOLDFAST_CLIENT_CERT: cert ?? '', HOLDFAST_CLIENT_KEY: key ?? '' }
    expect(httpOf({ token: 'flag' }, env).http).toEqual({
      url: urlA,
      token: 'flag',
      ca,
      clientCert: cert,
      clientKey: key,
    })
  })

  test('of hub and record the weightier is taken, and the other left out', () => {
    writeConfig({ url: urlA, token: 't' })
    const redis = 'redis://h:1'
    expect(httpOf({ redis })).toEqual({ redis, hub: 'hf', data: '.holdfast', actor: userInfo().username })
    expect(httpOf({}, { HOLDFAST_REDIS: redis })).toMatchObject({ redis })
    expect(httpOf({ url: urlB }, { HOLDFAST_REDIS: redis })).not.toHaveProperty('redis')
    expect(httpOf({ redis }, { HOLDFAST_URL: urlB, HOLDFAST_TOKEN: 't' })).not.toHaveProperty('http')
  })

  test.each([
    ['--redis and --url', { redis: 'redis://h:1', url: urlA }, {}, {}],
    ['HOLDFAST_REDIS and HOLDFAST_URL', {}, { HOLDFAST_REDIS: 'redis://h:1', HOLDFAST_URL: urlA }, {}],
    [
      'holdfast.config.json: redis and holdfast.config.json: url',
      {},
      {},
      { redis: 'redis://h:1', url: urlA },
    ],
  ])('%s with the same weight are a problem', (names, flags, env, file) => {
    writeConfig(file)
    expect(problemsOf(flags, env)).toEqual([`${names}: give one of them`])
  })

  test('credentials of the file go to the hub of the file alone', () => {
    writeConfig({ url: urlA, token: 'file' })
    expect(httpOf({ url: urlA }).http).toEqual({ url: urlA, token: 'file' })
    expect(httpOf({ url: urlB }).http).toEqual({ url: urlB })
    expect(httpOf({}, { HOLDFAST_URL: urlB, HOLDFAST_TOKEN: 'env' }).http).toEqual({
      url: urlB,
      token: 'env',
    })
    writeConfig({ token: 'file' })
    expect(httpOf({ url: urlB }).http).toEqual({ url: urlB, token: 'file' })
  })

  test('flags of a hub without one are a problem; what the environment holds is not', () => {
    expect(problemsOf({ token: 't', clientKey: 'k' })).toEqual([
      '--token: belongs to --url, which is not given',
      '--client-key: belongs to --url, which is not given',
    ])
    expect(problemsOf({ token: 't', redis: 'redis://h:1' }, { HOLDFAST_URL: urlA })).toEqual([
      '--token: belongs to --url, which is not given',
    ])
    expect(httpOf({}, { HOLDFAST_TOKEN: 't', HOLDFAST_CA: 'none' })).not.toHaveProperty('http')
  })

  test('every problem at once, and nothing that may be secret is repeated', () => {
    const env = { HOLDFAST_TOKEN: 'secret token', HOLDFAST_CA: 'no-file' }
    const problems = problemsOf({ url: urlA, clientCert: 'no-file' }, env)
    expect(problems).toEqual([
      'HOLDFAST_TOKEN: is no token',
      'HOLDFAST_CA: names no file that can be read',
      '--client-cert: names no file that can be read',
    ])
    writeFileSync(join(folder.path, 'cert'), 'x')
    expect(problemsOf({ url: urlA, clientCert: join(folder.path, 'cert') })).toEqual([
      '--client-cert and --client-key belong together',
    ])
  })

  test.each(['a:1', 'ftp://a', 'http://user:secret@a', 'http://a?secret', 'http://a#secret', '/a', ''])(
    'the URL %j is refused, and not repeated',
    (url) => {
      const [problem, ...more] = problemsOf({ url })
      expect(more).toEqual([])
      expect(problem).toMatch(/^--url: must be http:\/\/ or https:\/\/ without user, password, query/)
      expect(problem).not.toContain('secret')
    },
  )
})

describe('the command line', () => {
  let server: TestServer
  beforeAll(async () => {
    server = await startTestServer()
  })
  afterAll(() => server.stop())

  test('takes hub and server from file, environment and flags, before and after the verb', async () => {
    writeConfig({ redis: server.url, hub: 'from-file' })
    const { path: cwd } = folder
    const here = commandsIn(cwd)
    await answerOf(['init'], { cwd })
    await answerOf(['init'], { cwd, env: { HOLDFAST_HUB: 'from-env' } })
    await here.answer(['--hub', 'before', 'init'], { HOLDFAST_HUB: 'from-env' })
    await here.answer(['init', '--hub', 'after'], { HOLDFAST_REDIS: server.url })
    const hubs = server.cli('KEYS', '*:identity').split('\n').sort()
    expect(hubs).toEqual([
      '{after}:identity',
      '{before}:identity',
      '{from-env}:identity',
      '{from-file}:identity',
    ])
  })

  test('reports the problems of settings and of the command together, and does nothing', async () => {
    writeConfig({ hub: 'Bad Hub', other: 1 })
    const args = [
      'send',
      '--redis',
      'nonsense',
      '--to',
      'nobody',
      '--deliver-by',
      'soon',
      '--payload',
      'no-file',
    ]
    const ended = await commandsIn(folder.path).run([...args, '--json'])
    expect(ended.code).toBe(2)
    expect(ended.stdout).toBe('')
    const { code, message, next } = errorOf(ended)
    expect(code).toBe('INVALID_ARGUMENT')
    expect(next).not.toBe('')
    expect(message).toContain('7 problems')
    for (const name of [
      'config.json: hub',
      '"other"',
      '--redis',
      '--conversation',
      '--to',
      '--deliver-by',
      '--payload',
    ]) {
      expect(message).toContain(name)
    }
  })

  test.each([
    [['bogus'], 2],
    [[], 2],
    [['fence'], 2],
    [['delivery', 'ls', '--bogus'], 2],
    [['delivery', 'ls', '--limit', '0'], 2],
    [['delivery', 'ls', '--state', 'failed'], 2],
    [['delivery', 'show'], 2],
    [['init', 'surplus'], 2],
    [['node', '--host', 'Build'], 2],
    [['dev', '--exec', 'true'], 2],
    [['--help'], 0],
    [['send', '--help'], 0],
    [['--version'], 0],
  ])('%j ends with %d', async (args, code) => {
    const ended = await commandsIn(folder.path).run(args)
    expect(ended.code).toBe(code)
    expect(code === 0 ? ended.stderr : ended.stdout).toBe('')
    expect(code === 0 ? ended.stdout : ended.stderr).not.toBe('')
  })

  test.each([
    [['delivery', 'ls', '--bogus'], 2],
    [['--version'], 0],
  ])('%j ends with %d in a process of its own, with the same output', async (args, code) => {
    const ended = await runCli(args, { cwd: folder.path })
    expect(ended).toEqual(await commandsIn(folder.path).run(args))
    expect(ended).toMatchObject({ code, signal: null })
  })

  test('wrong usage is JSON on stderr with --json', async () => {
    const ended = await commandsIn(folder.path).run(['--json', 'delivery', 'ls', '--bogus'])
    expect(errorOf(ended)).toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect(errorOf(ended).message).toContain('--bogus')
  })
})
