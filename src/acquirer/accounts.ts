import * as z from 'zod'
import { allOrNone, checked, listOf, secureUrl } from '../variables.ts'

/** Settings of the acquirers that are set up. `direct` has only the secrets with which its notifications are signed. */
export type AcquirerSettings = {
  direct: readonly string[]
  setu?: SetuSettings | undefined
  cashfree?: CashfreeSettings | undefined
}

type Account = {
  apiUrl: string
  clientId: string
  clientSecret: string
  notificationSecrets: readonly string[]
}

export type SetuSettings = Account & { loginUrl: string }

export type CashfreeSettings = Account & {
  /** Whether the account is in Cashfree's sandbox, where no money moves: a web page simulates the customer. */
  isSandbox?: boolean
  /** The service's address, below which it takes notifications. Undefined in commands, which create no orders. */
  publicUrl?: string | undefined
}

const isPrintable = (text: string) => /^[!-~]+$/.test(text)

/** The variables that hold the accounts at acquirers. Each may also be set as `NAME_FILE`, the path of a file. */
export const ACCOUNT_VARIABLES = {
  SETU_API_URL: secureUrl.default('https://umap.setu.co'),
  SETU_LOGIN_URL: secureUrl.default('https://accountservice.setu.co/v1/users/login'),
  SETU_CLIENT_ID: z.string().optional(),
  SETU_CLIENT_SECRET: z.string().optional(),
  SETU_NOTIFICATION_SECRETS: listOf('must be one or several secrets of 20 to 50 letters and digits each', (secret) =>
    /^[A-Za-z0-9]{20,50}$/.test(secret),
  ).optional(),
  CASHFREE_API_URL: secureUrl.default('https://api.cashfree.com/pg'),
  CASHFREE_CLIENT_ID: checked('must be letters, digits and signs of ASCII, without blanks', isPrintable).optional(),
  CASHFREE_CLIENT_SECRET: listOf('must be one or several secrets without blanks', isPrintable).optional(),
}

type Variables = z.output<z.ZodObject<typeof ACCOUNT_VARIABLES>>

/** Settings of the HTTP service. Commands pass none, because they take no notifications. */
type Service = { production: boolean; publicUrl: string }

/** The accounts that are set up. Throws an Error for the operator when only some credentials of one are set. */
export const readAccounts = (variables: Variables, service?: Service): Omit<AcquirerSettings, 'direct'> => ({
  setu: setuAccount(variables),
  cashfree: cashfreeAccount(variables, service),
})

function setuAccount(variables: Variables): SetuSettings | undefined {
  const { SETU_CLIENT_ID, SETU_CLIENT_SECRET, SETU_NOTIFICATION_SECRETS } = variables
  const account = allOrNone('Setu', { SETU_CLIENT_ID, SETU_CLIENT_SECRET, SETU_NOTIFICATION_SECRETS })
  return (
    account && {
      apiUrl: variables.SETU_API_URL,
      loginUrl: variables.SETU_LOGIN_URL,
      clientId: account.SETU_CLIENT_ID,
      clientSecret: account.SETU_CLIENT_SECRET,
      notificationSecrets: account.SETU_NOTIFICATION_SECRETS,
    }
  )
}

/** Cashfree signs notifications with one of the account's client secrets, so all of them are accepted. */
function cashfreeAccount(variables: Variables, service?: Service): CashfreeSettings | undefined {
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
