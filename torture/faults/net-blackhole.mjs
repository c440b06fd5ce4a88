// @ts-check
// Nothing passes in either direction; connections stay open, and new ones are accepted. What was held arrives afterwards.
import { troubleFault } from '../proxy/via.mjs'

export const fault = troubleFault({ name: 'net-blackhole', leastMs: 100, longestMs: 3000 }, () => ({
  isDark: true,
}))
