import * as z from 'zod'
import { otherwise, text } from '../fields.ts'

const UTR_RULE = 'must be 1 to 35 letters and digits'
const AMOUNT_RULE = 'must be rupees with at most two decimals'
const PAID_AT_RULE = 'must be a time in ISO 8601 with its zone'

/** Rupees as a number or as text, judged by their digits and never as a float; becomes decimal text with two decimals. */
const rupees = z
  .union([z.string(), z.number().transform(String)], otherwise(AMOUNT_RULE))
  .refine((amount) => /^\d{1,12}(\.\d{1,2})?$/.test(amount), AMOUNT_RULE)
  .transform((amount) => {
    const [whole = '', decimals = ''] = amount.split('.')
    return `${whole.replace(/^0+(?=\d)/, '')}.${decimals.padEnd(2, '0')}`
  })

/** The acquirer's notification: contract C5. UTR and paidAt are needed with SUCCESS only. */
export const PaymentNotification = z
  .object({
    orderId: text(64),
    status: z.enum(['SUCCESS', 'FAIL', 'REJECT'], otherwise('must be SUCCESS, FAIL or REJECT')),
    UTR: z
      .string(otherwise(UTR_RULE))
      .regex(/^[A-Za-z0-9]{1,35}$/, UTR_RULE)
      .optional(),
    amount: rupees,
    paidAt: z.iso
      .datetime({ offset: true, ...otherwise(PAID_AT_RULE) })
      .transform((moment) => new Date(moment))
      .optional(),
  })
  .superRefine(({ status, UTR, paidAt }, context) => {
    if (status !== 'SUCCESS') return
    if (UTR === undefined) context.addIssue({ code: 'custom', path: ['UTR'], message: 'is required with SUCCESS' })
    if (paidAt === undefined)
      context.addIssue({ code: 'custom', path: ['paidAt'], message: 'is required with SUCCESS' })
  })
