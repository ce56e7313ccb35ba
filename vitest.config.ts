import { createHash } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

const SLOW = 'test/**/*.slow.test.ts'
/** Their generated input is long in `npm run test:slow`, and short in `npm test`. */
const GENERATED = [
  'test/hostile/*.test.ts',
  'test/money.test.ts',
  'test/payments/upi-links.test.ts',
  'test/payments/interleavings.test.ts',
  'test/docs/request-schemas.test.ts',
  'test/reconciliation/reconcile-months.test.ts',
  'test/reconciliation/closed-months.test.ts',
  'test/reconciliation/planted-faults.test.ts',
  'test/acquirer/histories.test.ts',
]

const checkout = createHash('sha256')
  .update(`${import.meta.dirname} ${process.getuid?.()}`)
  .digest('hex')
  .slice(0, 8)

export default defineConfig({
  // It knows how long each file took, so that the slow ones begin first. Not in node_modules, which may belong to another user
  // than the one who tests.
  cacheDir: join(tmpdir(), `upi-payments-vitest-${checkout}`),
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['test/support/setup.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // The machines that this runs on have two cores, and the PostgreSQL server shares them.
    maxWorkers: 2,
    coverage: { provider: 'v8', include: ['src/**/*.ts'], exclude: ['src/dev/**'] },
    projects: [
      {
        extends: true,
        // The service is loaded once by each worker, not once for each file.
        test: { name: 'quick', include: ['test/**/*.test.ts'], exclude: [SLOW], isolate: false },
      },
      { extends: true, test: { name: 'slow', include: [SLOW, ...GENERATED], provide: { isSlow: true } } },
    ],
  },
})
