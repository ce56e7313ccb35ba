import { LIMITS, type Limits } from '../../limits.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import { judge, type PaymentReport, possibleTime, type ReportSource } from './outcome.ts'
import {
  type EarlierReports,
  type FoundPayment,
  findFacts,
  findIntent,
  findMerchant,
  learnedFrom,
  nameAttempt,
  type Recorded,
  utrsFor,
} from './reports.ts'

/**
 * Returns a function that judges reports as `record` of `createReports` does, without locks, and stores nothing. Each report
 * regards what the earlier ones would have stored.
 */
export function createPreview(
  db: Queryable,
  { source, now, onImpossibleTime }: { source: ReportSource; now: () => Date; onImpossibleTime: () => void },
  limits: Limits['reports'] = LIMITS.reports,
): (report: PaymentReport) => Promise<Recorded> {
  const earlier = createEarlier()

  return async (report) => {
    const mid = await findMerchant(db, report.orderId)
    const stored = mid === undefined ? undefined : await findIntent(db, mid, report)
    if (mid === undefined || stored === undefined) return { exception: 'unknown order' }
    const time = now()
    if (possibleTime(report.paidAt, time, stored.createdAt) !== report.paidAt) onImpossibleTime()
    const { orderId, utr: reference, names } = report
    const attempt = nameAttempt(report)
    const facts = await findFacts(db, stored, { report, attempt, earlier }, limits.attemptsOfOrder)
    const store = async (isSecond: boolean) => {
      const [utr] = utrsFor(report, facts)
      // A bank reference is free, but the id may belong to another order.
      if (utr === undefined || (utr !== reference && (await isOfOther({ mid, orderId, utr })))) return false
      const bankReference = reference === undefined || reference === utr ? null : reference
      const ids = { id: names?.id ?? null, txnId: names?.txnId ?? null }
      earlier.put(mid, { orderId, utr, bankReference, ...ids, instrument: null, isSecond })
      return true
    }
    const isPaid = earlier.paymentsOf({ mid, orderId }, undefined).some(({ isSecond }) => !isSecond)
    const judged = judge({ ...stored, ...facts, ...(isPaid && { status: 'SUCCESS' }) }, report, source, time)
    const repeated = judged.verdict === 'repeat' ? judged.of : 'stored' in judged ? judged.stored : undefined
    if (repeated) {
      const { id = repeated.id, reference: bankReference = repeated.bankReference } = learnedFrom(report, repeated)
      earlier.put(mid, { ...repeated, orderId, id, bankReference })
    }
    switch (judged.verdict) {
      case 'repeat':
      case 'surplus attempt':
        return { changed: false, late: false }
      case 'failed attempt':
        earlier.putAttempt(orderId, `${report.status} ${attempt}`)
        return { changed: true, late: false }
      case 'success':
        return (await store(false)) ? { changed: true, late: judged.late } : { exception: 'UTR of another order' }
      case 'second payment': {
        const isFull = facts.payments.length > limits.secondPaymentsOfOrder
        return { exception: repeated || isFull || (await store(true)) ? 'double payment' : 'UTR of another order' }
      }
      case 'exception':
        return { exception: judged.kind }
    }
  }

  async function isOfOther(of: { mid: string; orderId: string; utr: string }): Promise<boolean> {
    const before = earlier.paymentsOf(of, of.utr).some(({ utr, orderId }) => utr === of.utr && orderId !== of.orderId)
    return before || (await OF_OTHER(db, of)).length > 0
  }
}

const OF_OTHER = query<object, { mid: string; orderId: string; utr: string }>(
  'select from payments where mid = :mid and utr = :utr and order_id <> :orderId',
)

/** Creates the memory of a preview. A payment that is put again under its UTR replaces the one before. */
function createEarlier() {
  const payments = new Map<string, FoundPayment>()
  /** Keys of payments, by order, and by merchant and reference. */
  const keys = new Map<string, Set<string>>()
  const attempts = new Map<string, string[]>()
  return {
    paymentsOf({ mid, orderId }, utr) {
      const found = [orderId, ...(utr === undefined ? [] : [`${mid} ${utr}`])].flatMap((of) => [
        ...(keys.get(of) ?? []),
      ])
      return [...new Set(found)].map((key) => payments.get(key) as FoundPayment)
    },
    put(mid: string, payment: FoundPayment) {
      const { orderId, utr, bankReference } = payment
      const key = `${mid} ${utr}`
      payments.set(key, payment)
      for (const of of [orderId, key, `${mid} ${bankReference}`]) keys.set(of, (keys.get(of) ?? new Set()).add(key))
    },
    attemptsOf: (orderId) => attempts.get(orderId) ?? [],
    putAttempt: (orderId: string, attempt: string) =>
      attempts.set(orderId, [...(attempts.get(orderId) ?? []), attempt]),
  } satisfies EarlierReports & Record<string, unknown>
}
