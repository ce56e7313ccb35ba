/**
 * Runs the tests on another PostgreSQL than the embedded one: the folder whose `bin` holds its programs, such as
 * `TEST_POSTGRES=/usr/lib/postgresql/15 npx vitest run test/settlements`.
 */
export const INSTALLED_POSTGRES = process.env.TEST_POSTGRES || undefined
