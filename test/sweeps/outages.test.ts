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
    const mendedAt = await until(() => record.nowMs(), { what: 'a server that answers' })
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

/**
 * Stops one of two inside a run of a sweep, whose lock it holds; answers it and the other. Which of them BullMQ gives the
 * sweep is not ours to say.
 */
async function stoppedInJob(
  { send, keys }: SweptRecord,
  pair: readonly [Child, Child],
  name: string,
): Promise<{ doomed: Child; survivor: Child }> {
  for (const child of pair) child.send(`stop in ${name}`)
  const isStopped = (child: Child) => child.lines.some((each) => each['stopped'] === name)
  const doomed = await until(() => pair.find(isStopped), { timeoutMs: 60_000, what: `a run of ${name}` })
  const survivor = doomed === pair[0] ? pair[1] : pair[0]
  const active = (await send('LRANGE', `${keys.tag}:bull:sweeps:active`, '0', '-1')) as string[]
  const jobs = active.filter((id) => id.startsWith(`repeat:${name}:`))
  const locks = jobs.map((job) => `${keys.tag}:bull:sweeps:${job}:lock`)
  expect(await send('EXISTS', ...locks)).toBeGreaterThan(0)
  const told = survivor.lines.length
  survivor.send('go on')
  await until(
    () => {
      // It may have come to its own run of the sweep before it heard, and says that it stops before it does.
      survivor.signal('SIGCONT')
      return survivor.lines.slice(told).some((each) => each['goesOn'] === true)
    },
    { what: 'the other process going on' },
  )
  return { doomed, survivor }
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
  const start = async () => {
    const child = startSweeperProcess(options)
    await child.line('up')
    return child
  }
  let other = await start()
  for (const name of ['held', 'claims', 'audit']) {
    const { doomed, survivor } = await stoppedInJob(record, [other, await start()], name)
    other = survivor
    doomed.signal('SIGKILL')
    await doomed.ended
    const killedAt = await record.nowMs()
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
