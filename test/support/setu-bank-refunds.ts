import { randomInt, randomUUID } from 'node:crypto'

/** A refund in the bank's own book: the truth of what went back. */
export type SetuRefund = {
  id: string
  merchantId: string
  paymentId: string
  txnId: string
  referenceId: string
  amount: number
  status: 'pending' | 'initiated' | 'success' | 'failed'
  crn: string
  createdAt: string
}

/** How likely it is, from 0 to 1, that a refund ends late or fails, and what happens to its notifications. */
export type RefundFaults = {
  /** It stays pending until `endLate`. */
  late?: number
  /** It fails after it was taken. */
  failed?: number
  /** The notification of the end is never sent. */
  lost?: number
  repeated?: number
  /** One more says that it failed, or that another amount went back. */
  contradicted?: number
}

type Payment = { id: string; txnId: string; merchantId: string }

/**
 * The refunds of the bank. As Setu, it makes a request that is repeated twice, whatever its referenceId; nor does it look how much
 * was paid.
 */
export function createRefundBook({
  now,
  newId,
  random,
  findPayment,
  send,
}: {
  now: () => Date
  newId: () => string
  random: () => number
  findPayment: (id: string) => Payment | undefined
  send: (event: object) => Promise<unknown>
}) {
  const all: SetuRefund[] = []
  const book = { all, faults: {} as RefundFaults, make, list, endLate, eventOf }
  return book

  /** Undefined for a payment that the merchant does not have. */
  function make(
    merchantId: string,
    { paymentId, amount, referenceId = '' }: Partial<SetuRefund>,
  ): SetuRefund | undefined {
    const payment = findPayment(String(paymentId))
    if (payment?.merchantId !== merchantId) return undefined
    const createdAt = now().toISOString()
    const ids = { id: newId(), merchantId, paymentId: payment.id, txnId: payment.txnId, referenceId }
    const refund: SetuRefund = { ...ids, amount: Number(amount), status: 'pending', crn: '', createdAt }
    all.push(refund)
    if (!happens(book.faults.late)) end(refund)
    return refund
  }

  function list(merchantId: string, txnId: string): SetuRefund[] {
    return all.filter((refund) => refund.merchantId === merchantId && refund.txnId === txnId)
  }

  /** Ends those that are pending, and resolves when it was told. */
  async function endLate(): Promise<void> {
    await Promise.all(all.filter(({ status }) => status === 'pending').map(end))
  }

  async function end(refund: SetuRefund): Promise<void> {
    const hasFailed = happens(book.faults.failed)
    Object.assign(
      refund,
      hasFailed ? { status: 'failed' } : { status: 'success', crn: String(randomInt(10 ** 11, 10 ** 12)) },
    )
    const events = [eventOf(refund)]
    if (happens(book.faults.repeated)) events.push(eventOf(refund))
    if (happens(book.faults.contradicted)) {
      const differs = { ...refund, amount: refund.amount + 100 }
      events.push(eventOf(refund.status === 'success' && random() < 0.5 ? { ...refund, status: 'failed' } : differs))
    }
    if (happens(book.faults.lost)) return
    for (const event of events) await send(event)
  }

  function happens(chance = 0): boolean {
    return random() < chance
  }

  function eventOf({ txnId: orgTxnId, createdAt: _, ...refund }: SetuRefund) {
    const eventType = { pending: 'pending', initiated: 'pending', success: 'successful', failed: 'failed' }[
      refund.status
    ]
    const event = {
      eventId: randomUUID(),
      eventTs: now().toISOString(),
      eventType: `refund.${eventType}`,
      resource: 'refund',
    }
    return { ...refund, ...event, orgTxnId, currency: 'INR', reason: reasonOf(refund) }
  }
}

const reasonOf = ({ status }: Pick<SetuRefund, 'status'>) =>
  status === 'failed' ? { errCode: 'refund-disabled', npciErrCode: 'R21' } : {}

/** A refund as an answer tells of it. */
export function refundOf({ merchantId: _, txnId: _txn, ...refund }: SetuRefund) {
  return { ...refund, type: 'online', reason: reasonOf(refund) }
}
