import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { type OpenRecord, openRecord } from './record.js'
import { startTestServer, type TestServer } from './server.js'

/**
 * For the tests of a file: one server, and for each of them a record of its own, whose invariants hold after it.
 * `made` is told of the record before the test begins.
 */
export function eachRecord(made: (record: OpenRecord) => Promise<void> | void): void {
  let server: TestServer
  let record: OpenRecord
  beforeAll(async () => {
    server = await startTestServer()
  })
  afterAll(() => server?.stop())
  beforeEach(async () => {
    record = await openRecord(server)
    await made(record)
  })
  afterEach(async () => {
    await record.checkInvariants()
    await record.close()
  })
}
