import { Queue } from 'bullmq'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { settings } from '../../src/contract/settings.js'
import { type SweepName, sweepNames, sweepSetting } from '../../src/contract/sweeps.js'
import { readSweeps } from '../../src/hub/sweeps.js'
import { openQueueConnection } from '../../src/record/queue-connection.js'
import { startSchedule } from '../../src/sweeps/schedule.js'
import { type Child, killChildren, startSweeperProcess } from '../support/child.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'
import { openSwept, type SweptRecord, stageEverything } from './stage.js'

let server: TestServer
let record: SweptRecord

beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server.stop())
beforeEach(async () => {
  record = await openSwept(server)
})
afterEach(async () => {
  await killChildren()
  await record.close()
})

const quiet = { info: () => undefined, warn: () => undefined }
const rowOf = async (name: string) => {
  const words = (await record.send('HMGET', record.keys.sweep(name), 'runs', 'by', 'error')) as (
    | string
    | null
  )[]
  return { runs: Number(words[0] ?? 0), by: words[1] ?? '', error: words[2] ?? '' }
}

describe('the schedule', () => {
  it('runs a first round at the start, and says when each last succeeded', async () => {
    await stageEverything(record)
    const schedule = await startSchedule({ redis: server.url, parts: record.parts, log: quiet })
    const { reader, keys } = record.parts
    await until(async () => (await readSweeps(reader, keys)).every(({ runs }) => runs > 0))
    const views = await readSweeps(reader, keys)
    expect(views.filter(({ late, error }) => late || error !== undefined)).toEqual([])
    expect(views.map(({ name }) => name)).toEqual(sweepNames)
    await schedule.stop()
    expect((await record.parts.hub.audit()).disagreements).toEqual([])
    await record.checkInvariants()
  })

  it('goes on by the intervals of the record, also when all keys of BullMQ were lost', async () => {
    await record.config('sweep_held_ms', 100)
    const schedule = await startSchedule({ redis: server.url, parts: record.parts, log: quiet })
    await until(async () => (await rowOf('held')).runs >= 4)
    const lost = (await record.send('KEYS', `${record.keys.tag}:bull:*`)) as string[]
    expect(lost.length).toBeGreaterThan(0)
    await record.send('DEL', ...lost)
    const { runs } = await rowOf('held')
    await until(async () => (await rowOf('held')).runs >= runs + 4, { timeoutMs: 15_000 })
    await schedule.stop()
  })

  it('does not wait for runs that a clock far ahead of this one has set', { timeout: 60_000 }, async () => {
    const runs = async (name: string) => (await rowOf(name)).runs
    const commands = openQueueConnection(server.url, record.keys.tag, 'tests')
    const queue = new Queue('sweeps', { connection: commands, prefix: `${record.keys.tag}:bull` })
    const setAhead = async (name: SweepName) => {
      await queue.removeJobScheduler(name)
      const every = settings[sweepSetting(name)].default
      const startDate = Date.now() + every + 3_600_000
      await queue.upsertJobScheduler(name, { every, startDate }, { name })
      expect((await queue.getJobScheduler(name))?.next).toBeGreaterThanOrEqual(startDate)
    }
    for (const name of sweepNames) await setAhead(name)

    const schedule = await startSchedule({ redis: server.url, parts: record.parts, log: quiet })
    for (const name of sweepNames) await until(async () => (await runs(name)) >= 2, { what: name })

    const before = await runs('nodes')
    await setAhead('nodes')
    await until(async () => (await runs('nodes')) > before, { timeoutMs: 20_000, what: 'nodes again' })
    await schedule.stop()
    await queue.close()
    commands.disconnect()
  })

  it('runs nothing by itself where the interval is 0', async () => {
    await record.config('sweep_stale_ms', 0)
    const schedule = await startSchedule({ redis: server.url, parts: record.parts, log: quiet })
    await until(async () => (await rowOf('held')).runs > 0)
    const { reader, keys } = record.parts
    expect((await readSweeps(reader, keys)).find(({ name }) => name === 'stale')).toMatchObject({
      everyMs: 0,
      late: false,
    })
    await schedule.stop()
  })
})

function hasStopped(child: Child, name: string): boolean {
  return child.lines.some((each) => each['stopped'] === name)
}

describe('two hubs, one of which is stopped inside a sweep for longer than its lock', () => {
  let [first, second]: (Child | undefined)[] = []

  it('do as one does', { timeout: 120_000 }, async () => {
    await stageEverything(record)
    for (const name of sweepNames) await record.config(sweepSetting(name), 150)
    const options = { redis: server.url, hub: record.name, lockMs: 1000 }
    first = startSweeperProcess(options)
    second = startSweeperProcess(options)
    const { up: pid } = await first.line('up')
    const { up: other } = await second.line('up')
    // Damage for those that else would have nothing to call.
    const owing = async () => {
      await record.config('inline_fan_out', 1)
      await record.accept({ conversation: 'late', to: [{ host: 'a' }, { host: 'b' }] })
    }
    for (const name of sweepNames) {
      if (name === 'rehome') await record.config('rehome_on_redrive', 1)
      first.send(`stop in ${name}`)
      // Only what is owed makes this one call anything.
      while (name === 'fan-out' && !hasStopped(first, name)) await owing()
      await first.line('stopped', name)
      const { runs } = await rowOf(name)
      await until(
        async () => {
          const row = await rowOf(name)
          return row.runs >= runs + 2 && row.by.endsWith(`#${other}`)
        },
        { timeoutMs: 20_000, what: `the other hub running ${name}` },
      )
      await first.goOn()
      await until(async () => (await rowOf(name)).by.endsWith(`#${pid}`), {
        timeoutMs: 20_000,
        what: `the woken hub ending ${name}`,
      })
      expect((await rowOf(name)).error).toBe('')
    }
    for (const each of [first, second]) each.send('end')
    await Promise.all([first.ended, second.ended])
    await record.sweepAll()
    expect((await record.parts.hub.audit()).disagreements).toEqual([])
    await record.checkInvariants()
  })
})
