import type { Command } from 'commander'
import { z } from 'zod'
import { naming } from '../contract/hub-set.js'
import type { InitReply } from '../record/functions.js'
import { hubsOf, isSet, sayTrouble, withRecord } from './context.js'
import { action, value } from './flags.js'
import { answer, fields, print, printTable } from './output.js'

const schema = z.object({ afterLoss: value.flag })

/** `holdfast init`: the identity of a record, which nothing but this (and `dev`) makes. */
export function addInit(program: Command): void {
  program
    .command('init')
    .description('make the record of the hub, or of each hub of a set; changes nothing where there is one')
    .option('--after-loss', 'on a server that lost the record: epochs go on above all ever given')
    .action(
      action(schema, async ({ afterLoss }, { settings, json }) => {
        const made = await withRecord(
          settings,
          async ({ redis }) => {
            const { initRecord } = await import('../hub/open-hub.js')
            const replies = []
            for (const hub of hubsOf(settings)) {
              replies.push({
                hub,
                ...(await naming(hub, () => initRecord({ redis, hub, afterLoss, onTrouble: sayTrouble }))),
              })
            }
            return replies
          },
          { create: true },
        )
        if (isSet(settings)) answer(json, { hubs: made }, () => printSet(made))
        else for (const { hub: _, ...only } of made) answer(json, only, printMade)
      }),
    )
}

function printSet(made: readonly ({ hub: string } & InitReply)[]): void {
  printTable(
    'records',
    ['hub', 'store', 'generation', 'record'],
    made.map((each) => [each.hub, each.storeId, each.generation, each.made ? 'made' : 'present']),
  )
}

function printMade(made: InitReply): void {
  print(
    fields([
      ['store', made.storeId],
      ['generation', made.generation],
      ['record', made.made ? 'made' : 'present'],
    ]),
  )
}
