import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/** No consumer lives longer, whatever becomes of the test. */
const livesAtMostMs = 30_000

/**
 * Starts a consumer as a process of its own, waits until it has taken something, kills it with SIGKILL, and answers
 * the line in which it said what it took. Fails where the consumer ends by itself, or takes nothing in time.
 */
export async function killedInTheMiddle(script: string, ...args: string[]): Promise<string> {
  const path = fileURLToPath(new URL(script, import.meta.url))
  const child = spawn(process.execPath, [path, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: livesAtMostMs,
    killSignal: 'SIGKILL',
  })
  const ended = once(child, 'close')
  const [took] = await Promise.race([
    once(createInterface({ input: child.stdout }), 'line') as Promise<[string]>,
    ended.then(() => Promise.reject(new Error(`${script} ended before it took anything`))),
  ])
  child.kill('SIGKILL')
  await ended
  return took
}
