import type { Paise } from '../../platform/money.ts'

/** Longest time from the opening of a dispute to its end: the details of a disputed payment are retained for 190 days. */
export const DISPUTE_DAYS = 200

/** The states of a dispute, in the order of its phases. The last four are final. */
export const DISPUTE_STATUSES = ['open', 'under review', 'won', 'lost', 'accepted', 'closed'] as const
export type DisputeStatus = (typeof DISPUTE_STATUSES)[number]

/**
 * A report of a dispute by the acquirer or the operator. An undefined field is not known, and does not replace a known
 * value.
 */
export type DisputeReport = {
  /** The acquirer's identifier of the dispute. */
  id: string
  orderId: string
  /** The acquirer's identifier of the payment, or its UTR. Without both, the order's own payment is disputed. */
  paymentId?: string | undefined
  utr?: string | undefined
  status: DisputeStatus
  /** The acquirer's time of this state. */
  statedAt?: Date | undefined
  openedAt?: Date | undefined
  respondBy?: Date | undefined
  amount?: Paise | undefined
  kind?: string | undefined
  reasonCode?: string | undefined
  reasonText?: string | undefined
}

export type Dispute = {
  mid: string
  /** The acquirer account. */
  acquirer: string
  disputeId: string
  orderId: string
  merchantOrderId: string
  /** The UTR of the disputed payment. */
  utr: string
  /** Null if it is unknown; the whole payment is then regarded as disputed. */
  amount: Paise | null
  kind: string | null
  reasonCode: string | null
  reasonText: string | null
  respondBy: Date | null
  openedAt: Date
  status: DisputeStatus
  updatedAt: Date
}

/** A stated state. `statedAt` is the acquirer's time; undefined if it is not known. */
type StatedStatus = { status: DisputeStatus; statedAt: Date | undefined }

const phaseOf = (status: DisputeStatus) => Math.min(DISPUTE_STATUSES.indexOf(status), DISPUTE_STATUSES.indexOf('won'))

export const isFinal = (status: DisputeStatus) => phaseOf(status) === phaseOf('won')

/** Whether the merchant keeps the money of a final dispute. */
export const isInFavour = (status: DisputeStatus) => status === 'won' || status === 'closed'

/**
 * Returns the state of a dispute from its stated states, in any order: the final one, of which there is at most one,
 * otherwise the newest by the acquirer's time. A state without a time replaces states of an earlier phase only.
 */
export function stateOf(stated: readonly StatedStatus[]): DisputeStatus {
  const newest = (a: StatedStatus, b: StatedStatus) => {
    if (isFinal(a.status) || isFinal(b.status) || !a.statedAt || !b.statedAt || +a.statedAt === +b.statedAt)
      return phaseOf(b.status) > phaseOf(a.status) ? b : a
    return b.statedAt > a.statedAt ? b : a
  }
  // States with a time come first, because only their order is transitive.
  const [timed, others] = [stated.filter(({ statedAt }) => statedAt), stated.filter(({ statedAt }) => !statedAt)]
  return [...timed, ...others].reduce(newest).status
}
