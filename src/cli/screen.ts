import { wantsColour } from './output.js'

/** A line of a screen; its style is that of all of it, so that it can be cut anywhere. */
export interface ScreenLine {
  readonly text: string
  readonly style?: 'bold' | 'red' | 'yellow' | 'dim' | undefined
}

/** A terminal that is drawn on as a whole, on a screen beside the one with the shell. */
export interface Screen {
  readonly rows: number
  readonly columns: number
  draw(lines: readonly ScreenLine[]): void
  /** Gives the terminal back as it was; harmless to repeat. */
  leave(): void
}

export interface ScreenOptions {
  /** Told of each key: a character, `tab` or `quit` (q, Ctrl-C, Ctrl-D). */
  readonly onKey: (key: string) => void
  /** The size changed, or the process goes on after it was stopped: what is there is to be drawn again. */
  readonly onRedraw: () => void
}

// What a terminal takes: another screen, the cursor hidden; the cursor at the top; and to clear what is left of a line
// and of the screen.
const enter = '\u001b[?1049h\u001b[?25l'
const leaveAll = '\u001b[?25h\u001b[?1049l'
const home = '\u001b[H'
const restOfLine = '\u001b[K'
const restOfScreen = '\u001b[J'
const styles = { bold: 1, dim: 2, red: 31, yellow: 33 } as const

/** Takes the terminal over. It is given back by `leave`, and in any case when the process ends. */
export function takeScreen({ onKey, onRedraw }: ScreenOptions): Screen {
  const { stdin, stdout } = process
  const isColoured = wantsColour(stdout)
  let isTaken = true
  const onData = (data: Buffer) => {
    for (const key of keysOf(data.toString('latin1'))) onKey(key)
  }
  function leave() {
    if (!isTaken) return
    isTaken = false
    stdout.write(leaveAll)
    if (stdin.isTTY) stdin.setRawMode(false)
    stdin.removeListener('data', onData).pause()
    stdout.removeListener('resize', onRedraw)
    process.removeListener('SIGCONT', onRedraw)
    process.removeListener('exit', leave)
  }
  process.on('exit', leave)
  stdout.write(enter)
  if (stdin.isTTY) stdin.setRawMode(true).on('data', onData).resume()
  stdout.on('resize', onRedraw)
  process.on('SIGCONT', onRedraw)
  return {
    get rows() {
      return stdout.rows || 24
    },
    get columns() {
      return stdout.columns || 80
    },
    draw: (lines) => {
      if (!isTaken) return
      const shown = lines.slice(0, stdout.rows || 24).map((line) => {
        const text = cut(line.text, stdout.columns || 80)
        const isPlain = !isColoured || line.style === undefined
        return `${isPlain ? text : `\u001b[${styles[line.style]}m${text}\u001b[0m`}${restOfLine}`
      })
      // In one write, from the top and over what is there: nothing flickers.
      stdout.write(`${home}${shown.join('\r\n')}${restOfScreen}`)
    },
    leave,
  }
}

/** The keys in what was typed; sequences of others, such as arrows, are none. */
function keysOf(typed: string): string[] {
  if (typed.startsWith('\u001b')) return []
  return [...typed].map((key) => {
    if (key === '\t') return 'tab'
    return key === 'q' || key === '\u0003' || key === '\u0004' ? 'quit' : key
  })
}

/** As much of the text as so many columns hold; characters of Asian scripts and signs may take two. */
export function cut(text: string, columns: number): string {
  let used = 0
  let end = 0
  for (const character of text) {
    used += (character.codePointAt(0) ?? 0) >= 0x1100 ? 2 : 1
    if (used > columns) return text.slice(0, end)
    end += character.length
  }
  return text
}
