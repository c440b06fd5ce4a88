// @ts-check
// Nodes over HTTP of which nothing is to be seen but their long polls: each has a host of its own, and claims
// again as soon as it was answered.
import { clockMs } from './clock.mjs'
import { openConnection } from './http.mjs'

/** @typedef {{ at: number, ids: string[] }} Woken */
/** @typedef {Awaited<ReturnType<typeof openPoll>>} Poll */

const waitMs = 60_000
const node = 'poll'

/** @param {number} port @param {string} host */
export async function openPoll(port, host) {
  const [claims, beats] = [await openConnection(port), await openConnection(port)]
  /** @type {(woken: Woken) => void} */
  let onWoken = () => undefined
  /** @type {Error | undefined} */
  let broken
  let closed = false
  await answered(beats, `/v1/hosts/${host}/nodes/${node}`, { incarnation: 1, instance: `poll-${host}` })

  async function claim() {
    for (let request = 1; !closed; request += 1) {
      const body = { node, incarnation: 1, request, count: 10, waitMs }
      const { deliveries } = await answered(claims, `/v1/hosts/${host}/claim`, body)
      const ids = deliveries.map((/** @type {{ id: string }} */ { id }) => id)
      if (ids.length > 0) onWoken({ at: clockMs(), ids })
    }
  }
  claim().catch((error) => {
    if (!closed) broken = error
  })

  return {
    host,
    /** Resolves with the next answer that hands something out. @returns {Promise<Woken>} */
    woken: () =>
      new Promise((resolve, reject) => {
        if (broken !== undefined) reject(broken)
        onWoken = resolve
      }),
    beat: () => answered(beats, `/v1/hosts/${host}/nodes/${node}`, { incarnation: 1 }, 'PUT'),
    /** Throws what ended it, if anything did. */
    check: () => {
      if (broken !== undefined) throw broken
    },
    close: () => {
      closed = true
      claims.close()
      beats.close()
    },
  }
}

/** @param {import('./http.mjs').Connection} connection @param {string} path @param {object} body @param {string} [method] */
async function answered(connection, path, body, method = 'POST') {
  const { status, body: text } = await connection.send(method, path, body)
  if (status !== 200) throw new Error(`${method} ${path}: ${status} ${text}`)
  return JSON.parse(text)
}
