import { type Paise, toIndianText } from '../../platform/money.ts'
import type { FailureReason } from '../payments/failure-reasons.ts'
import type { SecondPayment } from '../payments/pay-page-facts.ts'
import type { Refund } from '../refunds/refund.ts'
import { type DeadEnd, type PageState, TONES } from './page-state.ts'
import { dateText, dateTimeText, fillText, type PageTexts } from './texts.ts'

/** The payment that a customer asks about. `name` is the payee, and `paidAt` is null until the order is paid. */
export type CustomerFacts = {
  amount: Paise
  name: string
  reference: string | null
  paidAt: Date | null
  /** The refunds of the order's own payment that have not failed, oldest first. */
  refunds: readonly CustomerRefund[]
  /** Each further payment of the order with its refunds that have not failed. */
  secondPayments: readonly { payment: SecondPayment; refunds: readonly CustomerRefund[] }[]
}

type CustomerRefund = Pick<Refund, 'amount' | 'status' | 'endedAt' | 'reference'>

/** What support says to a customer about an order, in the texts of the pay page: one line without markup. */
export function customerText(facts: CustomerFacts, state: PageState, texts: PageTexts): string {
  const headline = sentence(headlineOf(facts, { state, texts, app: undefined }), texts)
  return [state.name === 'open' || state.name === 'waiting' ? texts.expiredText : headline, ...sentences()]
    .map((text) => fillText(text, { name: facts.name }))
    .join(' ')

  function sentences(): string[] {
    switch (state.name) {
      case 'paid':
      case 'refunded':
        return paidSentences(facts, texts)
      case 'open':
      case 'waiting':
      case 'timeUp':
        return [texts.doNotPayAgain]
      case 'closed':
        return [texts.missingMoney]
      case 'attemptFailed':
        return [texts[state.reason], ...(state.tone === 'wait' ? [texts.doNotPayAgain] : [])]
      case 'amountMismatch':
        return [texts.amountMismatchText, sentence(`${texts.utr} ${groupUtr(state.mismatch.utr)}`, texts)]
      default: {
        const { next, money } = nextStep(state, texts, false)
        const what = state.name === 'failed' ? withoutAdvice(texts, state.reason) : texts[`${state.name}Text`]
        return [what, next, ...(money ? [money] : [])]
      }
    }
  }
}

function paidSentences({ paidAt, reference, refunds, secondPayments }: CustomerFacts, texts: PageTexts): string[] {
  const facts = [paidAt && dateTimeText(texts, paidAt), reference && `${texts.utr} ${groupUtr(reference)}`]
  return [
    sentence(facts.filter((fact) => fact).join(', '), texts),
    ...refunds.map((refund) => {
      const { text, values } = refundLine(refund, texts, toIndianText(refund.amount))
      return fillText(text, values)
    }),
    ...secondPayments.flatMap(({ payment, refunds: own }) =>
      // The name is filled in with the other sentences.
      secondPaymentLines(payment, own, texts).map(({ text, values }) => fillText(text, { name: '{name}', ...values })),
    ),
  ]
}

const sentence = (text: string, { language }: PageTexts) => `${text}${language === 'en' ? '.' : '।'}`

/** The headline of a state. Those of `open`, `waiting`, `closed`, `timeUp` and `cancelled` contain no amount. */
export function headlineOf(
  { amount: paise, name }: Pick<CustomerFacts, 'amount' | 'name'>,
  { state, texts, app }: { state: PageState; texts: PageTexts; app: string | undefined },
): string {
  const amount = toIndianText(paise)
  switch (state.name) {
    case 'open':
      return texts.pay
    case 'waiting':
      return app === undefined ? texts.approve : fillText(texts.approveInApp, { app })
    case 'attemptFailed':
      return fillText(texts[`${state.tone}Title`], { amount, name })
    case 'amountMismatch':
      return fillText(texts.amountMismatchTitle, { amount, received: toIndianText(state.mismatch.amount) })
    default:
      return fillText(texts[`${state.name}Title`], { amount })
  }
}

/** The next step, and the text for a customer whose account was debited. One text has both if money may be in transit. */
export function nextStep(state: DeadEnd, texts: PageTexts, merchantDisabled: boolean) {
  const tone = state.name === 'failed' ? TONES[state.reason] : undefined
  if (tone === 'wait') return { next: texts.doNotPayAgain, money: undefined }
  const again = merchantDisabled ? '' : texts.orderAgain
  return { next: tone === 'stop' ? texts.contactFirst : again, money: texts.missingMoney }
}

/** The first sentence of a failure reason: the rest suggests another attempt, for which it is too late. */
export const withoutAdvice = (texts: PageTexts, reason: FailureReason): string =>
  /^.*?[.।]/.exec(texts[reason])?.[0] ?? texts[reason]

/** The refunds of the payment `utr` that have not failed. */
export const refundsOf = (refunds: readonly Refund[], utr: string | null) =>
  refunds.filter((one) => one.utr === utr && one.status !== 'FAIL')

type Line = { text: string; values: Record<string, string> }

/** The lines about a second payment: its refunds, after the request to contact `{name}` until they cover the amount. */
export function secondPaymentLines(
  { reference, amount }: SecondPayment,
  refunds: readonly CustomerRefund[],
  texts: PageTexts,
): Line[] {
  const paymentOf = (paise: Paise) => `${toIndianText(paise)} (UTR ${groupUtr(reference)})`
  const returned = refunds.reduce((sum, refund) => sum + refund.amount, 0)
  const rest = returned < amount ? [{ text: texts.paidTwice, values: { payment: paymentOf(amount) } }] : []
  return [...rest, ...refunds.map((refund) => refundLine(refund, texts, paymentOf(refund.amount)))]
}

/** The line about a refund. `payment` names the money that is being returned. */
function refundLine({ amount, status, endedAt, reference }: CustomerRefund, texts: PageTexts, payment: string): Line {
  if (status !== 'SUCCESS' || endedAt === null) return { text: texts.returning, values: { payment } }
  const values = { amount: toIndianText(amount), date: dateText(texts, endedAt), reference: groupUtr(reference) }
  return { text: reference === '' ? texts.returned : texts.returnedAs, values }
}

/** A UTR of 12 digits in groups of four on one line, which people read out; any other reference as it is. */
export const groupUtr = (utr: string) => (/^\d{12}$/.test(utr) ? utr.replace(/\d{4}(?=\d)/g, '$&\u00a0') : utr)
