import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { HubAddress } from '../client/calls.js'
import { ExchangeFailure } from '../client/exchange.js'
import { errorCatalogue, HoldfastError, isHoldfastError } from '../contract/errors.js'
import type { HubCalls } from '../contract/hub.js'
import type { RedisAddress } from '../contract/redis-address.js'
import { redactUrl } from '../record/address.js'
import type { EmbeddedServer } from '../record/embedded.js'
import { defaultData, type HttpSettings, type Settings } from './config.js'
import { usageError } from './failure.js'
import { textOf } from './files.js'
import { say } from './output.js'

/** Where the record is, for as long as a command needs it. */
export interface Place {
  readonly redis: RedisAddress
  /** Present when it is the embedded server. */
  readonly embedded?: EmbeddedServer
}

export interface PlaceOptions {
  /** Make the data folder when there is none; else that is STORE_UNKNOWN, and nothing is made. */
  readonly create?: boolean
  /** The command handles SIGINT and SIGTERM itself. */
  readonly handlesSignals?: boolean
  readonly log?: ((line: string) => void) | undefined
}

/**
 * Uses the server named by the settings, or the embedded one: attached to when it runs, else started and
 * stopped again afterwards, also when a signal ends the command.
 */
export async function withRecord<Answer>(
  settings: Settings,
  use: (place: Place) => Promise<Answer>,
  options: PlaceOptions = {},
): Promise<Answer> {
  if (settings.http !== undefined) {
    throw usageError(
      ['--url: this works on the record itself'],
      'name the server with --redis, or take --url (HOLDFAST_URL) away for the one in the data folder',
    )
  }
  if (settings.redis !== undefined) {
    const { redis } = settings
    await sayIfAway(redis)
    return use({ redis }).catch((error: unknown) => Promise.reject(located(error, redis)))
  }
  if (options.create !== true) requireDataFolder(settings)
  const { startEmbedded } = await import('../record/embedded.js')
  const starting = startEmbedded({ dataDir: settings.data, log: options.log })
  const release = options.handlesSignals === true ? () => undefined : stopOnSignal(starting)
  try {
    const embedded = await starting
    return await use({ redis: embedded.url, embedded }).finally(embedded.stop)
  } finally {
    release()
  }
}

/** Opens the hub, or the set of hubs, for one command: over HTTP when a URL is named, else on the record. */
export async function withHub<Answer>(
  settings: Settings,
  use: (hub: HubCalls) => Promise<Answer>,
  placeOptions: PlaceOptions = {},
): Promise<Answer> {
  const { http, actor } = settings
  if (http !== undefined) {
    const address = addressOf(http)
    await requireReachable(address)
    const { openClient } = await import('../client/open-client.js')
    return using(openClient({ ...address, actor, hubs: settings.hubs }), use)
  }
  const useRecord = async ({ redis }: Place) => {
    const { openHubSet } = await import('../hub/open-hub-set.js')
    // An operator who fences a set off is not kept from it by the one hub that is away.
    const options = {
      redis,
      hubs: hubsOf(settings),
      onRepairError: sayRepairError,
      onTrouble: sayTrouble,
      withoutSome: true,
    }
    return using(await openHubSet(options), use)
  }
  return withRecord(settings, useRecord, placeOptions)
}

/** The hubs that a command is for: those of the set, or the one. */
export function hubsOf({ hub, hubs }: Settings): readonly string[] {
  return hubs ?? [hub]
}

/** Whether several hubs are named: then answers say of which one they are. */
export function isSet(settings: Settings): boolean {
  return hubsOf(settings).length > 1
}

