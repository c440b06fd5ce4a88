import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { PeerCertificate, TLSSocket } from 'node:tls'
import { HoldfastError } from '../contract/errors.js'
import type { LogEntry } from '../contract/log-filter.js'
import type { Role } from '../contract/principals.js'
import type { LogTail } from '../hub/log-tail.js'
import { digestOf, type PrincipalRow, readPrincipals } from '../hub/principals.js'
import type { Keys } from '../record/keys.js'
import type { Reader } from '../record/reader.js'
import { cookieOf, requireOwnOrigin, requireOwnPage } from './browsers.js'
import { sharedEnd } from './ends.js'
import { isLoopback } from './listen.js'

/** Who speaks. */
export interface Caller {
  readonly name: string
  readonly role: Role
  readonly host?: string | undefined
  readonly scopes: readonly string[]
  readonly anySender: boolean
  /** Nobody had to say who they are: on loopback, while no principal exists. */
  readonly anonymous: boolean
  /** Aborted when the principal is revoked: what is under way for it ends. */
  readonly signal: AbortSignal
}

/** Every principal, kept current by the log: revocations work within the time that an entry takes to arrive. */
export interface Identities {
  /** @throws UNAUTHENTICATED, STORE_UNAVAILABLE, STORE_UNKNOWN */
  authenticate(request: IncomingMessage): Promise<Caller>
  /** Whose token this is. @throws UNAUTHENTICATED, STORE_UNAVAILABLE, STORE_UNKNOWN */
  recognise(token: string): Promise<Caller>
  /** True when somebody was ever added: from then on nobody is anonymous. */
  readonly anyExists: boolean
  /** Reads all principals again. */
  refresh(): Promise<void>
  close(): void
}

interface Known {
  readonly row: PrincipalRow
  readonly revocation: AbortController
}

const refreshEveryMs = 5000
/** Older knowledge than this is not trusted: the record is asked first. */
const staleAfterMs = 3000
/** Unknown credentials lead to a new reading, this often at most. */
const unknownEveryMs = 1000
/** The name of whoever speaks while no principal exists, where the request names none. */
const anonymousName = 'loopback'
/** Headers that proxies send. */
const foreign = [
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
  'via',
] as const

