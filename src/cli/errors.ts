/** The command was typed wrongly: exit 2, with help. */
export class UsageError extends Error {}

/**
 * The command is typed correctly but cannot be done: exit 1. The message is one line for the operator, `details` are
 * further lines. The audit keeps the message alone: details may repeat what was in a file, and the audit is kept for
 * ever.
 */
export class CommandError extends Error {
  readonly details: readonly string[]

  constructor(message: string, details: readonly string[] = []) {
    super(message)
    this.details = details
  }
}
