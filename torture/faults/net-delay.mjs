// @ts-check
// Everything is late, in both directions, by up to half a second.
import { troubleFault } from '../proxy/via.mjs'

const longestDelayMs = 500

export const fault = troubleFault({ name: 'net-delay', leastMs: 200, longestMs: 3000 }, (random) => {
  const most = random.int(1, longestDelayMs)
  return { delayMs: () => random.int(0, most) }
})
