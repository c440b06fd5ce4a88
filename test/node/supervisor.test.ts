import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { identify, isAlive as processLives } from '../../src/node/process-identity.js'
import { createSupervisor, type Supervisor, type SupervisorOptions } from '../../src/node/supervisor.js'
import { killChildren, startSupervisorProcess } from '../support/child.js'
import { makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

let server: TestServer
let record: TestRecord
let folder: string
let count = 0
const started: Supervisor[] = []

beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server.stop())
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-supervisor-'))
  count += 1
  record = await makeRecord(server, `s${count}`)
})
afterEach(async () => {
  await killChildren()
  await Promise.all(started.splice(0).map((each) => each.stop('restart').catch(() => undefined)))
  for (const pid of pids()) end(pid)
  await record.close()
  rmSync(folder, { recursive: true, force: true })
})

/** A process that notes each of its starts, and the epoch it was started under; it holds no pipe of the test's. */
const noting = 'exec </dev/null >/dev/null 2>&1; echo "$$ $HOLDFAST_SESSION_EPOCH" >> starts;'

function starts(): [pid: number, epoch: number][] {
  try {
    const lines = readFileSync(join(folder, 'starts'), 'utf8').trim().split('\n')
    return lines.map((line) => line.split(' ').map(Number) as [number, number])
  } catch {
    return []
  }
}

function pids(): number[] {
  return starts().map(([pid]) => pid)
}

function end(pid: number): void {
  try {
    if (pid > 1) process.kill(pid, 'SIGKILL')
  } catch {}
}

/** One that has ended and that nobody has waited for is not alive. */
function isAlive(pid: number): boolean {
  const identity = identify(pid)
  return identity !== undefined && processLives(identity)
}

function optionsOf(script: string, restartBudget = 2) {
  return {
    session: 'agent',
    host: 'a',
    scope: folder,
    restartBudget,
    command: ['/bin/sh', '-c', `${noting} ${script}`] as [string, string, string],
    stateFile: join(folder, 'agent.json'),
    restartBackoff: { leastMs: 10, mostMs: 20 },
    stopGraceMs: 2000,
  }
}

async function supervise(script: string, more: Partial<SupervisorOptions> = {}): Promise<Supervisor> {
  const supervisor = createSupervisor({ hub: record.hub, ...optionsOf(script), ...more })
  started.push(supervisor)
  await supervisor.start()
  return supervisor
}

const startedTimes = (times: number) => until(() => starts().length >= times, { what: `${times} starts` })

