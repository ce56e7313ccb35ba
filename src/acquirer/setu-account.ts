import * as z from 'zod'
import { allOrNone, listOf, secureUrl } from '../variables.ts'

export type SetuSettings = {
  apiUrl: string
  loginUrl: string
  clientId: string
  clientSecret: string
  notificationSecrets: readonly string[]
}

export const SETU_VARIABLES = {
  SETU_API_URL: secureUrl.default('https://umap.setu.co'),
  SETU_LOGIN_URL: secureUrl.default('https://accountservice.setu.co/v1/users/login'),
  SETU_CLIENT_ID: z.string().optional(),
  SETU_CLIENT_SECRET: z.string().optional(),
  SETU_NOTIFICATION_SECRETS: listOf('must be one or several secrets of 20 to 50 letters and digits each', (secret) =>
    /^[A-Za-z0-9]{20,50}$/.test(secret),
  ).optional(),
}

/** Undefined when none of the credentials is set. */
export function setuAccount({
  SETU_API_URL: apiUrl,
  SETU_LOGIN_URL: loginUrl,
  ...credentials
}: z.output<z.ZodObject<typeof SETU_VARIABLES>>): SetuSettings | undefined {
  const { SETU_CLIENT_ID, SETU_CLIENT_SECRET, SETU_NOTIFICATION_SECRETS } = credentials
  const account = allOrNone('Setu', { SETU_CLIENT_ID, SETU_CLIENT_SECRET, SETU_NOTIFICATION_SECRETS })
  return (
    account && {
      apiUrl,
      loginUrl,
      clientId: account.SETU_CLIENT_ID,
      clientSecret: account.SETU_CLIENT_SECRET,
      notificationSecrets: account.SETU_NOTIFICATION_SECRETS,
    }
  )
}
