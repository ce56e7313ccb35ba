import { randomInt } from 'node:crypto'

/** A refund in the bank's own book: the truth of what went back. */
export type BookedRefund = {
  id: string
  /** Our name for it; empty for one that the bank makes by itself. */
  ourRefundId: string
  /** The bank's name for the payment. */
  paymentId: string
  /** In paise. */
  amount: number
  status: 'pending' | 'initiated' | 'on hold' | 'success' | 'failed'
  /** The bank's reference, once the money has gone back. */
  reference: string
  createdAt: string
  endedAt?: Date
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

/** The refunds of a bank. `send` sends a notification, `eventOf` makes it. */
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

  /** Ends those that are pending, and resolves when it was told. */
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
