import * as z from 'zod'
import { otherwise, text, utr } from '../fields.ts'
import { bankAmount } from '../money.ts'

const PAID_AT_RULE = 'must be a time in ISO 8601 with its zone'

/** The acquirer's notification. UTR and paidAt are needed with SUCCESS only. */
export const PaymentNotification = z
  .object({
    orderId: text(64).meta({ description: 'Our `orderId`: the parameter `tr` of the UPI link.' }),
    status: z.enum(['SUCCESS', 'FAIL', 'REJECT'], otherwise('must be SUCCESS, FAIL or REJECT')),
    UTR: utr
      .meta({
        description:
          'Unique transaction reference; needed with SUCCESS. Upper and lower case are the same. It also tells failed attempts apart.',
      })
      .optional(),
    amount: bankAmount.meta({ description: 'Rupees with at most two decimals.' }),
    paidAt: z.iso
      .datetime({ offset: true, ...otherwise(PAID_AT_RULE) })
      .transform((moment) => new Date(moment))
      .meta({
        description: 'When the money moved, or the attempt failed, in ISO 8601 with its zone; needed with SUCCESS.',
      })
      .optional(),
  })
  .superRefine(({ status, UTR, paidAt }, context) => {
    if (status !== 'SUCCESS') return
    if (UTR === undefined) context.addIssue({ code: 'custom', path: ['UTR'], message: 'is required with SUCCESS' })
    if (paidAt === undefined)
      context.addIssue({ code: 'custom', path: ['paidAt'], message: 'is required with SUCCESS' })
  })
  // The same in the words of JSON Schema.
  .meta({ anyOf: [{ properties: { status: { enum: ['FAIL', 'REJECT'] } } }, { required: ['UTR', 'paidAt'] }] })
