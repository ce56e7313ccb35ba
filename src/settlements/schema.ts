import * as z from 'zod'
import { identifier, otherwise } from '../fields.ts'
import { startOfIstDay } from './dates.ts'

const DATE_RULE = 'must be a date that exists, as dd-mm-yyyy'

/** The first moment of that day in India. */
const istDay = z.string(otherwise(DATE_RULE)).transform((text, context) => {
  const day = startOfIstDay(text)
  if (day !== undefined) return day
  context.addIssue(DATE_RULE)
  return z.NEVER
})

/** Contract A3, in the order of its table. Both days are included. */
export const FetchSettlementList = z
  .object({ pid: identifier, mid: identifier, s_date: istDay, e_date: istDay })
  .refine(({ s_date, e_date }) => s_date <= e_date, { path: ['s_date'], error: 'must not be after e_date' })

export type FetchSettlementList = z.output<typeof FetchSettlementList>
