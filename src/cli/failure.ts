import { CommanderError } from 'commander'
import { errorCatalogue, HoldfastError, isHoldfastError } from '../contract/errors.js'
import { redOnStderr, say, visible } from './output.js'

/** What the command line ends with (contract section 12). */
export const exitCodes = { ok: 0, failed: 1, usage: 2, notFound: 3, unhealthy: 4 } as const
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** All problems with what was given, as one error. */
export function usageError(problems: readonly string[], next?: string): HoldfastError {
  const [first = ''] = problems
  const text = problems.length === 1 ? first : `${problems.length} problems:\n  - ${problems.join('\n  - ')}`
  return new HoldfastError('INVALID_ARGUMENT', text, next === undefined ? {} : { next })
}

/** Prints why a command failed, to stderr; answers what to exit with. */
export function reportFailure(error: unknown, json: boolean): ExitCode {
  if (error instanceof CommanderError) return reportUsage(error, json)
  const { code, message, next } = described(error)
  if (json) {
    say(JSON.stringify({ error: { code, message, next } }))
  } else {
    say(redOnStderr(code) + printable(message.slice(code.length)))
    say(`  next: ${printable(next)}`)
  }
  return exitCodeOf(error)
}

/** The help that was asked for is no failure; what commander refuses is wrong usage. */
function reportUsage(error: CommanderError, json: boolean): ExitCode {
  if (error.exitCode === 0) return exitCodes.ok
  if (error.code === 'commander.help') return exitCodes.usage
  const text = error.message.replace(/^error: /, '').replaceAll('\n', ' ')
  return reportFailure(usageError([text], 'see `holdfast --help`, or --help after a command'), json)
}

function exitCodeOf(error: unknown): ExitCode {
  if (!isHoldfastError(error)) return exitCodes.failed
  if (error.code === 'INVALID_ARGUMENT') return exitCodes.usage
  return errorCatalogue[error.code].status === 404 ? exitCodes.notFound : exitCodes.failed
}

function described(error: unknown): { code: string; message: string; next: string } {
  if (isHoldfastError(error)) return error
  const text = error instanceof Error ? error.message : String(error)
  return {
    code: 'UNEXPECTED',
    message: `UNEXPECTED ${text}`,
    next: 'this is no answer of the catalogue: please report it with the command that led to it',
  }
}

function printable(text: string): string {
  return text.split('\n').map(visible).join('\n')
}
