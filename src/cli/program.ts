import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { addAttempt } from './attempt.js'
import { addCompletion } from './completion.js'
import { addConfig } from './configuration.js'
import { addDelivery } from './delivery.js'
import { addDev } from './dev.js'
import { addDoctor } from './doctor.js'
import { addEffect } from './effect.js'
import { addFence } from './fence.js'
import { addFunctions } from './functions.js'
import { addHeld } from './held.js'
import { addHost } from './host.js'
import { addHubOf } from './hub-of.js'
import { addInit } from './init.js'
import { addMessage } from './message.js'
import { addNode } from './node.js'
import { addPending } from './pending.js'
import { addPrincipal } from './principal.js'
import { addSend } from './send.js'
import { addServe } from './serve.js'
import { addSession } from './session.js'
import { addSweep } from './sweep.js'
import { addTail } from './tail.js'
import { addTop } from './top.js'
import { addUnknown } from './unknown.js'

/** The whole command line. Common options stand before or after the verb. */
export function makeProgram(): Command {
  const program = new Command('holdfast')
    .description('a durable delivery broker on Redis Streams')
    .version(ownVersion())
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
    .configureHelp({ showGlobalOptions: true })
  const adders = [
    addInit,
    addDev,
    addServe,
    addNode,
    addSend,
    addMessage,
    addDelivery,
    addHeld,
    addPending,
    addUnknown,
    addAttempt,
    addEffect,
    addFence,
    addHost,
    addHubOf,
    addSession,
    addPrincipal,
    addConfig,
    addFunctions,
    addSweep,
    addDoctor,
    addTop,
    addTail,
    addCompletion,
  ]
  for (const add of adders) add(program)
  return program
}

function ownVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return String((JSON.parse(text) as { version: string }).version)
}
