import type { Limits } from '../limits.ts'
import type { RefundWord } from '../refunds/end-refund.ts'
import type { DueRefund, Progress } from '../refunds/progress.ts'
import type { JobSource } from '../scheduler/scheduler.ts'
import { AcquirerError, type RefundTold } from './acquirer.ts'
import type { AcquirerClient } from './client.ts'

const HOUR_MS = 3_600_000
/** A refund that the acquirer does not know by then is left to a person: no timer guesses. */
const UNSURE_AFTER_MS = 24 * HOUR_MS
const WITHOUT_AN_END_AFTER_MS = 5 * 24 * HOUR_MS

type Refunds = NonNullable<AcquirerClient['refunds']>

/** Refunds to send, and questions about those that have no end yet: of each acquirer by itself. */
export function dueRefunds({
  progress,
  clients,
  now,
  limits: { dueAtOnce },
}: {
  progress: Progress
  clients: ReadonlyMap<string, AcquirerClient>
  now: () => Date
  limits: Pick<Limits['acquirers'], 'dueAtOnce'>
}): JobSource[] {
  async function carryOut(due: DueRefund, refunds: Refunds): Promise<boolean> {
    const isToSend = due.acquirerRefundId === null && (due.sentAt === null || refunds.mayRepeat)
    try {
      await (isToSend ? send(due, refunds) : find(due, refunds))
    } catch (error) {
      // The client has logged this fault. The next look is planned already.
      if (!(error instanceof AcquirerError)) throw error
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
      if (error instanceof AcquirerError && error.isUndone) await progress.takeMarkBack(due, sentAt)
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

  const sourceOf = (acquirer: string, refunds: Refunds): JobSource => ({
    name: `refunds of ${acquirer}`,
    atOnce: { ofQueue: dueAtOnce / 4, ofGroup: dueAtOnce },
    async findQueues() {
      return (await progress.findDue(acquirer, dueAtOnce, now())).map((mid) => ({
        key: `${mid} refunds of ${acquirer}`,
        group: `refunds of ${acquirer}`,
        async claim(most) {
          const taken = await progress.takeDue(acquirer, mid, most, now())
          return taken.map((due) => () => carryOut(due, refunds))
        },
      }))
    },
  })

  return [...clients].flatMap(([acquirer, { refunds }]) => (refunds ? [sourceOf(acquirer, refunds)] : []))
}

const toOrder = ({ ourRefundId, orderId, amount, note, utr, isSecond, link, names }: DueRefund) => {
  return { ourRefundId, orderId, amount, note, utr, isSecond, link, names: names ?? undefined }
}
