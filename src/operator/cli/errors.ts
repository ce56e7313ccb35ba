/**
 * The error of a valid command that cannot be carried out: exit code 1. `message` is one line for the operator, `details`
 * are further lines. The audit stores only the message, because it is never erased and details may quote a file.
 */
export class CommandError extends Error {
  readonly details: readonly string[]

  constructor(message: string, details: readonly string[] = []) {
    super(message)
    this.details = details
  }
}

/** The error of invalid arguments: exit code 2, with usage. The audit stores it only if the command had already begun. */
export class UsageError extends CommandError {}
