import { type Client, openClient } from '../../src/client/open-client.js'
import type { HubCalls } from '../../src/contract/hub.js'
import { silentLog } from '../../src/node/log.js'
import type { NodeTransport } from '../../src/node/transport.js'
import { openHttpTransport } from '../../src/node/transports/http.js'
import { openRedisTransport } from '../../src/node/transports/redis.js'
import { startHubServer, type TestHubServer } from '../support/http.js'
import { keysUnder, makeRecord, type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import type { Environment, Settings, Surface } from './environment.js'

let records = 0

/** Nodes and hubs on Redis, inside the trust boundary. */
export async function redisEnvironment(start: () => Promise<TestServer> = startTestServer) {
  const server = await start()
  return {
    makeRecord: async (settings) => {
      records += 1
      const record = await makeRecord(server, `conformance-${records}`, settings)
      const reach = { redis: server.url, hub: record.name }
      const transports: NodeTransport[] = []
      return {
        record,
        hub: record.hub,
        reference: record.hub,
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
          await record.close()
        },
      }
    },
    close: () => server.stop(),
  } satisfies Environment
}

/** A hub over HTTP with its record, for one test after the other. */
interface HttpHub {
  readonly url: string
  readonly record: OpenRecord
  readonly hub: Client
  readonly operator: string
  readonly tokens: Map<string, Promise<string>>
  /** Undefined while it is closed. */
  server: TestHubServer | undefined
}

/** A surface of a hub over HTTP, with what only HTTP has. */
export interface HttpSurface extends Surface {
  readonly url: string
  /** The token of the host's node principal, `node-<host>`, which is added when first asked for. */
  token(host: string): Promise<string>
  /** Closes the server; the answer opens one on the same port again. */
  closeServer(): Promise<() => Promise<void>>
}

export interface HttpEnvironment extends Environment {
  makeRecord(settings: Settings): Promise<HttpSurface>
}

/**
 * Nodes and clients over HTTP, each under its own principal. A server takes a while to start: one serves every
 * test, each on the same record, emptied but for who may speak.
 */
export async function httpEnvironment(
  start: () => Promise<TestServer> = startTestServer,
): Promise<HttpEnvironment> {
  const redis = await start()
  let common: HttpHub | undefined
  return {
    makeRecord: async (settings) => {
      common ??= await openHttpHub(redis)
      common.server ??= await reopened(common) // where a test failed in between
      await emptyRecord(common.record)
      for (const [name, value] of Object.entries(settings)) await common.record.config(name, value)
      return surfaceOf(common)
    },
    close: async () => {
      await common?.hub.close()
      await common?.server?.close()
      await common?.record.close()
      await redis.stop()
    },
  }
}

async function openHttpHub(redis: TestServer): Promise<HttpHub> {
  records += 1
  const record = await openRecord(redis, { name: `conformance-${records}` })
  const server = await startHubServer(record)
  const { url } = server
  const anonymous = openClient({ url })
  const { token = '' } = await anonymous.addPrincipal({ name: 'kim', role: 'operator' }, 'tests')
  await anonymous.close()
  return { url, record, server, hub: openClient({ url, token }), operator: token, tokens: new Map() }
}

/** As a new record is: principals stay, and one entry of the log, after which the server goes on reading. */
export async function emptyRecord({ store, keys, send }: OpenRecord): Promise<void> {
  const kept = /^(identity|log|principals|principal:.*)$/
  const names = await keysUnder(store, keys.tag)
  const going = names.filter((name) => !kept.test(name.slice(keys.tag.length + 1)))
  if (going.length > 0) await send('DEL', ...going)
  await send('XTRIM', keys.log, 'MAXLEN', 1)
}

function surfaceOf(common: HttpHub): HttpSurface {
  const { url, record, hub, operator, tokens } = common
  const transports: NodeTransport[] = []

  async function addNode(host: string): Promise<string> {
    const principal = { name: `node-${host}`, role: 'node', host, scopes: ['/srv/work'] } as const
    return (await hub.addPrincipal(principal, 'kim')).token ?? ''
  }
  function token(host: string): Promise<string> {
    const known = tokens.get(host) ?? addNode(host)
    tokens.set(host, known)
    return known
  }
  return {
    url,
    record,
    hub,
    reference: throughServer(common),
    token,
    transport: async (host) => {
      const transport = openHttpTransport({ url, token: await token(host) })
      transports.push(transport)
      return transport
    },
    nodeReach: async (host) => ({ http: { url, token: await token(host) } }),
    waiting: () => waitingOn(url, operator),
    closeServer: async () => {
      await common.server?.close()
      common.server = undefined
      return async () => {
        common.server = await reopened(common)
      }
    },
    close: async () => {
      await Promise.all(transports.map((transport) => transport.close()))
    },
  }
}

function reopened({ record, url }: HttpHub): Promise<TestHubServer> {
  return startHubServer(record, { listen: { host: '127.0.0.1', port: Number(new URL(url).port) } })
}

/** The hub of whatever server runs when it is asked. */
function throughServer(common: HttpHub): HubCalls {
  return new Proxy({} as HubCalls, { get: (_, name) => Reflect.get(common.server?.hub ?? {}, name) })
}

/** Claims that wait, by the metrics of a hub. */
export async function waitingOn(url: string, token: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}` }
  const page = await (await fetch(`${url}/metrics`, { headers })).text()
  return Number(/^holdfast_http_waiting(?:\{[^}]*\})? (\d+)$/m.exec(page)?.[1])
}
