import type { Command } from 'commander'
import { makeProgram } from '../../src/cli/program.js'

const program = await makeProgram()

/** The `holdfast …` commands between backticks, and the lines of `sh` blocks that begin with one. */
export function commandsIn(text: string): string[] {
  const inline = [...text.matchAll(/`(holdfast [^`]+)`/g)].map(([, command = '']) => command)
  const lines = [...text.matchAll(/^```sh\n([\s\S]*?)^```/gm)].flatMap(([, block = '']) =>
    block.split('\n').filter((line) => line.startsWith('holdfast ')),
  )
  return [...inline, ...lines.map((line) => line.split(' #')[0]?.trim() ?? '')]
}

/** What the command line does not know of a command: a verb or a flag. Its values are not looked at. */
export function problemOfCommand(command: string): string | undefined {
  return problemOfWords(command.trim().split(/\s+/).slice(1))
}

/** The same for the words after `holdfast`. */
export function problemOfWords(words: readonly string[]): string | undefined {
  let verb: Command = program
  for (const word of words) {
    if (word.startsWith('-')) break
    const next: Command | undefined = verb.commands.find((each) => each.name() === word)
    if (next === undefined) break
    verb = next
  }
  if (verb === program || verb.commands.length > 0) return `no verb: ${words.join(' ')}`
  const known = [...verb.options, ...program.options].map(({ long }) => long)
  const strange = words
    .map((word) => word.split('=')[0] ?? '')
    .find((word) => word.startsWith('--') && !known.includes(word))
  return strange === undefined ? undefined : `${verb.name()} has no ${strange}`
}
