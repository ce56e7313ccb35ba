import { EXPIRY_GRACE_MINUTES } from '../payments/outcome.ts'

/** The shortest is a minute, and the grace comes after it: no order is final sooner after it was made. */
export const LOOKED_AT_AFTER_MINUTES = EXPIRY_GRACE_MINUTES - 1
/** Of orders made within this time, one statement looks at all: after an outage there may be a day's. */
export const SWEEP_MINUTES = 15

/** orderIdsBegin of payments/intent.ts, in SQL. */
export const orderIdsFrom = (moment: string) => `lpad(to_hex((extract(epoch from ${moment}) * 1000)::bigint), 12, '0')`

export const minutesBefore = (moment: Date, minutes: number) => new Date(moment.getTime() - minutes * 60_000)
