import { randomBytes } from 'node:crypto'
import { startFakeSetu } from './fake-setu.ts'

/** What `ACQUIRER` may be in the demo. */
const SETU_SANDBOX = 'setu-sandbox'

/** The acquirer of the demo merchant, by the variable ACQUIRER. Ends the process with one sentence for any other word. */
export function demoAcquirer(): 'direct' | 'setu' {
  const { ACQUIRER } = process.env
  if (!ACQUIRER) return 'direct'
  if (ACQUIRER === SETU_SANDBOX) return 'setu'
  console.error(`ACQUIRER must be ${SETU_SANDBOX}, or not be set`)
  process.exit(1)
}

/** Starts a bank that speaks as Setu does, and sets the service up as its client. It ends with this process. */
export async function useSetuSandbox(): Promise<void> {
  const credentials = { clientId: 'demo', clientSecret: randomBytes(16).toString('hex') }
  const notificationSecret = randomBytes(16).toString('hex')
  const bank = await startFakeSetu({ ...credentials, notificationSecret, now: () => new Date() })
  const { HOST, PORT } = process.env
  // An address to listen on may stand for all of this machine's.
  const host = !HOST || HOST === '0.0.0.0' || HOST === '::' ? '127.0.0.1' : HOST
  const authority = host.includes(':') ? `[${host}]` : host
  bank.notifyUrl = `http://${authority}:${PORT || 3000}/acquirer/setu/notification`
  Object.assign(process.env, {
    SETU_API_URL: bank.url,
    SETU_LOGIN_URL: bank.loginUrl,
    SETU_CLIENT_ID: credentials.clientId,
    SETU_CLIENT_SECRET: credentials.clientSecret,
    SETU_NOTIFICATION_SECRETS: notificationSecret,
  })
}
