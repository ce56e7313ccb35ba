import type { NewPayment } from '../../src/gateway/payments/new-payment.ts'

/**
 * For each field of a create request, in schema order: an accepted text that is recognisable wherever it appears, and
 * rejected texts that contain a canary.
 */
export const CANARIES: Record<keyof NewPayment, { taken?: string; rejected: string[] }> = {
  mid: { rejected: ['canarymid', 'canary mid'] },
  amount: { rejected: ['canaryamount'] },
  order_id: { taken: 'canaryorder-1', rejected: [`canaryorder${'x'.repeat(64)}`] },
  redirect_url: {
    taken: 'https://shop.example.in/canaryredirect?for=canaryquery',
    rejected: ['javascript:canaryredirect', 'https://canaryuser:canarypass@shop.example.in/'],
  },
  note: { taken: 'Canarynote 77', rejected: ['Canarynote\u0001'] },
  customer_name: { taken: 'Canaryname Rao', rejected: [`Canaryname${'x'.repeat(100)}`, 'Canaryname\u0000'] },
  customer_email: { taken: 'canarymail@example.in', rejected: ['canarymail at example'] },
  customer_mobile: { taken: '9137460285', rejected: ['91374602850'] },
  expiry_minutes: { rejected: ['canaryminutes'] },
}

const taken = Object.entries(CANARIES).flatMap(([name, { taken }]) => (taken === undefined ? [] : [[name, taken]]))

/** A create request of canaries only, without mid and amount. */
export const CANARY_FIELDS: Record<string, string> = Object.fromEntries(taken)

/** The canaries that are customer data. */
export const CANARY_CUSTOMER: Record<string, string> = Object.fromEntries(
  taken.filter(([name]) => name?.startsWith('customer_')),
)
