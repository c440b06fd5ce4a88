import { writeFileSync } from 'node:fs'
import type { NodeOptions } from '../../src/node/create-node.js'
import { notSent, terminal } from '../../src/node/index.js'
import { startSchedule } from '../../src/sweeps/schedule.js'
import { type Child, startNodeProcess } from '../support/child.js'
import { startHubServer, type TestHubServer } from '../support/http.js'
import { freshPath, startNode } from '../support/nodes.js'
import { makeRecord, type TestRecord } from '../support/record.js'
import type { TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// A hub at work, with real nodes, and with everything in it that an operator is called for.

export const scope = '/srv/agents'

/** Quick, so that what waits for a clock does not wait long. */
const quick = {
  heartbeat_ms: 200,
  stale_after_ms: 1500,
  max_takeovers: 1,
  max_redrive: 2,
  sweep_stale_ms: 1000,
  sweep_reports_ms: 1000,
  // What a test bends must stay bent until it was looked at.
  sweep_claims_ms: 0,
}

export interface World {
  readonly record: TestRecord
  readonly server: TestHubServer
  readonly port: number
  /** Ends the hub, and starts it again at the same port. */
  restart(): Promise<void>
  endHub(): Promise<void>
  startHub(): Promise<void>
  /** A node of a host in this process. */
  node(host: string, execute?: NodeOptions['execute'], mirror?: string): Promise<void>
  /** A node in a process of its own. */
  child(host: string, options?: Partial<Parameters<typeof startNodeProcess>[0]>): Child
  /** Accepts one message; answers the id of its only delivery. */
  send(to: { host: string } | { session: string }, conversation: string, payload?: object): Promise<string>
  close(): Promise<void>
}

export async function makeWorld(redis: TestServer, name: string): Promise<World> {
  const record = await makeRecord(redis, name, quick)
  const listen = { host: '127.0.0.1', port: 0 }
  const sweeps: Parameters<typeof startHubServer>[1] = {
    sweeps: (parts) => startSchedule({ redis: record.store.url, parts, log: silent }),
  }
  let server = await startHubServer(record, { listen, ...sweeps })
  const port = Number(new URL(server.url).port)
  let isUp = true
  const endHub = async () => {
    if (isUp) await server.close()
    isUp = false
  }
  const startHub = async () => {
    server = await startHubServer(record, { listen: { ...listen, port }, ...sweeps })
    isUp = true
  }
  let keys = 0
  return {
    record,
    get server() {
      return server
    },
    port,
    endHub,
    startHub,
    restart: async () => {
      await endHub()
      await startHub()
    },
    node: async (host, execute = ordinary, mirror = freshPath('db')) => {
      await startNode({ redis: redis.url, hub: name, host, node: 'n1', mirror, scopes: [scope], execute })
    },
    child: (host, options = {}) => {
      const marks = freshPath('marks')
      writeFileSync(marks, '')
      return startNodeProcess({
        redis: redis.url,
        hub: name,
        host,
        mirror: freshPath('db'),
        marks,
        ...options,
      })
    },
    send: async (to, conversation, payload = { text: 'hello', n: 1 }) => {
      keys += 1
      const { deliveries } = await record.hub.accept({
        key: `${name}-${keys}`,
        conversation,
        sender: 'billing',
        to: [to],
        payload: Buffer.from(JSON.stringify(payload)),
        contentType: 'application/json',
      })
      return deliveries[0]?.id ?? ''
    },
    close: async () => {
      await endHub()
      await record.close()
    },
  }
}

/** What the payload asks for: to be refused for good, to be tried again, to end in doubt; else a result. */
const ordinary: NonNullable<NodeOptions['execute']> = (attempt) => {
  const { wish } = JSON.parse(attempt.payload.toString()) as { wish?: string }
  if (wish === 'terminal') return terminal('card_declined', { code: 51 })
  if (wish === 'not_sent') return notSent('target_busy')
  if (wish === 'throw') throw new Error('connection reset after the request was written')
  return { ok: true, balance: '12.50' }
}

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

/** A delivery that takes its node's process down, once too often; the node, with its mirror, is for the test to start again. */
export async function makePoison(world: World, host: string, mirror: string): Promise<string> {
  const id = await world.send({ host }, 'imports', { file: 'week-48.csv' })
  const child = world.child(host, { node: 'n1', mirror, at: { point: 'copy.stored', signal: 'SIGKILL' } })
  await child.line('hit')
  await child.ended
  return id
}

/** Waits until a delivery is in a state. */
export async function stateOf(world: World, id: string, state: string): Promise<void> {
  await until(async () => (await world.record.hub.delivery(id)).state === state, {
    timeoutMs: 20_000,
    what: `${id} in state ${state}`,
  })
}
