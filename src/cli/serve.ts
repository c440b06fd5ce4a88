import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import type { Command } from 'commander'
import { z } from 'zod'
import { isHoldfastError } from '../contract/errors.js'
import { defaultLimits } from '../http/limits.js'
import { type Listen, parseListen } from '../http/listen.js'
import type { ServerOptions } from '../http/server.js'
import type { HubSetServer, SetServerOptions } from '../http/set-server.js'
import { hubsOf, type Place, withRecord } from './context.js'
import { usageError } from './failure.js'
import { action, value } from './flags.js'
import { openLog } from './log.js'
import { type SignalWatch, watchSignals } from './signals.js'

const defaultListen = '127.0.0.1:8090'

const schema = z
  .object({
    listen: value.listen.default(() => parseListen(defaultListen)),
    tlsCert: value.readableFile.optional(),
    tlsKey: value.readableFile.optional(),
    rate: value.wholeNumber(0, 1_000_000).optional(),
  })
  .refine(({ tlsCert, tlsKey }) => (tlsCert === undefined) === (tlsKey === undefined), {
    path: ['tlsKey'],
    error: '--tls-cert and --tls-key belong together',
    when: () => true,
  })
type ServeValues = z.output<typeof schema>

/** `holdfast serve`: a hub over HTTP. */
export function addServe(program: Command): void {
  program
    .command('serve')
    .description(
      'a hub, or a set of hubs, over HTTP until SIGINT or SIGTERM: it answers what is under way, then ends',
    )
    .option('--listen <address>', `address and port (${defaultListen}); off loopback principals must exist`)
    .option('--tls-cert <file>', 'PEM of the certificate chain: HTTPS, and client certificates may be pinned')
    .option('--tls-key <file>', 'PEM of its key')
    .option('--rate <n>', `requests a second of one principal (${defaultLimits.ratePerSecond}); 0: no limit`)
    .action(
      action(schema, async (values, { settings, json }) => {
        const tls = tlsOf(values)
        const log = openLog(json)
        const signals = watchSignals()
        const options = { handlesSignals: true, log: (line: string) => log.info({}, line) }
        const run = ({ redis }: Place) => serve({ redis, hubs: hubsOf(settings), tls, log }, values, signals)
        await withRecord(settings, run, options).finally(signals.dispose)
      }),
    )
}

/** The files, read and tried before anything is started. */
function tlsOf({ tlsCert, tlsKey }: ServeValues): ServerOptions['tls'] {
  if (tlsCert === undefined || tlsKey === undefined) return undefined
  const tls = { certificate: readFileSync(tlsCert, 'utf8'), key: readFileSync(tlsKey, 'utf8') }
  try {
    createSecureContext({ cert: tls.certificate, key: tls.key })
    return tls
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw usageError([`--tls-cert and --tls-key: no certificate with its key (${why})`])
  }
}

async function serve(
  options: Omit<SetServerOptions, 'listen' | 'limits' | 'sweeps'>,
  values: ServeValues,
  signals: SignalWatch,
): Promise<void> {
  const { log, hubs } = options
  const { listen, rate } = values
  const limits = rate === undefined ? undefined : { ratePerSecond: rate }
  const server = await startSetServer({ ...options, listen, limits })
  log.info({ url: server.url, ...(hubs.length === 1 ? { hub: hubs[0] } : { hubs }) }, 'serving')
  await signals.first
  log.info({}, 'shutting down; a second signal ends at once')
  await server.close()
}

/** Loads the server for those who serve alone: it is most of what a command would have to load. */
async function startSetServer(options: Omit<SetServerOptions, 'sweeps'>): Promise<HubSetServer> {
  const [http, schedule] = await Promise.all([
    import('../http/set-server.js'),
    import('../sweeps/schedule.js'),
  ])
  const { redis, log } = options
  const sweeps: ServerOptions['sweeps'] = (parts) => schedule.startSchedule({ redis, parts, log })
  return http.startSetServer({ ...options, sweeps })
}

/** Serves where it is asked to or, for want of that, on any free port of loopback. */
export async function serveNearby(
  options: Omit<SetServerOptions, 'listen' | 'sweeps'>,
  asked: Listen | undefined,
): Promise<HubSetServer> {
  if (asked !== undefined) return startSetServer({ ...options, listen: asked })
  const usual = parseListen(defaultListen)
  try {
    return await startSetServer({ ...options, listen: usual })
  } catch (error) {
    if (!isHoldfastError(error, 'INVALID_ARGUMENT')) throw error
    return startSetServer({ ...options, listen: { ...usual, port: 0 } })
  }
}
