/** The command was typed wrongly: exit 2, with help. */
export class UsageError extends Error {}

/**
 * The command is typed correctly but cannot be done; the message is one line for the operator: exit 1. `audited` is what the
 * audit keeps of it for ever, where the message may repeat what was in a file.
 */
export class CommandFault extends Error {
  readonly audited: string

  constructor(message: string, audited = message) {
    super(message)
    this.audited = audited
  }
}
