import { HoldfastError } from '../contract/errors.js'
import type { RedisAddress, RedisTls } from '../contract/redis-address.js'

// What an address says, by itself: whoever only checks or shows one does not load the client that connects.

export interface Endpoint {
  readonly host: string
  readonly port: number
}

const schemes = /^(rediss?)(-sentinel|-cluster)?:\/\//
const defaultPorts = { server: 6379, cluster: 6379, sentinel: 26379 } as const

/** @throws INVALID_ARGUMENT for what is no address; the text itself is kept out of the error: it may hold a password */
export function parseAddress(address: RedisAddress): ParsedAddress {
  const { url, tls } = typeof address === 'string' ? { url: address, tls: undefined } : address
  const [start, scheme = '', way] = schemes.exec(url) ?? []
  if (start === undefined) return refuseScheme(url)
  const kind = way === undefined ? 'server' : way === '-sentinel' ? 'sentinel' : 'cluster'
  const parts = parse(url.slice(start.length), kind)
  const secure = scheme === 'rediss'
  if (!secure && tls !== undefined) refuse('TLS material belongs to a rediss:// URL')
  return { kind, scheme, tls, secure, shown: shownOf(start, parts), parts }
}

/** The URL without its passwords, fit for a log. @throws INVALID_ARGUMENT when it is no URL of a Redis server */
export function redactUrl(address: RedisAddress): string {
  return parseAddress(address).shown
}

/** An address, read. */
export interface ParsedAddress {
  readonly kind: 'server' | 'sentinel' | 'cluster'
  /** Without the way: `redis` or `rediss`. */
  readonly scheme: string
  readonly secure: boolean
  readonly tls: RedisTls | undefined
  /** The URL without its passwords, fit for a log. */
  readonly shown: string
  readonly parts: AddressParts
}

export interface AddressParts {
  readonly endpoints: readonly Endpoint[]
  readonly username: string | undefined
  readonly password: string | undefined
  readonly db: number
  /** What follows the slash. */
  readonly name: string
  readonly query: URLSearchParams
}

function parse(rest: string, kind: ParsedAddress['kind']): AddressParts {
  const [, credentials, hosts = '', path = '', query = ''] =
    /^(?:(.*)@)?([^/?#@]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/.exec(rest) ?? refuse('the Redis URL is not a URL')
  const [username, password] = credentialsOf(credentials)
  const endpoints = hosts.split(',').map((text) => endpointOf(text, defaultPorts[kind]))
  if (kind === 'server' && endpoints.length > 1) {
    refuse('a redis:// URL names one server; take redis-cluster:// or redis-sentinel:// for several')
  }
  const parameters = new URLSearchParams(query)
  const db = kind === 'server' ? path : (parameters.get('db') ?? '')
  if (!/^\d{0,5}$/.test(db)) refuse('the database of the Redis URL is no number')
  if (kind === 'cluster' && (path !== '' || Number(db) !== 0)) {
    refuse('a Redis Cluster has no database but 0: the URL ends with its hosts')
  }
  const known = kind === 'sentinel' ? ['db', 'sentinelUser', 'sentinelPassword'] : []
  if ([...parameters.keys()].some((name) => !known.includes(name))) {
    refuse(
      `a Redis URL of this kind takes ${known.length === 0 ? 'nothing after a question mark' : known.join(', ')}`,
    )
  }
  if (kind === 'sentinel' && path === '') {
    refuse('a redis-sentinel:// URL ends with the name of the primary, such as /mymaster')
  }
  return { endpoints, username, password, db: Number(db), name: decoded(path), query: parameters }
}

function credentialsOf(text: string | undefined): [string | undefined, string | undefined] {
  if (text === undefined) return [undefined, undefined]
  const colon = text.indexOf(':')
  const [user, password] = colon < 0 ? [text, ''] : [text.slice(0, colon), text.slice(colon + 1)]
  return [decoded(user) || undefined, decoded(password) || undefined]
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return refuse('the Redis URL is not a URL')
  }
}

function endpointOf(text: string, defaultPort: number): Endpoint {
  const [, bracketed, plain, port] =
    /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]\s]+))(?::(\d{1,5}))?$/.exec(text) ??
    refuse('the Redis URL is not a URL')
  const number = port === undefined ? defaultPort : Number(port)
  if (number < 1 || number > 65_535) refuse('the port of the Redis URL is none')
  return { host: bracketed ?? plain ?? '', port: number }
}

function shownOf(start: string, { endpoints, username, password, db, name, query }: AddressParts): string {
  const secret = password === undefined ? '' : ':***'
  const user =
    username === undefined && secret === '' ? '' : `${encodeURIComponent(username ?? '')}${secret}@`
  const hosts = endpoints.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`)
  const sentinel = start.includes('-sentinel')
  const path = sentinel ? `/${encodeURIComponent(name)}` : db === 0 ? '' : `/${db}`
  const shown = new URLSearchParams(query)
  if (shown.has('sentinelPassword')) shown.set('sentinelPassword', '***')
  const words = sentinel && shown.size > 0 ? `?${shown}` : ''
  return `${start}${user}${hosts.join(',')}${path}${words}`
}

function refuse(why: string): never {
  throw new HoldfastError('INVALID_ARGUMENT', why)
}

function refuseScheme(url: string): never {
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*:)/.exec(url)?.[1]
  if (scheme === undefined) return refuse('the Redis URL is not a URL')
  return refuse(
    `a Redis URL starts with redis://, redis-sentinel:// or redis-cluster:// (or rediss for TLS), not ${scheme}//`,
  )
}
