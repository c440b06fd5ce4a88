import { pino } from 'pino'
import { type Client, openClient } from '../../src/client/open-client.js'
import type { HubCalls } from '../../src/contract/hub.js'
import { hubNames, hubOf } from '../../src/contract/hub-set.js'
import { type HubSetServer, type SetServerOptions, startSetServer } from '../../src/http/set-server.js'
import { openHubSet } from '../../src/hub/open-hub-set.js'
import { sweepsOnDemand } from '../../src/sweeps/on-demand.js'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

/** A set of three hubs on one server, on the record and over HTTP. */
export interface SetStage {
  readonly server: TestServer
  readonly names: readonly string[]
  readonly records: ReadonlyMap<string, OpenRecord>
  readonly set: HubCalls
  readonly served: HubSetServer
  readonly client: Client
  record(hub: string): OpenRecord
  /** A conversation that lives on the hub; another for each number. */
  conversationOf(hub: string, number?: number): string
  close(): Promise<void>
}

export async function openSetStage(text = 'hf-0..hf-2'): Promise<SetStage> {
  const server = await startTestServer()
  const names = hubNames(text)
  const records = new Map<string, OpenRecord>()
  for (const name of names) records.set(name, await openRecord(server, { name }))
  const set = await openHubSet({ redis: server.url, hubs: names })
  const served = await serveSet({ redis: server.url, hubs: names })
  const client = openClient({ url: served.url, hubs: names, actor: 'kim' })
  return {
    server,
    names,
    records,
    set,
    served,
    client,
    record: (hub) => {
      const found = records.get(hub)
      if (found === undefined) throw new Error(`no record ${hub}`)
      return found
    },
    conversationOf: (hub, number = 0) => {
      for (let tried = 0; ; tried += 1) {
        const conversation = `c${number}-${tried}`
        if (hubOf(conversation, names) === hub) return conversation
      }
    },
    close: async () => {
      await client.close()
      await served.close()
      await set.close()
      for (const record of records.values()) await record.close()
      await server.stop()
    },
  }
}

export async function serveSet(
  options: Pick<SetServerOptions, 'redis' | 'hubs'> & Partial<SetServerOptions>,
): Promise<HubSetServer> {
  return await startSetServer({
    listen: { host: '127.0.0.1', port: 0 },
    sweeps: sweepsOnDemand,
    log: pino({ level: 'silent' }),
    ...options,
    // The test and its server share an event loop, on a machine that is busy.
    limits: { lagMs: 0, ...options.limits },
  })
}

let keys = 0

/** A message that nothing else has: to host `a`, unless told otherwise. */
export function messageOf(conversation: string, more: Partial<Parameters<HubCalls['accept']>[0]> = {}) {
  keys += 1
  return { key: `k${keys}`, conversation, sender: 'tests', to: [{ host: 'a' }], payload: 'x', ...more }
}
