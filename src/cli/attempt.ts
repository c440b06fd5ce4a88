import type { Command } from 'commander'
import { z } from 'zod'
import { withHub } from './context.js'
import { action, value } from './flags.js'
import { answer, fields, print } from './output.js'

/** The flags of an operator's word on an unknown outcome, of attempts and of effects. */
export const resolution = {
  as: z.enum(['result', 'terminal', 'not_sent'], { error: 'must be result, terminal or not_sent' }),
  evidence: value.sentence,
  result: value.json.optional(),
  force: value.flag,
}

/** Declares the flags of {@link resolution}. */
export function addResolutionOptions(command: Command): Command {
  return command
    .option('--as <outcome>', 'result, terminal or not_sent')
    .option('--evidence <text>', 'how it is known; kept')
    .option('--result <json>', 'for a result: what came of it')
    .option('--force', 'also while its executor may live')
    .option('--actor <name>', 'who (the OS user)')
}

const resolveSchema = z.object({ id: value.attemptId, ...resolution })

/** `holdfast attempt resolve`. */
export function addAttempt(program: Command): void {
  const attempt = program.command('attempt').description('tries at executing a delivery')
  addResolutionOptions(
    attempt
      .command('resolve')
      .description('say what became of an unknown outcome, with evidence; irreversible')
      .argument('<id>', 'attempt id, <delivery>/<n>'),
  ).action(
    action(resolveSchema, async ({ id, ...said }, { settings, json }) => {
      const resolved = await withHub(settings, (hub) => hub.resolveAttempt(id, said, settings.actor))
      answer(json, resolved, (done) => {
        print(
          fields([
            ['attempt', done.id],
            ['outcome', done.outcome],
            ['delivery is', done.state],
            ['epoch', done.epoch],
          ]),
        )
      })
    }),
  )
}
