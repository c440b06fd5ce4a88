import { Command } from 'commander'
import { ownVersion } from '../http/version.js'

type Add = (program: Command) => void

/**
 * The commands in the order of the help, each with where it is declared. A command's module loads what it works
 * with, so a line loads the one that it names.
 */
const commands: readonly { readonly names: readonly string[]; readonly load: () => Promise<Add> }[] = [
  { names: ['init'], load: async () => (await import('./init.js')).addInit },
  { names: ['dev'], load: async () => (await import('./dev.js')).addDev },
  { names: ['serve'], load: async () => (await import('./serve.js')).addServe },
  { names: ['node'], load: async () => (await import('./node.js')).addNode },
  { names: ['send'], load: async () => (await import('./send.js')).addSend },
  { names: ['message'], load: async () => (await import('./message.js')).addMessage },
  { names: ['delivery'], load: async () => (await import('./delivery.js')).addDelivery },
  { names: ['held'], load: async () => (await import('./held.js')).addHeld },
  { names: ['pending'], load: async () => (await import('./pending.js')).addPending },
  { names: ['unknown'], load: async () => (await import('./unknown.js')).addUnknown },
  { names: ['attempt'], load: async () => (await import('./attempt.js')).addAttempt },
  { names: ['effect'], load: async () => (await import('./effect.js')).addEffect },
  { names: ['fence'], load: async () => (await import('./fence.js')).addFence },
  { names: ['host'], load: async () => (await import('./host.js')).addHost },
  { names: ['hub-of'], load: async () => (await import('./hub-of.js')).addHubOf },
  { names: ['session'], load: async () => (await import('./session.js')).addSession },
  { names: ['principal'], load: async () => (await import('./principal.js')).addPrincipal },
  { names: ['config'], load: async () => (await import('./configuration.js')).addConfig },
  { names: ['functions'], load: async () => (await import('./functions.js')).addFunctions },
  { names: ['sweep', 'audit'], load: async () => (await import('./sweep.js')).addSweep },
  { names: ['doctor'], load: async () => (await import('./doctor.js')).addDoctor },
  { names: ['top'], load: async () => (await import('./top.js')).addTop },
  { names: ['tail'], load: async () => (await import('./tail.js')).addTail },
  { names: ['completion', 'complete'], load: async () => (await import('./completion.js')).addCompletion },
]

/** The whole command line. Common options stand before or after the verb. */
export async function makeProgram(): Promise<Command> {
  return programOf(commands)
}

/** As much of the command line as these words need: the command that they name, or all where they name none. */
export async function programFor(words: readonly string[]): Promise<Command> {
  const name = commandIn(words)
  const named = commands.filter(({ names }) => name !== undefined && names.includes(name))
  return programOf(named.length === 0 ? commands : named)
}

async function programOf(parts: typeof commands): Promise<Command> {
  const adders = await Promise.all(parts.map(({ load }) => load()))
  const program = withCommonOptions(new Command('holdfast'))
    .description('a durable delivery broker on Redis Streams')
    .version(ownVersion())
    .configureHelp({ showGlobalOptions: true })
  for (const add of adders) add(program)
  return program
}

/** The first word that is neither a common option nor the value of one. */
function commandIn(words: readonly string[]): string | undefined {
  try {
    return withCommonOptions(new Command()).parseOptions([...words]).operands[0]
  } catch {
    return undefined // an option without its value: the whole program says so
  }
}

function withCommonOptions(command: Command): Command {
  return command
    .option(
      '--redis <url>',
      'the server with the record (redis://, redis-sentinel://, redis-cluster://; rediss for TLS); absent: the embedded one in the data folder',
    )
    .option('--redis-ca <file>', 'PEM of a CA to trust for a rediss:// URL')
    .option('--redis-cert <file>', 'PEM of the client certificate that it asks for')
    .option('--redis-key <file>', 'PEM of its key')
    .option('--url <url>', 'work through the hub at this URL instead of on the record')
    .option(
      '--token <token>',
      'of a principal of that hub; better in HOLDFAST_TOKEN, where ps does not show it',
    )
    .option('--ca <file>', 'PEM of a CA to trust for --url')
    .option('--client-cert <file>', 'PEM of the client certificate that a principal pins')
    .option('--client-key <file>', 'PEM of its key')
    .option('--hub <name>', 'the hub (hf)')
    .option('--hubs <names>', 'a set of hubs: hf-0..hf-7, or names between commas')
    .option('--data <dir>', 'folder of the embedded server and of mirrors (.holdfast)')
    .option('--json', 'answer in JSON')
    .exitOverride()
    .configureOutput({ outputError: () => undefined })
}
