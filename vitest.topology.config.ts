import { defineConfig } from 'vitest/config'

/** What `npm run test:topology` runs: other servers, clusters and sentinels, one file at a time. */
export default defineConfig({
  test: {
    include: ['test/topology/**/*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    fileParallelism: false,
    reporters: ['default'],
  },
})
