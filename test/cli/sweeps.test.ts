import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { sweepNames } from '../../src/contract/sweeps.js'
import type { AuditView, SweepRunView, SweepView } from '../../src/contract/upkeep-views.js'
import type { Finding } from '../../src/hub/doctor.js'
import { startHubServer, type TestHubServer } from '../support/http.js'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { makeFolder } from './run-cli.js'
import { commandsIn } from './run-here.js'

// What keeps a hub well: sweep ls and run, audit, doctor. On the record, and through a hub.

let server: TestServer
let record: OpenRecord
const folder = makeFolder()
const here = commandsIn(folder.path)
beforeAll(async () => {
  server = await startTestServer()
})
beforeEach(async () => {
  record = await openRecord(server)
})
afterEach(() => record?.close())
afterAll(async () => {
  await server?.stop()
  folder.remove()
})

const at = (...args: string[]) => [...args, '--redis', server.url, '--hub', record.name]
const run = (...args: string[]) => here.run(at(...args))

/** What a command answers with --json, whatever it ends with. */
async function told<Answer>(...args: string[]): Promise<{ code: number | null; answer: Answer }> {
  const { code, stdout, stderr } = await run(...args, '--json')
  if (stdout === '') throw new Error(`${args.join(' ')} ended with ${code}: ${stderr}`)
  return { code, answer: JSON.parse(stdout) as Answer }
}

describe('sweep ls', () => {
  test('ends with 4 while a sweep is late, and with 0 when all have run', async () => {
    const before = await told<{ sweeps: SweepView[] }>('sweep', 'ls')
    expect(before.code).toBe(4)
    expect(before.answer.sweeps.map(({ name }) => name)).toEqual(sweepNames)
    const late = await run('sweep', 'ls')
    expect(late.code).toBe(4)
    expect(late.stdout).toMatch(/^SWEEP +EVERY +LAST SUCCESS +STATE$/m)
    expect(late.stdout).toMatch(/^claims +30s +never +late$/m)
    expect((await run('sweep', 'run', 'all')).code).toBe(0)
    const after = await run('sweep', 'ls')
    expect(after).toMatchObject({ code: 0, stderr: '' })
    expect(after.stdout).toMatch(/^SWEEP +EVERY +LAST SUCCESS +TOOK +FOUND +REPAIRED +LEFT +STATE$/m)
    expect(after.stdout).toMatch(/^audit +1h0m +\d\S* ago +\d\S* +0 +0 +0 +ok$/m)
    await record.config('sweep_claims_ms', 0)
    expect((await run('sweep', 'ls')).stdout).toMatch(/^claims +off +/m)
  })

  test('names what was left, and a sweep that failed', async () => {
    await run('sweep', 'run', 'all')
    await record.accept({ to: [{ host: 'lonely' }] })
    await run('sweep', 'run', 'stale')
    const left = await run('sweep', 'ls')
    expect(left).toMatchObject({ code: 0, stderr: 'stale: host lonely: 1 deliveries and no live node\n' })
    const did = { found: 0, repaired: 0, left: 0, notes: [], durationMs: 1, cursor: '', by: 'tests' }
    await record.functions.noteSweep('held', { ...did, error: 'it fell' })
    const failed = await run('sweep', 'ls')
    expect(failed.code).toBe(4)
    expect(failed.stdout).toMatch(/^held .*failed: it fell$/m)
    await record.functions.noteSweep('held', { ...did, cursor: '17' })
    expect((await run('sweep', 'ls')).stdout).toMatch(/^held .*goes on$/m)
  })
})

describe('sweep run', () => {
  test('runs one, or all, and says what it did', async () => {
    await record.accept({ to: [{ host: 'lonely' }] })
    const one = await told<{ runs: SweepRunView[] }>('sweep', 'run', 'stale')
    expect(one).toMatchObject({ code: 0, answer: { runs: [{ name: 'stale', found: 1, left: 1 }] } })
    const all = await told<{ runs: SweepRunView[] }>('sweep', 'run', 'all')
    expect(all.code).toBe(0)
    expect(all.answer.runs.map(({ name }) => name)).toEqual(sweepNames)
    const text = await run('sweep', 'run', 'stale')
    expect(text.stdout).toMatch(/^SWEEP +TOOK +FOUND +REPAIRED +LEFT$/m)
    expect(text.stdout).toMatch(/^stale +\d\S* +1 +0 +1$/m)
    expect(text.stderr).toBe('stale: host lonely: 1 deliveries and no live node\n')
  })

  test.each([
    ['a name that is none', ['sweep', 'run', 'claim'], 'must be all, fan-out, parked'],
    ['no name', ['sweep', 'run'], "missing required argument 'name'"],
    ['a name too many', ['sweep', 'run', 'all', 'claims'], 'too many arguments'],
    ['a surplus word to ls', ['sweep', 'ls', 'claims'], 'too many arguments'],
    ['a surplus word to audit', ['audit', 'all'], 'too many arguments'],
    ['a surplus word to doctor', ['doctor', 'all'], 'too many arguments'],
    ['a flag that is none', ['doctor', '--fix'], '--fix'],
  ])('%s is wrong usage', async (_, args, says) => {
    const before = await record.dump()
    const { exit, code, message } = await here.refused(at(...args))
    expect({ exit, code }).toEqual({ exit: 2, code: 'INVALID_ARGUMENT' })
    expect(message).toContain(says)
    expect(await record.dump()).toEqual(before)
  })
})

