import type { AcquirerSettings } from '../../../src/gateway/acquirers/accounts.ts'
import type { CallFault, NotificationFaults } from '../../support/bank-faults.ts'
import type { BookedRefund, RefundFaults } from '../../support/bank-refunds.ts'
import type { Answer, TestService } from '../../support/service.ts'
import type { BesideOptions } from '../../support/service-with-bank.ts'
import type { NewMerchant } from '../../support/tenants.ts'

/** How a case reaches an acquirer, whichever it is. Amounts are in paise. */

export type AcquirerName = 'direct' | 'setu' | 'cashfree' | 'phonepe'

export type Driver = (options: BesideOptions) => Promise<Stage>

/** A service, and the bank of one acquirer. */
export type Stage = {
  name: AcquirerName
  service: TestService
  newMerchant: () => Promise<NewMerchant>
  /** A merchant of the same service, whose orders this acquirer does not know. */
  newStranger: () => Promise<NewMerchant>
  /** What tells of a payment, as text. */
  notification: (orderId: string, told?: Told) => string
  /** Sends what the acquirer has signed: `signed` is what it signed instead of the body, `pathEnd` what it appends to our path. */
  send: (body: string, as?: { secret?: string | undefined; signed?: string; pathEnd?: string }) => Promise<Answer>
  /** Sends a body with a header for its signature, or without one. */
  sendSigned: (body: string, signature: string | undefined) => Promise<Answer>
  /** By what a payment is stored of which a notification has come. */
  toldBy: 'notification' | 'enquiry'
  /** All of them are valid. */
  secrets: readonly string[]
  /** The name of the amount in a notification. */
  amountField: string
  /** Notifications that are signed and tell nothing that counts. */
  idle: (orderId: string) => string[]
  /** What an instance of the service needs to reach the bank. */
  settings: Partial<AcquirerSettings>
  /** Undefined for an acquirer whose links we make. */
  bank: IssuingBank | undefined
}

export type Told = {
  status?: 'SUCCESS' | 'FAIL'
  utr?: string
  amount?: number
  paidAt?: Date
  /** The order that it says to be about, instead of the bank's own. */
  about?: string
}

/** The fake of an acquirer that makes its own links. */
export type IssuingBank = {
  notifyUrl: string | undefined
  nextFaults: Record<string, CallFault[]>
  faults: { call: string; fault: CallFault; chance: number }[]
  requests: { call: string; body: unknown }[]
  countOf: (call: string) => number
  pay: (
    orderId: string,
    how?: { outcome?: 'success' | 'failed' | 'pending'; amount?: number; rrn?: string; faults?: NotificationFaults },
  ) => Promise<{ payment: BankPayment; answers: (number | undefined)[] }>
  paid: () => { orderId: string; amount: number; utr: string }[]
  refunds: {
    all: BookedRefund[]
    faults: RefundFaults
    endLate: () => Promise<void>
    eventOf: (refund: never) => object
  }
  sendEvent: (event: object) => Promise<number | undefined>
  goAway: () => Promise<void>
  comeBack: () => Promise<void>
  /** Its calls, by what the service wants of it. */
  calls: Record<'link' | 'enquire' | 'refund' | 'findRefund', string> & { close?: string }
  /** Those that a create makes, in order; the last one makes the link. */
  preparing: readonly string[]
  linkOf: (orderId: string) => string
  /** All orders that it has ever made, by our names. */
  made: () => string[]
  isOpen: (orderId: string) => boolean
  /** Sends the money of an order back without being asked to. */
  sendBack?: (orderId: string) => void
}

/** What a bank has booked of a payment; a case may change it, into what no bank should tell. */
export type BankPayment = { id: string; status: string; amount: number; rrn: string }

export type Case = {
  name: string
  /** Acquirers for which it says nothing, and why. */
  not?: Partial<Record<AcquirerName, string>>
  run: (stage: Stage) => Promise<void>
}

export const OURS = { direct: 'its links are ours: nobody is called' }

export const ENDS_BY_ITSELF = { phonepe: 'no call closes its orders: they end by their expiry' }

export const ONLY_ASKS = { phonepe: 'its notifications prove nothing: they make a question due, and the answer counts' }
