// @ts-check
// Ports that stay free while the server that has them is down.
import { randomInt } from 'node:crypto'
import { createServer as createListener } from 'node:net'

const [portsFrom, portsTo] = [16_384, 32_768]

/**
 * Different ones, below those that systems give to connections by themselves: a server that is down for a while must
 * find its port free again, whoever connects to whom meanwhile.
 * @param {number} count @returns {Promise<number[]>}
 */
export async function freePorts(count) {
  /** @type {Set<number>} */
  const ports = new Set()
  while (ports.size < count) {
    const port = randomInt(portsFrom, portsTo)
    if (await isFree(port)) ports.add(port)
  }
  return [...ports]
}

/** @param {number} port @returns {Promise<boolean>} */
function isFree(port) {
  return new Promise((resolve) => {
    const server = createListener()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
