import { randomInt } from 'node:crypto'

/** A refund in the bank's own records, which show what was really refunded. */
export type BookedRefund = {
  id: string
  /** The service's refund id; empty for an automatic refund of the bank. */
  ourRefundId: string
  /** The bank's payment id. */
  paymentId: string
  /** In paise. */
  amount: number
  status: 'pending' | 'initiated' | 'on hold' | 'success' | 'failed'
  /** The bank's reference, once the refund is complete. */
  reference: string
  createdAt: string
  endedAt?: Date
}

/** Probability, from 0 to 1, that a refund completes late or fails, and of faults of its notifications. */
export type RefundFaults = {
  /** The refund stays pending until `endLate`. */
  late?: number
  /** The refund fails after it was accepted. */
  failed?: number
  /** The notification of the final status is never sent. */
  lost?: number
  repeated?: number
  /** An additional notification reports a failure or another amount. */
  contradicted?: number
}

/** The refunds of a bank. `eventOf` formats a notification, `send` sends it. */
export function createRefundBook<Refund extends BookedRefund>({
  now,
  happens,
  eventOf,
  send,
}: {
  now: () => Date
  happens: (chance?: number) => boolean
  eventOf: (refund: Refund) => object
  send: (event: object) => Promise<unknown>
}) {
  const all: Refund[] = []
  const book = { all, faults: {} as RefundFaults, add, endLate, eventOf }
  return book

  function add(refund: Refund): Refund {
    all.push(refund)
    if (!happens(book.faults.late)) end(refund)
    return refund
  }

  /** Completes all pending refunds, and resolves once their notifications are sent. */
  async function endLate(): Promise<void> {
    await Promise.all(all.filter(({ status }) => status === 'pending').map(end))
  }

  async function end(refund: Refund): Promise<void> {
    const hasFailed = happens(book.faults.failed)
    const end = hasFailed
      ? { status: 'failed' }
      : { status: 'success', reference: String(randomInt(10 ** 11, 10 ** 12)) }
    Object.assign(refund, end, { endedAt: now() })
    const events = [eventOf(refund)]
    if (happens(book.faults.repeated)) events.push(eventOf(refund))
    if (happens(book.faults.contradicted)) {
      const differs = { ...refund, amount: refund.amount + 100 }
      events.push(eventOf(refund.status === 'success' && happens(0.5) ? { ...refund, status: 'failed' } : differs))
    }
    if (happens(book.faults.lost)) return
    for (const event of events) await send(event)
  }
}
