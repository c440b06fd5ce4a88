import { z } from 'zod'
import { checkOptions, option, optionsOf } from '../../contract/options.js'
import type { Outcome } from '../../contract/outcomes.js'
import type { Prober } from '../executor.js'
import { commandExecutor, EXIT_TEMPFAIL } from '../executors/command.js'
import { notExecuted, unknown } from './function.js'

/** What {@link commandProbe} runs. */
export interface CommandProbeOptions {
  /** Shell text; run once a question. */
  readonly command: string
  /** Path of the shell that gets `-c command`; `/bin/sh` when absent. */
  readonly shell?: string
  /** The command's environment; this process's own when absent. The `HOLDFAST_` names are added. */
  readonly env?: NodeJS.ProcessEnv
}

const form = optionsOf<CommandProbeOptions>({
  command: z.string(),
  shell: z.string().optional(),
  env: option.names,
})

/**
 * Asks by a shell command, which gets what the executor's command gets, and HOLDFAST_PROBE=1.
 *
 * | how it ends | what it says of the attempt |
 * |---|---|
 * | exit 0 | it executed: `result` `{"exitCode":0,"stdout":"…"}` |
 * | exit 65 | it will never succeed: `terminal` |
 * | exit 75 | it has not executed and will not |
 * | any other way, not started, or cut short by the attempt's signal | nobody can tell |
 *
 * @throws HoldfastError INVALID_ARGUMENT for options that are none
 */
export function commandProbe(options: CommandProbeOptions): Prober {
  checkOptions('commandProbe', form, options)
  const { command, shell, env = process.env } = options
  const executor = commandExecutor({
    command,
    env: { ...env, HOLDFAST_PROBE: '1' },
    ...(shell === undefined ? {} : { shell }),
  })
  return {
    ask: async (attempt) => {
      const outcome = await executor.run(attempt, { childStarted: async () => {} })
      return attempt.signal.aborted ? failed(outcome) : meaningOf(outcome)
    },
  }
}

/** A command that was not run has asserted nothing: only its own exit 75 does. */
function meaningOf(outcome: Outcome): Outcome {
  if (outcome.kind === 'result' || outcome.kind === 'terminal') return outcome
  if (outcome.kind === 'not_sent' && outcome.errorCode === `exit_${EXIT_TEMPFAIL}`) return notExecuted
  return failed(outcome)
}

/** Nothing is asserted, also by the exit of a command that was cut short: what ended it was the signal. */
function failed(outcome: Outcome): Outcome {
  const { errorCode, errorJson } =
    outcome.kind === 'result' ? { errorCode: 'cut_short', errorJson: outcome.result } : outcome
  return unknown('probe_failed', {
    errorCode,
    ...(errorJson && { particulars: JSON.parse(errorJson) as unknown }),
  })
}
