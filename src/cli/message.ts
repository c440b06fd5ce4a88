import { randomUUID } from 'node:crypto'
import type { Command } from 'commander'
import { z } from 'zod'
import type { MessageView } from '../contract/delivery-views.js'
import { withHub } from './context.js'
import { deliveryHead, deliveryRow } from './delivery.js'
import { action, repeatable, value } from './flags.js'
import { answer, fields, print, printTable } from './output.js'
import { printAccepted, sayKey, withKey } from './send.js'
import { isoTime } from './times.js'

const showSchema = z.object({ id: value.messageId })
const resendSchema = z.object({
  id: value.messageId,
  key: value.id.optional(),
  to: z.array(value.recipient).optional(),
})

/** `holdfast message show|resend`. */
export function addMessage(program: Command): void {
  const message = program.command('message').description('messages')
  message
    .command('show')
    .description('a message with its deliveries as they stand')
    .argument('<id>', 'message id')
    .action(
      action(showSchema, async ({ id }, { settings, json }) => {
        answer(json, await withHub(settings, (hub) => hub.message(id)), printMessage)
      }),
    )
  message
    .command('resend')
    .description('the same payload as a new message, with a link to the first')
    .argument('<id>', 'message id')
    .option('--key <key>', 'idempotency key of the new message (a random one)')
    .addOption(repeatable('--to <recipient>', 'host:<host> or session:<session> (those of the first)'))
    .action(
      action(resendSchema, async ({ id, key: given, to }, { settings, json }) => {
        const key = given ?? randomUUID()
        if (given === undefined && !json) sayKey(key)
        const options = to === undefined ? { key } : { key, to }
        const accepted = await withHub(settings, (hub) => hub.resend(id, options)).catch((error: unknown) => {
          throw withKey(error, key)
        })
        answer(json, { ...accepted, key }, printAccepted)
      }),
    )
}

function printMessage(message: MessageView): void {
  print(
    fields([
      ['message', message.id],
      ['conversation', message.conversation],
      ['sender', message.sender],
      ['key', message.key],
      ['parent', message.parent],
      ['resend of', message.resendOf],
      ['content type', message.contentType],
      ['bytes', message.bytes],
      ['sha256', message.sha256],
      ['recipients', message.recipients],
      ['fan-out', message.fanOut],
      ['accepted', isoTime(message.acceptedAt)],
      ['settled', message.settledAt === undefined ? undefined : isoTime(message.settledAt)],
    ]),
  )
  print('')
  printTable('deliveries', deliveryHead, message.deliveries.map(deliveryRow))
}
