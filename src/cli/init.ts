import type { Command } from 'commander'
import { z } from 'zod'
import { initRecord } from '../hub/open-hub.js'
import type { InitReply } from '../record/functions.js'
import { withRecord } from './context.js'
import { action, value } from './flags.js'
import { answer, fields, print } from './output.js'

const schema = z.object({ afterLoss: value.flag })

/** `holdfast init`: the identity of a record, which nothing but this (and `dev`) makes. */
export function addInit(program: Command): void {
  program
    .command('init')
    .description('make the record of the hub; changes nothing where there is one')
    .option('--after-loss', 'on a server that lost the record: epochs go on above all ever given')
    .action(
      action(schema, async ({ afterLoss }, { settings, json }) => {
        const made = await withRecord(
          settings,
          ({ redis }) => initRecord({ redis, hub: settings.hub, afterLoss }),
          { create: true },
        )
        answer(json, made, printMade)
      }),
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
