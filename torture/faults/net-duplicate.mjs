// @ts-check
// Calls arrive twice, the second time at once or when much has happened since; nobody reads the second answer.
import { isRepeatable } from '../proxy/repeats.mjs'
import { troubleFault } from '../proxy/via.mjs'

const latestMs = 500

export const fault = troubleFault({ name: 'net-duplicate', leastMs: 200, longestMs: 3000 }, (random) => {
  const share = 0.1 + random.next() * 0.6
  return {
    onRequest: ({ words }) => {
      if (!isRepeatable(words) || !random.chance(share)) return undefined
      return random.chance(0.5)
        ? { kind: 'duplicate' }
        : { kind: 'duplicate', afterMs: random.int(0, latestMs) }
    },
  }
})
