import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Runs the tests on a Citus cluster, a coordinator and two workers, if a Debian PostgreSQL has Citus: `TEST_CITUS=1
 * npx vitest run test/payments`.
 */
export const ON_CITUS = process.env.TEST_CITUS === '1'

const DEBIAN = '/usr/lib/postgresql'

/**
 * Returns the folder of an installed PostgreSQL with Citus, such as `/usr/lib/postgresql/15`; undefined if there is
 * none.
 */
export function findCitus(): string | undefined {
  return debianFolders().find((folder) => existsSync(join(folder, 'lib/citus.so')))
}

function debianFolders(): string[] {
  return existsSync(DEBIAN) ? readdirSync(DEBIAN).map((version) => join(DEBIAN, version)) : []
}

/**
 * Returns the folder of an installed PostgreSQL with `program`, such as psql, which the embedded one lacks; undefined
 * if there is none.
 */
export function findPostgresWith(program: string): string | undefined {
  return debianFolders().find((folder) => existsSync(join(folder, 'bin', program)))
}

/**
 * Runs the tests on another PostgreSQL than the embedded one: the folder whose `bin` contains its programs, such as
 * `TEST_POSTGRES=/usr/lib/postgresql/15 npx vitest run test/settlements`.
 */
export const INSTALLED_POSTGRES = process.env.TEST_POSTGRES || undefined

/** Whether the tests fail on a PostgreSQL that cannot compile statements, which the embedded one cannot: `TEST_JIT=1`. */
export const NEEDS_JIT = process.env.TEST_JIT === '1'
