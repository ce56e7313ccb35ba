/**
 * The longest time from an order's creation to its expiry without `expiry_minutes`, and the usual maximum with
 * `expiry_minutes`. Look-ups by creation read orders of this time only; longer orders are found by IS_LONG.
 */
export const LONGEST_EXPIRY_MINUTES = 24 * 60
/** The shortest `expiry_minutes`, and the highest maximum that an operator can set for a merchant. */
export const LEAST_EXPIRY_MINUTES = 5
export const HIGHEST_EXPIRY_MINUTES = 30 * 24 * 60

/** Whether an order can be paid for longer than LONGEST_EXPIRY_MINUTES. */
export const isLong = ({ createdAt, expiresAt }: { createdAt: Date; expiresAt: Date }): boolean =>
  expiresAt.getTime() - createdAt.getTime() > LONGEST_EXPIRY_MINUTES * 60_000

/** The SQL equivalent of `isLong`, which is the condition of the index payment_intents_long_idx. */
export const IS_LONG = `expires_at - created_at > interval '1 day'`
