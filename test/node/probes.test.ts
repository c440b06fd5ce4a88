import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { notSent, type Outcome, type ProbeAnswer, terminal } from '../../src/contract/outcomes.js'
import type { Attempt, ProbeFunction } from '../../src/node/executor.js'
import { type CommandProbeOptions, commandProbe } from '../../src/node/probes/command.js'
import { functionProbe } from '../../src/node/probes/function.js'
import { notExecuted, openAttempt, parsed, payload } from '../support/probing.js'
import { until } from '../support/until.js'

const failed = (errorJson: object) => ({ kind: 'outcome_unknown', errorCode: 'probe_failed', errorJson })

describe('a function', () => {
  const ask = (probe: ProbeFunction) => functionProbe(probe).ask(openAttempt())
  const cycle: { self?: object } = {}
  cycle.self = cycle

  it.each<[string, ProbeAnswer, Outcome]>([
    [
      'a result',
      { kind: 'result', value: { n: 1, s: '😀' } },
      { kind: 'result', result: '{"n":1,"s":"😀"}' },
    ],
    ['a result of nothing', { kind: 'result', value: undefined }, { kind: 'result', result: 'null' }],
    [
      'a terminal',
      terminal('declined', { by: 'bank' }),
      { kind: 'terminal', errorCode: 'declined', errorJson: '{"by":"bank"}' },
    ],
    ['a bare terminal', terminal('declined'), { kind: 'terminal', errorCode: 'declined' }],
    ['not_executed', { kind: 'not_executed' }, notExecuted],
    ['unknown', { kind: 'unknown' }, { kind: 'outcome_unknown', errorCode: 'probe_unknown' }],
  ])('that answers %s', async (_, answer, outcome) => {
    expect(await ask(() => answer)).toEqual(outcome)
    expect(await ask(async () => answer)).toEqual(outcome)
  })

  it.each([
    ['a BigInt', 1n],
    ['a cycle', cycle],
  ])('whose result is %s knows all the same that it happened', async (_, value) => {
    const outcome = await ask(() => ({ kind: 'result', value }))
    expect(outcome).toEqual({
      kind: 'result',
      result: expect.stringMatching(/^\{"omitted":".+"\}$/),
    })
  })

  it.each([
    ['größe', 'gr??e'],
    ['', 'error'],
    ['x'.repeat(300), 'x'.repeat(255)],
  ])('whose code is %j gets one that the record takes', async (code, errorCode) => {
    expect(await ask(() => terminal(code))).toEqual({ kind: 'terminal', errorCode })
  })

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a word', 'not_executed'],
    ['a number', 75],
    ['true', true],
    ['an empty object', {}],
    ['another kind', { kind: 'NOT_EXECUTED' }],
    ['a list', [{ kind: 'not_executed' }]],
    ['notSent()', notSent('busy')],
    ['outcome_unknown', { kind: 'outcome_unknown', errorCode: 'x' }],
    ['a terminal that terminal() did not make', { kind: 'terminal', errorCode: 'x' }],
  ])('that answers %s knows nothing', async (_, answer) => {
    const outcome = await ask(() => answer as ProbeAnswer)
    expect(outcome).toMatchObject({
      kind: 'outcome_unknown',
      errorCode: expect.stringMatching(/^probe_(answer|failed)$/),
    })
  })

  it.each<[string, unknown]>([
    ['an error', new TypeError('no route')],
    ['a word', 'not_executed'],
    ['an answer', { kind: 'not_executed' }],
    ['nothing', undefined],
    ['what cannot be read', Object.create(null)],
  ])('that throws %s knows nothing, and throws nothing', async (_, error) => {
    const outcome = await ask(() => Promise.reject(error))
    expect(outcome).toMatchObject({ kind: 'outcome_unknown', errorCode: 'probe_failed' })
    const thrown = await ask(() => {
      throw error
    })
    expect(thrown).toEqual(outcome)
  })

  it('is given the attempt', async () => {
    const attempt = openAttempt()
    const seen: Attempt[] = []
    await functionProbe((given) => {
      seen.push(given)
      return { kind: 'unknown' }
    }).ask(attempt)
    expect(seen).toEqual([attempt])
  })
})

