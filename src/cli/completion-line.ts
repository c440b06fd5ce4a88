import type { Argument, Command, Option } from 'commander'

/** What a command line holds up to the word that is completed, which is its last one. */
export interface Line {
  /** The command that its words lead to. */
  readonly command: Command
  /** Its words, such as `delivery release`. */
  readonly path: string
  /** Flags with their values, by their names in camelCase; a flag without a value is true. */
  readonly flags: Readonly<Record<string, string | true>>
  /** Arguments that stand before the last word. */
  readonly given: readonly string[]
  readonly wanted: Wanted
}

/** What the last word is part of, and the part of it that was typed already. */
export type Wanted =
  | { readonly kind: 'flag'; readonly typed: string }
  | { readonly kind: 'command'; readonly typed: string }
  | { readonly kind: 'nothing'; readonly typed: string }
  | { readonly kind: 'value'; readonly option: Option; readonly typed: string }
  | { readonly kind: 'argument'; readonly argument: Argument; readonly typed: string }

/** Reads the words behind the program's name as commander would, and stops at the last one. */
export function readLine(program: Command, words: readonly string[]): Line {
  let command = program
  const path: string[] = []
  const flags: Record<string, string | true> = {}
  const given: string[] = []
  let awaiting: Option | undefined
  let isOver = false
  const before = words.slice(0, -1).map(unquoted)
  for (const word of before) {
    if (awaiting !== undefined) {
      flags[awaiting.attributeName()] = word
      awaiting = undefined
    } else if (word === '--') isOver = true
    else if (word.startsWith('-') && !isOver) {
      const [name, value] = split(word)
      const option = optionsOf(command).find((each) => isNamed(each, name))
      if (option !== undefined && value !== undefined) flags[option.attributeName()] = value
      else if (option !== undefined && takesValue(option)) awaiting = option
      else if (option !== undefined) flags[option.attributeName()] = true
    } else {
      const next = given.length === 0 ? commandsOf(command).find((each) => each.name() === word) : undefined
      if (next === undefined) given.push(word)
      else {
        command = next
        path.push(word)
      }
    }
  }
  const wanted = wantedBy(unquoted(words.at(-1) ?? ''), { command, given, awaiting, isOver })
  return { command, path: path.join(' '), flags, given, wanted }
}

interface Before {
  readonly command: Command
  readonly given: readonly string[]
  /** The flag that the last word is the value of. */
  readonly awaiting: Option | undefined
  /** `--` was among the words: no flag comes any more. */
  readonly isOver: boolean
}

function wantedBy(word: string, { command, given, awaiting, isOver }: Before): Wanted {
  if (awaiting !== undefined) return { kind: 'value', option: awaiting, typed: word }
  if (word.startsWith('-') && !isOver) {
    const [name, value] = split(word)
    if (value === undefined) return { kind: 'flag', typed: word }
    const option = optionsOf(command).find((each) => isNamed(each, name) && takesValue(each))
    return option === undefined ? { kind: 'nothing', typed: '' } : { kind: 'value', option, typed: value }
  }
  if (given.length === 0 && commandsOf(command).length > 0) return { kind: 'command', typed: word }
  const known = command.registeredArguments
  const argument = known[given.length] ?? (known.at(-1)?.variadic ? known.at(-1) : undefined)
  if (argument !== undefined) return { kind: 'argument', argument, typed: word }
  return { kind: word === '' && !isOver ? 'flag' : 'nothing', typed: word }
}

/** The commands below one, as its help shows them. */
export function commandsOf(command: Command): readonly Command[] {
  return command.createHelp().visibleCommands(command)
}

/** The flags that may stand behind a command: its own, then those that are common to all. */
export function optionsOf(command: Command): readonly Option[] {
  const help = command.createHelp()
  return [...help.visibleOptions(command), ...help.visibleGlobalOptions(command)]
}

function takesValue(option: Option): boolean {
  return option.required || option.optional
}

function isNamed({ long, short }: Option, name: string): boolean {
  return long === name || short === name
}

function split(word: string): [string, string?] {
  const at = word.indexOf('=')
  return at < 0 ? [word] : [word.slice(0, at), word.slice(at + 1)]
}

/** Shells hand words over as they were typed. Nothing is expanded here: a completion runs nothing of the line. */
function unquoted(word: string): string {
  return /^(['"])(.*)\1$/s.exec(word)?.[2] ?? word
}
