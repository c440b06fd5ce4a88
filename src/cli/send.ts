import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import type { Command } from 'commander'
import { z } from 'zod'
import type { DeliveryView, MessageView } from '../contract/delivery-views.js'
import { HoldfastError, isRepeatable } from '../contract/errors.js'
import type { Accepted, HubCalls } from '../contract/hub.js'
import type { OutgoingMessage } from '../contract/message.js'
import { osUser, type Settings } from './config.js'
import { withHub } from './context.js'
import { deliveryHead, deliveryRow } from './delivery.js'
import { type ExitCode, exitCodes } from './failure.js'
import { action, repeatable, value } from './flags.js'
import { answer, fields, print, printTable, say } from './output.js'
import { withProgress } from './progress.js'

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
    wait: value.flag,
    timeout: value.duration.optional(),
  })
  .refine(({ payload, text }) => problemOfPayload(payload, text) === undefined, {
    path: ['text'],
    when: () => true,
    error: ({ input }) => {
      const { payload, text } = input as { payload?: string; text?: string }
      return problemOfPayload(payload, text)
    },
  })
  .refine(({ wait, timeout }) => wait || timeout === undefined, {
    path: ['timeout'],
    when: () => true,
    error: 'is the patience of --wait, which is not given',
  })
type SendValues = z.output<typeof schema>

const defaultWaitMs = 60_000

/** `holdfast send`: accepts one message. */
export function addSend(program: Command): void {
  program
    .command('send')
    .description('hand a message to the hub; once this answers, nothing of it can be lost')
    .argument('[text]', 'the payload as text, where --payload does not name it')
    .option('--conversation <id>', 'what it belongs to')
    .option('--sender <id>', 'who it is from (the OS user; through --url the principal)')
    .addOption(repeatable('--to <recipient>', 'host:<host> or session:<session>'))
    .option('--key <key>', 'idempotency key: a repeat with the same key is the same message (a random one)')
    .option('--deliver-by <time>', 'until when it must be claimed: RFC 3339, Unix ms, or 5m from now')
    .option('--execute-by <time>', 'until when it must be begun')
    .option('--payload <file>', 'file with the payload, byte for byte; - for stdin')
    .option('--content-type <type>', 'media type of the payload')
    .option('--parent <id>', 'the message it answers or follows')
    .option('--wait', 'stay until every delivery is settled, and fail unless all are done')
    .option('--timeout <time>', 'how long to wait: 500ms, 30s, 5m (60s)')
    .action(
      action(schema, async (values, { settings, json }) => {
        const message = await messageOf(values, ownSender(settings))
        if (values.key === undefined && !json) sayKey(message.key)
        const waitMs = values.wait ? (values.timeout ?? defaultWaitMs) : undefined
        const { accepted, outcome } = await withHub(settings, async (hub) => {
          const accepted = await hub.accept(message)
          if (waitMs === undefined) return { accepted, outcome: undefined }
          return { accepted, outcome: await waitShown(hub, accepted, waitMs, json) }
        }).catch((error: unknown) => {
          throw withKey(error, message.key)
        })
        if (outcome === undefined) {
          answer(json, { ...accepted, key: message.key }, printAccepted)
          return exitCodes.ok
        }
        const { deliveries, fanOut } = outcome
        answer(json, { ...accepted, key: message.key, fanOut, deliveries }, () => {
          printAcceptance(accepted)
          printTable('deliveries', deliveryHead, deliveries.map(deliveryRow))
        })
        return sayOutcome(outcome)
      }),
    )
}

const lookEveryMs = 1000
/** A message of many recipients is a long answer: it is asked for less often. */
const manyRecipients = 1000

/** Waits, and shows how many of the deliveries are settled where somebody watches. */
async function waitShown(
  hub: HubCalls,
  { id }: Accepted,
  waitMs: number,
  json: boolean,
): Promise<MessageView> {
  return await withProgress('settled', json, async (onProgress) => {
    if (onProgress === undefined) return await hub.waitFor(id, waitMs)
    const endsAt = performance.now() + waitMs
    for (let everyMs = 0; ; ) {
      const restMs = endsAt - performance.now()
      const view = await hub.waitFor(id, Math.max(0, Math.min(everyMs, restMs)))
      const settled = view.deliveries.filter(isSettled).length
      if (view.settledAt !== undefined || restMs <= 0) return view
      if (view.recipients > 1) onProgress(settled, view.recipients)
      everyMs = view.recipients > manyRecipients ? 5 * lookEveryMs : lookEveryMs
    }
  })
}

function isSettled(each: DeliveryView): boolean {
  return each.settledAt !== undefined || each.state === 'failed'
}

/** Ok when every delivery is done; else says on stderr how many are what else. */
function sayOutcome({ deliveries, recipients }: MessageView): ExitCode {
  const done = deliveries.filter((each) => each.attempts.at(-1)?.status === 'done')
  if (done.length === recipients) return exitCodes.ok
  const settled = deliveries.filter(isSettled)
  say(`${done.length} of ${recipients} done, ${recipients - settled.length} not settled`)
  return exitCodes.failed
}

/** Tells the key that was minted. */
export function sayKey(key: string): void {
  say(`key ${key} (a retry must pass --key ${key})`)
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

/** The OS user; where a principal speaks to a hub, the hub knows who that is. */
function ownSender({ http }: Settings): string | undefined {
  const speaks = http?.token !== undefined || http?.clientCert !== undefined
  return speaks ? undefined : osUser()
}

/** Over HTTP the principal is the sender, unless another is named. */
async function messageOf(values: SendValues, ownName: string | undefined): Promise<OutgoingMessage> {
  const { key = randomUUID(), sender = ownName, payload, text = '', wait: _, timeout: __, ...rest } = values
  return {
    ...rest,
    key,
    ...(sender === undefined ? {} : { sender }),
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
export function withKey(error: unknown, key: string): unknown {
  // The call was repeated: an earlier try may have been accepted.
  if (!isRepeatable(error)) return error
  const text = error.message.slice(error.code.length + 1)
  const next = `repeat the same send with --key ${key}: it cannot be accepted twice`
  return new HoldfastError(error.code, text, { cause: error, next })
}

/** An acceptance with its deliveries. */
export function printAccepted(accepted: Accepted): void {
  printAcceptance(accepted)
  const rows = accepted.deliveries.map((each) => [each.id, each.state, each.host, each.session])
  printTable('deliveries', ['delivery', 'state', 'host', 'session'], rows)
}

function printAcceptance(accepted: Accepted): void {
  print(
    fields([
      ['message', accepted.id],
      ['accepted', accepted.replayed ? 'before, under this key' : 'now'],
      ['fan-out', accepted.fanOut],
    ]),
  )
}
