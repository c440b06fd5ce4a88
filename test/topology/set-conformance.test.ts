import { beforeEach } from 'vitest'
import { openClient } from '../../src/client/open-client.js'
import type { HubCalls } from '../../src/contract/hub.js'
import { hubNames } from '../../src/contract/hub-set.js'
import { openHub } from '../../src/hub/open-hub.js'
import { openHubSet } from '../../src/hub/open-hub-set.js'
import type { NodeTransport } from '../../src/node/transport.js'
import { openHttpTransport } from '../../src/node/transports/http.js'
import { hubSetOf } from '../../src/set/hub-set-of.js'
import type { Environment, Settings, Surface } from '../conformance/environment.js'
import { emptyRecord, redisEnvironment, waitingOn } from '../conformance/environments.js'
import { conformance } from '../conformance/suite.js'
import { serveSet } from '../set/stage.js'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer } from '../support/server.js'
import { memberView } from './member-view.js'

/** The suite through a set of so many hubs, of which one is what the suite speaks of. */
async function setEnvironment(count: number): Promise<Environment> {
  const server = await startTestServer()
  const onOne = await redisEnvironment(async () => server)
  return {
    makeRecord: async (settings: Settings) => {
      const surface: Surface = await onOne.makeRecord(settings)
      const member = surface.record.name
      const others = count === 1 ? [] : hubNames(`${member}-1..${member}-${count - 1}`)
      const hubs = new Map<string, HubCalls>([[member, surface.hub]])
      const closers: (() => Promise<void>)[] = []
      for (const name of others) {
        const record = await openRecord(server, { name })
        for (const [setting, value] of Object.entries(settings)) await record.config(setting, value)
        const hub = await openHub({ redis: server.url, hub: name })
        hubs.set(name, hub)
        closers.push(async () => {
          await hub.close()
          await record.checkInvariants()
          await record.close()
        })
      }
      const set = hubSetOf(hubs)
      const asIs: ReturnType<typeof memberView> = { hub: set, plainOf: (value) => value }
      const view = count === 1 ? asIs : memberView(set, member, [...hubs.keys()])
      const { hub, plainOf } = view
      return {
        ...surface,
        hub,
        reference: hub,
        transport: async (host) => {
          return plainly(await surface.transport(host), plainOf)
        },
        close: async () => {
          for (const close of closers) await close()
          await surface.close()
        },
      }
    },
    close: onOne.close,
  }
}

/** The same over HTTP: one server of as many hubs, nodes and clients each under their own principal. */
async function servedSetEnvironment(count: number): Promise<Environment> {
  const server = await startTestServer()
  const hubs = hubNames(`served-1..served-${count}`)
  const [member = ''] = hubs
  const records = await Promise.all(hubs.map((name) => openRecord(server, { name })))
  const [record] = records as [OpenRecord]
  const served = await serveSet({ redis: server.url, hubs })
  const anonymous = openClient({ url: served.url, hubs })
  const { token: operator = '' } = await anonymous.addPrincipal({ name: 'kim', role: 'operator' }, 'tests')
  await anonymous.close()
  const client = openClient({ url: served.url, hubs, token: operator })
  const onRecord = await openHubSet({ redis: server.url, hubs })
  const tokens = new Map<string, Promise<string>>()
  const url = `${served.url}/hubs/${member}`

  async function addNode(host: string): Promise<string> {
    const principal = { name: `node-${host}`, role: 'node', host, scopes: ['/srv/work'] } as const
    return (await client.addPrincipal(principal, 'kim')).token ?? ''
  }
  function token(host: string): Promise<string> {
    const known = tokens.get(host) ?? addNode(host)
    tokens.set(host, known)
    return known
  }

  return {
    makeRecord: async (settings: Settings) => {
      for (const each of records) {
        await emptyRecord(each)
        for (const [name, value] of Object.entries(settings)) await each.config(name, value)
      }
      const transports: NodeTransport[] = []
      const original = new Map<string, string>()
      const { hub, plainOf } = memberView(client, member, hubs, original)
      return {
        record,
        hub,
        reference: memberView(onRecord, member, hubs, original).hub,
        transport: async (host) => {
          const transport = openHttpTransport({ url, token: await token(host) })
          transports.push(transport)
          return plainly(transport, plainOf)
        },
        nodeReach: async (host) => ({ http: { url, token: await token(host) } }),
        waiting: () => waitingOn(url, operator),
        close: async () => {
          await Promise.all(transports.map((transport) => transport.close()))
        },
      }
    },
    close: async () => {
      await client.close()
      await onRecord.close()
      await served.close()
      for (const each of records) await each.close()
      await server.stop()
    },
  }
}

/** A transport whose answers have lost what only a set says. */
function plainly(transport: NodeTransport, plainOf: (value: unknown) => unknown): NodeTransport {
  return new Proxy(transport, {
    get: (_, name) => {
      const call = Reflect.get(transport, name) as unknown
      if (typeof call !== 'function') return call
      return async (...given: unknown[]) => plainOf(await Reflect.apply(call, transport, given))
    },
  })
}

/** A wide act stands on the hubs that took it, also where one has no record: `test/set/fences.test.ts`. */
const unlike = 'answer that there is no record, once it is gone, and recover with it'
beforeEach(({ task, skip }) =>
  skip(task.name === unlike && task.fullTestName.includes('eight'), 'a set of several differs'),
)

conformance('through a set of one hub', () => setEnvironment(1))
conformance('through a set of eight hubs', () => setEnvironment(8))
conformance('over HTTP, through a set of eight hubs', () => servedSetEnvironment(8))
