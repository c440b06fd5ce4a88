// @ts-check
// Requests reach the server; their answers are dropped and the connection cut.
import { troubleFault } from '../proxy/via.mjs'

export const fault = troubleFault(
  { name: 'net-drop-reply', leastMs: 200, longestMs: 2000, weight: 2 },
  (random) => {
    const share = 0.05 + random.next() * 0.45
    return { onRequest: () => (random.chance(share) ? { kind: 'cut-reply', share: 0 } : undefined) }
  },
)
