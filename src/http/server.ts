import type { AddressInfo } from 'node:net'
import type { FastifyBaseLogger } from 'fastify'
import { HoldfastError } from '../contract/errors.js'
import type { OnPoint } from '../contract/points.js'
import type { RedisAddress } from '../contract/redis-address.js'
import type { Hub } from '../hub/open-hub.js'
import { followAnswers } from './connections.js'
import { watchCrowds } from './crowds.js'
import { type Closers, openHubApp } from './hub-app.js'
import type { Limits } from './limits.js'
import type { Listen } from './listen.js'
import type { App } from './routes/parts.js'
import type { StartSweeper } from './sweeper.js'

export interface ServerOptions {
  /** URL of the server, Sentinels or Cluster that hold the record. */
  readonly redis: RedisAddress
  /** Name of the hub; `hf` when absent. */
  readonly hub?: string | undefined
  readonly listen: Listen
  /** PEM texts: HTTPS, where clients may show a certificate that a principal pins. */
  readonly tls?: { readonly certificate: string; readonly key: string } | undefined
  /** A pino logger. Bodies, tokens and queries are never logged. */
  readonly log: FastifyBaseLogger
  readonly limits?: Partial<Limits> | undefined
  /** What runs the sweeps. */
  readonly sweeps: StartSweeper
  /** Where the Lua sources are; the package's own when absent. */
  readonly luaDir?: string | undefined
  /** Where the built page is; the package's own when absent. */
  readonly pageDir?: string | undefined
  /** Tests only: see `points`. */
  readonly onPoint?: OnPoint | undefined
}

/** A hub that answers over HTTP. */
export interface HubServer {
  readonly url: string
  readonly hub: Hub
  /** Takes no more on, answers what is under way and who waits, then closes. */
  close(): Promise<void>
}

/**
 * Opens a hub and serves it (contract section 10).
 * @throws AUTHENTICATION_REQUIRED off loopback while no principal exists, STORE_UNKNOWN, STORE_UNAVAILABLE,
 *   INVALID_ARGUMENT (the address, the certificate)
 */
export async function startServer(options: ServerOptions): Promise<HubServer> {
  return await closingOnFailure(options.log, async (closers, closeAll) => {
    const { app, hub, drain } = await openHubApp(options, closers)
    followAnswers(app.server)
    const url = await listenOn(app, options.listen, options.tls !== undefined)
    closers.push(watchCrowds(app.server))
    return {
      url,
      hub,
      close: once(async () => {
        await drain()
        await app.close()
        await closeAll()
      }),
    }
  })
}

/** Opens something of many parts; where that fails, those that opened are closed. */
export async function closingOnFailure<Opened>(
  log: FastifyBaseLogger,
  open: (closers: Closers, closeAll: () => Promise<void>) => Promise<Opened>,
): Promise<Opened> {
  const closers: Closers = []
  const closeAll = async () => {
    for (const close of closers.splice(0).reverse()) await close()
  }
  try {
    return await open(closers, closeAll)
  } catch (error) {
    await closeAll().catch((cause: unknown) => log.error({ err: cause }, 'could not close'))
    throw error
  }
}

/** The same end for everyone who asks for it. */
export function once(end: () => Promise<void>): () => Promise<void> {
  let ending: Promise<void> | undefined
  return () => {
    ending ??= end()
    return ending
  }
}

/** Connections that may wait to be taken up, where the system allows as many. */
const connectionsAtOnce = 4096

/** @throws INVALID_ARGUMENT for an address that cannot be listened on */
export async function listenOn(app: App, listen: Listen, secure: boolean): Promise<string> {
  try {
    await app.listen({
      host: listen.host,
      port: listen.port,
      backlog: connectionsAtOnce,
      listenTextResolver: (at) => `listening at ${at}`,
    })
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === undefined || !(code.startsWith('E') || code.startsWith('ERR_'))) throw error
    throw new HoldfastError('INVALID_ARGUMENT', `cannot listen on ${listen.host}:${listen.port} (${code})`, {
      cause: error,
    })
  }
  const { address, port } = app.server.address() as AddressInfo
  const host = address.includes(':') ? `[${address}]` : address
  return `${secure ? 'https' : 'http'}://${host}:${port}`
}
