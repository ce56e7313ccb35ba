import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Runs the tests on a cluster of Citus, a coordinator and two workers, where it is built into one of Debian's PostgreSQL:
 * `TEST_CITUS=1 npx vitest run test/payments`.
 */
export const ON_CITUS = process.env.TEST_CITUS === '1'

const DEBIAN = '/usr/lib/postgresql'

/** The folder of the installed PostgreSQL that has Citus, such as `/usr/lib/postgresql/15`; undefined when none has. */
export function findCitus(): string | undefined {
  return debianFolders().find((folder) => existsSync(join(folder, 'lib/citus.so')))
}

function debianFolders(): string[] {
  return existsSync(DEBIAN) ? readdirSync(DEBIAN).map((version) => join(DEBIAN, version)) : []
}

/** The folder of an installed PostgreSQL that has `program`, such as psql, which ours has not; undefined when none has. */
export function findPostgresWith(program: string): string | undefined {
  return debianFolders().find((folder) => existsSync(join(folder, 'bin', program)))
}

/**
 * Runs the tests on another PostgreSQL than the embedded one: the folder whose `bin` holds its programs, such as
 * `TEST_POSTGRES=/usr/lib/postgresql/15 npx vitest run test/settlements`.
 */
export const INSTALLED_POSTGRES = process.env.TEST_POSTGRES || undefined
