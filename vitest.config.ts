import { configDefaults, defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // npm run test:beside, npm run test:topology
    exclude: [...configDefaults.exclude, 'test/beside/**', 'test/topology/**'],
    globalSetup: ['test/support/in-memory.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    fileParallelism: true,
    // More than the two cores that this is meant for: a run waits for processes and intervals half of its time.
    maxWorkers: 3,
    // Tests that go at the same time start processes: more at once would only be slower, each of them.
    maxConcurrency: 3,
    // Half a minute of a worker's time goes into loading the same modules for each file; what they keep of a test is its own.
    isolate: false,
    reporters: ['default'],
  },
})
