import type { Command } from 'commander'
import { z } from 'zod'
import type { PendingEntry } from '../contract/host-views.js'
import { withHub } from './context.js'
import { action, value } from './flags.js'
import { answer, hubCell, hubHead, printTable } from './output.js'
import { shortDuration } from './times.js'

const schema = z.object({ host: value.host.optional() })
const head = ['host', 'entry', 'consumer', 'idle', 'delivery', 'state', 'epoch', 'disagrees']

/** `holdfast pending ls`: the pending lists of Redis beside the rows they should agree with. */
export function addPending(program: Command): void {
  program
    .command('pending')
    .description('what nodes have claimed and not handed off')
    .command('ls')
    .description('the pending list of each host, with every disagreement between it and the rows')
    .option('--host <host>', 'of this host alone')
    .action(
      action(schema, async ({ host }, { settings, json }) => {
        const entries = await withHub(settings, (hub) => hub.pending(host))
        const pending = entries.map((entry) => ({ ...entry, disagrees: disagreements(entry) }))
        answer(json, { pending }, () =>
          printTable('pending entries', [...hubHead(pending), ...head], pending.map(rowOf)),
        )
      }),
    )
}

function rowOf(entry: PendingEntry & { disagrees: string[] }) {
  const { host, consumer, delivery, state, epoch } = entry
  const idle = shortDuration(entry.idleMs)
  return [
    ...hubCell(entry),
    host,
    entry.entry,
    consumer,
    idle,
    delivery,
    state,
    epoch,
    entry.disagrees.join('; '),
  ]
}

/** Pending is exactly claimed and mirrored, by the owner (contract section 9). Empty when it agrees. */
function disagreements(entry: PendingEntry): string[] {
  if (entry.delivery === undefined) return ['the entry is gone from the stream']
  if (entry.state === undefined) return ['the row is missing']
  const found: string[] = []
  if (entry.state !== 'claimed' && entry.state !== 'mirrored') found.push(`the row says ${entry.state}`)
  if (entry.owner !== entry.consumer) found.push(`the row's owner is ${entry.owner ?? 'nobody'}`)
  return found
}
