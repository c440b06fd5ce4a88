import { spawn, spawnSync } from 'node:child_process'
import { until } from './until.js'

/** A command that runs in a terminal of its own. */
export interface Terminal {
  /** The process id of the command. */
  readonly pid: number
  /** Everything that was written to the terminal, echo included. */
  output(): string
  /** What is typed. */
  type(text: string): void
  /** Waits until the screen is as wanted; answers it. */
  shows(text: string | RegExp): Promise<string>
  /** The lines of the screen, as far as programs here draw: the last that was drawn as a whole, from its top. */
  screen(): string[]
  /** Waits for the command's end; answers its exit code. */
  ended(): Promise<number | null>
  stop(): void
}

export interface TerminalOptions {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  readonly rows?: number
  readonly columns?: number
}

/** What a screen begins and ends with. */
const home = '\u001b[H'
const restOfScreen = '\u001b[J'

/** Starts a command in a pseudo terminal, with `script` of util-linux; without that the test fails. */
export async function startTerminal(words: readonly string[], options: TerminalOptions): Promise<Terminal> {
  const { cwd, env, rows = 24, columns = 80 } = options
  if (spawnSync('script', ['--version']).error !== undefined) {
    throw new Error('there is no `script` here, from util-linux: the test has no terminal without it')
  }
  const line = `stty rows ${rows} cols ${columns}; echo "pid $$"; exec ${words.map(quoted).join(' ')}`
  const child = spawn('script', ['-qefc', line, '/dev/null'], {
    cwd,
    env: { ...cleanEnvironment(), TERM: 'xterm', ...env, SHELL: '/bin/sh' },
    stdio: 'pipe',
  })
  let written = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    written += text
  })
  child.stdin.on('error', () => undefined)
  const ended = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)))
  const pid = await until(() => /pid (\d+)/.exec(written)?.[1], { what: 'the command of the terminal' })

  function screen(): string[] {
    const text = written.includes(home) ? lastFrame(written) : written
    return text.split('\n').map((each) => each.replace(sequences, '').replaceAll('\r', ''))
  }
  async function shows(text: string | RegExp): Promise<string> {
    const isThere = () => {
      const seen = screen().join('\n')
      return typeof text === 'string' ? seen.includes(text) : text.test(seen)
    }
    await until(isThere, { timeoutMs: 30_000 }).catch((error: unknown) => {
      throw new Error(`no ${text} on the terminal, but ${JSON.stringify(written.slice(-2000))}`, {
        cause: error,
      })
    })
    return screen().join('\n')
  }
  return {
    pid: Number(pid),
    output: () => written,
    type: (text) => child.stdin.write(text),
    shows,
    screen,
    ended: () => ended,
    stop: () => child.kill('SIGKILL'),
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: what a terminal is told begins with one.
const sequences = /\u001b\[[0-9;?]*[A-Za-z]/g

/** A terminal hands over what it has, which may end within a screen: such a one is not looked at yet. */
function lastFrame(written: string): string {
  const end = written.lastIndexOf(restOfScreen)
  const start = written.lastIndexOf(home, end)
  if (end < 0 || start < 0) return ''
  const next = written.indexOf(home, end)
  return written.slice(start + home.length, next < 0 ? undefined : next)
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`
}

function cleanEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('HOLDFAST_') && !['NO_COLOR', 'FORCE_COLOR', 'CI'].includes(name),
  )
  return Object.fromEntries(kept)
}
