// A consumer that takes one message, says its text, and never acknowledges it: it waits to be killed.
// Arguments: the port of the server, the stream, the durable consumer.
import { jetstream } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'

const [port, stream = '', durable = ''] = process.argv.slice(2)
const connection = await connect({ servers: `127.0.0.1:${port}` })
const consumer = await jetstream(connection).consumers.get(stream, durable)
const message = await consumer.next()
if (message === null) throw new Error('nothing to take')
process.stdout.write(`${message.string()}\n`)
