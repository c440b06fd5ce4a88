import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { loginBody, type Me, meReply } from '../../contract/wire-me.js'
import { access } from '../access.js'
import { cookieName, isSecure, requireOwnOrigin } from '../browsers.js'
import type { Caller } from '../identities.js'
import type { Limits } from '../limits.js'
import { mayReadPayloads } from '../payload-access.js'
import { problem } from '../problem.js'
import { ownVersion } from '../version.js'
import { type App, type RouteParts, replies } from './parts.js'

export interface IdentityParts extends RouteParts {
  readonly limits: Limits
}

const loginWindowMs = 10_000

/**
 * Who speaks, and the cookie by which a browser says so. It lasts as long as the browser runs, no script reads it,
 * and no other site has it sent. For want of a path it goes to `v1/` below the hub's own address alone, wherever a
 * proxy or an application puts that.
 */
export function addIdentityRoutes(app: App, parts: IdentityParts): void {
  const { hub, identities, limits } = parts
  const version = ownVersion()

  app.get(
    '/v1/me',
    {
      config: { access: access.known },
      schema: {
        operationId: 'getMe',
        summary: 'Who speaks, by what the request says of itself',
        tags: ['identity'],
        response: replies({ 200: meReply }),
      },
    },
    async ({ caller }, reply) => reply.header('cache-control', 'no-store').send(await meOf(caller)),
  )
  app.post(
    '/v1/login',
    {
      config: { access: access.public, rateLimit: limitOf(limits.loginTries) },
      onRequest: ownOriginOnly,
      schema: {
        operationId: 'login',
        summary: 'For browsers: a cookie in place of the token, for as long as the browser runs',
        tags: ['identity'],
        body: loginBody,
        response: replies({ 200: meReply.describe('who that is; `Set-Cookie` has the cookie') }),
      },
    },
    async ({ raw, body: { token } }, reply) => {
      const me = await meOf(await identities.recognise(token))
      return reply
        .setCookie(cookieName, token, { ...cookie, secure: isSecure(raw) })
        .header('cache-control', 'no-store')
        .send(me)
    },
  )
  app.post(
    '/v1/logout',
    {
      config: { access: access.public },
      onRequest: ownOriginOnly,
      schema: {
        operationId: 'logout',
        summary: 'For browsers: takes the cookie back; the token in it works as before',
        tags: ['identity'],
        // There is nothing to add.
        body: z.strictObject({}).nullish(),
        response: replies({
          204: z.null().optional().describe('the cookie is taken back; there is no body'),
        }),
      },
    },
    async ({ raw }, reply) =>
      reply
        .setCookie(cookieName, '', { ...cookie, secure: isSecure(raw), maxAge: 0 })
        .code(204)
        .send(undefined),
  )

  async function meOf(caller: Caller): Promise<Me> {
    const { name, role, host, anonymous } = caller
    const payloads = await mayReadPayloads(caller, parts)
    return {
      name,
      role,
      ...(host === undefined ? {} : { host }),
      anonymous,
      hub: hub.name,
      version,
      payloads,
    }
  }
}

const cookie = { httpOnly: true, sameSite: 'strict' } as const

/** A page of another site could else log its visitor in as somebody else. */
async function ownOriginOnly({ raw }: { readonly raw: IncomingMessage }): Promise<void> {
  requireOwnOrigin(raw)
}

/** Whoever tries is not known yet: tries are counted by address. */
function limitOf(tries: number) {
  if (tries === 0) return false
  return {
    max: tries,
    timeWindow: loginWindowMs,
    keyGenerator: ({ ip }: { readonly ip: string }) => ip,
    allowList: () => false,
    errorResponseBuilder: (_: unknown, { max, ttl }: { readonly max: number; readonly ttl: number }) =>
      problem('RATE_LIMITED', `more than ${tries} tries to log in within ${loginWindowMs / 1000} s`, {
        current: max,
        retryAfterSeconds: Math.max(1, Math.ceil(ttl / 1000)),
      }),
  }
}
