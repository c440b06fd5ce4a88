import type { Command } from 'commander'
import { z } from 'zod'
import { hubOf } from '../contract/hub-set.js'
import { hubsOf } from './context.js'
import { action, value } from './flags.js'
import { answer, print } from './output.js'

const schema = z.object({ conversation: value.id })

/** `holdfast hub-of`: where a conversation lives, by its name alone; nothing is asked. */
export function addHubOf(program: Command): void {
  program
    .command('hub-of')
    .description('the hub of the set that a conversation lives on')
    .argument('<conversation>', 'conversation id')
    .action(
      action(schema, async ({ conversation }, { settings, json }) => {
        answer(json, { conversation, hub: hubOf(conversation, hubsOf(settings)) }, ({ hub }) => print(hub))
        return undefined
      }),
    )
}
