import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Asks until `check` answers something that is neither false, null nor undefined, and answers that. A throwing
 * check counts as "not yet". Fails at the deadline (10 s when absent) with what the check last threw.
 */
export async function until<T>(
  check: () => T | Promise<T>,
  options: { readonly timeoutMs?: number; readonly everyMs?: number; readonly what?: string } = {},
): Promise<NonNullable<T>> {
  const { timeoutMs = 10_000, everyMs = 10, what = 'the condition' } = options
  const deadlineAt = performance.now() + timeoutMs
  let lastError: unknown
  for (;;) {
    try {
      const answer = await check()
      if (answer !== false && answer !== null && answer !== undefined) return answer
      lastError = undefined
    } catch (error) {
      lastError = error
    }
    if (performance.now() > deadlineAt) {
      throw new Error(`${what} did not come true within ${timeoutMs} ms`, { cause: lastError })
    }
    await sleep(everyMs)
  }
}
