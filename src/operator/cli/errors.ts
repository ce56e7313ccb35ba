/**
 * A command that was typed correctly and cannot be done: exit 1. `message` is one line for the operator, `details` are
 * further lines. The audit, which nothing is ever deleted from, stores the message alone: details may quote a file.
 */
export class CommandError extends Error {
  readonly details: readonly string[]

  constructor(message: string, details: readonly string[] = []) {
    super(message)
    this.details = details
  }
}

/** A command that was typed wrongly: exit 2, with help. The audit stores it as an error too, if the command had begun. */
export class UsageError extends CommandError {}
