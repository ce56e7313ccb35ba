import * as z from 'zod'
import { allOrNone, checked, listOf, readVariables, secureUrl, wholeNumber } from '../../platform/variables.ts'

/** Settings of the acquirers that are set up. `direct` has only the secrets that verify notifications. */
export type AcquirerSettings = {
  direct: readonly string[]
  setu?: SetuSettings | undefined
  cashfree?: CashfreeSettings | undefined
  phonepe?: PhonepeSettings | undefined
  razorpay?: RazorpaySettings | undefined
}

type Account = {
  /** The account's name in the database; undefined for the account `default`, which the environment configures. */
  account?: string | undefined
  apiUrl: string
  clientId: string
  clientSecret: string
  notificationSecrets: readonly string[]
}

export type SetuSettings = Account & { loginUrl: string }

export type CashfreeSettings = Account & {
  /** Whether the account is in Cashfree's sandbox, where no money moves and a web page simulates the customer. */
  isSandbox?: boolean
  /**
   * The service's public base URL, under which acquirers send notifications. Undefined in commands, which create no
   * orders.
   */
  publicUrl?: string | undefined
}

export type PhonepeSettings = Account & {
  loginUrl: string
  /** The version of the client credentials, assigned by PhonePe. */
  clientVersion: string
  /** Whether the account is in PhonePe's sandbox, where no money moves and a web page simulates the customer. */
  isSandbox?: boolean
}

export type RazorpaySettings = Account & {
  /** Minutes for which Razorpay's links can be paid. Razorpay documents 10 as typical, and no setting for it. */
  linkMinutes: number
}

const isPrintable = (text: string) => /^[!-~]+$/.test(text)

/**
 * Environment variables that configure the acquirer accounts. Each variable may also be set as `NAME_FILE`, the path of
 * a file that contains the value.
 */
export const ACCOUNT_VARIABLES = {
  SETU_API_URL: secureUrl.default('https://umap.setu.co'),
  SETU_LOGIN_URL: secureUrl.default('https://accountservice.setu.co/v1/users/login'),
  SETU_CLIENT_ID: z.string().optional(),
  SETU_CLIENT_SECRET: z.string().optional(),
  SETU_NOTIFICATION_SECRETS: listOf('must be one or more secrets of 20 to 50 letters and digits', (secret) =>
    /^[A-Za-z0-9]{20,50}$/.test(secret),
  ).optional(),
  CASHFREE_API_URL: secureUrl.default('https://api.cashfree.com/pg'),
  CASHFREE_CLIENT_ID: checked('must be printable ASCII characters without spaces', isPrintable).optional(),
  CASHFREE_CLIENT_SECRET: listOf('must be one or more secrets without spaces', isPrintable).optional(),
  PHONEPE_API_URL: secureUrl.default('https://api.phonepe.com/apis/pg'),
  PHONEPE_LOGIN_URL: secureUrl.default('https://api.phonepe.com/apis/identity-manager/v1/oauth/token'),
  PHONEPE_CLIENT_ID: z.string().optional(),
  PHONEPE_CLIENT_VERSION: checked('must be a whole number', (text) => /^\d{1,9}$/.test(text)).optional(),
  PHONEPE_CLIENT_SECRET: z.string().optional(),
  PHONEPE_WEBHOOK_USER: checked('must be 5 to 20 letters, digits and _', (text) => /^\w{5,20}$/.test(text)).optional(),
  PHONEPE_WEBHOOK_PASSWORD: listOf('must be one or more passwords without spaces', isPrintable).optional(),
  RAZORPAY_API_URL: secureUrl.default('https://api.razorpay.com/v1'),
  RAZORPAY_KEY_ID: checked('must be printable ASCII characters without spaces or :', (text) =>
    /^[!-9;-~]+$/.test(text),
  ).optional(),
  RAZORPAY_KEY_SECRET: z.string().optional(),
  RAZORPAY_WEBHOOK_SECRETS: listOf('must be one or more secrets without spaces', isPrintable).optional(),
  RAZORPAY_LINK_MINUTES: wholeNumber(5, 24 * 60).default(10),
}

