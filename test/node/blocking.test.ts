import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createBlockingMeter } from '../../src/node/blocking.js'
import type { NodeLog } from '../../src/node/log.js'
import { startNode, stopNodes } from '../support/nodes.js'
import { makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

interface Logged {
  readonly level: string
  readonly text: string
  readonly [name: string]: unknown
}

function recorder(): { log: NodeLog; lines: Logged[] } {
  const lines: Logged[] = []
  const at = (level: string) => (particulars: object, text: string) =>
    void lines.push({ level, text, ...particulars })
  return { lines, log: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } }
}

describe('the blocking meter', () => {
  it('logs one that is longer than 25 ms by itself, with its cause', () => {
    const { log, lines } = recorder()
    const meter = createBlockingMeter(log, { windowMs: 60_000 })
    meter.note('mirror', 25)
    expect(lines).toEqual([])
    meter.note('handler', 25.126)
    expect(lines).toMatchObject([{ level: 'warn', cause: 'handler', tookMs: 25.13 }])
    meter.stop()
  })

  it('logs the sum of a window once, by cause, when it is more than a millisecond', async () => {
    const { log, lines } = recorder()
    const meter = createBlockingMeter(log, { windowMs: 20 })
    meter.note('mirror', 0.4)
    meter.note('handler', 0.7)
    meter.note('mirror', 0.6)
    await until(() => lines.length > 0)
    expect(lines).toMatchObject([{ level: 'info', windowMs: 20, sumMs: 1.7, mirrorMs: 1, handlerMs: 0.7 }])
    meter.stop()
    expect(lines).toHaveLength(1)
  })

  it('says nothing of a window that held the loop for a millisecond or less', async () => {
    const { log, lines } = recorder()
    const meter = createBlockingMeter(log, { windowMs: 10 })
    meter.note('mirror', 1)
    await laterThan(10)
    meter.note('handler', 2)
    await until(() => lines.length > 0)
    expect(lines).toMatchObject([{ sumMs: 2, mirrorMs: 0 }])
    meter.stop()
  })

  /** Timers set before this one have fired. */
  function laterThan(ms: number): Promise<void> {
    return new Promise((resolve) => {
      setTimeout(resolve, ms + 1)
    })
  }

  it('tells the window that is open when it stops, and nothing when none is', () => {
    const { log, lines } = recorder()
    const meter = createBlockingMeter(log)
    meter.stop()
    expect(lines).toEqual([])
    meter.note('mirror', 3)
    meter.stop()
    expect(lines).toMatchObject([{ windowMs: 10_000, sumMs: 3 }])
  })

  it('answers the figures since they were last taken', () => {
    const meter = createBlockingMeter(recorder().log)
    expect(meter.take()).toEqual({ sumMs: 0, longestMs: 0 })
    meter.note('mirror', 2)
    meter.note('handler', 5)
    meter.note('mirror', 3)
    expect(meter.take()).toEqual({ sumMs: 10, longestMs: 5 })
    expect(meter.take()).toEqual({ sumMs: 0, longestMs: 0 })
    meter.stop()
  })
})

describe('a node', () => {
  let server: TestServer
  let record: TestRecord

  beforeAll(async () => {
    server = await startTestServer()
  })
  afterEach(async () => {
    await stopNodes()
    await record.close()
  })
  afterAll(() => server?.stop())

  it('sends its figures with its heartbeats, a long synchronous handler among them', async () => {
    record = await makeRecord(server, 'blocking', { heartbeat_ms: 50, stale_after_ms: 60_000 })
    const { logs } = await startNode({
      redis: server.url,
      hub: record.name,
      host: 'a',
      execute: () => {
        const endsAt = performance.now() + 120
        while (performance.now() < endsAt);
        return 1
      },
    })
    await record.acceptMany(1)
    const row = await until(async () => {
      const key = record.keys.node('a', 'a')
      const [sum, longest] = (await record.send(
        'HMGET',
        key,
        'blocking_ms',
        'blocking_longest_ms',
      )) as string[]
      return Number(longest) >= 120 ? { sum: Number(sum), longest: Number(longest) } : undefined
    })
    expect(row.sum).toBeGreaterThanOrEqual(row.longest)
    const held = logs.filter((line) => line.log === 'the event loop was held')
    expect(held).toContainEqual(expect.objectContaining({ cause: 'handler' }))
    await until(
      async () => {
        const left = await record.send('HGET', record.keys.node('a', 'a'), 'blocking_longest_ms')
        return Number(left) < 120
      },
      { what: 'later beats telling of what came after' },
    )
  })

  it('keeps them as they are for a heartbeat without any', async () => {
    record = await makeRecord(server, 'blocking-row')
    const node = await record.join('a', 'n1')
    const beat = { lastLogId: '0-0', progressAgeMs: 0, blocking: { sumMs: 12.4, longestMs: 7.6 } }
    await record.functions.heartbeat(node, beat)
    const figures = () =>
      record.send('HMGET', record.keys.node('a', 'n1'), 'blocking_ms', 'blocking_longest_ms')
    expect(await figures()).toEqual(['12', '8'])
    await record.functions.heartbeat(node, { ...beat, blocking: { sumMs: 0, longestMs: 0 } })
    expect(await figures()).toEqual(['0', '0'])
  })
})
