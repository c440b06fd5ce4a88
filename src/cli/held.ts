import type { Command } from 'commander'
import { z } from 'zod'
import type { HeldEntry } from '../contract/delivery-views.js'
import { withHub } from './context.js'
import { action } from './flags.js'
import { answer, printTable } from './output.js'
import { shortDuration } from './times.js'

/** `holdfast held ls`: what waits for someone. */
export function addHeld(program: Command): void {
  program
    .command('held')
    .description('what waits for someone')
    .command('ls')
    .description('the held queue, oldest first; `delivery release` or `delivery reject` decides one')
    .action(
      action(z.object({}), async (_, { settings, json }) => {
        const held = await withHub(settings, (hub) => hub.held())
        answer(json, { held }, () => printHeld(held, Date.now()))
      }),
    )
}

function printHeld(held: readonly HeldEntry[], now: number): void {
  const rows = held.map(({ id, sinceMs, host, conversation, attempts, reason }) => {
    return [id, shortDuration(now - sinceMs), host, conversation, attempts, reason]
  })
  printTable('held deliveries', ['delivery', 'age', 'host', 'conversation', 'attempts', 'reason'], rows)
}
