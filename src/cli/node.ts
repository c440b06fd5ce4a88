import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Command } from 'commander'
import { z } from 'zod'
import type { Executor, HoldfastNode, Prober } from '../node/index.js'
import type { NodeLog } from '../node/log.js'
import type { Reach } from '../node/node-options.js'
import type { Settings } from './config.js'
import { addressOf, type Place, withRecord } from './context.js'
import { action, repeatable, value } from './flags.js'
import { openLog } from './log.js'
import { canonical } from './scopes.js'
import { type SignalWatch, watchSignals } from './signals.js'

/** The flags of a node, for `node` and `dev`; host and exec are checked by the command. */
export const nodeFlags = {
  node: value.id.optional(),
  scope: z.array(value.text.min(1, 'names no folder')).default([]),
  timeout: value.duration.pipe(z.number().min(1, 'must be at least 1ms').max(2_147_483_647)).optional(),
  concurrency: value.wholeNumber(1, 1000).optional(),
  mirror: value.text.min(1, 'names no file').optional(),
  probe: value.text.min(1, 'names neither a command nor a URL').optional(),
  idempotent: value.flag,
}
const schema = z
  .object({ host: value.host, exec: value.text.optional(), forward: value.httpUrl.optional(), ...nodeFlags })
  .refine(({ exec, forward }) => (exec === undefined) !== (forward === undefined), {
    path: ['exec'],
    error: 'give one of --exec and --forward',
    when: () => true,
  })
type NodeValues = z.output<typeof schema>

/** `holdfast node`: a consumer of a host's stream that runs a command for each delivery. */
export function addNode(program: Command): void {
  addNodeOptions(program.command('node'))
    .description('run a node until SIGINT or SIGTERM: it drains, then leaves')
    .action(
      action(schema, async (values, { settings, json }) => {
        const log = openLog(json)
        const signals = watchSignals()
        const options = { handlesSignals: true, log: (line: string) => log.info({}, line) }
        const run = async (reach: Reach) =>
          runNode(await makeNode(reach, settings, values, log), signals, log)
        const { http } = settings
        const running =
          http === undefined
            ? withRecord(settings, ({ redis }: Place) => run({ redis }), options)
            : run({ http: addressOf(http) })
        await running.finally(signals.dispose)
      }),
    )
}

/** Declares the flags of {@link nodeFlags} with host and exec. */
export function addNodeOptions(command: Command): Command {
  return command
    .option('--host <host>', 'the recipient host it serves')
    .option('--node <id>', 'its id, stable across restarts; the host when absent')
    .addOption(repeatable('--scope <dir>', 'a directory whose sessions it may serve'))
    .option('--exec <command>', 'shell command run for each delivery, the payload on stdin')
    .option('--forward <url>', 'instead of --exec: each delivery is posted to this URL')
    .option('--probe <command|url>', 'asked what became of an attempt, before anything of it is repeated')
    .option('--idempotent', 'running an attempt twice is as running it once: begin again what a crash cut')
    .option('--timeout <time>', 'how long the command may take, such as 30s (5m)')
    .option('--concurrency <n>', 'lanes worked on at the same time (8)')
    .option(
      '--mirror <file>',
      'its durable store (<data>/mirrors/<host>/<node>.db); of several hubs a folder, one file a hub',
    )
}

async function runNode(node: HoldfastNode, { first }: SignalWatch, log: NodeLog): Promise<void> {
  const started = node.start()
  void first.then((signal) => {
    log.info({ signal }, 'draining; a second signal ends at once')
    return node.stop().catch((error: unknown) => log.error({ error: String(error) }, 'could not stop'))
  })
  await Promise.race([started, first])
  await untilEnd(node)
}

/** Waits for the node's end. @throws why it ended, when it did not leave */
export async function untilEnd(node: HoldfastNode): Promise<void> {
  const end = await node.closed
  if (end.kind === 'failed') throw end.error
  if (end.kind === 'stopped') throw new Error(`the node ended without leaving: ${end.why}`)
}

/** What a node is made of: loaded by those who run one alone, not by those who ask what its flags are. */
type Parts = typeof import('../node/index.js') & typeof import('../node/executors/command.js')

async function loadParts(): Promise<Parts> {
  const [node, command] = await Promise.all([
    import('../node/index.js'),
    import('../node/executors/command.js'),
  ])
  return { ...node, ...command }
}

function executorOf({ exec, forward }: NodeValues, { forwardExecutor, commandExecutor }: Parts): Executor {
  if (forward !== undefined) return forwardExecutor({ url: forward })
  return commandExecutor({ command: exec ?? '' })
}

/** A URL is posted to, anything else is shell text. */
function proberOf(probe: string, { httpProbe, commandProbe }: Parts): Prober {
  return /^https?:\/\//i.test(probe) ? httpProbe({ url: probe }) : commandProbe({ command: probe })
}

/** A file for one hub, a folder for several. */
function mirrorOf({ data, hubs = [] }: Settings, host: string, node: string): string {
  const name = join(data, 'mirrors', host, encodeURIComponent(node))
  return hubs.length > 1 ? name : `${name}.db`
}

/** A node as the flags describe it, on the hub or the set of hubs of the settings; its mirror's folder made, not started. */
export async function makeNode(
  reach: Reach,
  settings: Settings,
  values: NodeValues,
  log: NodeLog,
): Promise<HoldfastNode> {
  const parts = await loadParts()
  const { host, node = host, timeout, concurrency } = values
  const mirror = values.mirror ?? mirrorOf(settings, host, node)
  mkdirSync(dirname(mirror), { recursive: true })
  return parts.createNode({
    host,
    node,
    hubs: settings.hubs ?? [settings.hub],
    ...reach,
    mirror,
    executor: executorOf(values, parts),
    probe: values.probe === undefined ? undefined : proberOf(values.probe, parts),
    idempotent: values.idempotent,
    concurrency,
    timeLimitMs: timeout,
    scopes: values.scope.map(canonical),
    log,
  })
}
