import type { Command } from 'commander'
import type { Logger } from 'pino'
import { z } from 'zod'
import type { HoldfastNode } from '../node/index.js'
import { redactUrl } from '../record/address.js'
import type { InitReply } from '../record/functions.js'
import { defaultData, defaultHub, type Settings } from './config.js'
import { isSet, type Place, withRecord } from './context.js'
import { usageError } from './failure.js'
import { action, value } from './flags.js'
import { openLog } from './log.js'
import { addNodeOptions, makeNode, nodeFlags, untilEnd } from './node.js'
import { fields, say } from './output.js'
import { serveNearby } from './serve.js'
import { type SignalWatch, watchSignals } from './signals.js'

const schema = z
  .object({
    host: value.host.optional(),
    exec: value.text.optional(),
    forward: value.httpUrl.optional(),
    listen: value.listen.optional(),
    ...nodeFlags,
  })
  .refine(({ host, exec, forward }) => host === undefined || (exec ?? forward) !== undefined, {
    path: ['exec'],
    error: 'or --forward is required with --host',
    when: () => true,
  })
  .refine(({ host, exec, forward }) => (exec ?? forward) === undefined || host !== undefined, {
    path: ['host'],
    error: 'is required with --exec and --forward',
    when: () => true,
  })
  .refine(({ exec, forward }) => exec === undefined || forward === undefined, {
    path: ['exec'],
    error: 'give one of --exec and --forward',
    when: () => true,
  })
type DevValues = z.output<typeof schema>

/** `holdfast dev`: server, record, hub and, with a host and a command, a node in one process. */
export function addDev(program: Command): void {
  addNodeOptions(program.command('dev'))
    .option('--listen <address>', 'address and port of the hub over HTTP (127.0.0.1:8090, or any free port)')
    .description(
      'everything in one command, until SIGINT or SIGTERM: server, record, hub, and a node with --host',
    )
    .action(
      action(schema, async (values, { settings, json }) => {
        if (isSet(settings)) {
          throw usageError(
            ['--hubs: dev is one hub'],
            'for a set run `holdfast init`, `holdfast serve` and `holdfast node`, each with --hubs',
          )
        }
        const log = openLog(json)
        const signals = watchSignals()
        const options = { create: true, handlesSignals: true, log: (line: string) => log.info({}, line) }
        const run = (place: Place) => runDev(place, settings, values, { log, json, signals })
        await withRecord(settings, run, options).finally(signals.dispose)
      }),
    )
}

interface Surroundings {
  readonly log: Logger
  readonly json: boolean
  readonly signals: SignalWatch
}

async function runDev(
  place: Place,
  settings: Settings,
  values: DevValues,
  around: Surroundings,
): Promise<void> {
  const { log, signals } = around
  const { initRecord } = await import('../hub/open-hub.js')
  const record = await initRecord({ redis: place.redis, hub: settings.hub })
  const { redis } = place
  const server = await serveNearby({ redis, hubs: [settings.hub], log }, values.listen)
  try {
    const node = await startNode(place, settings, values, log)
    tellWhere(place, settings, values, { record, url: server.url }, around)
    await Promise.race([signals.first, ...(node === undefined ? [] : [untilEnd(node)])])
    log.info({}, 'draining; a second signal ends at once')
    await node?.stop()
    if (node !== undefined) await untilEnd(node)
  } finally {
    await server.close()
  }
}

async function startNode(
  place: Place,
  settings: Settings,
  values: DevValues,
  log: Logger,
): Promise<HoldfastNode | undefined> {
  const { host } = values
  if (host === undefined) return undefined
  const node = await makeNode({ redis: place.redis }, settings, { ...values, host }, log)
  await node.start()
  return node
}

function tellWhere(
  place: Place,
  settings: Settings,
  values: DevValues,
  { record, url }: { readonly record: InitReply; readonly url: string },
  { log, json }: Surroundings,
): void {
  const redis = redactUrl(place.redis)
  const example = exampleSend(settings, values.host ?? 'my-host')
  if (json) log.info({ redis, url, hub: settings.hub, ...record, example }, 'ready')
  else
    say(
      fields([
        ['ready', `hub ${settings.hub}, store ${record.storeId} ${record.made ? 'made' : 'present'}`],
        ['http', url],
        ['redis', redis],
        [
          'look',
          place.embedded === undefined ? `redis-cli -u ${redis}` : `redis-cli -p ${place.embedded.port}`,
        ],
        ['try', example],
      ]),
    )
}

function exampleSend(settings: Settings, host: string): string {
  const where = [
    settings.redis === undefined ? '' : ` --redis ${redactUrl(settings.redis)}`,
    settings.redis === undefined && settings.data !== defaultData ? ` --data ${settings.data}` : '',
    settings.hub === defaultHub ? '' : ` --hub ${settings.hub}`,
  ]
  return `holdfast send${where.join('')} --conversation demo --to host:${host} 'hello'`
}
