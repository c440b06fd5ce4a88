import { vi } from 'vitest'
import { run } from '../../src/cli/run.js'
import { type Ended, errorOf } from './run-cli.js'

// Commands in this process: all of the command line but the process around it. What is about that (stdin, signals,
// pipes, the exit code that a shell sees) is spawned with run-cli.ts.

type Env = Readonly<Record<string, string>>

/** Commands of one folder, each with the HOLDFAST_ settings of `env` alone. */
export interface CommandsHere {
  /** Runs a command to its end. */
  run(args: readonly string[], env?: Env): Promise<Ended>
  /** Runs a command that must succeed, with --json; answers its JSON. */
  answer<Answer>(args: readonly string[], env?: Env): Promise<Answer>
  /** Runs a command that must fail and answer nothing, with --json; how it ended, and why. */
  refused(args: readonly string[], env?: Env): Promise<{ exit: number | null } & ReturnType<typeof errorOf>>
}

export function commandsIn(cwd: string): CommandsHere {
  const run = (args: readonly string[], env: Env = {}) => inTurn(() => runAlone(args, cwd, env))
  return {
    run,
    answer: async <Answer>(args: readonly string[], env?: Env) => {
      const ended = await run([...args, '--json'], env)
      if (ended.code !== 0) throw new Error(`${args.join(' ')} ended with ${ended.code}: ${ended.stderr}`)
      return JSON.parse(ended.stdout) as Answer
    },
    refused: async (args, env) => {
      const ended = await run([...args, '--json'], env)
      if (ended.code === 0 || ended.stdout !== '') {
        throw new Error(`${args.join(' ')} ended with ${ended.code}, and answered ${ended.stdout}`)
      }
      return { exit: ended.code, ...errorOf(ended) }
    },
  }
}

let last: Promise<unknown> = Promise.resolve()

/** One at a time: a command has the output, the folder and the environment of the process for itself. */
function inTurn(start: () => Promise<Ended>): Promise<Ended> {
  const ended = last.then(start)
  last = ended.catch(() => undefined)
  return ended
}

async function runAlone(args: readonly string[], cwd: string, env: Env): Promise<Ended> {
  const [folder, exitCode] = [process.cwd(), process.exitCode]
  const own = Object.keys(process.env).filter((name) => name.startsWith('HOLDFAST_'))
  const before = new Map([...own, ...Object.keys(env)].map((name) => [name, process.env[name]]))
  const stdout = heard(process.stdout)
  const stderr = heard(process.stderr)
  try {
    process.chdir(cwd)
    for (const name of own) delete process.env[name]
    Object.assign(process.env, env)
    process.exitCode = undefined
    await run(args)
    return { code: Number(process.exitCode ?? 0), signal: null, stdout: stdout.end(), stderr: stderr.end() }
  } finally {
    stdout.end()
    stderr.end()
    process.exitCode = exitCode
    process.chdir(folder)
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
  }
}

/** Takes what is written to a stream until `end`, which answers it. */
function heard(stream: NodeJS.WriteStream): { end(): string } {
  const written: string[] = []
  const spy = vi.spyOn(stream, 'write').mockImplementation((text) => written.push(String(text)) > 0)
  return {
    end: () => {
      spy.mockRestore()
      return written.join('')
    },
  }
}
