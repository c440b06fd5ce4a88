import { defineConfig } from 'vitest/config'

/** What `npm run test:beside` runs: other systems, each on a server of its own. */
export default defineConfig({
  test: {
    include: ['test/beside/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ['default'],
  },
})
