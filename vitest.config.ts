import { configDefaults, defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: [...configDefaults.exclude, 'test/topology/**'], // npm run test:topology
    globalSetup: ['test/support/in-memory.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    fileParallelism: true,
    maxWorkers: 2,
    // Half a minute of a worker's time goes into loading the same modules for each file; what they keep of a test is its own.
    isolate: false,
    reporters: ['default'],
  },
})
