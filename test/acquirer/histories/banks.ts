import type { AcquirerSettings } from '../../../src/gateway/acquirers/accounts.ts'
import type { CallFault } from '../../support/bank-faults.ts'
import type { CashfreePayment } from '../../support/cashfree-forms.ts'
import { CASHFREE, newCashfreeMerchant } from '../../support/fake-cashfree.ts'
import { newPhonepeMerchant, PHONEPE } from '../../support/fake-phonepe.ts'
import { newRazorpayMerchant, RAZORPAY } from '../../support/fake-razorpay.ts'
import { newSetuMerchant, SETU } from '../../support/fake-setu.ts'
import type { PhonepePayment } from '../../support/phonepe-bank.ts'
import type { RazorpayPayment } from '../../support/razorpay-bank.ts'
import type { TestService } from '../../support/service.ts'
import { type BesideOptions, startServiceBeside } from '../../support/service-with-bank.ts'
import type { NewMerchant } from '../../support/tenants.ts'
import type { Payment } from './history.ts'

/** Shared interface through which a history reaches an acquirer, and the differences between acquirers. */

/** A payment of a history as the bank has recorded it, with its amount in paise. */
export type Booked = Pick<Payment, 'number' | 'status' | 'utr'> & {
  amount: number
  begunAt: Date
  endedAt: Date | undefined
}

export type Bank = {
  name: 'setu' | 'cashfree' | 'phonepe' | 'razorpay'
  service: TestService
  settings: Partial<AcquirerSettings>
  newMerchant: () => Promise<NewMerchant>
  /** The path to which the bank sends notifications. */
  path: string
  /** Returns a signed notification. */
  notificationOf: (
    orderId: string,
    payment: Booked,
    secret?: string,
  ) => { body: string; headers: Record<string, string> }
  /** The payment time that the bank reports: Setu the end, the others the start. It distinguishes attempts. */
  timeOf: (payment: Booked) => Date
  /** Writes a payment, or its new status, into the bank's records. */
  book: (orderId: string, payment: Booked) => void
  /** Names of the bank's calls; PhonePe and Razorpay have none that closes an order. */
  calls: { close?: string; checkStatus: string }
  faults: { call: string; fault: CallFault; chance: number; path?: string }[]
  /** The part of a call's path that identifies an order. */
  pathOf: (orderId: string) => string
  /**
   * Whether the bank rejects closing a link that was paid or has expired, so that the service checks the status
   * immediately. Setu responds to such a close like to any other.
   */
  rejectsClose: boolean
  /**
   * Returns the orders whose status was checked since the last call. Only for a bank whose notifications are not
   * proof.
   */
  drainChecked?: () => string[]
  /** Deletes all orders, which keeps the fake fast. */
  forget: () => void
}

export async function startSetu(options: BesideOptions): Promise<Bank> {
  const { service, bank } = await startServiceBeside(SETU, options)
  const qrOf = (orderId: string) => bank.find(orderId) as NonNullable<ReturnType<typeof bank.find>>
  const states = { PENDING: 'pending', SUCCESS: 'success', FAIL: 'failed' } as const
  const timeOf = ({ begunAt, endedAt = begunAt }: Booked) => endedAt
  const paymentOf = (orderId: string, payment: Booked) => {
    const { number, status, utr: rrn, amount } = payment
    const names = { id: `${orderId}P${number}`, txnId: `${orderId}T${number}` }
    return { ...names, status: states[status], amount, rrn, txnTs: timeOf(payment).toISOString() }
  }
  return {
    name: 'setu',
    service,
    settings: SETU.settings(bank),
    newMerchant: () => newSetuMerchant(service),
    path: SETU.path,
    notificationOf: (orderId, payment, secret) =>
      bank.encrypt(bank.eventOf(qrOf(orderId), paymentOf(orderId, payment)), secret),
    book(orderId, booked) {
      const [qr, payment] = [qrOf(orderId), paymentOf(orderId, booked)]
      qr.payments = [...qr.payments.filter(({ id }) => id !== payment.id), payment]
      if (booked.status === 'SUCCESS') qr.status = 'paid'
    },
    timeOf,
    calls: { close: 'expireDqr', checkStatus: 'last' },
    faults: bank.faults as Bank['faults'],
    pathOf: (orderId) => qrOf(orderId).id,
    rejectsClose: false,
    forget() {
      bank.qrs.clear()
      bank.requests.length = 0
    },
  }
}

