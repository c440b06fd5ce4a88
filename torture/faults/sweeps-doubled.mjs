// @ts-check
// Every sweep runs many times at once: by hand through a hub, beside the schedule of both.
import { setTimeout as sleep } from 'node:timers/promises'

const atOnce = 4
const everyMs = 50

/** @type {import('../schedule.mjs').Fault} */
export const fault = {
  name: 'sweeps-doubled',
  leastMs: 300,
  longestMs: 2000,
  begin: async ({ client }) => {
    let isOver = false
    const again = async () => {
      // A hub that is down, or a sweep that is cut off, is what other faults make of it.
      for (; !isOver; await sleep(everyMs)) await client.runSweep('all').catch(() => {})
    }
    const running = Promise.all(Array.from({ length: atOnce }, again))
    return async () => {
      isOver = true
      await running
    }
  },
}