type Variables = z.output<z.ZodObject<typeof ACCOUNT_VARIABLES>>

/** What the checks of an acquirer account need to know about the service. Commands pass no `publicUrl`, because they receive no notifications. */
export type Service = { production: boolean; publicUrl?: string | undefined }

/** Values of the metric label `account`. One value per account would make the number of time series unbounded. */
export const ACCOUNT_KINDS = ['default', 'own', 'disabled'] as const
export type AccountKind = (typeof ACCOUNT_KINDS)[number]

/**
 * Returns `default` for an account that the environment configures, otherwise `own` for an enabled account in the
 * database, or `disabled`.
 */
export const accountKind = (name: string, isDisabled: boolean): AccountKind =>
  !name.includes(':') ? 'default' : isDisabled ? 'disabled' : 'own'

/**
 * Name of an acquirer account on merchants, orders and refunds: `setu` for the account `default`, otherwise
 * `setu:acme`.
 */
export const accountName = (acquirer: string, account?: string) =>
  account === undefined || account === 'default' ? acquirer : `${acquirer}:${account}`

/** Splits an account name into acquirer and account; the account is undefined for `default`. */
export function splitAccountName(name: string): { acquirer: string; account: string | undefined } {
  const [acquirer = '', account] = name.split(':')
  return { acquirer, account }
}

/**
 * Reads the settings of the account `name` from the `NAME=value` lines in `text`. Each NAME is the name of an
 * environment variable. Throws an Error whose message is for the operator and contains no value.
 */
export function readAccount(name: string, text: string, service: Service): Account {
  const { acquirer, account } = splitAccountName(name)
  const names = Object.keys(ACCOUNT_VARIABLES).filter((one) => one.startsWith(`${acquirer.toUpperCase()}_`))
  const lines = text.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'))
  const values = Object.fromEntries(
    lines.map((line) => [line.replace(/=.*/s, '').trim(), line.replace(/^[^=]*=?/, '').trim()]),
  )
  if (!Object.keys(values).every((one) => names.includes(one))) {
    throw new Error(`give one NAME=value per line, with these names: ${names.join(', ')}`)
  }
  const accounts = readAccounts(readVariables(z.object(ACCOUNT_VARIABLES), values), service)
  const settings = accounts[acquirer as keyof typeof accounts]
  if (settings === undefined)
    throw new Error(`give the credentials of ${acquirer}, with these names: ${names.join(', ')}`)
  return { ...settings, account }
}

/**
 * Returns the accounts that the environment configures. Throws an Error for the operator if an account's credentials
 * are incomplete.
 */
export const readAccounts = (variables: Variables, service: Service): Omit<AcquirerSettings, 'direct'> => ({
  setu: setuAccount(variables, service),
  cashfree: cashfreeAccount(variables, service),
  phonepe: phonepeAccount(variables, service),
  razorpay: razorpayAccount(variables, service),
})

function setuAccount(variables: Variables, service: Service): SetuSettings | undefined {
  const { SETU_API_URL: apiUrl, SETU_CLIENT_ID, SETU_CLIENT_SECRET, SETU_NOTIFICATION_SECRETS } = variables
  const account = allOrNone('Setu', { SETU_CLIENT_ID, SETU_CLIENT_SECRET, SETU_NOTIFICATION_SECRETS })
  if (account === undefined) return undefined
  checkSandbox(apiUrl, 'umap-uat-core.setu.co', 'SETU_API_URL', service)
  return {
    apiUrl,
    loginUrl: variables.SETU_LOGIN_URL,
    clientId: account.SETU_CLIENT_ID,
    clientSecret: account.SETU_CLIENT_SECRET,
    notificationSecrets: account.SETU_NOTIFICATION_SECRETS,
  }
}

/**
 * Accepts every client secret of the account for notifications, because Cashfree may sign with any of these secrets.
 */
