import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkDurability } from '../../src/record/durability.js'
import { httpEnvironment, redisEnvironment } from '../conformance/environments.js'
import { conformance } from '../conformance/suite.js'
import { type OpenRecord, openRecord } from '../support/record.js'
import type { TestServer } from '../support/server.js'
import { serversOf, startServerOf } from './servers.js'

// What `npm test` runs on the system's server holds on the others as well.

const { 'redis-8.0': redis, 'valkey-8.1': valkey } = serversOf()

for (const named of [redis, valkey]) {
  const start = () => startServerOf(named)
  conformance(`${named.name} on Redis`, () => redisEnvironment(start))
  conformance(`${named.name} over HTTP`, () => httpEnvironment(start))

  describe(named.name, () => {
    let server: TestServer
    let record: OpenRecord
    beforeAll(async () => {
      server = await start()
      record = await openRecord(server)
    })
    afterAll(async () => {
      await record?.close()
      await server?.stop()
    })

    it('is the server that it is named after, and durable enough', async () => {
      const checks = await checkDurability(record.store, { everysec: false, unseenConfig: false })
      expect(checks.find(({ name }) => name === 'version')).toMatchObject({
        value: named.version,
        verdict: 'ok',
      })
      expect(checks.filter(({ verdict }) => verdict !== 'ok')).toEqual([])
    })

    it('is ended by SIGKILL of the process that was started, and comes back with its record', async () => {
      const { deliveries } = await record.accept()
      const id = deliveries[0]?.id ?? ''
      const { pid } = processOf(server)
      await server.kill9()
      expect(() => process.kill(pid, 0)).toThrow(/ESRCH/)
      await server.restart()
      expect(await record.states([id])).toEqual(['queued'])
    })
  })
}

function processOf(server: TestServer): { pid: number } {
  return { pid: Number(/process_id:(\d+)/.exec(server.cli('INFO', 'server'))?.[1]) }
}
