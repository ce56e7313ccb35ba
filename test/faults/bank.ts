import type { Database } from '../../src/platform/db/pool.ts'
import { type FakeCashfree, startFakeCashfree } from '../support/cashfree-bank.ts'
import { departure as departureOfCashfree } from '../support/cashfree-schema.ts'
import { type FakeRazorpay, startFakeRazorpay } from '../support/razorpay-bank.ts'
import { departure as departureOfRazorpay } from '../support/razorpay-schema.ts'
import { type FakeSetu, startFakeSetu } from '../support/setu-bank.ts'
import { departure } from '../support/setu-schema.ts'
import { type NewMerchant, newMerchant } from '../support/tenants.ts'

const CREDENTIALS = { clientId: 'client-of-a-test', clientSecret: 'secret-of-a-test' }
const NOTIFICATION_SECRET = 'secret0of0a0test0run0'

/** A fake bank, its merchant, the service's settings for it, and the path that receives its notifications. */
type Opened<Bank> = { bank: Bank; merchant: NewMerchant; settings: Record<string, string>; path: string }

export async function openBank(db: Database): Promise<Opened<FakeSetu>> {
  const options = { ...CREDENTIALS, notificationSecret: NOTIFICATION_SECRET, now: () => new Date(), check: departure }
  const bank = await startFakeSetu(options)
  const settings = {
    SETU_API_URL: bank.url,
    SETU_LOGIN_URL: bank.loginUrl,
    SETU_CLIENT_ID: CREDENTIALS.clientId,
    SETU_CLIENT_SECRET: CREDENTIALS.clientSecret,
    SETU_NOTIFICATION_SECRETS: NOTIFICATION_SECRET,
  }
  const merchant = await newMerchant(db, { acquirer: 'setu', acquirerMerchantId: '01ARZ3NDEKTSV4RRFFQ69G5FAV' })
  return { bank, merchant, settings, path: '/acquirer/setu/notification' }
}

export async function openCashfree(db: Database): Promise<Opened<FakeCashfree>> {
  const bank = await startFakeCashfree({ ...CREDENTIALS, now: () => new Date(), check: departureOfCashfree })
  const settings = {
    CASHFREE_API_URL: bank.apiUrl,
    CASHFREE_CLIENT_ID: CREDENTIALS.clientId,
    CASHFREE_CLIENT_SECRET: CREDENTIALS.clientSecret,
  }
  const merchant = await newMerchant(db, { acquirer: 'cashfree', payees: ['cf.*@icici'] })
  return { bank, merchant, settings, path: '/acquirer/cashfree/notification' }
}

async function openRazorpay(db: Database): Promise<Opened<FakeRazorpay>> {
  const account = { ...CREDENTIALS, webhookSecret: NOTIFICATION_SECRET }
  const bank = await startFakeRazorpay({ ...account, now: () => new Date(), check: departureOfRazorpay })
  const settings = {
    RAZORPAY_API_URL: bank.apiUrl,
    RAZORPAY_KEY_ID: CREDENTIALS.clientId,
    RAZORPAY_KEY_SECRET: CREDENTIALS.clientSecret,
    RAZORPAY_WEBHOOK_SECRETS: NOTIFICATION_SECRET,
  }
  const merchant = await newMerchant(db, { acquirer: 'razorpay', acquirerMerchantId: 'RZ1', payees: ['rzr.*@icici'] })
  return { bank, merchant, settings, path: '/acquirer/razorpay/notification' }
}

/** The common interface of the fake banks. */
export type AnyBank = Pick<FakeSetu, 'goAway' | 'comeBack' | 'sendWaiting' | 'violations' | 'notifyUrl'> & {
  requests: { call: string; path: string; body: unknown }[]
  pay: (orderId: string, options?: { outcome: 'failed' }) => Promise<unknown>
}

export type AnyPaid = { orderId: string; utr: string; amount: number; paidAt: Date }

/** Opens the fake bank of an acquirer. `statusChecks` is the name of its status call. */
type OpenBank = (db: Database) => Promise<
  Opened<AnyBank> & {
    paid: () => AnyPaid[]
    statusChecks: string
    failStatusChecks: (chance: number) => unknown
  }
>

export const BANKS: Record<'setu' | 'cashfree' | 'razorpay', OpenBank> = {
  async setu(db) {
    const { bank, ...opened } = await openBank(db)
    return {
      ...opened,
      bank,
      paid: () => bank.paid().map((payment) => ({ ...payment, paidAt: new Date(payment.txnTs) })),
      statusChecks: 'last',
      failStatusChecks: (chance) => bank.faults.push({ call: 'last', fault: { status: 500 }, chance }),
    }
  },

  cashfree: async (db) => checkedByPayments(await openCashfree(db)),

  razorpay: async (db) => checkedByPayments(await openRazorpay(db)),
}

/** An acquirer whose status call lists the payments of an order. */
function checkedByPayments<Bank extends FakeCashfree | FakeRazorpay>({ bank, ...opened }: Opened<Bank>) {
  return {
    ...opened,
    bank,
    paid: () => bank.paid().map((payment) => ({ ...payment, paidAt: payment.begunAt })),
    statusChecks: 'payments',
    failStatusChecks: (chance: number) => bank.faults.push({ call: 'payments', fault: { status: 500 }, chance }),
  }
}
