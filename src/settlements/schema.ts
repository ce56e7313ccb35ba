import * as z from 'zod'
import { identifier, otherwise } from '../fields.ts'
import { startOfIstDay } from '../ist.ts'

const DATE_RULE = 'must be a date that exists, as dd-mm-yyyy'

/** The first moment of that day in India. */
const istDay = z
  .string(otherwise(DATE_RULE))
  // The form of a date; whether it exists is what startOfIstDay knows.
  .meta({ pattern: '^(0[1-9]|[12][0-9]|3[01])-(0[1-9]|1[0-2])-[0-9]{4}$' })
  .transform((text, context) => {
    const day = startOfIstDay(text)
    if (day !== undefined) return day
    context.addIssue(DATE_RULE)
    return z.NEVER
  })

/** Contract A3, in the order of its table. Both days are included. */
export const FetchSettlementList = z
  .object({
    pid: identifier.meta({ description: 'Your partner identifier, as the operator assigned it.' }),
    mid: identifier.meta({ description: 'A merchant that the operator has linked to you.' }),
    s_date: istDay.meta({ description: 'First day of the list: a day of India, `dd-mm-yyyy`.' }),
    e_date: istDay.meta({ description: 'Last day of the list, itself included; not before `s_date`.' }),
  })
  .refine(({ s_date, e_date }) => s_date <= e_date, { path: ['s_date'], error: 'must not be after e_date' })

export type FetchSettlementList = z.output<typeof FetchSettlementList>