function cashfreeAccount(variables: Variables, service: Service): CashfreeSettings | undefined {
  const { CASHFREE_API_URL: apiUrl, CASHFREE_CLIENT_ID, CASHFREE_CLIENT_SECRET } = variables
  const account = allOrNone('Cashfree', { CASHFREE_CLIENT_ID, CASHFREE_CLIENT_SECRET })
  if (account === undefined) return undefined
  const isSandbox = checkSandbox(apiUrl, 'sandbox.cashfree.com', 'CASHFREE_API_URL', service)
  const { CASHFREE_CLIENT_ID: clientId, CASHFREE_CLIENT_SECRET: notificationSecrets } = account
  const [clientSecret = ''] = notificationSecrets
  return { apiUrl, isSandbox, clientId, clientSecret, notificationSecrets, publicUrl: service.publicUrl }
}

/**
 * PhonePe's SHA webhooks authenticate with a user and a password, stored as one secret `user:password`. PhonePe's HMAC
 * webhooks authenticate with a key.
 */
function phonepeAccount(variables: Variables, service: Service): PhonepeSettings | undefined {
  const { PHONEPE_CLIENT_ID, PHONEPE_CLIENT_VERSION, PHONEPE_CLIENT_SECRET, PHONEPE_WEBHOOK_PASSWORD } = variables
  const credentials = { PHONEPE_CLIENT_ID, PHONEPE_CLIENT_VERSION, PHONEPE_CLIENT_SECRET, PHONEPE_WEBHOOK_PASSWORD }
  const account = allOrNone('PhonePe', credentials)
  if (account === undefined) return undefined
  const { PHONEPE_API_URL: apiUrl, PHONEPE_LOGIN_URL: loginUrl, PHONEPE_WEBHOOK_USER: user } = variables
  return {
    apiUrl,
    isSandbox: checkSandbox(apiUrl, 'api-preprod.phonepe.com', 'PHONEPE_API_URL', service),
    loginUrl,
    clientId: account.PHONEPE_CLIENT_ID,
    clientVersion: account.PHONEPE_CLIENT_VERSION,
    clientSecret: account.PHONEPE_CLIENT_SECRET,
    notificationSecrets: account.PHONEPE_WEBHOOK_PASSWORD.map((password) => (user ? `${user}:${password}` : password)),
  }
}

/** Razorpay has no sandbox host: the key id decides between its test mode and its live mode. */
function razorpayAccount(variables: Variables, service: Service): RazorpaySettings | undefined {
  const { RAZORPAY_KEY_ID, RAZORPAY_KEY_SECRET, RAZORPAY_WEBHOOK_SECRETS } = variables
  const account = allOrNone('Razorpay', { RAZORPAY_KEY_ID, RAZORPAY_KEY_SECRET, RAZORPAY_WEBHOOK_SECRETS })
  if (account === undefined) return undefined
  rejectSandbox(account.RAZORPAY_KEY_ID.startsWith('rzp_test_'), 'RAZORPAY_KEY_ID', service)
  return {
    apiUrl: variables.RAZORPAY_API_URL,
    clientId: account.RAZORPAY_KEY_ID,
    clientSecret: account.RAZORPAY_KEY_SECRET,
    notificationSecrets: account.RAZORPAY_WEBHOOK_SECRETS,
    linkMinutes: variables.RAZORPAY_LINK_MINUTES,
  }
}

/** Returns whether the account is in the acquirer's sandbox at `host`. */
function checkSandbox(apiUrl: string, host: string, variable: string, service: Service): boolean {
  // Removes trailing dots, because a host name with the trailing dot of the DNS root is the same host.
  return rejectSandbox(new URL(apiUrl).hostname.replace(/\.+$/, '') === host, variable, service)
}

/** Returns `isSandbox`. Throws if the service is running in production with a sandbox account. */
function rejectSandbox(isSandbox: boolean, variable: string, { production }: Service): boolean {
  if (isSandbox && production) {
    throw new Error(
      `${variable} must not be the sandbox in production, where a simulated payment marks an order as paid. To test, set NODE_ENV=development.`,
    )
  }
  return isSandbox
}
