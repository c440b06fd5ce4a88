import type { Command } from 'commander'
import { z } from 'zod'
import type { MessageView } from '../hub/views.js'
import { withHub } from './context.js'
import { deliveryHead, deliveryRow } from './delivery.js'
import { action, value } from './flags.js'
import { answer, fields, print, printTable } from './output.js'
import { isoTime } from './times.js'

const schema = z.object({ id: value.text })

/** `holdfast message show`. */
export function addMessage(program: Command): void {
  program
    .command('message')
    .description('messages')
    .command('show')
    .description('a message with its deliveries as they stand')
    .argument('<id>', 'message id')
    .action(
      action(schema, async ({ id }, { settings, json }) => {
        answer(json, await withHub(settings, (hub) => hub.message(id)), printMessage)
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
