// @ts-check
// What the demo prints while it works, and how it waits.
import { setTimeout as sleep } from 'node:timers/promises'

const startedAt = performance.now()
const plainEveryMs = 3000
let lastProgressAt = 0
let progressShown = false

/** A line that stays. @param {string} text */
export function say(text) {
  if (progressShown) process.stdout.write('\r\x1b[K')
  progressShown = false
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1).padStart(5)
  process.stdout.write(`${seconds} s  ${text}\n`)
}

/** How far it is: rewritten in place on a terminal, else a line now and then. @param {string} text */
export function progress(text) {
  const now = performance.now()
  if (process.stdout.isTTY) {
    process.stdout.write(`\r\x1b[K         ${text}`)
    progressShown = true
  } else if (now - lastProgressAt > plainEveryMs) {
    say(text)
    lastProgressAt = now
  }
}

/**
 * Asks until the answer is not empty.
 * @template Answer
 * @param {string} what
 * @param {number} deadlineMs
 * @param {() => Promise<Answer | undefined | false> | Answer | undefined | false} ask
 * @param {number} [everyMs]
 * @returns {Promise<Answer>}
 */
export async function until(what, deadlineMs, ask, everyMs = 100) {
  const deadlineAt = performance.now() + deadlineMs
  for (;;) {
    const answer = await ask()
    if (answer !== undefined && answer !== false) return answer
    if (performance.now() > deadlineAt) throw new Error(`${deadlineMs / 1000} s went by waiting for ${what}`)
    await sleep(everyMs)
  }
}
