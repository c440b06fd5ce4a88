import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createNode, type HoldfastNode, type OnRedis, type OverHttp } from '../../src/node/create-node.js'
import { freePort } from '../../src/record/embedded.js'
import { freshPath, stopNodes } from '../support/nodes.js'
import { until } from '../support/until.js'

// A server that takes connections and never says a word: the first answer would be waited for until its deadline.
let silent: Server
const sockets = new Set<Socket>()

beforeEach(async () => {
  silent = createServer((socket) => {
    sockets.add(socket)
    socket.resume()
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
  }).listen(0, '127.0.0.1')
  await once(silent, 'listening')
})

afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  silent.close()
  await stopNodes()
})

function nodeAt(reach: OnRedis | OverHttp): HoldfastNode {
  return createNode({ host: 'h1', mirror: freshPath('db'), execute: () => 'done', ...reach })
}

/** Shorter than any deadline of a first connection. */
const timeout = 5000

it.each([
  ['the hub', (port: number) => ({ http: { url: `http://127.0.0.1:${port}` } })],
  ['Redis', (port: number) => ({ redis: `redis://127.0.0.1:${port}` })],
])(
  'a node that is stopped in the turn it is started in ends, though %s is away',
  { timeout },
  async (_, reach) => {
    const node = nodeAt(reach(await freePort()))
    const started = node.start()
    const [start] = await Promise.allSettled([started, node.stop()])
    expect(start).toMatchObject({ status: 'rejected' })
    expect(await node.closed).toEqual({ kind: 'left' })
  },
)

it('a node that waits for the first word of Redis is stopped at once, and drops its connections', {
  timeout,
}, async () => {
  const { port } = silent.address() as AddressInfo
  const node = nodeAt({ redis: `redis://127.0.0.1:${port}` })
  const started = node.start()
  await until(() => sockets.size === 3)
  const [start] = await Promise.allSettled([started, node.stop()])
  expect(start).toMatchObject({ status: 'rejected' })
  await until(() => sockets.size === 0)
})
