import { tmpdir } from 'node:os'
import { type JetStreamManager, jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect, type NatsConnection, nanos } from '@nats-io/transport-node'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startNats } from '../../bench/nats-server.mjs'
import type { Server } from '../../bench/server.mjs'
import { until } from '../support/until.js'
import { killedInTheMiddle } from './killed.js'

// "Beside others" of README.md says what NATS JetStream does: this runs it.

let server: Server
let connection: NatsConnection
let manager: JetStreamManager

beforeAll(async () => {
  server = await startNats(tmpdir())
  connection = await connect({ servers: `127.0.0.1:${server.port}` })
  manager = await jetstreamManager(connection)
})
afterAll(async () => {
  await connection?.close()
  await server?.stop()
})

/** A publication on the stream under an id; what the server acknowledged it with. */
function publish(stream: string, id: string, payload: string) {
  return jetstream(connection).publish(stream, payload, { msgID: id })
}

async function payloadsIn(stream: string): Promise<(string | undefined)[]> {
  const { state } = await manager.streams.info(stream)
  const sequences = Array.from({ length: state.messages }, (_, n) => state.first_seq + n)
  return Promise.all(
    sequences.map(async (seq) => (await manager.streams.getMessage(stream, { seq }))?.string()),
  )
}

it('what a killed consumer was at is delivered again, once AckWait is over', async () => {
  const ackWaitMs = 2000
  await manager.streams.add({ name: 'dying', subjects: ['dying'] })
  const { config } = await manager.consumers.add('dying', {
    durable_name: 'worker',
    ack_policy: 'explicit',
    ack_wait: nanos(ackWaitMs),
  })
  expect(config.max_deliver).toBe(-1) // as often as it takes
  await publish('dying', 'order-18', 'charge')

  const startedAt = performance.now()
  expect(await killedInTheMiddle('nats-consumer.mjs', `${server.port}`, 'dying', 'worker')).toBe('charge')
  const { num_ack_pending, num_pending } = await manager.consumers.info('dying', 'worker')
  expect({ num_ack_pending, num_pending }).toEqual({ num_ack_pending: 1, num_pending: 0 })

  const heir = await jetstream(connection).consumers.get('dying', 'worker')
  const again = await heir.next({ expires: 30_000 })
  expect(performance.now() - startedAt).toBeGreaterThan(ackWaitMs)
  expect(again?.string()).toBe('charge')
  expect(again?.info.deliveryCount).toBe(2)
})

it('another payload under a Nats-Msg-Id is dropped as a duplicate', async () => {
  await manager.streams.add({ name: 'keys', subjects: ['keys'] })
  const first = await publish('keys', 'order-17', '{"total":10}')
  expect(first.duplicate).toBe(false)
  const again = await publish('keys', 'order-17', '{"total":99}')
  expect(again).toMatchObject({ duplicate: true, seq: first.seq })
  expect(await payloadsIn('keys')).toEqual(['{"total":10}'])
})

it('an id is remembered for the duplicate window, which is 2 minutes unless set', async () => {
  const unset = await manager.streams.add({ name: 'unset', subjects: ['unset'] })
  expect(unset.config.duplicate_window).toBe(nanos(2 * 60_000))

  const windowMs = 1000
  await manager.streams.add({ name: 'window', subjects: ['window'], duplicate_window: nanos(windowMs) })
  const startedAt = performance.now()
  await publish('window', 'order-19', '{"total":10}')
  await until(async () => !(await publish('window', 'order-19', '{"total":99}')).duplicate, {
    what: 'the same id taken for a new one',
  })
  expect(performance.now() - startedAt).toBeGreaterThan(windowMs)
  expect(await payloadsIn('window')).toEqual(['{"total":10}', '{"total":99}'])
})
