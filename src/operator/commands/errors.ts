import { isForbiddenToRole } from '../../platform/db/grants.ts'
import { hasState, isOutage, QUERY_CANCELED, UNDEFINED_COLUMN, UNDEFINED_TABLE } from '../../platform/db/outage.ts'

/**
 * The error for a valid command that cannot be carried out (exit code 1). `message` is one line for the operator, and
 * `details` are further lines. The audit stores only the message, because audit rows are never erased and details may
 * quote a file.
 */
export class CommandError extends Error {
  readonly details: readonly string[]

  constructor(message: string, details: readonly string[] = []) {
    super(message)
    this.details = details
  }
}

/**
 * The error for invalid arguments: exit code 2, printed with the usage. The audit stores the error only if the command
 * had already begun.
 */
export class UsageError extends CommandError {}

/** Returns the record that was found. Without one, throws an error that names the command that lists the records. */
export function existing<T>(found: T | undefined, name: string, list: string): T {
  if (found === undefined) throw new CommandError(`${name} does not exist: see ops ${list}`)
  return found
}

/** Formats the error as one line for the operator. */
export function explain(error: unknown): string {
  if (error instanceof CommandError) return error.message
  const { code, message } = error as NodeJS.ErrnoException
  if (hasState(error, UNDEFINED_TABLE, UNDEFINED_COLUMN)) return 'the database is not migrated: run ops migrate'
  const [line] = (message || code || 'unknown error').split('\n')
  if (isForbiddenToRole(error))
    return `${line}: run ops migrate, which grants the console its rights. For all other commands, connect as the owner of the tables with DATABASE_MIGRATE_URL; in compose, use docker compose run --rm ops …`
  if (hasState(error, QUERY_CANCELED))
    return `${line}: choose fewer days or one merchant, or run the command on the command line`
  return isOutage(error) ? `database unavailable: ${line}` : String(line)
}