describe('a supervised process', () => {
  it('is a session from its start to its stop, under an epoch that it is told', async () => {
    const supervisor = await supervise('exec sleep 60')
    await startedTimes(1)
    const opened = await record.hub.session('agent')
    expect(opened).toMatchObject({ state: 'open', host: 'a', scope: folder, restartBudget: 2, crashes: 0 })
    expect(starts()[0]?.[1]).toBe(opened.epoch)
    const ended = await supervisor.stop('restart')
    expect(ended).toMatchObject({
      kind: 'stopped',
      session: { state: 'closed', terminal: false, crashes: 0 },
    })
    expect(await record.hub.session('agent')).toMatchObject({
      reason: 'restart',
      drained: true,
      abandoned: 0,
    })
    expect(isAlive(pids()[0] ?? 0)).toBe(false)
  })

  it.each([
    ['restart', false],
    ['reload', false],
    ['disable', true],
    ['removed', true],
  ] as const)('states that a close by %s is terminal: %s', async (reason, terminal) => {
    const supervisor = await supervise('exec sleep 60')
    await startedTimes(1)
    expect(await supervisor.stop(reason)).toMatchObject({ kind: 'stopped', session: { reason, terminal } })
  })

  it.each([
    ['restart', 'disable'],
    ['disable', 'restart'],
  ] as const)('that is stopped as %s and as %s at once is stopped for good', async (first, second) => {
    const supervisor = await supervise('exec sleep 60')
    await startedTimes(1)
    const ends = await Promise.all([supervisor.stop(first), supervisor.stop(second)])
    const disabled = { kind: 'stopped', session: { reason: 'disable', terminal: true } }
    expect(ends).toMatchObject([disabled, disabled])
    expect(await record.hub.session('agent')).toMatchObject({ terminal: true, reason: 'disable' })
  })

  it('is stopped for good where that is asked for while a restart is being stated', async () => {
    let disabled: Promise<unknown> | undefined
    const hub = {
      openSession: record.hub.openSession,
      closeSession: async (...args: Parameters<typeof record.hub.closeSession>) => {
        const reply = await record.hub.closeSession(...args)
        disabled ??= supervisor.stop('disable')
        return reply
      },
    }
    const supervisor = await supervise('exec sleep 60', { hub })
    await startedTimes(1)
    expect(await supervisor.stop('restart')).toMatchObject({ kind: 'stopped', session: { terminal: true } })
    await disabled
    expect(await record.hub.session('agent')).toMatchObject({ terminal: true, reason: 'disable' })
  })

  it('is closed and started again by a reload, uncounted', async () => {
    const supervisor = await supervise('exec sleep 60')
    await startedTimes(1)
    const before = await record.hub.session('agent')
    await supervisor.again('reload')
    await startedTimes(2)
    const after = await record.hub.session('agent')
    expect(after).toMatchObject({ state: 'open', crashes: 0 })
    expect(after.epoch).toBeGreaterThan(before.epoch)
    expect(isAlive(pids()[0] ?? 0)).toBe(false)
  })

  it('that does not heed SIGTERM is killed, and was not drained', async () => {
    const supervisor = await supervise("trap '' TERM; while :; do sleep 0.1; done", {
      stopGraceMs: 200,
      abandoned: () => 3,
    })
    await startedTimes(1)
    await supervisor.stop('restart')
    expect(await record.hub.session('agent')).toMatchObject({ drained: false, abandoned: 3 })
  })

  it('comes back after crashes within the budget, and not after the one past it', async () => {
    const supervisor = await supervise('exit 3')
    const ended = await supervisor.closed
    expect(ended).toMatchObject({
      kind: 'terminal',
      session: { terminal: true, reason: 'crash', crashes: 2 },
    })
    expect(starts()).toHaveLength(3)
    expect(await record.hub.session('agent')).toMatchObject({ state: 'closed', terminal: true })
  })

  it('that crashed past its budget stays so, whoever supervises it, until an operator opens it', async () => {
    const first = await supervise('exit 3', { restartBudget: 1 })
    expect(await first.closed).toMatchObject({ kind: 'terminal', session: { crashes: 1 } })
    expect(starts()).toHaveLength(2)

    const second = await supervise('exit 3', { restartBudget: 1 })
    expect(await second.closed).toMatchObject({ kind: 'terminal', session: { crashes: 1 } })
    expect(starts()).toHaveLength(3)

    const opening = { host: 'a', scope: folder, asOperator: true }
    expect(await record.hub.openSession('agent', opening, 'kim')).toMatchObject({ state: 'open', crashes: 0 })
  })

  it('is not started once the session was reported missing', async () => {
    await record.hub.openSession('agent', { host: 'a', scope: folder }, 'kim')
    await record.send('HSET', record.keys.session('agent'), 'state', 'missing')
    await expect(supervise('exec sleep 60')).rejects.toMatchObject({ code: 'SESSION_MISSING' })
    expect(starts()).toEqual([])
  })

  it('that cannot be started is a crash', async () => {
    const supervisor = await supervise('', { command: [join(folder, 'nothing-here')], restartBudget: 1 })
    expect(await supervisor.closed).toMatchObject({ kind: 'terminal', session: { crashes: 1 } })
  })

  it('whose command cannot be stated to the system leaves no session open', async () => {
    const command = ['/bin/sh', '-c', 'a\0b'] as [string, string, string]
    const supervisor = createSupervisor({ hub: record.hub, ...optionsOf(''), command })
    await expect(supervisor.start()).rejects.toMatchObject({ code: 'ERR_INVALID_ARG_VALUE' })
    expect(await record.hub.session('agent')).toMatchObject({ state: 'closed', crashes: 0 })
  })

  it('is ended when the session was moved to another host under it', async () => {
    const supervisor = await supervise('exec sleep 60')
    await startedTimes(1)
    await record.functions.join({ host: 'b', node: 'b', incarnation: 1 }, 'i', [folder], '0-0')
    await record.hub.rehome('agent', 'b', { actor: 'kim', reason: 'moved' })
    const ended = await supervisor.stop('restart')
    expect(ended).toMatchObject({ kind: 'failed', error: { code: 'STALE_EPOCH' } })
    expect(isAlive(pids()[0] ?? 0)).toBe(false)
    expect(await record.hub.session('agent')).toMatchObject({ host: 'b', state: 'open' })
  })

  it('is not started where the session lives elsewhere', async () => {
    await record.hub.openSession('agent', { host: 'b', scope: folder }, 'kim')
    await expect(supervise('exec sleep 60')).rejects.toMatchObject({ code: 'SESSION_ELSEWHERE' })
    expect(starts()).toEqual([])
  })
})