export async function startCashfree(options: BesideOptions): Promise<Bank> {
  const { service, bank } = await startServiceBeside(CASHFREE, options)
  const orderOf = (orderId: string) => bank.orders.get(orderId) as NonNullable<ReturnType<typeof bank.orders.get>>
  const states = { PENDING: 'pending', SUCCESS: 'success', FAIL: 'failed' } as const
  const paymentOf = (orderId: string, { number, status, utr, amount, begunAt, endedAt }: Booked): CashfreePayment => {
    const id = String(BigInt(`0x${orderId.slice(-14)}`) * 100n + BigInt(number))
    const state = status === 'FAIL' && utr === '' ? 'dropped' : states[status]
    return { id, status: state, amount, rrn: utr, begunAt, ...(endedAt && { endedAt }) }
  }
  return {
    name: 'cashfree',
    service,
    settings: CASHFREE.settings(bank),
    newMerchant: () => newCashfreeMerchant(service),
    path: CASHFREE.path,
    notificationOf: (orderId, payment, secret) =>
      bank.encrypt(bank.eventOf(orderOf(orderId), paymentOf(orderId, payment)), secret),
    book(orderId, booked) {
      const [order, payment] = [orderOf(orderId), paymentOf(orderId, booked)]
      // The link's creation began the first attempt, which this payment replaces.
      order.payments = [...order.payments.filter(({ id, status }) => id !== payment.id && status !== 'begun'), payment]
      if (booked.status === 'SUCCESS') order.status = 'PAID'
    },
    timeOf: ({ begunAt }) => begunAt,
    calls: { close: 'terminate', checkStatus: 'payments' },
    faults: bank.faults as Bank['faults'],
    pathOf: (orderId) => orderId,
    rejectsClose: true,
    forget() {
      bank.orders.clear()
      bank.requests.length = 0
    },
  }
}

export async function startPhonepe(options: BesideOptions): Promise<Bank> {
  const { service, bank } = await startServiceBeside(PHONEPE, options)
  const orderOf = (orderId: string) => bank.orders.get(orderId) as NonNullable<ReturnType<typeof bank.orders.get>>
  const states = { PENDING: 'pending', SUCCESS: 'success', FAIL: 'failed' } as const
  const paymentOf = (orderId: string, { number, status, utr, amount, begunAt }: Booked): PhonepePayment => ({
    id: `OM${orderId}${number}`,
    status: states[status],
    amount,
    rrn: utr,
    at: begunAt,
  })
  return {
    name: 'phonepe',
    service,
    settings: PHONEPE.settings(bank),
    newMerchant: () => newPhonepeMerchant(service),
    path: PHONEPE.path,
    notificationOf: (orderId, payment, secret) =>
      bank.encrypt(bank.eventOf(orderOf(orderId), paymentOf(orderId, payment)), secret),
    book(orderId, booked) {
      const [order, payment] = [orderOf(orderId), paymentOf(orderId, booked)]
      order.payments = [...order.payments.filter(({ id }) => id !== payment.id), payment]
    },
    timeOf: ({ begunAt }) => begunAt,
    calls: { checkStatus: 'order' },
    faults: bank.faults as Bank['faults'],
    pathOf: (orderId) => orderId,
    rejectsClose: false,
    drainChecked: () =>
      bank.requests.splice(0).flatMap(({ path }) => /\/order\/([^/]+)\/status/.exec(path)?.slice(1) ?? []),
    forget: () => bank.orders.clear(),
  }
}

export async function startRazorpay(options: BesideOptions): Promise<Bank> {
  const { service, bank } = await startServiceBeside(RAZORPAY, options)
  const orderOf = (orderId: string) => bank.orders.get(orderId) as NonNullable<ReturnType<typeof bank.orders.get>>
  const states = { PENDING: 'pending', SUCCESS: 'success', FAIL: 'failed' } as const
  const paymentOf = (orderId: string, { number, status, utr, amount, begunAt, endedAt }: Booked): RazorpayPayment => {
    const id = `pay_${orderId}${number}`
    return { id, status: states[status], amount, rrn: utr, begunAt, ...(endedAt && { endedAt }) }
  }
  return {
    name: 'razorpay',
    service,
    settings: RAZORPAY.settings(bank),
    newMerchant: () => newRazorpayMerchant(service),
    path: RAZORPAY.path,
    notificationOf: (orderId, payment, secret) =>
      bank.encrypt(bank.eventOf(orderOf(orderId), paymentOf(orderId, payment)), secret),
    book(orderId, booked) {
      const [order, payment] = [orderOf(orderId), paymentOf(orderId, booked)]
      // The link's creation began the first attempt, which this payment replaces.
      order.payments = [...order.payments.filter(({ id, status }) => id !== payment.id && status !== 'begun'), payment]
    },
    timeOf: ({ begunAt }) => begunAt,
    calls: { checkStatus: 'payments' },
    faults: bank.faults as Bank['faults'],
    pathOf: (orderId) => orderOf(orderId).id,
    rejectsClose: false,
    forget() {
      bank.orders.clear()
      bank.requests.length = 0
    },
  }
}
