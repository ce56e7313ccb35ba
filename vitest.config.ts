import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['test/support/kill-left-over.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // The machines that this runs on have two cores, and the PostgreSQL server shares them.
    maxWorkers: 2,
    // The cache lies in node_modules, which may belong to another user than the one who tests.
    cache: false,
    coverage: { provider: 'v8', include: ['src/**/*.ts'], exclude: ['src/dev/**'] },
  },
})
