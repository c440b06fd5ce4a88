#!/usr/bin/env node
import { reportFailure } from './failure.js'
import { tolerateClosedPipes } from './output.js'
import { makeProgram } from './program.js'

tolerateClosedPipes()
const words = process.argv.slice(2)
try {
  await makeProgram().parseAsync(words, { from: 'user' })
} catch (error) {
  process.exitCode = reportFailure(error, wantsJson(words))
}

/** Also where the words could not be read as a command. */
function wantsJson(given: readonly string[]): boolean {
  const end = given.indexOf('--')
  return (end < 0 ? given : given.slice(0, end)).includes('--json')
}