describe('audit', () => {
  test('ends with 0 where nothing disagrees, and accounts for every recipient', async () => {
    await record.acceptMany(3)
    const { code, answer } = await told<AuditView>('audit')
    expect(code).toBe(0)
    expect(answer).toMatchObject({ conservation: { recipients: 3, owed: 0 }, disagreements: [], more: false })
    const { stdout } = await run('audit')
    expect(stdout).toMatch(/^recipients accepted +3$/m)
    expect(stdout).toMatch(/^queued +3$/m)
    expect(stdout).toMatch(/^looked at +3 messages, 3 deliveries$/m)
    expect(stdout).toMatch(/^disagreements +0$/m)
  })

  test('ends with 1 on a disagreement, says how to look, and changes nothing', async () => {
    const [id = ''] = await record.acceptMany(1)
    await record.functions.holdDelivery(id, 'kim', 'look')
    await record.send('DEL', record.keys.held)
    const before = await record.dump()
    const { code, answer } = await told<AuditView>('audit')
    expect(code).toBe(1)
    expect(answer.disagreements.map(({ about }) => about)).toContain(id)
    const shown = await run('audit')
    expect(shown.code).toBe(1)
    expect(shown.stdout).toContain(`${id}: the held queue does not list it\n`)
    const looks = shown.stdout.match(/^ {2}look: redis-cli (HGETALL|ZRANGE) '.+'/gm)
    expect(looks).toHaveLength(answer.disagreements.length)
    expect(looks?.join('\n')).toContain(record.keys.delivery(id))
    expect(await record.dump()).toEqual(before)
    expect((await run('sweep', 'run', 'audit')).code).toBe(0)
    expect((await run('audit')).code).toBe(0)
    await record.checkInvariants()
  })
})

