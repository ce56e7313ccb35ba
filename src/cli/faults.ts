/** The command was typed wrongly: exit 2, with help. */
export class UsageError extends Error {}

/**
 * The command is typed correctly but cannot be done; the message is one line for the operator: exit 1. `details` are one line
 * each. They may repeat what was in a file, which the audit would keep for ever: it keeps the message alone.
 */
export class CommandFault extends Error {
  readonly details: readonly string[]

  constructor(message: string, details: readonly string[] = []) {
    super(message)
    this.details = details
  }
}
