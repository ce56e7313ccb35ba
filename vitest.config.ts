import { createHash } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

const SLOW = 'test/**/*.slow.test.ts'
/** Their input is short, with a fixed seed, in `npm test`; long, with new seeds, in `npm run test:generated`. */
const GENERATED = 'test/**/*.gen.test.ts'

const checkout = createHash('sha256')
  .update(`${import.meta.dirname} ${process.getuid?.()}`)
  .digest('hex')
  .slice(0, 8)

const cacheDir = join(tmpdir(), `upi-payments-vitest-${checkout}`)
const globalSetup = ['test/support/global-setup.ts']

/** A change of these runs every test in `npm run check`: what tests read without importing it, and what global setup imports. */
const READ_BY_TESTS = ['**/!(*.ts)', '**/.*', '.ci/*', 'test/support/**', 'vitest.config.ts']

export default defineConfig({
  // Vitest stores how long each file took, so that the longest start first. Not in node_modules, which may belong to another
  // user than the one who tests.
  cacheDir,
  test: {
    setupFiles: ['test/support/setup.ts'],
    forceRerunTriggers: READ_BY_TESTS.map((pattern) => join(import.meta.dirname, pattern)),
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Tests wait for sockets and timers, so that four workers load two cores better than two.
    maxWorkers: 4,
    experimental: { fsModuleCache: true, fsModuleCachePath: join(cacheDir, 'modules') },
    coverage: { provider: 'v8', include: ['src/**/*.ts'], exclude: ['src/dev/**'] },
    // Global setup belongs to each project: in the root it would start a second server that no test uses.
    projects: [
      {
        extends: true,
        // A worker loads the service once, not once for each file.
        test: { name: 'quick', globalSetup, include: ['test/**/*.test.ts'], exclude: [SLOW], isolate: false },
      },
      {
        extends: true,
        test: {
          name: 'slow',
          globalSetup,
          include: [SLOW],
          isolate: false,
          // Their processes and browsers load two cores, and a process takes seconds to start where much else runs.
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
          testTimeout: 90_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'generated',
          globalSetup,
          include: [GENERATED],
          isolate: false,
          testTimeout: 900_000,
          provide: { isGenerated: true },
        },
      },
    ],
  },
})
