/** PEM texts, as node:tls takes them; certificates are always verified. */
export interface RedisTls {
  /** Authorities to trust; those that Node trusts when absent. */
  readonly ca?: string | undefined
  /** The certificate to show, with its chain. */
  readonly cert?: string | undefined
  /** Its key. */
  readonly key?: string | undefined
  /** The name to verify; the host that is connected to when absent. */
  readonly servername?: string | undefined
}

/**
 * Where the record is: a URL, or a URL with what TLS needs.
 *
 * - `redis://[user:password@]host[:port][/database]`: one server
 * - `redis-sentinel://[user:password@]host[:port][,host[:port]…]/name[?db=0&sentinelUser=&sentinelPassword=]`: the
 *   primary that these Sentinels watch under the name
 * - `redis-cluster://[user:password@]host[:port][,host[:port]…]`: the primary of a Redis Cluster that serves the slot of
 *   the hub, found through any of these nodes
 *
 * Each with `rediss` for TLS.
 */
export type RedisAddress = string | { readonly url: string; readonly tls?: RedisTls | undefined }
