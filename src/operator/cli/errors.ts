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