describe('doctor', () => {
  const named = (findings: readonly Finding[], name: string) => findings.find((each) => each.name === name)
  const examined = () => told<{ findings: Finding[] }>('doctor')

  test('ends with 0 where all is right, and changes nothing', async () => {
    await run('sweep', 'run', 'all')
    const before = await record.dump()
    const { code, answer } = await examined()
    expect(code).toBe(0)
    expect(answer.findings.filter(({ verdict }) => verdict !== 'ok')).toEqual([])
    const names = answer.findings.map(({ name }) => name)
    const server = ['version', 'role', 'aof_enabled', 'aof_last_write_status', 'appendfsync']
    expect(names).toEqual(
      expect.arrayContaining([...server, 'maxmemory-policy', 'record', 'library', 'held']),
    )
    const text = await run('doctor')
    expect(text).toMatchObject({ code: 0, stderr: '' })
    expect(text.stdout).toMatch(/^CHECK +VALUE +VERDICT$/m)
    expect(text.stdout).toMatch(/^appendfsync +always +ok$/m)
    expect(await record.dump()).toEqual(before)
  })

  test('ends with 4 where the server may lose something, with the line that mends it', async () => {
    await run('sweep', 'run', 'all')
    await record.send('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
    try {
      const { code, answer } = await examined()
      expect(code).toBe(4)
      expect(named(answer.findings, 'maxmemory-policy')).toEqual({
        name: 'maxmemory-policy',
        value: 'allkeys-lru',
        verdict: 'bad',
        fix: 'redis-cli CONFIG SET maxmemory-policy noeviction',
      })
      const text = await run('doctor')
      expect(text.code).toBe(4)
      expect(text.stdout).toMatch(/^maxmemory-policy +allkeys-lru +bad +redis-cli CONFIG SET /m)
    } finally {
      await record.send('CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
    }
    expect((await examined()).code).toBe(0)
  })

  test('takes less where it was chosen, and still says so', async () => {
    await run('sweep', 'run', 'all')
    await record.send('CONFIG', 'SET', 'appendfsync', 'everysec')
    try {
      const before = await examined()
      expect(before.code).toBe(4)
      const fix = named(before.answer.findings, 'appendfsync')?.fix ?? ''
      const [, words = ''] = /accept less: holdfast ([^)]+)/.exec(fix) ?? []
      expect((await run(...words.split(' '))).code, words).toBe(0)
      const { code, answer } = await examined()
      expect(code).toBe(0)
      expect(named(answer.findings, 'appendfsync')).toMatchObject({ value: 'everysec', verdict: 'accepted' })
    } finally {
      await record.send('CONFIG', 'SET', 'appendfsync', 'always')
    }
  })

  test('names replicas that are wanted and not there, and a key in the way of moving the slot', async () => {
    await run('sweep', 'run', 'all')
    await record.config('wait_replicas', 2)
    await record.send('SET', record.keys.tag, 'x')
    try {
      const { code, answer } = await examined()
      expect(code).toBe(4)
      expect(named(answer.findings, 'replicas')).toMatchObject({
        value: '0 in step, answers wait for 2',
        verdict: 'bad',
      })
      expect(named(answer.findings, 'tag')?.fix).toContain(`redis-cli UNLINK '${record.keys.tag}'`)
    } finally {
      await record.config('wait_replicas', 0)
      await record.send('UNLINK', record.keys.tag)
    }
    expect((await examined()).code).toBe(0)
  })

  test('names settings that are bad, sweeps that are late, and totals that do not add up', async () => {
    await record.config('stale_after_ms', 'soon')
    await record.acceptMany(1)
    await record.send('HINCRBY', record.keys.counts, 'queued', 1)
    const { code, answer } = await examined()
    expect(code).toBe(4)
    expect(named(answer.findings, 'setting stale_after_ms')).toMatchObject({
      value: 'soon',
      verdict: 'bad',
      fix: expect.stringContaining('holdfast config set stale_after_ms '),
    })
    expect(named(answer.findings, 'sweep claims')).toMatchObject({
      value: 'never succeeded',
      fix: 'run a hub (holdfast serve), or: holdfast sweep run claims',
    })
    expect(named(answer.findings, 'conservation')).toMatchObject({ verdict: 'bad', fix: 'holdfast audit' })
  })

  test('says where nodes are to beat more seldom than stale_after_ms allows', async () => {
    await run('sweep', 'run', 'all')
    await record.config('heartbeat_ms', 5000)
    const { code, answer } = await examined()
    expect(code).toBe(0)
    expect(named(answer.findings, 'heartbeats')).toMatchObject({
      value: expect.stringContaining('heartbeat_ms 5000 is more than a third of stale_after_ms 10000'),
      verdict: 'attention',
      fix: expect.stringContaining('holdfast config set stale_after_ms '),
    })
    await record.config('stale_after_ms', 15_000)
    expect(named((await examined()).answer.findings, 'heartbeats')).toBeUndefined()
  })

  test('what waits for an operator is told, and is no fault', async () => {
    const [id = ''] = await record.acceptMany(1)
    await record.functions.holdDelivery(id, 'kim', 'look')
    await run('sweep', 'run', 'all')
    const { code, answer } = await examined()
    expect(code).toBe(0)
    expect(named(answer.findings, 'held')).toEqual({
      name: 'held',
      value: '1',
      verdict: 'attention',
      fix: 'holdfast held ls',
    })
  })

  test('where the record is gone, it says so beside what the server is like', async () => {
    await record.send('DEL', record.keys.identity)
    const { code, answer } = await examined()
    expect(code).toBe(4)
    expect(answer.findings.filter(({ verdict }) => verdict !== 'ok')).toEqual([
      {
        name: 'record',
        value: `none under ${record.keys.tag}`,
        verdict: 'bad',
        fix: expect.stringContaining('holdfast init --after-loss'),
      },
    ])
    expect(answer.findings.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['appendfsync', 'aof_enabled', 'library']),
    )
  })

  test('finds the library gone, and does not bring it back itself', async () => {
    await run('sweep', 'run', 'all')
    await record.send('FUNCTION', 'FLUSH')
    const { code, answer } = await examined()
    expect(code).toBe(4)
    expect(named(answer.findings, 'library')).toMatchObject({
      value: 'missing',
      fix: 'holdfast functions load',
    })
    expect(await record.send('FUNCTION', 'LIST')).toEqual([])
    expect((await run('functions', 'load')).code).toBe(0)
    expect((await examined()).code).toBe(0)
  })

  test('works on the record itself', async () => {
    expect(await here.refused(['doctor', '--url', 'http://127.0.0.1:1'])).toMatchObject({ exit: 2 })
    const { code, stdout } = await here.run(['doctor', '--redis', server.url, '--hub', 'nobody'])
    expect(code).toBe(4)
    expect(stdout).toMatch(/^record +none under \{nobody\} +bad +holdfast init/m)
  })
})

describe('through a hub', () => {
  let hub: TestHubServer
  beforeEach(async () => {
    hub = await startHubServer(record)
  })
  afterEach(() => hub.close())

  test('sweeps and the audit are the same', async () => {
    await record.acceptMany(1)
    const there = (...args: string[]) => here.answer([...args, '--url', hub.url])
    expect(await there('sweep', 'run', 'claims')).toMatchObject({ runs: [{ name: 'claims', found: 0 }] })
    expect(await there('sweep', 'run', 'all')).toMatchObject({ runs: sweepNames.map((name) => ({ name })) })
    expect(await there('sweep', 'ls')).toMatchObject({ sweeps: sweepNames.map((name) => ({ name })) })
    const answer = await there('audit')
    expect(answer).toEqual((await told('audit')).answer)
  })

  test('a run that nobody listens to ends at once', async () => {
    await hub.close()
    const words = ['sweep', 'run', 'claims', '--url', hub.url]
    expect(await here.refused(words)).toMatchObject({ exit: 1, code: 'HUB_UNREACHABLE' })
  })
})