describe('a command', () => {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-probes-'))
  afterAll(() => rmSync(directory, { recursive: true }))
  const inDirectory = (name: string) => join(directory, name)
  const ask = (command: string, options: Partial<CommandProbeOptions> = {}, parts: Partial<Attempt> = {}) =>
    commandProbe({ command, ...options }).ask(openAttempt(parts))

  it('that ends with 0 says what it prints', async () => {
    expect(await ask('printf "paid\\n"')).toEqual({
      kind: 'result',
      result: '{"exitCode":0,"stdout":"paid\\n"}',
    })
  })

  it('that ends with 65 says that it will never succeed', async () => {
    expect(parsed(await ask('echo gone >&2; exit 65'))).toEqual({
      kind: 'terminal',
      errorCode: 'exit_65',
      errorJson: expect.objectContaining({ exitCode: 65, stderr: 'gone\n' }),
    })
  })

  it('that ends with 75 says that it has not executed and will not', async () => {
    expect(await ask('exit 75')).toEqual(notExecuted)
  })

  it.each<[string, string]>([
    ['exit 1', 'exit_1'],
    ['exit 64', 'exit_64'],
    ['exit 74', 'exit_74'],
    ['exit 76', 'exit_76'],
    ['exit 255', 'exit_255'],
    ['no-such-program-here', 'exit_127'],
    ['kill -TERM $$', 'signal_SIGTERM'],
    ['kill -KILL $$', 'signal_SIGKILL'],
  ])('that ends by %s knows nothing', async (command, errorCode) => {
    expect(parsed(await ask(command))).toEqual(failed({ errorCode, particulars: expect.any(Object) }))
  })

  it.each([
    ['is not there', '/no/such/shell'],
    ['is no program', '/etc/passwd'],
  ])('whose shell %s has asserted nothing', async (_, shell) => {
    expect(parsed(await ask('exit 75', { shell }))).toMatchObject(failed({ errorCode: 'spawn_failed' }))
  })

  it.each(['exit 75', 'exit 65', 'exit 0'])(
    'that is cut short has asserted nothing, by %s either',
    async (exit) => {
      const ready = inDirectory(`ready ${exit}`)
      const limit = new AbortController()
      const command = `trap '${exit}' TERM; touch '${ready}'; while :; do sleep 0.02; done`
      const asked = ask(command, {}, { signal: limit.signal })
      await until(() => existsSync(ready))
      limit.abort(new DOMException('the limit', 'TimeoutError'))
      expect(parsed(await asked)).toMatchObject(failed({ errorCode: expect.any(String) }))
    },
  )

  it('that may not start any more has asserted nothing, and does not run', async () => {
    const file = inDirectory('ran')
    const outcome = await ask(`touch '${file}'; exit 75`, {}, { signal: AbortSignal.abort() })
    expect(parsed(outcome)).toMatchObject(failed({ errorCode: 'aborted' }))
    expect(existsSync(file)).toBe(false)
  })

  it('gets the payload byte for byte, the context of the attempt, and that it is asked', async () => {
    const [bytes, env] = [inDirectory('bytes'), inDirectory('env')]
    await ask(`cat > '${bytes}'; env > '${env}'`, { env: { PATH: process.env['PATH'], OWN: 'mine' } })
    expect(readFileSync(bytes)).toEqual(payload)
    const lines = readFileSync(env, 'utf8').split('\n')
    expect(lines).toEqual(
      expect.arrayContaining([
        'OWN=mine',
        'HOLDFAST_PROBE=1',
        'HOLDFAST_REPLAY=1',
        'HOLDFAST_ATTEMPT=m1.1/2',
        'HOLDFAST_DELIVERY=m1.1',
        'HOLDFAST_EPOCH=3',
        'HOLDFAST_SESSION=agent 7',
      ]),
    )
  })
})
