import type { IncomingMessage } from 'node:http'
import { HoldfastError } from '../contract/errors.js'
import { idForm, isHostId, isId } from '../contract/ids.js'
import { isRole, type Role } from '../contract/principals.js'
import { requireOwnOrigin, requireOwnPage } from './browsers.js'
import { sharedEnd } from './ends.js'
import type { Caller, Identities } from './identities.js'

/** Who speaks, as the application says that serves the hub. */
export interface HoldfastCaller {
  /** In the record for good, as the name of a principal is: 1 to 255 bytes of printable ASCII. */
  readonly name: string
  /** What it may do, as of a principal. */
  readonly role: Role
  /** Of a node: the one host that it serves. */
  readonly host?: string | undefined
  /** Of a node: directories of the sessions that it may serve. */
  readonly scopes?: readonly string[] | undefined
  /** Of a producer: it may name other senders than itself. */
  readonly anySender?: boolean | undefined
}

/** Undefined: nobody that is known. */
export type AskCaller = (request: IncomingMessage) => Promise<HoldfastCaller | undefined>

/**
 * Identities that an application keeps: no token and no cookie of a principal is asked for. What says who speaks is
 * taken for something that browsers send by themselves, unless it is a token in the request's Authorization.
 */
export function embeddedIdentities(ask: AskCaller): Identities {
  const never = sharedEnd().signal

  async function authenticate(request: IncomingMessage): Promise<Caller> {
    if (!/^Bearer /i.test(request.headers.authorization ?? '')) {
      requireOwnOrigin(request)
      requireOwnPage(request)
    }
    const given = await ask(request).catch((error: unknown) => {
      throw refusalOf(error)
    })
    if (given === undefined) throw new HoldfastError('UNAUTHENTICATED', elsewhere)
    check(given)
    const { name, role, host, scopes = [], anySender = role === 'operator' } = given
    return { name, role, host, scopes, anySender, anonymous: false, signal: never }
  }

  return {
    authenticate,
    recognise: async () => {
      throw new HoldfastError('UNAUTHENTICATED', elsewhere)
    },
    anyExists: true,
    refresh: async () => undefined,
    close: () => undefined,
  }
}

const elsewhere = 'the application that serves this hub says who speaks, and knows nobody by this request'

/** What plugins for logins throw says by its status what it means. */
function refusalOf(error: unknown): unknown {
  const { statusCode } = (error ?? {}) as { readonly statusCode?: unknown }
  const options = { cause: error }
  if (statusCode === 401) return new HoldfastError('UNAUTHENTICATED', elsewhere, options)
  if (statusCode === 403) return new HoldfastError('FORBIDDEN', 'the application says no', options)
  return error
}

/** @throws TypeError where the application answers nobody that could be */
function check({ name, role, host }: HoldfastCaller): void {
  if (!isId(name)) throw new TypeError(`authenticate: name ${idForm}`)
  if (!isRole(role)) throw new TypeError('authenticate: role is none')
  if ((role === 'node') !== (host !== undefined))
    throw new TypeError('authenticate: a node, and it alone, has a host')
  if (host !== undefined && !isHostId(host)) throw new TypeError('authenticate: host is no name of a host')
}
