import 'fastify'
import type { Role } from '../contract/principals.js'
import type { Caller } from './identities.js'
import { problem } from './problem.js'

/** Who may use a route. `public` needs no identity; operators may use every other. */
export type Access = 'public' | readonly Role[]

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access
    /** A call that may wait long by intent: not counted as work under way. */
    waits?: boolean
  }
  interface FastifyRequest {
    /** Present on every route that is not public. */
    caller: Caller
  }
}

/** What each kind of route is open to, beside operators. */
export const access = {
  public: 'public',
  operators: [],
  readers: ['viewer'],
  producers: ['producer'],
  /** A node, for its own host. */
  nodes: ['node'],
  messages: ['producer', 'viewer'],
  /** Whoever executes: services that send, and nodes. */
  effects: ['producer', 'node'],
  /** Whoever is known, in every role. */
  known: ['producer', 'node', 'viewer'],
  /** Viewers, and nodes for their own host. */
  hosts: ['viewer', 'node'],
} as const satisfies Record<string, Access>

/** @throws FORBIDDEN */
export function requireRole(caller: Caller, allowed: readonly Role[]): void {
  if (caller.role === 'operator' || allowed.includes(caller.role)) return
  const whom = [...allowed, 'operator'].join(', ')
  throw problem('FORBIDDEN', `principal "${caller.name}" is a ${caller.role}; this takes: ${whom}`, {
    current: caller.role,
  })
}

/** A node touches its own host alone, on every route. @throws FORBIDDEN */
export function requireHost(caller: Caller, host: string | undefined): void {
  if (caller.role !== 'node' || host === caller.host) return
  const asked = host === undefined ? 'all hosts' : `host ${host}`
  throw problem('FORBIDDEN', `principal "${caller.name}" is a node of host ${caller.host}, not of ${asked}`, {
    current: caller.host,
  })
}

/** A node serves only sessions of directories that its principal is authorised for. @throws SCOPE_NOT_AUTHORISED */
export function requireScopes(caller: Caller, scopes: readonly string[], pointer: string): void {
  if (caller.role !== 'node') return
  const current = scopes.find((scope) => !caller.scopes.includes(scope))
  if (current === undefined) return
  throw problem('SCOPE_NOT_AUTHORISED', `principal "${caller.name}" is not authorised for ${current}`, {
    pointer,
    current,
  })
}

/** The sender of a message: the principal, unless it may name another. @throws FORBIDDEN, INVALID_ARGUMENT */
export function senderOf(caller: Caller, given: string | undefined): string {
  if (given === undefined) {
    if (!caller.anonymous) return caller.name
    throw problem('INVALID_ARGUMENT', '#/sender is required while no principal exists', {
      pointer: '#/sender',
    })
  }
  if (given === caller.name || caller.anySender || caller.role === 'operator') return given
  throw problem('FORBIDDEN', `principal "${caller.name}" may not send as "${given}"`, {
    pointer: '#/sender',
    current: given,
  })
}

/** Whether a producer may read a message of this sender. @throws FORBIDDEN */
export function requireSender(caller: Caller, sender: string): void {
  if (caller.role !== 'producer' || caller.anySender || sender === caller.name) return
  throw problem('FORBIDDEN', `the message is not from principal "${caller.name}"`)
}

/** What was begun for somebody who is no longer let in is not answered. @throws UNAUTHENTICATED */
export function requireStanding({ signal, anonymous }: Caller): void {
  if (!signal.aborted) return
  throw problem('UNAUTHENTICATED', anonymous ? 'a principal exists now' : 'the principal was revoked')
}
