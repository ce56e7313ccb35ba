import type { Kind } from '../due/clock.ts'
import type { RefundWord } from '../refunds/end-refund.ts'
import type { DueRefund, Progress } from '../refunds/progress.ts'
import { AcquirerFault, type RefundTold } from './acquirer.ts'
import type { Issuer } from './issuer.ts'

/** Refunds of one merchant, and of all, that are sent or asked about at once. */
const AT_ONCE = { ofOwner: 4, ofGroup: 8 }

const HOUR_MS = 3_600_000
/** A refund that the acquirer does not know by then is left to a person: no timer guesses. */
const UNSURE_AFTER_MS = 24 * HOUR_MS
const WITHOUT_AN_END_AFTER_MS = 5 * 24 * HOUR_MS

type Refunds = NonNullable<Issuer['refunds']>

/** Refunds to send to acquirers, and questions about those that have no end yet. */
export function dueRefunds({
  progress,
  issuers,
  now,
}: {
  progress: Progress
  issuers: ReadonlyMap<string, Issuer>
  now: () => Date
}): Kind {
  const names = [...issuers].filter(([, { refunds }]) => refunds).map(([name]) => name)

  async function carryOut(due: DueRefund): Promise<boolean> {
    const refunds = issuers.get(due.acquirer)?.refunds
    if (refunds === undefined) return true
    const isToSend = due.acquirerRefundId === null && (due.sentAt === null || refunds.mayRepeat)
    try {
      await (isToSend ? send(due, refunds) : find(due, refunds))
    } catch (error) {
      // The issuer has logged this fault. The next look is planned already.
      if (!(error instanceof AcquirerFault)) throw error
    }
    if (now().getTime() - due.madeAt.getTime() >= WITHOUT_AN_END_AFTER_MS) {
      await progress.needPerson(due, 'refund without an end', now())
    }
    return true
  }

  async function send(due: DueRefund, refunds: Refunds): Promise<void> {
    const sentAt = now()
    if (!(await progress.mark(due, sentAt, refunds.mayRepeat))) return
    try {
      const told = await refunds.send(toOrder(due))
      if (told) await tell(due, told, 'answer')
    } catch (error) {
      if (error instanceof AcquirerFault && error.isUndone) await progress.takeMarkBack(due, sentAt)
      throw error
    }
  }

  async function find(due: DueRefund, refunds: Refunds): Promise<void> {
    const told = await refunds.find(toOrder(due))
    if (told) return tell(due, told, 'enquiry')
    const { sentAt, acquirerRefundId } = due
    const isUnsure = acquirerRefundId === null && sentAt && now().getTime() - sentAt.getTime() >= UNSURE_AFTER_MS
    if (isUnsure) await progress.needPerson(due, 'refund unsure', now())
  }

  async function tell(due: DueRefund, { names, strangeStatus: _, ...told }: RefundTold, by: string): Promise<void> {
    const word: RefundWord = { ...told, by }
    await progress.tell(due, word, now())
    if (names && !due.names) await progress.keepNames(due, names)
  }

  return {
    name: 'refunds',
    atOnce: AT_ONCE,
    async find() {
      const mids = names.length > 0 ? await progress.findDue(names, AT_ONCE.ofGroup, now()) : []
      return mids.map((mid) => ({
        key: `${mid} refunds`,
        group: 'refunds',
        take: async (most) => (await progress.takeDue(names, mid, most, now())).map((one) => () => carryOut(one)),
      }))
    },
  }
}

const toOrder = ({ ourRefundId, orderId, amount, note, utr, isSecond, link, names }: DueRefund) => {
  return { ourRefundId, orderId, amount, note, utr, isSecond, link, names: names ?? undefined }
}
