// @ts-check
// JetStream as a work queue: each message has an id (dedup), and is acknowledged by the consumer. With `double`
// the server answers the acknowledgement, and settled is what it answered; else what was sent.
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { createSettling } from './settling.mjs'

/** @typedef {import('@nats-io/jetstream').JsMsg} Message */

const [stream, durable] = ['work', 'worker']
const atOnce = 100
/** The server's own setting, which the dedup of a stream lasts. */
const duplicateWindowNs = 120 * 1e9

/**
 * @param {import('./round.mjs').Place} place @param {{ double: boolean }} ack
 * @returns {Promise<import('./round.mjs').System>}
 */
export async function openNats({ port, payload, onExecute }, { double }) {
  const servers = `127.0.0.1:${port}`
  const [producer, consumer] = await Promise.all([connect({ servers }), connect({ servers })])
  const settling = createSettling()
  const manager = await jetstreamManager(producer)
  await manager.streams.add({
    name: stream,
    subjects: [stream],
    storage: 'file',
    retention: 'workqueue',
    duplicate_window: duplicateWindowNs,
  })
  await manager.consumers.add(stream, {
    durable_name: durable,
    ack_policy: 'explicit',
    max_ack_pending: atOnce,
  })
  const publishing = jetstream(producer)
  const work = await jetstream(consumer).consumers.get(stream, durable)

  /** @param {Message} message */
  async function settle(message) {
    onExecute(message.string())
    if (!double) message.ack()
    else if (!(await message.ackAck())) throw new Error('an acknowledgement was not answered')
    settling.add(1)
  }
  const messages = await work.consume({
    max_messages: atOnce,
    callback: (message) => void settle(message).catch(settling.fail),
  })

  return {
    accept: async (id) => {
      const { duplicate } = await publishing.publish(stream, payload(id), { msgID: id })
      if (duplicate) throw new Error(`${id} was taken for a duplicate`)
    },
    finished: settling.reached,
    close: async () => {
      await messages.close()
      await Promise.all([producer.close(), consumer.close()])
    },
  }
}
