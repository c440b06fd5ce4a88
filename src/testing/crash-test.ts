import { fileURLToPath, pathToFileURL } from 'node:url'
import { z } from 'zod'
import { HoldfastError } from '../contract/errors.js'
import type { MessageInput } from '../contract/message.js'
import { checkOptions, option, optionsOf } from '../contract/options.js'
import { textOf } from './checker/report.js'
import { type RunOptions, type RunResult, runWithCrash } from './crash-run.js'
import type { CrashedDelivery, CrashRun, CrashVerdict } from './crash-words.js'

/** Options of {@link crashTest}. */
export interface CrashTestOptions {
  /**
   * The module of the handler: a file URL, or an absolute path. It exports `execute`, and may export `probe`,
   * `idempotent` and `options` (see {@link CrashHandler}).
   */
  readonly handler: URL | string
  /**
   * What is sent in each run; `to` is best left to the test. Three messages in two conversations when absent.
   */
  readonly messages?: readonly Partial<MessageInput>[] | undefined
  /**
   * Where the process is killed, a run for each: names of `points` (`holdfast/node`), and `handler.<name>` for each
   * `crashPoint('<name>')` of the handler. All that a run without a crash comes to when absent.
   */
  readonly points?: readonly string[] | undefined
  /**
   * How often the effect of a delivery has happened, by whatever the handler acted on: its own log, the table it wrote,
   * the service it called. More than once is wrong; so is never where it is done, and ever where it is `not_sent`.
   */
  readonly effects?: ((delivery: CrashedDelivery) => number | Promise<number>) | undefined
  /** Variables for the handler's processes, beside those of this one and `HOLDFAST_CRASH_DIR`, a folder for each run. */
  readonly env?: Readonly<Record<string, string>> | undefined
  /** Options of Node for them, such as `['--import', 'tsx']` for a handler in TypeScript. */
  readonly execArgv?: readonly string[] | undefined
  /** Milliseconds in which what is left must be settled after the crash; 30,000 when absent. What is not, is a violation. */
  readonly deadlineMs?: number | undefined
  /** Runs at the same time; 2 when absent. */
  readonly concurrency?: number | undefined
}

const form = optionsOf<CrashTestOptions>({
  handler: option.url,
  messages: z.array(z.looseObject({})).optional(),
  points: z.array(z.string()).optional(),
  effects: option.function.optional(),
  env: option.names,
  execArgv: z.array(z.string()).optional(),
  deadlineMs: option.count,
  concurrency: option.count,
})

const usualMessages: readonly Partial<MessageInput>[] = [
  { key: 'crash-1', conversation: 'a', payload: 'one' },
  { key: 'crash-2', conversation: 'a', payload: 'two' },
  { key: 'crash-3', conversation: 'b', payload: 'three' },
]

/**
 * Kills the process of a handler (SIGKILL) at one point after the other, each in a run of its own on a real record,
 * starts it again on the same mirror, and has the checker judge what came of it: nothing lost, nothing executed twice,
 * and nothing unknown without a cause. Takes about a second for each point.
 * @throws INVALID_ARGUMENT (a module that exports no handler, or ends by itself), SERVER_NOT_FOUND, DEADLINE_EXCEEDED
 *   where its process does not join
 */
export async function crashTest(options: CrashTestOptions): Promise<CrashVerdict> {
  checkOptions('crashTest', form, options)
  return await crashTestOf(fileURLToPath(new URL('./crash-process.js', import.meta.url)), options)
}

/** As {@link crashTest}; `program` is the built crash-process.js, wherever this runs from. */
export async function crashTestOf(program: string, options: CrashTestOptions): Promise<CrashVerdict> {
  const common = commonOf(program, options)
  const rehearsal = await runWithCrash(common)
  const points = options.points ?? rehearsal.points
  const crashed = await inTurn(points, options.concurrency ?? 2, (point) => runWithCrash(common, point))
  const runs = [rehearsal, ...crashed].map(({ run }) => run)
  const ok = runs.every(({ reached, verdict }) => reached && verdict.ok)
  const lines = [...runs.flatMap(linesOf), ...(options.effects === undefined ? [uncounted] : [])]
  return { ok, runs, points: rehearsal.points, text: lines.join('\n') }
}

const uncounted =
  'effects not counted: no `effects` option, so what happened twice or never is seen by the marks of the handler alone'

function commonOf(program: string, options: CrashTestOptions): RunOptions {
  const { handler, messages = usualMessages, effects, env = {}, execArgv = [], deadlineMs = 30_000 } = options
  if (messages.length === 0) {
    throw new HoldfastError('INVALID_ARGUMENT', 'a crash test needs a message; `messages` is empty')
  }
  return { program, handler: hrefOf(handler), messages, effects, env, execArgv, deadlineMs }
}

function hrefOf(handler: URL | string): string {
  if (handler instanceof URL) return handler.href
  return handler.startsWith('file:') ? handler : pathToFileURL(handler).href
}

async function inTurn(
  points: readonly string[],
  atOnce: number,
  run: (point: string) => Promise<RunResult>,
): Promise<RunResult[]> {
  const results: RunResult[] = []
  const left = [...points.entries()]
  async function work(): Promise<void> {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [at, point] = next
      results[at] = await run(point)
    }
  }
  await Promise.all(Array.from({ length: Math.max(1, atOnce) }, work))
  return results
}

function linesOf({ point, reached, executions, unknown, verdict }: CrashRun): string[] {
  const how = point === 'none' ? 'not killed' : `killed at ${point}`
  if (!reached) return [`${how}: never reached`]
  const left = unknown.length === 0 ? 'nothing unknown' : `unknown: ${unknown.join(', ')}`
  const said = `${how}: deliveries ${verdict.deliveries}, executions ${executions}, ${left}`
  return verdict.ok ? [said] : [said, ...textOf(verdict).map((line) => `  ${line}`)]
}
