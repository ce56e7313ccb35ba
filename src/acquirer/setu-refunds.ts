import * as z from 'zod'
import { errorText, text } from '../fields.ts'
import { bodyCheck } from '../http/input.ts'
import type { PaymentLink } from '../payments/intent.ts'
import type { PaymentNames } from '../payments/outcome.ts'
import { transactionNote } from '../payments/upi-links.ts'
import {
  type AcquirerCalls,
  AcquirerError,
  type JsonAnswer,
  type RefundOrder,
  type RefundTold,
  type Told,
} from './acquirer.ts'
import { notBelieved, orAbsent, shortText, undone } from './json-request.ts'
import type { Fields, RefundNews } from './notification.ts'
import { ACQUIRER_ID, paise } from './setu-fields.ts'

/** Sends a request to a Setu account. Throws unless the status of its answer is one of `expected`. */
export type SetuRequest = (
  request: { method: 'GET' | 'POST' | 'PUT'; path: string; body?: object },
  merchantId: string,
  signal: AbortSignal,
  expected: readonly number[],
) => Promise<JsonAnswer>

/** What Setu says of a refund. It names neither field as required. */
const Refund = z.object({
  id: z.string().regex(ACQUIRER_ID),
  status: z.string().max(40),
  amount: orAbsent(paise),
  referenceId: orAbsent(z.string()),
  crn: z.unknown().optional(),
  reason: z.unknown().optional(),
})

const STATES = { pending: 'PENDING', initiated: 'PENDING', success: 'SUCCESS', failed: 'FAIL' } as const

/** Refunds by Setu, which has no guard against repeats, and finds a refund only by the payment that it belongs to. */
export function setuRefunds(
  request: SetuRequest,
  enquire: (link: PaymentLink, signal: AbortSignal) => Promise<Told | undefined>,
): Required<Pick<AcquirerCalls, 'refund' | 'findRefund'>> {
  /** Payments of which nobody has told us Setu's names are the last ones of their links. */
  async function namesOfPayment({ link, utr, ourRefundId }: RefundOrder, signal: AbortSignal): Promise<PaymentNames> {
    const last = await enquire(link, signal)
    if (last?.status === 'SUCCESS' && last.utr === utr && last.names) return last.names
    throw new AcquirerError('bad answer', 'Setu does not name the payment that goes back: ask Setu about it', {
      ourRefundId,
    })
  }

  return {
    async refund(order, signal) {
      const { ourRefundId, amount, note, link } = order
      // Nothing was sent before the names are known.
      const names =
        order.names ??
        (await namesOfPayment(order, signal).catch((fault) => {
          throw undone(fault)
        }))
      const remarks = transactionNote(note)
      const body = { paymentId: names.id, amount, referenceId: ourRefundId, remarks, type: 'online' }
      const answer = await request({ method: 'POST', path: 'refunds', body }, link.merchantId, signal, [
        201,
        ...REFUSED,
      ])
      if (answer.status !== 201) return { status: 'FAIL', reference: '', reason: refusalOf(answer), names }
      const { data: made } = Refund.safeParse(answer.body)
      if (!made) throw notBelieved(answer, 'Setu answered a refund in a form that is not known', { ourRefundId })
      return { ...toTold(made), names }
    },

    async findRefund(order, signal) {
      const { ourRefundId, link } = order
      const names = order.names ?? (await namesOfPayment(order, signal))
      const path = `refunds/${names.txnId}/payment`
      const answer = await request({ method: 'GET', path }, link.merchantId, signal, [200, 404])
      if (answer.status === 404 && refusalOf(answer)) return undefined
      const listed = z.object({ refunds: z.array(z.unknown()) }).safeParse(answer.body).data
      if (!listed) throw notBelieved(answer, 'Setu listed refunds in a form that is not known', { ourRefundId })
      const ours = listed.refunds
        .map((refund) => Refund.safeParse(refund).data)
        .filter((refund) => refund?.referenceId === ourRefundId)
        .map((refund) => toTold(refund as z.output<typeof Refund>))
      // One that a person had sent again may be there twice.
      const best = ['SUCCESS', 'PENDING', 'FAIL'].map((status) => ours.find((told) => told.status === status))
      const told = best.find((one) => one !== undefined)
      return told && { ...told, names }
    },
  }
}

/** Answers that refuse a refund for good, if they are in Setu's own form. */
const REFUSED = [400, 404, 422]
const Refusal = z.object({ code: z.string().min(1), detail: z.unknown() })

/** Why Setu has refused. Throws for an answer that is not Setu's own, such as a proxy's: the refund may have arrived. */
function refusalOf(answer: JsonAnswer): string {
  const { data } = Refusal.safeParse(answer.body)
  if (data) return `refused: ${shortText(data.code) ?? answer.status}`
  throw notBelieved(answer, `Setu answered ${answer.status} in a form that is not its own`)
}

function toTold({ id, status, amount, referenceId, crn, reason }: z.output<typeof Refund>): RefundTold {
  const state = Object.hasOwn(STATES, status) ? STATES[status as keyof typeof STATES] : undefined
  return {
    ...(state === undefined ? { status: 'PENDING', strangeStatus: shortText(status) ?? '?' } : { status: state }),
    ...{ id, amount, ourRefundId: referenceId, reference: shortText(crn) ?? '', reason: reasonOf(reason) },
  }
}

/** The codes by which Setu and NPCI say why a refund has failed. */
function reasonOf(reason: unknown): string | undefined {
  const { errCode, npciErrCode } = (reason ?? {}) as Record<string, unknown>
  const codes = [errCode, npciErrCode].map(shortText).filter((code) => code !== undefined)
  return codes.length > 0 ? codes.join(', ') : undefined
}

const EVENTS = { 'refund.pending': 'PENDING', 'refund.successful': 'SUCCESS', 'refund.failed': 'FAIL' } as const

/** What an event must say of a refund. */
const RefundEvent = z.object({
  eventType: z.enum(Object.keys(EVENTS) as (keyof typeof EVENTS)[]),
  id: z.string(errorText('must be text')).regex(ACQUIRER_ID, 'must be an identifier of Setu'),
  referenceId: text(255),
  merchantId: z.string(errorText('must be text')).regex(ACQUIRER_ID, 'must be an identifier of Setu'),
  amount: paise,
  crn: z.unknown().optional(),
  reason: z.unknown().optional(),
})

const checkRefundEvent = bodyCheck(RefundEvent)

export const isRefundEvent = ({ eventType }: Fields) => Object.hasOwn(EVENTS, String(eventType))

export function readRefundEvent(event: Fields): RefundNews {
  const { eventType, id, referenceId, merchantId, amount, crn, reason } = checkRefundEvent(event)
  const word = { status: EVENTS[eventType], id, merchantId, amount, reason: reasonOf(reason) }
  return {
    ourRefundId: referenceId,
    acquirer: 'setu',
    word: { ...word, reference: shortText(crn) ?? '', by: 'notification' },
  }
}
