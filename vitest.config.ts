import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  // Not in node_modules, which may belong to another user than the one who tests. It knows how long each file took, so that the
  // slow ones begin first.
  cacheDir: join(tmpdir(), 'upi-payments-vitest'),
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['test/support/setup.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // The machines that this runs on have two cores, and the PostgreSQL server shares them.
    maxWorkers: 2,
    // The service is loaded once by each worker, not once for each file.
    isolate: false,
    restoreMocks: true,
    unstubEnvs: true,
    coverage: { provider: 'v8', include: ['src/**/*.ts'], exclude: ['src/dev/**'] },
  },
})
