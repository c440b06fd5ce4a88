import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { sweepNames, sweepSetting } from '../../src/contract/sweeps.js'
import { readSweeps } from '../../src/hub/sweeps.js'
import { startSchedule } from '../../src/sweeps/schedule.js'
import { type Child, killChildren, startSweeperProcess } from '../support/child.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'
import { openSwept, type SweptRecord, stageEverything } from './stage.js'

/** How long each outage lasts: HOLDFAST_OUTAGE_MS for longer ones. */
const awayMs = Number(process.env['HOLDFAST_OUTAGE_MS'] ?? 3000)
const backMs = 10_000
const everyMs = 500
const quiet = { info: () => undefined, warn: () => undefined }

afterEach(killChildren)

/** When each sweep last succeeded, by the server's clock. */
async function succeeded({ parts }: SweptRecord): Promise<number[]> {
  return (await readSweeps(parts.reader, parts.keys)).map(({ lastSucceededAt }) => lastSucceededAt ?? 0)
}

async function serverNow(record: SweptRecord): Promise<number> {
  const [seconds, micros] = (await record.send('TIME')) as [string, string]
  return Number(seconds) * 1000 + Number(micros) / 1000
}

describe.concurrent('the sweeps go on by themselves', () => {
  /** Sweeps at work, an outage, and every sweep has succeeded again soon after its end. */
  async function resumes(breaks: (own: TestServer) => unknown, mends: (own: TestServer) => unknown) {
    const own = await startTestServer()
    const record = await openSwept(own)
    await stageEverything(record)
    for (const name of sweepNames) await record.config(sweepSetting(name), everyMs)
    const schedule = await startSchedule({ redis: own.url, parts: record.parts, log: quiet })
    await until(async () =>
      (await readSweeps(record.parts.reader, record.keys)).every(({ runs }) => runs > 2),
    )
    await breaks(own)
    await sleep(awayMs)
    await mends(own)
    const mendedAt = await until(() => serverNow(record), { what: 'a server that answers' })
    await until(async () => (await succeeded(record)).every((at) => at > mendedAt), {
      timeoutMs: backMs,
      what: 'every sweep succeeding again',
    })
    await until(
      async () =>
        (await readSweeps(record.parts.reader, record.keys)).every(({ error }) => error === undefined),
      { what: 'sweeps without an error' },
    )
    await schedule.stop()
    expect((await record.parts.hub.audit()).disagreements).toEqual([])
    await record.checkInvariants()
    await record.close()
    await own.stop()
  }
  const limits = { timeout: 60_000 + awayMs }

  it('faults.md 16: after a primary was read-only', limits, () =>
    resumes(
      (own) => own.cli('REPLICAOF', '127.0.0.1', '1'),
      (own) => own.cli('REPLICAOF', 'NO', 'ONE'),
    ),
  )

  it('faults.md 17: after the server was away', limits, () =>
    resumes(
      (own) => own.kill9(),
      (own) => own.restart(),
    ),
  )

  it('faults.md 23: after the server was frozen', limits, () =>
    resumes(
      (own) => own.freeze(),
      (own) => own.thaw(),
    ),
  )

  it('faults.md 20: after its files had no room to grow, which ended it', limits, () =>
    resumes(
      async (own) => {
        const pid = /process_id:(\d+)/.exec(own.cli('INFO', 'server'))?.[1] ?? ''
        execFileSync('prlimit', ['--pid', pid, '--fsize=4096:4096'])
        await until(() => !answers(own), { what: 'the server ending' })
      },
      (own) => own.restart(),
    ),
  )
})

function answers(own: TestServer): boolean {
  try {
    return own.cli('SET', 'filler', 'x'.repeat(8192)) === 'OK'
  } catch {
    return false
  }
}

/** Stops it inside a run that BullMQ gave it, whose lock it holds: not inside its first round, which needs none. */
async function stoppedInJob({ send, keys }: SweptRecord, child: Child, name: string): Promise<void> {
  for (let stops = 1; ; stops++) {
    child.send(`stop in ${name}`)
    await until(() => child.lines.filter((each) => each['stopped'] === name).length === stops, {
      timeoutMs: 60_000,
      what: `a run of ${name} in the doomed process`,
    })
    const active = (await send('LRANGE', `${keys.tag}:bull:sweeps:active`, '0', '-1')) as string[]
    const job = active.find((id) => id.startsWith(`repeat:${name}:`))
    if (job !== undefined && (await send('EXISTS', `${keys.tag}:bull:sweeps:${job}:lock`)) === 1) return
    child.signal('SIGCONT')
  }
}

it('faults.md 8: a hub killed inside a sweep does not keep the next run waiting', {
  timeout: 180_000,
}, async () => {
  const own = await startTestServer()
  const record = await openSwept(own)
  await stageEverything(record)
  for (const name of sweepNames) await record.config(sweepSetting(name), everyMs)
  // Long beside the interval: a run that waited for the dead holder's lock would come far too late.
  const options = { redis: own.url, hub: record.name, lockMs: 30_000 }
  const other = startSweeperProcess(options)
  await other.line('up')
  for (const name of ['held', 'claims', 'audit']) {
    const doomed = startSweeperProcess(options)
    await doomed.line('up')
    await stoppedInJob(record, doomed, name)
    doomed.signal('SIGKILL')
    await doomed.ended
    const killedAt = await serverNow(record)
    const views = await until(
      async () => {
        const found = await readSweeps(record.parts.reader, record.keys)
        return found.every(({ lastSucceededAt }) => (lastSucceededAt ?? 0) > killedAt) ? found : undefined
      },
      { timeoutMs: backMs, what: `every sweep succeeding after the kill in ${name}` },
    )
    const late = views.map(({ lastSucceededAt }) => (lastSucceededAt ?? 0) - killedAt)
    expect(Math.max(...late)).toBeLessThan(backMs)
  }
  other.send('end')
  await other.ended
  expect((await record.parts.hub.audit()).disagreements).toEqual([])
  await record.close()
  await own.stop()
})
