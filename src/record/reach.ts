import { connect as connectPlain, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { AbstractConnector, Redis, type RedisOptions } from 'ioredis'
import type { RedisAddress } from '../contract/redis-address.js'
import { type AddressParts, type Endpoint, type ParsedAddress, parseAddress } from './address.js'

/** What a connection is made with, whatever it is for. */
export type ConnectionOptions = Omit<RedisOptions, 'replyMapping'>

/** An address, understood. */
export interface Reach {
  readonly kind: ParsedAddress['kind']
  /** The URL without its passwords, fit for a log. */
  readonly shown: string
  /**
   * What ioredis connects with: a new connection looks up anew where the primary is. `slot`: of which a Cluster's
   * primary is wanted; any of its primaries when absent.
   */
  options(slot: number | undefined, hint: Hint): ConnectionOptions
  /** An address of each primary of a Cluster; of anything else nothing. Rejects where no node of it answers. */
  primaries(): Promise<readonly RedisAddress[]>
}

/** Where a server said that a slot is now: looked at first by the next connection. */
export interface Hint {
  at?: string | undefined
}

const lookWithinMs = 2_000
const mostRetryMs = 2_000

/** @throws INVALID_ARGUMENT for what is no address; the text itself is kept out of the error: it may hold a password */
export function reachOf(address: RedisAddress): Reach {
  const { kind, scheme, secure, tls, shown, parts } = parseAddress(address)
  const material = secure ? { tls: definedOf(tls) } : {}
  const user = { username: parts.username, password: parts.password }
  const common: ConnectionOptions = { ...material, ...definedOf(user), db: parts.db }
  switch (kind) {
    case 'server': {
      const [{ host, port }] = parts.endpoints as [Endpoint]
      return { kind, shown, options: () => ({ ...common, host, port }), primaries: none }
    }
    case 'sentinel':
      return {
        kind,
        shown,
        options: () => ({ ...common, ...sentinelOptions(parts, secure) }),
        primaries: none,
      }
    case 'cluster':
      return {
        kind,
        shown,
        options: (slot, hint) => ({ ...common, Connector: clusterConnector(parts, common, slot, hint) }),
        primaries: async () => {
          const found = unique((await ask(parts.endpoints, common)).primaries)
          return found.map((endpoint) => ({ url: `${scheme}://${placeOf(parts, endpoint)}`, tls }))
        },
      }
  }
}

const none = async () => []

/** One server of several, with the user and the password of all. */
function placeOf({ username, password }: AddressParts, { host, port }: Endpoint): string {
  const user = [username ?? '', ...(password === undefined ? [] : [password])].map(encodeURIComponent)
  const shownHost = host.includes(':') ? `[${host}]` : host
  return `${user.join(':') === '' ? '' : `${user.join(':')}@`}${shownHost}:${port}`
}

function definedOf<Members extends object>(members: Members | undefined): { [Name in keyof Members]: never } {
  const entries = Object.entries(members ?? {}).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as { [Name in keyof Members]: never }
}

const retryMs = (times: number) => Math.min(mostRetryMs, 50 * 2 ** Math.min(times, 6))

function sentinelOptions({ endpoints, name, query }: AddressParts, secure: boolean): ConnectionOptions {
  const [user, password] = [query.get('sentinelUser'), query.get('sentinelPassword')]
  return {
    sentinels: endpoints.map(({ host, port }) => ({ host, port })),
    name,
    role: 'master',
    // A switch is told by the Sentinels: the old primary may go on answering for a while.
    failoverDetector: true,
    sentinelRetryStrategy: retryMs,
    sentinelReconnectStrategy: retryMs,
    sentinelCommandTimeout: lookWithinMs,
    enableTLSForSentinelMode: secure,
    ...(user === null ? {} : { sentinelUsername: user }),
    ...(password === null ? {} : { sentinelPassword: password }),
  }
}

/** What `options.Connector` of ioredis is made with. */
type Connector = NonNullable<ConnectionOptions['Connector']>

/**
 * Connects to the primary that serves the slot. ioredis's own client of a Cluster sends commands again by itself where
 * a connection was lost; a record whose keys share one slot needs one server at a time, and never that.
 */
function clusterConnector(
  { endpoints }: AddressParts,
  common: ConnectionOptions,
  slot: number | undefined,
  hint: Hint,
): Connector {
  /** Nodes that were heard of, the last good one first; the given ones are always asked as well. */
  let heardOf: readonly Endpoint[] = []

  async function locate(): Promise<Endpoint> {
    const hinted = hint.at === undefined ? [] : [addressOf(hint.at)]
    hint.at = undefined
    const { node, primaries } = await ask(unique([...hinted, ...heardOf, ...endpoints]), common, slot)
    heardOf = unique([node, ...primaries])
    const [first] = primaries
    const found = slot === undefined ? first : primaries.find(({ from, to }) => from <= slot && slot <= to)
    if (found === undefined) throw new Error(`nobody serves slot ${slot}`)
    return found
  }

  return class ClusterConnector extends AbstractConnector {
    constructor() {
      super(lookWithinMs)
    }

    override async connect(): Promise<Socket | TLSSocket> {
      this.connecting = true
      const { host, port } = await locate()
      if (!this.connecting) throw new Error('Connection is closed.')
      const tls = common.tls
      this.stream = tls === undefined ? connectPlain({ host, port }) : connectTls({ host, port, ...tls })
      this.stream.once('error', (error) => {
        this.firstError = error
      })
      return this.stream
    }

    /** A replica may be what a node that lags behind names: its slot's primary is looked up again. */
    override check(info: { role?: string }): boolean {
      return info.role === undefined || info.role === 'master'
    }
  } as unknown as Connector
}

/**
 * What the first of these nodes says that answers, and knows who serves the slot.
 * @throws Error that names what is wrong with each of them
 */
async function ask(
  nodes: readonly Endpoint[],
  common: ConnectionOptions,
  slot?: number,
): Promise<{ node: Endpoint; primaries: readonly Primary[] }> {
  const failures: string[] = []
  for (const node of nodes) {
    try {
      const primaries = await primariesBy(node, common)
      const isServed = slot === undefined || primaries.some(({ from, to }) => from <= slot && slot <= to)
      if (isServed && primaries.length > 0) return { node, primaries }
      failures.push(
        `${node.host}:${node.port}: nobody serves ${slot === undefined ? 'any slot' : `slot ${slot}`}`,
      )
    } catch (error) {
      failures.push(`${node.host}:${node.port}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  throw new Error(`no node of the Cluster tells who serves what (${failures.join('; ')})`)
}

function unique(nodes: readonly Endpoint[]): Endpoint[] {
  return [
    ...new Map(
      nodes.map((node) => [`${node.host}:${node.port}`, { host: node.host, port: node.port }]),
    ).values(),
  ]
}

/** As MOVED names it: an empty host is that of who said it, which is not known here. */
function addressOf(text: string): Endpoint {
  const colon = text.lastIndexOf(':')
  return { host: text.slice(0, colon), port: Number(text.slice(colon + 1)) }
}

/** A primary, and one range of slots that it serves. */
interface Primary extends Endpoint {
  readonly from: number
  readonly to: number
}

/** The primaries of a Cluster as one of its nodes knows them. */
async function primariesBy(node: Endpoint, common: ConnectionOptions): Promise<Primary[]> {
  const client = new Redis({
    ...common,
    ...node,
    protocol: 2,
    lazyConnect: true,
    enableReadyCheck: false,
    disableClientInfo: true,
    retryStrategy: () => null,
    connectTimeout: lookWithinMs,
    commandTimeout: lookWithinMs,
    connectionName: 'holdfast-lookup',
  })
  client.on('error', () => undefined)
  try {
    await client.connect()
    const reply = (await client.call('CLUSTER', 'SLOTS')) as [number, number, [string | null, number]][]
    return reply.map(([from, to, [host, port]]) => {
      // A node that does not know its own name leaves it empty: it is reached as it was asked.
      return { from, to, host: host === null || host === '' || host === '?' ? node.host : host, port }
    })
  } finally {
    client.disconnect()
  }
}
