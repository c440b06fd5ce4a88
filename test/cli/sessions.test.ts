import { mkdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { AttemptResolved, OperatorReply } from '../../src/contract/delivery-views.js'
import type { SessionReply, SessionView } from '../../src/contract/session-views.js'
import { startHubServer, type TestHubServer } from '../support/http.js'
import { makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { makeFolder } from './run-cli.js'
import { commandsIn } from './run-here.js'

// Sessions, and an operator's word on what nobody else can know.

let server: TestServer
let record: TestRecord
let hub: TestHubServer
const folder = makeFolder()
const here = commandsIn(folder.path)
beforeAll(async () => {
  server = await startTestServer()
  record = await makeRecord(server, 'hf', { stale_after_ms: 600_000 }) // its nodes send no heartbeats
  hub = await startHubServer(record)
})
afterAll(async () => {
  await hub?.close()
  await record?.checkInvariants()
  await record?.close()
  await server?.stop()
  folder.remove()
})

const at = (...args: string[]) => [...args, '--redis', server.url]
const run = (...args: string[]) => here.run(at(...args))
const answer = <Answer>(...args: string[]) => here.answer<Answer>(at(...args))
const refused = (...args: string[]) => here.refused(at(...args))

/** The text of a command that must succeed and say nothing on stderr. */
async function shown(...args: string[]): Promise<string> {
  const ended = await run(...args)
  expect(ended).toMatchObject({ code: 0, stderr: '' })
  return ended.stdout
}

const open = (id: string, ...more: string[]) =>
  answer<SessionReply>('session', 'open', id, '--host', 'a', '--scope', '/srv/a', ...more)

/** A node that is registered for scopes, and never leaves. */
async function joined(host: string, ...scopes: string[]) {
  const who = { host, node: 'n1', incarnation: 1, request: 0 }
  await record.functions.join(who, 'i1', scopes, '0-0')
  return who
}

describe('session', () => {
  test('ls of none says so', async () => {
    expect(await run('session', 'ls')).toMatchObject({ code: 0, stdout: '', stderr: 'no sessions\n' })
    expect(await answer('session', 'ls')).toEqual({ sessions: [] })
  })

  test('open makes it addressable; opening again begins a new epoch', async () => {
    const opened = await open('s1', '--restart-budget', '2', '--parent', 'p', '--actor', 'kim')
    expect(opened).toEqual({
      session: 's1',
      host: 'a',
      scope: '/srv/a',
      epoch: 1,
      state: 'open',
      crashes: 0,
      restartBudget: 2,
      logId: expect.any(String),
    })
    expect(await record.hub.session('s1')).toMatchObject({ openedBy: 'kim', parent: 'p' })
    const text = await shown('session', 'open', 's1', '--host', 'a', '--scope', '/srv/a')
    expect(text).toMatch(/^session +s1\nstate +open\nhost +a\nscope +\/srv\/a\nepoch +2\ncrashes +0 of 2$/m)
    await here.answer(['send', '--conversation', 'c', '--to', 'session:s1', 'x', ...at()])
    expect(await record.hub.session('s1')).toMatchObject({ unfinished: 1 })
  })

  test('open makes a folder of this machine canonical', async () => {
    mkdirSync(join(folder.path, 'work'))
    const words = ['session', 'open', 's-relative', '--host', 'a', '--scope', './work/']
    const scope = join(realpathSync(folder.path), 'work')
    expect(await answer(...words)).toMatchObject({ scope })
  })

  test('show has all that is recorded', async () => {
    const view = await answer<SessionView>('session', 'show', 's1')
    expect(view).toEqual(await record.hub.session('s1'))
    const text = await shown('session', 'show', 's1')
    expect(text).toMatch(/^state +open$/m)
    expect(text).toMatch(/^parent +p$/m)
    expect(text).toMatch(/^unfinished +1$/m)
    expect(text).toMatch(/^opened +\d{4}-\d\d-\d\dT\S+Z$/m)
    expect(text).not.toContain('closed')
    expect(await refused('session', 'show', 'never')).toMatchObject({ exit: 3, code: 'SESSION_NOT_FOUND' })
  })

  test('close says whether it comes back, and presents the present epoch unless told another', async () => {
    const { epoch } = await record.hub.session('s1')
    const stale = ['session', 'close', 's1', '--reason', 'restart', '--epoch', String(epoch - 1)]
    expect(await refused(...stale)).toMatchObject({ exit: 1, code: 'STALE_EPOCH' })
    const words = ['session', 'close', 's1', '--reason', 'restart', '--abandoned', '2', '--actor', 'kim']
    expect(await shown(...words)).toMatch(/^state +closed \(restart\)$/m)
    const text = await shown('session', 'show', 's1')
    expect(text).toMatch(/^closed by +kim\ndrained +no\nabandoned +2$/m)
    const again = await answer('session', 'close', 's1', '--reason', 'removed', '--epoch', String(epoch))
    expect(again).toMatchObject({ state: 'closed', reason: 'restart', terminal: false })
  })

  test.each([
    ['disable', true],
    ['removed', true],
    ['reload', false],
    ['restart', false],
    ['crash', true],
  ])('close for %s is terminal: %s', async (reason, terminal) => {
    const id = `s-${reason}`
    await open(id)
    const closed = await answer('session', 'close', id, '--reason', reason, '--drained')
    expect(closed).toMatchObject({ state: 'closed', reason, terminal })
    expect(await record.hub.session(id)).toMatchObject({ drained: true, abandoned: 0 })
    const text = await shown('session', 'ls')
    expect(text).toMatch(new RegExp(`^${id} +closed \\(${reason}${terminal ? ', for good' : ''}\\) +a `, 'm'))
  })

  test('ls has a row for each, and goes on from a cursor', async () => {
    const text = await shown('session', 'ls')
    expect(text).toMatch(/^SESSION +STATE +HOST +SCOPE +EPOCH +CRASHES +UNFINISHED +SINCE$/m)
    expect(text).toMatch(/^s1 +closed \(restart\) +a +\/srv\/a +2 +0\/2 +1 +\d\S*$/m)
    const all = await answer<{ sessions: SessionView[] }>('session', 'ls')
    const first = await answer<{ sessions: SessionView[]; cursor: string }>('session', 'ls', '--limit', '3')
    expect(first.sessions).toEqual(all.sessions.slice(0, 3))
    const rest = await answer('session', 'ls', '--cursor', first.cursor)
    expect(rest).toEqual({ sessions: all.sessions.slice(3) })
    const ended = await run('session', 'ls', '--limit', '3')
    expect(ended.stdout.trim().split('\n')).toHaveLength(4)
    expect(ended.stderr).toBe(`there are more: --cursor '${first.cursor}'\n`)
  })

  test('rehome moves it, or says by name what stands against it', async () => {
    await open('s-moves')
    const to = (host: string) => ['session', 'rehome', 's-moves', '--host', host, '--reason', 'a new machine']
    expect(await refused(...to('b'))).toMatchObject({ exit: 1, code: 'HOST_NOT_LIVE' })
    await joined('c', '/srv/c')
    expect(await refused(...to('c'))).toMatchObject({ exit: 1, code: 'SCOPE_MISMATCH' })
    await joined('b', '/srv/a')
    const { deliveries } = await record.accept({ to: [{ session: 's-moves' }] })
    const moved = await answer(...to('b'), '--actor', 'kim')
    expect(moved).toMatchObject({ session: 's-moves', host: 'b', state: 'open', epoch: 2 })
    expect(moved).not.toHaveProperty('more')
    const id = deliveries[0]?.id ?? ''
    expect(await record.fields(id)).toMatchObject({ host: 'b', rehomed_by: 'kim', rehomed_from: 'a' })
    expect(await shown(...to('b'))).toMatch(/^host +b$/m)
    const text = await shown('session', 'show', 's-moves')
    expect(text).toMatch(/^rehomed from +a$/m)
    expect(await refused('session', 'rehome', 'never', '--host', 'b', '--reason', 'r')).toMatchObject({
      exit: 3,
      code: 'SESSION_NOT_FOUND',
    })
    const elsewhere = ['session', 'open', 's-moves', '--host', 'a', '--scope', '/srv/a']
    expect(await refused(...elsewhere)).toMatchObject({ exit: 1, code: 'SESSION_ELSEWHERE' })
  })

  test('through a hub the answers are those of the record, and acts are made', async () => {
    const through = { HOLDFAST_URL: hub.url }
    for (const words of [
      ['session', 'ls'],
      ['session', 'ls', '--limit', '2'],
      ['session', 'show', 's1'],
    ]) {
      expect(await here.answer(words, through), words.join(' ')).toEqual(await answer(...words))
    }
    const opening = ['session', 'open', 's-http', '--host', 'a', '--scope', '/srv/a', '--actor', 'kim']
    expect(await here.answer(opening, through)).toMatchObject({ epoch: 1, state: 'open' })
    const closing = ['session', 'close', 's-http', '--reason', 'crash', '--actor', 'kim']
    expect(await here.answer(closing, through)).toMatchObject({ state: 'closed', terminal: true })
    expect(await record.hub.session('s-http')).toMatchObject({ openedBy: 'kim', closedBy: 'kim' })
    const rehoming = ['session', 'rehome', 's-http', '--host', 'b', '--reason', 'r']
    expect(await here.answer(rehoming, through)).toMatchObject({ host: 'b', state: 'closed' })
    expect(await here.refused(['session', 'show', 'never'], through)).toMatchObject({
      exit: 3,
      code: 'SESSION_NOT_FOUND',
    })
  })
})

describe('attempt resolve', () => {
  const evidence = ['--evidence', 'the log of the target', '--actor', 'kim']
  let node: Awaited<ReturnType<typeof joined>>

  async function executing() {
    node ??= await joined('r')
    await record.accept({ to: [{ host: 'r' }] })
    const [delivery] = await record.deliverAll(node)
    return record.begin(node, delivery ?? { id: '', epoch: 0 })
  }

  test('settles what nobody else can know, once', async () => {
    const { attempt, id } = await executing()
    const words = ['attempt', 'resolve', attempt, '--as', 'result', '--result', '{"a": [1.10]}', ...evidence]
    expect(await refused(...words)).toMatchObject({ exit: 1, code: 'EXECUTING' })
    expect(await answer<AttemptResolved>(...words, '--force')).toEqual({
      id: attempt,
      state: 'delivered',
      epoch: expect.any(Number),
      outcome: 'result',
      logId: expect.any(String),
    })
    expect(await refused(...words, '--force')).toMatchObject({ exit: 1, code: 'ALREADY_SETTLED' })
    const text = await shown('delivery', 'show', id)
    expect(text).toMatch(/^result +\{"a": \[1\.10\]\}$/m)
    expect(text).toMatch(/^resolved by +kim\nevidence +the log of the target$/m)
  })

  test('needs no force for one in the unknown list whose executor has ended; says it as text', async () => {
    const { attempt, grant, id } = await executing()
    const outcome = { kind: 'outcome_unknown', errorCode: 'connection_lost' } as const
    await record.functions.report(node, [{ id: attempt, grant, key: 'k', outcome, ended: true }])
    expect(await shown('unknown', 'ls')).toMatch(new RegExp(`^${attempt} .*connection_lost$`, 'm'))
    const text = await shown('attempt', 'resolve', attempt, '--as', 'not_sent', ...evidence)
    expect(text).toMatch(
      new RegExp(`^attempt +${attempt}\noutcome +not_sent\ndelivery is +queued\nepoch +\\d+$`, 'm'),
    )
    expect(await record.states([id])).toEqual(['queued'])
    expect(await shown('delivery', 'show', id)).toMatch(/^unknown reports +1$/m)
  })

  test('works through a hub too', async () => {
    const { attempt, id } = await executing()
    const words = ['attempt', 'resolve', attempt, '--as', 'terminal', '--force', ...evidence]
    const resolved = await here.answer(words, { HOLDFAST_URL: hub.url })
    expect(resolved).toMatchObject({ id: attempt, outcome: 'terminal' })
    expect((await record.hub.delivery(id)).attempts.at(-1)).toMatchObject({
      status: 'terminal',
      resolvedBy: 'kim',
    })
  })

  test.each([
    ['1-1.1/1', 3, 'DELIVERY_NOT_FOUND'],
    ['1-1.1', 2, 'INVALID_ARGUMENT'],
  ])('of %s ends with %d %s', async (id, exit, code) => {
    const words = ['attempt', 'resolve', id, '--as', 'terminal', ...evidence]
    expect(await refused(...words)).toMatchObject({ exit, code })
    expect(await here.refused(words, { HOLDFAST_URL: hub.url })).toMatchObject({ exit, code })
  })

  test('a result beside another outcome is wrong usage, not dropped', async () => {
    const { attempt, id } = await executing()
    const words = ['attempt', 'resolve', attempt, '--as', 'terminal', '--result', '1', '--force', ...evidence]
    expect(await refused(...words)).toMatchObject({ exit: 2, code: 'INVALID_ARGUMENT' })
    expect(await here.refused(words, { HOLDFAST_URL: hub.url })).toMatchObject({ exit: 2 })
    expect((await record.hub.delivery(id)).attempts.at(-1)).toMatchObject({ status: 'executing' })
  })
})

test('effect resolve takes the same words as attempt resolve', async () => {
  const claim = { type: 'charge', payloadHash: 'a'.repeat(64), executor: 'e', grant: 'g' }
  await record.hub.claimEffect('order-17', claim)
  const evidence = ['--evidence', 'the bank says so', '--actor', 'kim']
  const words = ['effect', 'resolve', 'order-17', '--as', 'result', ...evidence]
  expect(await refused(...words)).toMatchObject({ exit: 1, code: 'EXECUTING' })
  const text = await shown(...words, '--result', '[1.0]', '--force')
  expect(text).toMatch(/^outcome +result\nstatus +done\nepoch +1$/m)
  expect(await record.hub.effect('order-17')).toMatchObject({ result: '[1.0]', resolvedBy: 'kim' })
  expect(await refused(...words, '--force')).toMatchObject({ exit: 1, code: 'ALREADY_SETTLED' })
  const problems = await refused('effect', 'resolve', 'order-17', '--as', 'done')
  expect(problems).toMatchObject({ exit: 2, message: expect.stringContaining('2 problems') })
})

describe('delivery resolve', () => {
  const evidence = ['--evidence', 'looked at the disk', '--actor', 'kim']

  let node: Awaited<ReturnType<typeof joined>>

  async function inDoubt(): Promise<string> {
    node ??= await joined('d')
    await record.accept({ to: [{ host: 'd' }] })
    const [claimed] = await record.claimAll(node)
    const { id = '', epoch = 0 } = claimed ?? {}
    await record.functions.refuse(node, [{ id, epoch, verdict: 'unknown', reason: 'copy_in_doubt' }])
    return id
  }

  test('queues it again or fails it, once', async () => {
    const id = await inDoubt()
    const queued = await answer<OperatorReply>('delivery', 'resolve', id, '--as', 'queued', ...evidence)
    expect(queued).toEqual({
      id,
      state: 'queued',
      epoch: expect.any(Number),
      logId: expect.any(String),
    })
    expect(await record.fields(id)).toMatchObject({ resolved_by: 'kim', evidence: 'looked at the disk' })
    const again = await refused('delivery', 'resolve', id, '--as', 'failed', ...evidence)
    expect(again).toMatchObject({ exit: 1, code: 'NOT_UNKNOWN' })
    await record.functions.cancel(id, 'kim', 'seen')

    const other = await inDoubt()
    const text = await shown('delivery', 'resolve', other, '--as', 'failed', ...evidence)
    expect(text).toMatch(new RegExp(`^delivery +${other}\nstate +failed\nepoch +\\d+$`, 'm'))
  })

  test('works through a hub too', async () => {
    const id = await inDoubt()
    const words = ['delivery', 'resolve', id, '--as', 'failed', ...evidence]
    const through = { HOLDFAST_URL: hub.url }
    expect(await here.answer(words, through)).toMatchObject({ id, state: 'failed' })
    expect(await here.refused(words, through)).toMatchObject({ exit: 1, code: 'NOT_UNKNOWN' })
  })

  test('of one that is not there ends with 3', async () => {
    const words = ['delivery', 'resolve', '1-1.1', '--as', 'failed', ...evidence]
    expect(await refused(...words)).toMatchObject({ exit: 3, code: 'DELIVERY_NOT_FOUND' })
  })
})

test.each([
  [
    ['session', 'open', 's\u0001', '--host', 'Bad', '--restart-budget', 'many', '--parent', ''],
    ['ID: must be', '--host: must match', '--scope: is required', '--restart-budget: "many"', '--parent: '],
  ],
  [
    ['session', 'close', 's', '--epoch', '-', '--abandoned', '1.5'],
    ['--epoch: "-"', '--reason: must be one of disable, removed', '--abandoned: "1.5"'],
  ],
  [
    ['session', 'rehome', 's', '--host', '-x-'],
    ['--host: must match', '--reason: is required'],
  ],
  [
    ['session', 'ls', '--limit', '0', '--redis', 'nonsense'],
    ['--redis: ', '--limit: "0"'],
  ],
  [
    ['attempt', 'resolve', '1-1.1/1', '--result', '{'],
    ['--as: must be result, terminal or not_sent', '--evidence: is required', '--result: is no JSON'],
  ],
  [
    ['delivery', 'resolve', '1-1.1', '--as', 'result'],
    ['--as: must be queued or failed', '--evidence: is required'],
  ],
  [
    ['fence', 'pause', 'convers:o'],
    [
      'SCOPE: "convers:o" is no scope: hub, host:<host>, conversation:<id> or session:<id>',
      '--reason: is required',
    ],
  ],
  [
    ['fence', 'lift', 'pausing', 'host:-x-'],
    ['KIND: must be pause, hold or block', 'SCOPE: "host:-x-" is no scope'],
  ],
  [
    ['delivery', 'cancel', '1-1'],
    ['ID: "1-1" is no delivery id (<message>.<n>)', '--reason: is required'],
  ],
  [
    ['attempt', 'resolve', '1-1.1', '--as', 'terminal'],
    ['ID: "1-1.1" is no attempt id (<delivery>/<n>)', '--evidence: is required'],
  ],
  [
    ['message', 'resend', '1-1.1', '--key', 'ä'],
    ['ID: "1-1.1" is no message id (<ms>-<sequence>)', '--key: must be 1 to 255 bytes of printable ASCII'],
  ],
])('%j is refused with every problem, and changes nothing', async (words, problems) => {
  const before = await record.dump()
  const given = words.includes('--redis') ? words : at(...words)
  const { exit, code, message } = await here.refused(given)
  expect({ exit, code }).toEqual({ exit: 2, code: 'INVALID_ARGUMENT' })
  expect(message).toContain(`${problems.length} problems`)
  for (const problem of problems) expect(message).toContain(problem)
  expect(await record.dump()).toEqual(before)
})
