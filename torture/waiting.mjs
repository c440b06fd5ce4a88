// @ts-check
// Waiting that ends: nothing in a run waits without a deadline.
import { setTimeout as sleep } from 'node:timers/promises'

const againAfterMs = 50

/**
 * What a promise answers, or an error after so long. What is under way is not ended by it.
 * @template Answer @param {Promise<Answer>} promise @param {number} withinMs @param {string} what @returns {Promise<Answer>}
 */
export async function within(promise, withinMs, what) {
  const timeout = new AbortController()
  try {
    return await Promise.race([
      promise,
      sleep(withinMs, undefined, { signal: timeout.signal }).then(() => {
        throw new Error(`${what}: not done within ${withinMs} ms`)
      }),
    ])
  } finally {
    timeout.abort()
  }
}

/**
 * Tries until it succeeds; the last error after so long.
 * @template Answer @param {() => Promise<Answer>} attempt @param {number} withinMs @returns {Promise<Answer>}
 */
export async function untilDone(attempt, withinMs) {
  const deadlineAt = performance.now() + withinMs
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (performance.now() > deadlineAt) throw error
      await sleep(againAfterMs)
    }
  }
}