/** @throws STORE_UNAVAILABLE, STORE_UNKNOWN */
export async function openIdentities(parts: {
  readonly reader: Reader
  readonly keys: Keys
  readonly tail: LogTail
  /** Whether this server listens on loopback alone. */
  readonly loopback: boolean
}): Promise<Identities> {
  const { reader, keys, tail, loopback } = parts
  let byName = new Map<string, Known>()
  let byToken = new Map<string, Known>()
  let byCertificate = new Map<string, Known>()
  let anyExists = false
  let readAt = Number.NEGATIVE_INFINITY
  let reading: Promise<void> | undefined
  let again = false
  /** Names that the log told were revoked: they are not used twice, and a reading may be older than that. */
  const revoked = new Set<string>()
  const nobody = sharedEnd()

  async function read(): Promise<void> {
    do {
      again = false
      const startedAt = performance.now()
      take(await readPrincipals(reader, keys))
      readAt = startedAt
    } while (again)
  }

  /** Joins a reading under way, which then reads once more: it may have passed what changed. */
  function refresh(): Promise<void> {
    if (reading !== undefined) again = true
    reading ??= read().finally(() => {
      reading = undefined
    })
    return reading
  }

  function take(rows: readonly PrincipalRow[]): void {
    const before = byName
    byName = new Map()
    byToken = new Map()
    byCertificate = new Map()
    anyExists = anyExists || rows.length > 0
    for (const row of rows) {
      const { view, tokenSha256 } = row
      if (view.revokedAt !== undefined || revoked.has(view.name)) continue
      const old = before.get(view.name)
      const same = old !== undefined && old.row.tokenSha256 === tokenSha256 && old.row.view.role === view.role
      const known: Known = { row, revocation: same ? old.revocation : sharedEnd() }
      byName.set(view.name, known)
      if (tokenSha256 !== undefined) byToken.set(tokenSha256, known)
      if (view.certificateSha256 !== undefined) byCertificate.set(view.certificateSha256, known)
    }
    for (const [name, known] of before) {
      if (byName.get(name)?.revocation !== known.revocation) known.revocation.abort()
    }
    if (anyExists) nobody.abort()
  }

  /**
   * Ends at once what may not go on, before whoever waits for a later entry of the log is woken by it: one that
   * was revoked, and those who spoke without a name when names are asked for.
   */
  function heed({ verb, details: { principal = '' } }: LogEntry): boolean {
    if (verb === 'add_principal') {
      anyExists = true
      nobody.abort()
    } else if (verb === 'revoke_principal') {
      revoked.add(principal)
      take([...byName.values()].map(({ row }) => row))
    } else return false
    return true
  }

  async function current(): Promise<void> {
    const ageMs = Math.min(tail.ageMs(), performance.now() - readAt)
    if (ageMs > staleAfterMs) await refresh()
  }

  function find(token: string | undefined, certificate: string | undefined): Known | undefined {
    if (token !== undefined) {
      const digest = digestOf(token)
      const known = byToken.get(digest)
      const stored = known?.row.tokenSha256 ?? '0'.repeat(64)
      const equal = timingSafeEqual(Buffer.from(digest, 'hex'), Buffer.from(stored, 'hex'))
      return equal ? known : undefined
    }
    return certificate === undefined ? undefined : byCertificate.get(certificate)
  }

  /**
   * By the token that a program sends, or by what a browser sends of itself: the cookie, a certificate, or nothing
   * at all while nobody has to say more. For the latter it must be the hub's own page that has it sent.
   */
  async function authenticate(request: IncomingMessage): Promise<Caller> {
    await current()
    const token = bearerToken(request)
    const certificate = certificateOf(request)
    if (token !== undefined) return await callerBy(token, certificate)
    requireOwnOrigin(request)
    const isOpen = !anyExists && loopback
    const cookie = cookieOf(request)
    // Browsers keep one for all ports of a machine: it may be of another hub, before this one has principals.
    if (cookie !== undefined && !isOpen) {
      const caller = await callerBy(cookie, certificate)
      requireOwnPage(request)
      return caller
    }
    if (certificate !== undefined) return await callerBy(undefined, certificate)
    if (!isOpen) throw new HoldfastError('UNAUTHENTICATED')
    return anonymous(request)
  }

  async function recognise(token: string): Promise<Caller> {
    await current()
    return await callerBy(token, undefined)
  }

  /** @throws UNAUTHENTICATED */
  async function callerBy(token: string | undefined, certificate: string | undefined): Promise<Caller> {
    let known = find(token, certificate)
    if (known === undefined) {
      // A reading under way may bring it.
      await (performance.now() - readAt > unknownEveryMs ? refresh() : reading)
      known = find(token, certificate)
    }
    if (known === undefined) throw new HoldfastError('UNAUTHENTICATED')
    const { name, role, host, scopes, anySender } = known.row.view
    return { name, role, host, scopes, anySender, anonymous: false, signal: known.revocation.signal }
  }

  /** Nothing but a process of this machine that means this server, or the hub's own page: no proxy. */
  function anonymous(request: IncomingMessage): Caller {
    const { host = '' } = request.headers
    if (!isLoopback(hostOf(host)) || foreign.some((name) => request.headers[name] !== undefined)) {
      throw new HoldfastError(
        'UNAUTHENTICATED',
        'without a principal only this machine is served: the request names another host, or a proxy',
      )
    }
    const actor = request.headers['holdfast-actor']
    const name = typeof actor === 'string' && actor !== '' ? decoded(actor) : anonymousName
    return { name, role: 'operator', scopes: [], anySender: true, anonymous: true, signal: nobody.signal }
  }

  const unwatch = tail.watch((entry) => {
    if (entry === undefined || heed(entry)) void refresh().catch(() => undefined)
  })
  const timer = setInterval(() => void refresh().catch(() => undefined), refreshEveryMs).unref()
  try {
    await refresh()
  } catch (error) {
    close()
    throw error
  }

  function close(): void {
    unwatch()
    clearInterval(timer)
  }

  return {
    authenticate,
    recognise,
    get anyExists() {
      return anyExists
    },
    refresh,
    close,
  }
}

function bearerToken(request: IncomingMessage): string | undefined {
  const { authorization } = request.headers
  if (authorization === undefined) return undefined
  const found = /^Bearer +([\x21-\x7e]{1,512}) *$/i.exec(authorization)
  if (found?.[1] === undefined) throw new HoldfastError('UNAUTHENTICATED', 'Authorization is no Bearer token')
  return found[1]
}

/** SHA-256 of the client's certificate, where it shows one that is valid now. Holding its key was proven. */
function certificateOf(request: IncomingMessage): string | undefined {
  const socket = request.socket as Partial<TLSSocket>
  const certificate: Partial<PeerCertificate> | undefined = socket.getPeerCertificate?.()
  if (certificate?.fingerprint256 === undefined) return undefined
  const [from, to] = [Date.parse(certificate.valid_from ?? ''), Date.parse(certificate.valid_to ?? '')]
  const now = Date.now()
  if (!(from <= now && now <= to)) {
    throw new HoldfastError('UNAUTHENTICATED', 'the client certificate is not valid now')
  }
  return certificate.fingerprint256.replaceAll(':', '').toLowerCase()
}

/** The host's name in a Host header, without its port. */
function hostOf(header: string): string {
  return header.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
