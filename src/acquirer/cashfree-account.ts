import type * as z from 'zod'
import { allOrNone, checked, listOf, secureUrl } from '../variables.ts'
import type { Service } from './acquirer.ts'

export type CashfreeSettings = {
  apiUrl: string
  /** Whether nobody pays there: a page plays the customer. */
  isSandbox?: boolean
  clientId: string
  clientSecret: string
  /** The client secret, and others of the account. */
  notificationSecrets: readonly string[]
  /** Below it notifications are taken. Commands, which make no orders, do not know it. */
  publicUrl?: string | undefined
}

export const CASHFREE_VARIABLES = {
  CASHFREE_API_URL: secureUrl.default('https://api.cashfree.com/pg'),
  CASHFREE_CLIENT_ID: checked('must be letters, digits and signs of ASCII, without blanks', (text) =>
    /^[!-~]+$/.test(text),
  ).optional(),
  CASHFREE_CLIENT_SECRET: listOf('must be one or several secrets without blanks', (secret) =>
    /^[!-~]+$/.test(secret),
  ).optional(),
}

/** Undefined when neither credential is set. Notifications are signed by any client secret of the account. */
export function cashfreeAccount(
  variables: z.output<z.ZodObject<typeof CASHFREE_VARIABLES>>,
  service?: Service,
): CashfreeSettings | undefined {
  const { CASHFREE_API_URL: apiUrl, CASHFREE_CLIENT_ID, CASHFREE_CLIENT_SECRET } = variables
  const account = allOrNone('Cashfree', { CASHFREE_CLIENT_ID, CASHFREE_CLIENT_SECRET })
  if (account === undefined) return undefined
  const isSandbox = new URL(apiUrl).hostname === 'sandbox.cashfree.com'
  if (isSandbox && service?.production) {
    throw new Error(
      'CASHFREE_API_URL must not be the sandbox in production, where its page would let anybody mark an order as paid: to try things out, set NODE_ENV=development',
    )
  }
  const { CASHFREE_CLIENT_ID: clientId, CASHFREE_CLIENT_SECRET: notificationSecrets } = account
  const [clientSecret = ''] = notificationSecrets
  return { apiUrl, isSandbox, clientId, clientSecret, notificationSecrets, publicUrl: service?.publicUrl }
}
