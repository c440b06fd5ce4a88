import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import type { Command } from 'commander'
import { z } from 'zod'
import { HoldfastError, isHoldfastError } from '../contract/errors.js'
import type { MessageInput } from '../contract/message.js'
import type { Accepted } from '../hub/open-hub.js'
import { osUser } from './config.js'
import { withHub } from './context.js'
import { action, repeatable, value } from './flags.js'
import { answer, fields, print, printTable, say } from './output.js'

const schema = z
  .object({
    conversation: value.id,
    sender: value.id.optional(),
    to: z.array(value.recipient, { error: 'is required: host:<host> or session:<session>' }),
    key: value.id.optional(),
    deliverBy: value.time.optional(),
    executeBy: value.time.optional(),
    payload: z
      .union([z.literal('-'), value.readableFile], { error: 'names no file that can be read' })
      .optional(),
    contentType: value.id.optional(),
    parent: value.id.optional(),
    text: z.string().optional(),
  })
  .refine(({ payload, text }) => problemOfPayload(payload, text) === undefined, {
    path: ['text'],
    when: () => true,
    error: ({ input }) => {
      const { payload, text } = input as { payload?: string; text?: string }
      return problemOfPayload(payload, text)
    },
  })
type SendValues = z.output<typeof schema>

/** `holdfast send`: accepts one message. */
export function addSend(program: Command): void {
  program
    .command('send')
    .description('hand a message to the hub; once this answers, nothing of it can be lost')
    .argument('[text]', 'the payload as text, where --payload does not name it')
    .option('--conversation <id>', 'what it belongs to')
    .option('--sender <id>', 'who it is from (the OS user)')
    .addOption(repeatable('--to <recipient>', 'host:<host> or session:<session>'))
    .option('--key <key>', 'idempotency key: a repeat with the same key is the same message (a random one)')
    .option('--deliver-by <time>', 'until when it must be claimed: RFC 3339, Unix ms, or 5m from now')
    .option('--execute-by <time>', 'until when it must be begun')
    .option('--payload <file>', 'file with the payload, byte for byte; - for stdin')
    .option('--content-type <type>', 'media type of the payload')
    .option('--parent <id>', 'the message it answers or follows')
    .action(
      action(schema, async (values, { settings, json }) => {
        const message = await messageOf(values)
        if (values.key === undefined && !json)
          say(`key ${message.key} (a retry must pass --key ${message.key})`)
        const accepted = await withHub(settings, (hub) => hub.accept(message)).catch((error: unknown) => {
          throw withKey(error, message.key)
        })
        answer(json, { ...accepted, key: message.key }, printAccepted)
      }),
    )
}

/** Text beside --payload, neither, or a recipient that lost its --to. */
function problemOfPayload(payload: string | undefined, text: string | undefined): string | undefined {
  if (payload !== undefined && text !== undefined)
    return 'the payload is given twice: as text and by --payload'
  if (payload === undefined && text === undefined)
    return 'is required, or --payload FILE, or --payload - for stdin'
  if (text !== undefined && /^(host|session):\S+$/.test(text)) {
    return `${JSON.stringify(text)} looks like a recipient: each takes a --to of its own (a payload like this goes through --payload -)`
  }
  return undefined
}

async function messageOf(values: SendValues): Promise<MessageInput & { key: string }> {
  const { key = randomUUID(), sender = osUser(), payload, text = '', ...rest } = values
  return {
    ...rest,
    key,
    sender,
    payload: payload === undefined ? Buffer.from(text) : await readPayload(payload),
  }
}

/** The longest string a Redis server takes: nothing longer can be accepted, so no more is read. */
const maxPayloadBytes = 512 * 1024 * 1024

async function readPayload(source: string): Promise<Buffer<ArrayBuffer>> {
  const stream: AsyncIterable<Buffer> = source === '-' ? process.stdin : createReadStream(source)
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of stream) {
    bytes += chunk.length
    if (bytes > maxPayloadBytes) {
      throw new HoldfastError('PAYLOAD_TOO_LARGE', `the payload is over ${maxPayloadBytes} bytes`)
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Where nobody knows whether it was accepted, only the key makes a retry the same message. */
function withKey(error: unknown, key: string): unknown {
  if (!isHoldfastError(error, 'STORE_UNAVAILABLE', 'DEADLINE_EXCEEDED')) return error
  const text = error.message.slice(error.code.length + 1)
  const next = `repeat the same send with --key ${key}: it cannot be accepted twice`
  return new HoldfastError(error.code, text, { cause: error, next })
}

function printAccepted(accepted: Accepted): void {
  print(
    fields([
      ['message', accepted.id],
      ['accepted', accepted.replayed ? 'before, under this key' : 'now'],
      ['fan-out', accepted.fanOut],
    ]),
  )
  const rows = accepted.deliveries.map((each) => [each.id, each.state, each.host, each.session])
  printTable('deliveries', ['delivery', 'state', 'host', 'session'], rows)
}
