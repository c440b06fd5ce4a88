import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { killChildren, readMarks, startNodeProcess } from '../support/child.js'
import { freshPath } from '../support/nodes.js'
import { makeRecord, settlement, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

let server: TestServer
let record: TestRecord

beforeAll(async () => {
  server = await startTestServer()
  record = await makeRecord(server, 'mirror-full', { heartbeat_ms: 100, stale_after_ms: 60_000 })
})

afterAll(async () => {
  await killChildren()
  await record.close()
  await server.stop()
})

it('a node whose mirror takes no more ends and says why; its next process does what was left, once', async () => {
  const marks = freshPath('marks')
  writeFileSync(marks, '')
  const options = { redis: server.url, hub: record.name, host: 'h1', mirror: freshPath('db'), marks }
  const full = startNodeProcess(options)
  await full.line('started')
  const [first = ''] = await record.acceptMany(1, { to: [{ host: 'h1' }] })
  expect(await settlement(record, first)).toBe('done')
  // Files may not grow beyond this any more, as on a disk that is full.
  execFileSync('prlimit', ['--pid', String(full.pid), '--fsize=65536:65536'])
  const payload = 'x'.repeat(100_000)
  const ids = await record.acceptMany(5, { to: [{ host: 'h1' }], payload })
  expect(await full.line('ended')).toMatchObject({
    ended: 'failed',
    error: expect.stringContaining('MIRROR_UNUSABLE'),
  })
  expect(await full.ended, 'an end of its own, no crash').toBe(0)

  const successor = startNodeProcess(options)
  await successor.line('started')
  await until(async () =>
    (await Promise.all(ids.map((id) => settlement(record, id)))).every((end) => end === 'done'),
  )
  const begun = readMarks(marks)
    .filter(({ what }) => what === 'begin')
    .map(({ delivery }) => delivery)
  expect(begun.sort()).toEqual([first, ...ids].sort())
  await record.checkInvariants()
})
