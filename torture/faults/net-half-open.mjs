// @ts-check
// The server's side of connections is closed, and the other is not told: what it sends reaches nobody. With its first
// byte after the fault it finds out.
import { waysFault } from '../proxy/via.mjs'

const share = 0.7

export const fault = waysFault({ name: 'net-half-open', leastMs: 100, longestMs: 3000 }, (ways, random) => {
  const ends = ways.map((way) => way.halfOpen(() => random.chance(share)))
  return () => {
    for (const end of ends) end()
  }
})
