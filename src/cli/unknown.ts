import type { Command } from 'commander'
import { z } from 'zod'
import type { UnknownEntry } from '../contract/delivery-views.js'
import { withHub } from './context.js'
import { action } from './flags.js'
import { answer, printTable } from './output.js'
import { shortDuration } from './times.js'

/** `holdfast unknown ls`: what nobody can know. */
export function addUnknown(program: Command): void {
  program
    .command('unknown')
    .description('what nobody can know')
    .command('ls')
    .description('attempts whose outcome is unknown, and deliveries in doubt; oldest first')
    .action(
      action(z.object({}), async (_, { settings, json }) => {
        const unknown = await withHub(settings, (hub) => hub.unknown())
        answer(json, { unknown }, () => printUnknown(unknown, Date.now()))
      }),
    )
}

function printUnknown(unknown: readonly UnknownEntry[], now: number): void {
  const rows = unknown.map(({ id, sinceMs, host, node, reason }) => {
    return [id, shortDuration(now - sinceMs), host, node, reason]
  })
  printTable('unknown outcomes', ['id', 'age', 'host', 'node', 'reason'], rows)
}
