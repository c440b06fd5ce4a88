import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { silentLog } from '../../src/node/log.js'
import { openRedisTransport } from '../../src/node/transports/redis.js'
import { type Child, killChildren, readMarks, startNodeProcess } from '../support/child.js'
import { freshPath, startNode, stopNodes } from '../support/nodes.js'
import { makeRecord, settlement, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

let server: TestServer
let record: TestRecord
let old: string

beforeEach(async () => {
  server = await startTestServer()
  old = mkdtempSync(join(tmpdir(), 'holdfast-old-'))
  record = await makeRecord(server, 'rewound', { heartbeat_ms: 100, stale_after_ms: 60_000 })
})

afterEach(async () => {
  await killChildren()
  await stopNodes()
  await record.close()
  await server.stop()
  rmSync(old, { recursive: true, force: true })
})

const options = () => {
  const marks = freshPath('marks')
  writeFileSync(marks, '')
  return { redis: server.url, hub: 'rewound', host: 'h1', node: 'a', mirror: freshPath('db'), marks }
}

const begun = (marks: string, id: string) =>
  readMarks(marks).filter(({ what, delivery }) => what === 'begin' && delivery === id).length

async function accepted(host: string, conversation: string): Promise<string> {
  const { deliveries } = await record.accept({ conversation, to: [{ host }] })
  return deliveries[0]?.id ?? ''
}

const copy = () => cpSync(join(server.dir, 'appendonlydir'), join(old, 'appendonlydir'), { recursive: true })

/** What the host executes between the copy and now is lost to the record. */
async function executeAfterCopy(ids: readonly string[]): Promise<void> {
  copy()
  await record.hub.lift('pause', 'host:h1', 'kim')
  for (const id of ids) expect(await settlement(record, id)).toBe('done')
}

async function putBack(): Promise<void> {
  await server.kill9()
  rmSync(join(server.dir, 'appendonlydir'), { recursive: true })
  cpSync(join(old, 'appendonlydir'), join(server.dir, 'appendonlydir'), { recursive: true })
  await server.restart()
  await until(() =>
    record.hub.counts().then(
      () => true,
      () => false,
    ),
  )
}

async function expectNamedAndNotRepeated(ids: readonly string[], marks: string): Promise<void> {
  const unknown = await until(async () => {
    const listed = await record.hub.unknown()
    return listed.length >= ids.length ? listed : undefined
  })
  expect(unknown.map(({ id, reason }) => [id, reason]).sort()).toEqual(
    ids.map((id) => [id, 'history_lost']).sort(),
  )
  await record.hub.lift('pause', 'host:h1', 'kim')
  const later = await accepted('h1', 'later')
  expect(await settlement(record, later)).toBe('done')
  expect(ids.map((id) => begun(marks, id))).toEqual(ids.map(() => 1))
  await record.checkInvariants()
}

describe('an old copy of the record comes back', () => {
  it('what its host may have executed since is named as unknown, and never executed again', async () => {
    const given = options()
    await startNodeProcess(given).line('started')
    await startNode({ redis: server.url, hub: 'rewound', host: 'h2', node: 'b' })
    await record.hub.pause('host:h1', { reason: 'wait', actor: 'kim' })
    await record.hub.pause('host:h2', { reason: 'wait', actor: 'kim' })
    const ids = [await accepted('h1', 'c1'), await accepted('h1', 'c1'), await accepted('h1', 'c2')]
    const other = await accepted('h2', 'c1')
    await executeAfterCopy(ids)
    await putBack()
    // The copy may be of before its node set it aside; then it does so again.
    await until(() => record.send('HGET', record.keys.delivery(other), 'parked_at'), { what: 'parked' })
    await expectNamedAndNotRepeated(ids, given.marks)
    await record.hub.lift('pause', 'host:h2', 'kim')
    expect(await settlement(record, other), 'its node saw nothing that is gone').toBe('done')
  })

  it('also where the node goes down with the server: its mirror knows what it saw', async () => {
    const given = options()
    const first: Child = startNodeProcess(given)
    await first.line('started')
    await record.hub.pause('host:h1', { reason: 'wait', actor: 'kim' })
    const ids = [await accepted('h1', 'c1'), await accepted('h1', 'c2')]
    await executeAfterCopy(ids)
    await first.kill()
    await putBack()
    await startNodeProcess(given).line('started')
    await expectNamedAndNotRepeated(ids, given.marks)
  })

  it('nobody waits there for what comes after entries that are there again', async () => {
    const who = { host: 'h1', node: 'a', incarnation: 1 }
    const transport = await openRedisTransport({ redis: server.url, hub: 'rewound', log: silentLog })
    try {
      await transport.join(who, 'i1', [], '0-0')
      const id = await accepted('h1', 'c1')
      copy()
      await record.hub.pause('host:h1', { reason: 'wait', actor: 'kim' })
      const wait = { waitMs: 60_000, signal: new AbortController().signal }
      expect(await transport.claim(who, 1, 1, wait), 'set aside by its pause').toMatchObject({
        deliveries: [],
      })
      const waiting = transport.claim(who, 2, 1, wait).catch((error: unknown) => error)
      await putBack()
      expect(await waiting).toMatchObject({ code: 'NOT_ATTESTED' })
      await transport.heartbeat(who, {
        lastLogId: '0-0',
        progressAgeMs: 0,
        blocking: { sumMs: 0, longestMs: 0 },
      })
      await transport.attest?.(who, '0-0')
      expect(await transport.claim(who, 2, 1, wait)).toMatchObject({ deliveries: [{ id, how: 'new' }] })
    } finally {
      await transport.close()
    }
  })
})

describe('a server that was killed and comes back whole', () => {
  it('goes on by itself, with nothing set aside', async () => {
    const given = options()
    await startNodeProcess(given).line('started')
    const before = await accepted('h1', 'c1')
    expect(await settlement(record, before)).toBe('done')
    await server.kill9()
    await server.restart()
    await until(() => accepted('h1', 'c1').catch(() => ''))
    const after = await accepted('h1', 'c1')
    expect(await settlement(record, after)).toBe('done')
    expect(await record.hub.unknown()).toEqual([])
    expect(await record.send('HGET', record.keys.identity, 'generation')).toBe('0')
  })
})
