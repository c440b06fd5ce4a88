import Table from 'cli-table3'
import picocolors from 'picocolors'

export type Cell = string | number | boolean | undefined

/** Colour on a terminal only, and never against NO_COLOR. */
export function wantsColour(stream: { readonly isTTY?: boolean }): boolean {
  return stream.isTTY === true && !process.env['NO_COLOR'] && process.env['TERM'] !== 'dumb'
}

const colours = picocolors.createColors(wantsColour(process.stdout))
const errorColours = picocolors.createColors(wantsColour(process.stderr))

/** Data, to stdout. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** Data for machines: one JSON document on one line. */
export function printJson(value: unknown): void {
  print(JSON.stringify(value))
}

/** An answer: JSON for machines, else as `human` prints it. */
export function answer<Value>(json: boolean, value: Value, human: (value: Value) => void): void {
  if (json) printJson(value)
  else human(value)
}

/** A message, to stderr. */
export function say(text: string): void {
  process.stderr.write(`${text}\n`)
}

/** An error code as a terminal shows it. */
export function redOnStderr(text: string): string {
  return errorColours.red(text)
}

/** A heading inside a longer answer. */
export function heading(text: string): string {
  return colours.bold(text)
}

/** Text from the record may hold anything: control characters are shown, not sent to the terminal. */
export function visible(text: string): string {
  return text.replace(controls, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

// The C0 and C1 controls, and the marks that turn the direction of text.
const controls = /[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu

const stateColours: Readonly<Record<string, (text: string) => string>> = {
  queued: colours.cyan,
  claimed: colours.cyan,
  mirrored: colours.cyan,
  delivered: colours.green,
  done: colours.green,
  held: colours.yellow,
  failed: colours.red,
  terminal: colours.red,
  unknown: colours.red,
}

/** Lines of a table without borders: what is undefined is left blank, a column where all is blank left out. */
export function table(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const kept = head.map((_, at) => rows.length === 0 || rows.some((row) => !isBlank(row[at])))
  const drawn = new Table({ chars: noBorders, style: plainStyle })
  drawn.push(head.filter((_, at) => kept[at]).map((name) => colours.dim(name.toUpperCase())))
  for (const row of rows) drawn.push(row.filter((_, at) => kept[at]).map(cellText))
  return trimLines(drawn.toString())
}

/** Names and their values, one a line; what is undefined is left out. */
export function fields(pairs: readonly (readonly [string, Cell])[]): string {
  const drawn = new Table({ chars: noBorders, style: plainStyle })
  for (const [name, value] of pairs) {
    if (!isBlank(value)) drawn.push([colours.dim(name), cellText(value)])
  }
  return trimLines(drawn.toString())
}

/** A list with a name for each column; says so on stderr when it is empty. */
export function printTable(what: string, head: readonly string[], rows: readonly (readonly Cell[])[]): void {
  if (rows.length === 0) say(`no ${what}`)
  else print(table(head, rows))
}

function isBlank(cell: Cell): boolean {
  return cell === undefined || cell === ''
}

function cellText(cell: Cell): string {
  const text = visible(String(cell ?? ''))
  return stateColours[text]?.(text) ?? text
}

function trimLines(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
}

const plainStyle = { head: [], border: [], 'padding-left': 0, 'padding-right': 0 }
const noBorders = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: '  ',
}

/**
 * A reader of our output that goes away (`| head`) is no failure: what is left is dropped, and the command
 * finishes its work. Any other trouble with the streams (a full disk) ends the command with 1; of an answer that could
 * not be written stderr has a line, for what it tells of may be done.
 * @param words of the command line, of which the first is told
 */
export function watchOutput([command = '']: readonly string[]): void {
  const name = /^[a-z]+$/.test(command) ? `holdfast ${command}` : 'holdfast'
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') return
    say(`${name}: the answer could not be written (${error.message}); what was asked for may be done`)
    process.exit(1)
  })
  process.stderr.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') process.exit(1)
  })
}

/** The first column of a list of a set of hubs; none where there is one hub. */
export function hubHead(entries: readonly { readonly hub?: string | undefined }[]): string[] {
  return entries.some(({ hub }) => hub !== undefined) ? ['hub'] : []
}

/** The cell under it. */
export function hubCell({ hub }: { readonly hub?: string | undefined }): string[] {
  return hub === undefined ? [] : [hub]
}