describe('a supervisor whose state file cannot be written', () => {
  const unwritable = {
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining('agent.json cannot be written'),
    next: expect.stringContaining('name another stateFile'),
  }
  const blocked = () => join(folder, 'agent.json.new')

  it('starts nothing, and leaves its session closed', async () => {
    mkdirSync(blocked())
    const supervisor = createSupervisor({ hub: record.hub, ...optionsOf('exec sleep 60') })
    await expect(supervisor.start()).rejects.toMatchObject(unwritable)
    expect(await supervisor.closed).toMatchObject({ kind: 'failed', error: unwritable })
    expect(starts()).toEqual([])
    expect(await record.hub.session('agent')).toMatchObject({ state: 'closed', terminal: false, crashes: 0 })
  })

  it('ends by a reload, which says so: the process has ended and its session is closed', async () => {
    const supervisor = await supervise('exec sleep 60')
    await startedTimes(1)
    mkdirSync(blocked())
    await expect(supervisor.again('reload')).rejects.toMatchObject(unwritable)
    expect(await supervisor.closed).toMatchObject({ kind: 'failed', error: unwritable })
    expect(starts()).toHaveLength(1)
    expect(isAlive(pids()[0] ?? 0)).toBe(false)
    expect(await record.hub.session('agent')).toMatchObject({ state: 'closed', terminal: false, crashes: 0 })
  })

  it('is stopped like any other', async () => {
    const supervisor = await supervise('exec sleep 60')
    await startedTimes(1)
    mkdirSync(blocked())
    expect(await supervisor.stop('disable')).toMatchObject({ kind: 'stopped', session: { terminal: true } })
    expect(isAlive(pids()[0] ?? 0)).toBe(false)
  })

  it('once its process runs, ends that process, and leaves its session closed', async () => {
    const env = {
      ...process.env,
      // Read for the process, after its opening was kept.
      get BLOCKED() {
        if (existsSync(join(folder, 'agent.json'))) mkdirSync(blocked())
        return 'yes'
      },
    }
    const supervisor = createSupervisor({ hub: record.hub, ...optionsOf('exec sleep 60'), env })
    await expect(supervisor.start()).rejects.toMatchObject(unwritable)
    expect(pids().filter(isAlive)).toEqual([])
    expect(await record.hub.session('agent')).toMatchObject({ state: 'closed', terminal: false, crashes: 0 })
  })
})

describe('a supervisor that was killed', () => {
  const startProcess = (script: string, restartBudget = 2) =>
    startSupervisorProcess({ redis: server.url, record: record.name, ...optionsOf(script, restartBudget) })

  it('leaves a process that the next one ends before it starts another', async () => {
    const first = startProcess('exec sleep 60')
    await first.line('started')
    await startedTimes(1)
    await first.kill()
    const [orphan = 0] = pids()
    expect(isAlive(orphan)).toBe(true)
    await startProcess('exec sleep 60').line('started')
    await startedTimes(2)
    expect(isAlive(orphan)).toBe(false)
    expect(await record.hub.session('agent')).toMatchObject({ state: 'open', crashes: 0 })
  })

  it('does not take the count of crashes with it', async () => {
    const script = 'if [ $(wc -l < starts) -lt 2 ]; then exit 1; fi; exec sleep 60'
    const first = startProcess(script, 1)
    await startedTimes(2)
    expect(await record.hub.session('agent')).toMatchObject({ crashes: 1 })
    await first.kill()
    const second = startProcess('exit 1', 1)
    expect(await second.line('end')).toMatchObject({ end: 'terminal', session: { crashes: 1 } })
    expect(starts()).toHaveLength(3)
  })

  it('leaves a crash that nobody saw to the next one, and the record decides', async () => {
    const first = startProcess('exec sleep 60', 0)
    await startedTimes(1)
    await first.line('started')
    await first.kill()
    end(pids()[0] ?? 0)
    await until(() => !isAlive(pids()[0] ?? 0))
    const second = startProcess('exec sleep 60', 0)
    expect(await second.line('end')).toMatchObject({ end: 'terminal', session: { reason: 'crash' } })
    expect(starts()).toHaveLength(1)
  })

  it('before its close was answered: the next one states the same', async () => {
    const first = startProcess('exec sleep 60')
    await first.line('started')
    await startedTimes(1)
    server.freeze()
    first.send('disable')
    const stateFile = join(folder, 'agent.json')
    await until(() => readFileSync(stateFile, 'utf8').includes('"closing"'))
    await first.kill()
    server.thaw()
    const second = startProcess('exec sleep 60')
    await second.line('started')
    const log = (await record.send('XRANGE', record.keys.log, '-', '+')) as [string, string[]][]
    const closes = log.filter(([, fields]) => fields.includes('close_session'))
    expect(closes.map(([, fields]) => fields[fields.indexOf('reason') + 1])).toEqual(['disable'])
  })

  it('has a state file of its own', async () => {
    writeFileSync(join(folder, 'agent.json'), '{"session":"other","epoch":1}')
    await expect(supervise('exec sleep 60')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    writeFileSync(join(folder, 'agent.json'), 'rubbish')
    await expect(supervise('exec sleep 60')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect(starts()).toEqual([])
  })
})
