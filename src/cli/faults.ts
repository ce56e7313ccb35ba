/** The command was typed wrongly: exit 2, with help. */
export class UsageError extends Error {}

/** The command is typed correctly but cannot be done; the message is one line for the operator: exit 1. */
export class CommandFault extends Error {}