/** A record that is not there, or a server: more often than not the address is another one than was meant. */
function located(error: unknown, redis: RedisAddress): unknown {
  if (isHoldfastError(error, 'STORE_UNKNOWN')) {
    const text = `${error.message.slice(error.code.length + 1)} (on ${redactUrl(redis)})`
    const next = `check --redis and --hub; if they are right, ${error.next}`
    return new HoldfastError(error.code, text, { cause: error, next })
  }
  if (isHoldfastError(error, 'STORE_UNAVAILABLE') && error.next === errorCatalogue.STORE_UNAVAILABLE.next) {
    const text = error.message.slice(error.code.length + 1)
    const next = `check that a Redis server runs at --redis (${redactUrl(redis)}); ${error.next}`
    return new HoldfastError(error.code, text, { cause: error, next })
  }
  return error
}

const tellAfterMs = 1000

/** A server may be about to start, so it is waited for; who sits before the command is told what for. */
async function sayIfAway(redis: RedisAddress): Promise<void> {
  const { openStore } = await import('../record/connections.js')
  const startedAt = performance.now()
  try {
    const store = await openStore({ url: redis, name: 'holdfast-reach', connectDeadlineMs: tellAfterMs })
    await store.close()
  } catch (error) {
    // What is refused for good is told by the command itself, at once.
    const waits = isHoldfastError(error, 'STORE_UNAVAILABLE') && performance.now() - startedAt >= tellAfterMs
    if (waits) say(`${error.message.slice(error.code.length + 1)}; waiting for it`)
  }
}

const reachMs = 5000

/**
 * A client goes on trying for its whole deadline; who sits before a command is told at once that nobody listens.
 * @throws HUB_UNREACHABLE when there is no connection
 */
async function requireReachable(address: HubAddress): Promise<void> {
  const { openCalls } = await import('../client/calls.js')
  const calls = openCalls({ ...address, deadlineMs: reachMs })
  try {
    await calls.call({ method: 'GET', path: '/livez', reply: z.unknown() })
  } catch (error) {
    const unsent = isHoldfastError(error, 'HUB_UNREACHABLE') && error.cause instanceof ExchangeFailure
    if (unsent) throw error
  } finally {
    calls.close()
  }
}

async function using<Answer>(hub: HubCalls, use: (hub: HubCalls) => Promise<Answer>): Promise<Answer> {
  try {
    return await use(hub)
  } finally {
    await hub.close()
  }
}

/** The files of the settings, read. */
export function addressOf({ url, token, ca, clientCert, clientKey }: HttpSettings): HubAddress {
  const files = Object.entries({ ca: textOf(ca), cert: textOf(clientCert), key: textOf(clientKey) })
  const tls = Object.fromEntries(files.filter(([, text]) => text !== undefined))
  return { url, token, ...(Object.keys(tls).length === 0 ? {} : { tls }) }
}

function sayRepairError(error: unknown): void {
  say(`a fan-out that was cut could not be completed now: ${error instanceof Error ? error.message : error}`)
}

/** A server that keeps nothing answers like any other. */
export function sayTrouble(trouble: string): void {
  say(`the Redis server may lose what it is given: ${trouble}\n  next: \`holdfast doctor\` says what to set`)
}

function requireDataFolder(settings: Settings): void {
  if (existsSync(join(settings.data, 'redis'))) return
  throw new HoldfastError('STORE_UNKNOWN', `there is no record in the folder ${settings.data}`, {
    next: `run \`holdfast init${settings.data === defaultData ? '' : ` --data ${settings.data}`}\` or \`holdfast dev\`, or name a server with --redis`,
  })
}

/** A short command that is interrupted takes the server it started with it, then dies of the same signal. */
function stopOnSignal(starting: Promise<EmbeddedServer>): () => void {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  const onSignal = (signal: NodeJS.Signals) => {
    release()
    void starting
      .then((embedded) => embedded.stop())
      .catch(() => undefined)
      .finally(() => process.kill(process.pid, signal))
  }
  const release = () => {
    for (const signal of signals) process.removeListener(signal, onSignal)
  }
  for (const signal of signals) process.on(signal, onSignal)
  return release
}
