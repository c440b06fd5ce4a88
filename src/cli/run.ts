import { reportFailure } from './failure.js'
import { programFor } from './program.js'

/** Runs the words of a command line to their end; what to exit with stands in `process.exitCode`. */
export async function run(words: readonly string[]): Promise<void> {
  try {
    const program = await programFor(words)
    await program.parseAsync(words, { from: 'user' })
  } catch (error) {
    process.exitCode = reportFailure(error, wantsJson(words))
  }
}

/** Also where the words could not be read as a command. */
function wantsJson(words: readonly string[]): boolean {
  const end = words.indexOf('--')
  return (end < 0 ? words : words.slice(0, end)).includes('--json')
}
