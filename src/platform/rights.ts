/** The rights of an API key. An operation that requires a key names one of them as its `access`. */
export const RIGHTS = ['create', 'status', 'cancel', 'list', 'refund'] as const
export type Right = (typeof RIGHTS)[number]
