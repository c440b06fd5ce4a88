import { expect } from 'vitest'
import { openHub } from '../../src/hub/open-hub.js'
import { silentLog } from '../../src/node/log.js'
import type { NodeTransport } from '../../src/node/transport.js'
import { openRedisTransport } from '../../src/node/transports/redis.js'
import type { Environment } from '../conformance/environment.js'
import { conformance } from '../conformance/suite.js'
import { makeUsers, refusals } from '../support/acl.js'
import { openRecord } from '../support/record.js'
import { startTestServer } from '../support/server.js'

// All that nodes and hubs do on Redis, as the users of docs/acl.md: none of it may be refused to them.

async function environmentOfUsers(): Promise<Environment> {
  const server = await startTestServer()
  const users = makeUsers(server, 'acl-*')
  let records = 0
  return {
    makeRecord: async (settings) => {
      records += 1
      const record = await openRecord(server, { name: `acl-${records}` })
      for (const [name, value] of Object.entries(settings)) await record.config(name, value)
      const hub = await openHub({ redis: users.hub, hub: record.name })
      const reach = { redis: users.node, hub: record.name }
      const transports: NodeTransport[] = []
      return {
        record,
        hub,
        reference: hub,
        transport: async () => {
          const transport = await openRedisTransport({ ...reach, log: silentLog })
          transports.push(transport)
          return transport
        },
        nodeReach: async () => reach,
        waiting: async () => {
          const clients = String(await record.send('CLIENT', 'LIST')).split('\n')
          return clients.filter((line) => /name=holdfast-doorbell .*flags=[^ ]*b/.test(line)).length
        },
        close: async () => {
          await Promise.all(transports.map((transport) => transport.close()))
          await hub.close()
          await record.close()
          expect(refusals(server)).toBe('')
        },
      }
    },
    close: () => server.stop(),
  }
}

conformance('on Redis, under users of limited rights', environmentOfUsers)
