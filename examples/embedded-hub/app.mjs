// @ts-check
// A shop that was there before: its own users, its own sessions, its own hook that lets in whom it knows. What it takes
// to have the hub in it: one `register`, and one function that says which of its users may do what there.
import { randomUUID } from 'node:crypto'
import Fastify from 'fastify'
import { openHub } from 'holdfast'
import { holdfast } from 'holdfast/fastify'

/**
 * @typedef {object} User
 * @property {string} name
 * @property {string} password
 * @property {'admin' | 'staff' | 'customer'} kind
 * @property {string} [apiKey] for programs
 *
 * @typedef {import('fastify').FastifyRequest} Request
 */

/** @param {{redis: string, users: readonly User[]}} options */
export async function createShop({ redis, users }) {
  const app = Fastify()
  /** @type {Map<string, User>} */
  const sessions = new Map()

  /** By the cookie of a session, or by an API key. @param {Request} request @returns {User | undefined} */
  function userOf({ headers: { cookie = '', authorization = '' } }) {
    const [, session = ''] = /(?:^|; )session=([^;]+)/.exec(cookie) ?? []
    const [, key] = /^Bearer (.+)$/.exec(authorization) ?? []
    return sessions.get(session) ?? users.find(({ apiKey }) => apiKey !== undefined && apiKey === key)
  }

  app.addHook('onRequest', async (request, reply) => {
    if (request.url === '/login' || userOf(request) !== undefined) return
    return reply.code(401).send({ error: 'log in first' })
  })

  app.post('/login', async (request, reply) => {
    const { name, password } = /** @type {Record<string, unknown>} */ (request.body)
    const user = users.find((each) => each.name === name && each.password === password)
    if (user === undefined) return reply.code(401).send({ error: 'no such user, or another password' })
    const session = randomUUID()
    sessions.set(session, user)
    return reply.header('set-cookie', `session=${session}; HttpOnly; SameSite=Strict; Path=/`).send({ name })
  })

  // The hub within the shop: its page is at /ops/, its interface at /ops/v1.
  app.register(holdfast, {
    prefix: '/ops',
    redis,
    authenticate: async (request) => {
      const user = userOf(request)
      if (user === undefined) return undefined
      const { name, kind } = user
      if (kind === 'customer') throw Object.assign(new Error('not for customers'), { statusCode: 403 })
      return { name, role: kind === 'admin' ? 'operator' : 'viewer' }
    },
  })

  // And what the shop itself sends. Once it is accepted no order is lost, whatever is down or dies.
  const hub = await openHub({ redis })
  app.addHook('onClose', () => hub.close())
  app.post('/orders', async (request, reply) => {
    const { order, item } = /** @type {Record<string, string>} */ (request.body)
    const { id } = await hub.accept({
      key: `order ${order}`, // a customer who clicks twice orders once
      conversation: `order ${order}`,
      sender: userOf(request)?.name ?? 'nobody',
      to: [{ host: 'warehouse' }],
      payload: JSON.stringify({ order, item }),
      contentType: 'application/json',
    })
    return reply.code(201).send({ message: id })
  })
  return app
}
