import type { AcquirerSettings } from '../../../src/gateway/acquirers/accounts.ts'
import type { CallFault, NotificationFaults } from '../../support/bank-faults.ts'
import type { BookedRefund, RefundFaults } from '../../support/bank-refunds.ts'
import type { HttpResponse, TestService } from '../../support/service.ts'
import type { BesideOptions } from '../../support/service-with-bank.ts'
import type { NewMerchant } from '../../support/tenants.ts'

/** Shared interface through which a conformance case reaches any acquirer. Amounts are in paise. */

export type AcquirerName = 'direct' | 'setu' | 'cashfree' | 'phonepe' | 'razorpay'

export type Driver = (options: BesideOptions) => Promise<Stage>

/** A service and the fake bank of one acquirer. */
export type Stage = {
  name: AcquirerName
  service: TestService
  newMerchant: () => Promise<NewMerchant>
  /** Creates a merchant of the same service whose orders this acquirer does not have. */
  newStranger: () => Promise<NewMerchant>
  /** Formats the body of a payment notification. */
  notification: (orderId: string, reported?: Reported) => string
  /**
   * Sends a notification signed by the acquirer. `signed` is the text to sign instead of the body; `pathEnd` is
   * appended to the service's path.
   */
  send: (body: string, as?: { secret?: string | undefined; signed?: string; pathEnd?: string }) => Promise<HttpResponse>
  /** Sends a body with the given signature header, or without one. */
  sendSigned: (body: string, signature: string | undefined) => Promise<HttpResponse>
  /** The stored source of a payment after a notification. */
  toldBy: 'notification' | 'enquiry'
  /** Secrets that are all valid at once. */
  secrets: readonly string[]
  /** The field name of the amount in a notification. */
  amountField: string
  /** Returns signed notifications that must change nothing. */
  idle: (orderId: string) => string[]
  /** Settings with which another instance of the service reaches the bank. */
  settings: Partial<AcquirerSettings>
  /** Undefined for an acquirer whose links the service creates. */
  bank: IssuingBank | undefined
}

export type Reported = {
  status?: 'SUCCESS' | 'FAIL'
  utr?: string
  amount?: number
  paidAt?: Date
  /** The acquirer's word for the payment instrument; by default, that of a bank account. */
  instrument?: unknown
  /** The order that the notification names instead of the bank's own. */
  about?: string
}

/** The fake of an acquirer that creates its own links. */
export type IssuingBank = {
  notifyUrl: string | undefined
  nextFaults: Record<string, CallFault[]>
  faults: { call: string; fault: CallFault; chance: number }[]
  requests: { call: string; body: unknown }[]
  countOf: (call: string) => number
  pay: (
    orderId: string,
    how?: { outcome?: 'success' | 'failed' | 'pending'; amount?: number; rrn?: string; faults?: NotificationFaults },
  ) => Promise<{ payment: BankPayment; responses: (number | undefined)[] }>
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
  /** The bank's call names, by purpose. */
  calls: Record<'link' | 'checkStatus' | 'refund' | 'findRefund', string> & { close?: string }
  /** Calls of one create request, in order; the last one creates the link. */
  preparing: readonly string[]
  linkOf: (orderId: string) => string
  /** All orders ever created at the bank, by the service's orderIds. */
  created: () => string[]
  isOpen: (orderId: string) => boolean
  /** Sends an automatic refund of an order. */
  sendBack?: (orderId: string) => void
}

/** A payment in the bank's records. A case may change it into something that no bank should report. */
export type BankPayment = { id: string; status: string; amount: number; rrn: string }

export type Case = {
  name: string
  /** Acquirers that the case does not apply to, with the reason. */
  not?: Partial<Record<AcquirerName, string>>
  run: (stage: Stage) => Promise<void>
}

export const OURS = { direct: 'the service creates its links and calls no acquirer' }

export const ENDS_BY_ITSELF = {
  phonepe: 'it has no call that closes an order, which ends by its expiry',
  razorpay: 'it has no call that closes an order or a link',
}

export const ONLY_STATUS_CHECKS = {
  phonepe: 'its notifications are not proof: they schedule a status check, whose result is recorded',
}
