import { ShellCompDirective, script } from '@bomb.sh/tab'
import type { Command, Option } from 'commander'
import { roles } from '../contract/principals.js'
import { closeReasons } from '../contract/sessions.js'
import { sweepNames, sweeps } from '../contract/sweeps.js'
import { liveStates } from './bulk.js'
import { bashScript } from './completion-bash.js'
import { commandsOf, type Line, optionsOf, readLine } from './completion-line.js'
import { argumentNames, type Candidate, flagNames } from './completion-names.js'
import { readSettings } from './config.js'
import { print, visible } from './output.js'

/** What may stand where the cursor is, and what the shell does beside offering it. */
interface Completion {
  readonly candidates: readonly Candidate[]
  readonly directive: number
}

/** Prints what a shell has to run for completion to work in it. */
export function printScript(shell: string): void {
  if (shell === 'bash') print(bashScript(ShellCompDirective))
  else script(shell, 'holdfast', 'holdfast')
}

/** The answer to a shell: a candidate a line with a note behind a tab, then `:` and what the shell is to do. */
export async function answerLines(program: Command, words: readonly string[]): Promise<string[]> {
  const line = readLine(program, words)
  const { candidates, directive } = await completionOf(line)
  const typed = line.wanted.typed
  const offered = new Map(candidates.map(({ value, note }) => [value, note]))
  const lines = [...offered]
    .filter(([value]) => value.startsWith(typed) && isPlain(value))
    .map(([value, note = '']) => `${value}\t${visible(note).slice(0, 120)}`)
  return [...lines, `:${directive}`]
}

const { ShellCompDirectiveDefault, ShellCompDirectiveFilterDirs, ShellCompDirectiveNoFileComp } =
  ShellCompDirective

/** Names may be anything that a record takes; what a shell would read as more than a word is not offered. */
function isPlain(value: string): boolean {
  return /^(--?)?[A-Za-z0-9_/][A-Za-z0-9._:/@%+,-]*$/.test(value)
}

async function completionOf(line: Line): Promise<Completion> {
  const { wanted, command } = line
  if (wanted.kind === 'command') return only(commandsOf(command).map(commandCandidate))
  if (wanted.kind === 'flag') return only(flagsOf(line))
  if (wanted.kind === 'nothing') return only([])
  if (wanted.kind === 'argument') {
    const name = `${line.path} ${wanted.argument.name()}`
    return only(fixed[name] ?? (await namesOf(line, argumentNames[name])))
  }
  const { option } = wanted
  if (/<(file|dir)>/.test(option.flags)) {
    const isFolder = option.flags.includes('<dir>')
    return { candidates: [], directive: isFolder ? ShellCompDirectiveFilterDirs : ShellCompDirectiveDefault }
  }
  const [own, common] = [`${line.path} ${option.attributeName()}`, option.attributeName()]
  const known = fixed[own] ?? fixed[common]
  return only(known ?? (await namesOf(line, flagNames[own] ?? flagNames[common])))
}

function only(candidates: readonly Candidate[]): Completion {
  return { candidates, directive: ShellCompDirectiveNoFileComp }
}

function commandCandidate(command: Command): Candidate {
  return { value: command.name(), note: command.description() }
}

/** The flags that are not given yet. */
function flagsOf({ command, flags }: Line): Candidate[] {
  const isOpen = (option: Option) =>
    flags[option.attributeName()] === undefined || option.parseArg !== undefined
  return optionsOf(command)
    .filter(isOpen)
    .map((option) => ({ value: option.long ?? option.short ?? '', note: option.description }))
}

/** From the hub that the line, the environment or the file names, for as long as they name one without a mistake. */
async function namesOf(
  { flags, given }: Line,
  names: (typeof flagNames)[string] | undefined,
): Promise<readonly Candidate[]> {
  if (names === undefined) return []
  const { settings, problems } = readSettings(flags, process.env, process.cwd())
  if (problems.length > 0) return []
  const { readNames } = await import('./completion-hub.js')
  return (await readNames(settings, (hub) => names(hub, given))) ?? []
}

const words = (...values: readonly string[]): Candidate[] => values.map((value) => ({ value }))

/** What is the same on every hub, by command and argument or flag; a flag alone: wherever it stands. */
const fixed: Readonly<Record<string, readonly Candidate[]>> = {
  'attempt resolve as': words('result', 'terminal', 'not_sent'),
  'effect resolve as': words('result', 'terminal', 'not_sent'),
  'delivery resolve as': words('queued', 'failed'),
  'session close reason': words(...closeReasons),
  'principal add role': words(...roles),
  'completion shell': words('bash', 'zsh', 'fish', 'powershell'),
  'sweep run name': [
    { value: 'all', note: 'every one' },
    ...sweepNames.map((value) => ({ value, note: sweeps[value] })),
  ],
  state: words(...liveStates),
}
