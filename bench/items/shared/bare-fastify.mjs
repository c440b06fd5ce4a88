// @ts-check
// A route that does one XADD and answers, and nothing else: no schema, no identity, no dedup, no rows.
import Fastify from 'fastify'
import { openRedis } from './redis.mjs'
import { answerQuestions, optionsOfScript } from './script.mjs'

/** @type {{ port: number }} */
const options = optionsOfScript()
const redis = openRedis(options.port)
const app = Fastify()
app.post('/v1/messages', async (request, reply) => {
  const { payload } = /** @type {{ payload: string }} */ (request.body)
  const id = await redis.xadd('work', '*', 'payload', payload)
  return reply.code(201).send({ id })
})
await app.listen({ host: '127.0.0.1', port: 0 })
const address = app.server.address()
answerQuestions({ port: typeof address === 'object' ? address?.port : undefined }, async () => ({}))
