import type * as z from 'zod'
import type { Service } from './acquirer.ts'
import { CASHFREE_VARIABLES, type CashfreeSettings, cashfreeAccount } from './cashfree-account.ts'
import { SETU_VARIABLES, type SetuSettings, setuAccount } from './setu-account.ts'

/** Settings of the acquirers that are set up. `direct` holds the secrets of that acquirer's notifications. */
export type AcquirerSettings = {
  direct: readonly string[]
  setu?: SetuSettings | undefined
  cashfree?: CashfreeSettings | undefined
}

/** The variables of the accounts at acquirers, each also as `NAME_FILE`. */
export const ACCOUNT_VARIABLES = { ...SETU_VARIABLES, ...CASHFREE_VARIABLES }

/** The accounts that are set up. Throws an Error for the operator when only some credentials of one are set. */
export const readAccounts = (
  variables: z.output<z.ZodObject<typeof ACCOUNT_VARIABLES>>,
  service?: Service,
): Omit<AcquirerSettings, 'direct'> => ({
  setu: setuAccount(variables),
  cashfree: cashfreeAccount(variables, service),
})
