import { beforeAll, expect, it } from 'vitest'
import { createDisputes } from '../../src/gateway/disputes/record-dispute.ts'
import { EXCEPTION_KINDS, type ExceptionKind } from '../../src/gateway/payments/outcome.ts'
import { createReports, type Reports } from '../../src/gateway/payments/reports.ts'
import { comparisonJobs } from '../../src/gateway/payments/utrs-of-other-merchants.ts'
import { createRefund } from '../../src/gateway/refunds/create-refund.ts'
import { createRefundUpdates } from '../../src/gateway/refunds/record-update.ts'
import type { Refund, RefundUpdate } from '../../src/gateway/refunds/refund.ts'
import { chapterText } from '../guides/guides.ts'
import { newUtr } from '../support/acquirer.ts'
import { createOrder } from '../support/orders.ts'
import { CANCEL, newMerchant, post, startService, type TestService } from '../support/service.ts'
import type { NewMerchant } from '../support/tenants.ts'

let service: TestService
let reports: Reports
beforeAll(async () => {
  service = await startService({ limits: { webhooks: { lookIntervalMs: 3_600_000 } } })
  reports = createReports(service.db)
})

/** An exception of `kind`, the order that it names or that paid it, and a refund of a paid order. */
type Subject = NewMerchant & {
  kind: ExceptionKind
  orderId: string
  /** Also the id of a dispute. */
  utr: string
  id: string
  refund: Refund | undefined
}

const success = (orderId: string, utr: string) =>
  reports.record(
    { orderId, status: 'SUCCESS', utr, amount: 200_00, paidAt: service.clock.now() },
    { source: 'notification', now: service.clock.now },
  )

async function newSubject(kind: ExceptionKind, isPaid: boolean): Promise<Subject> {
  const { db, clock } = service
  const merchant = await newMerchant(db)
  const { mid } = merchant
  const [orderId, utr] = [await createOrder(service, merchant), newUtr()]
  if (isPaid) await success(orderId, kind === 'late payment' ? utr : newUtr())
  const request = { mid, orderId, amount: undefined, note: 'sold out', createdBy: 'asha' }
  const isOfRefund = kind.startsWith('refund')
  const created = isPaid && isOfRefund ? await createRefund(db, request, clock.now()) : undefined
  const refund = created && 'refund' in created ? created.refund : undefined
  if (kind === 'unreadable') await reports.saveUnreadableStatus({ orderId, isBesidePayment: true }, 'setu', clock.now())
  else
    await db.query(
      `insert into payment_exceptions (mid, order_id, kind, utr, amount_paise, status, our_refund_id, received_at, dedup_key,
         acquirer_account)
       values ($1, $2, $3, $4, 20000, $5, $6, $7, $8, 'direct')`,
      [
        ...(kind === 'unknown order' ? ['', 'UPI'] : [kind === 'unknown dispute' ? '' : mid, orderId]),
        ...[kind, utr, isOfRefund ? '' : 'SUCCESS', refund?.ourRefundId ?? '', clock.now()],
        kind === 'unknown dispute' ? `${utr} open` : kind === 'refund of a disputed payment' ? utr : '',
      ],
    )
  const { rows } = await db.query(
    'select exception_id as id from payment_exceptions where kind = $1 and (utr = $2 or order_id = $3)',
    [kind, utr, orderId],
  )
  return { ...merchant, kind, orderId, utr, id: rows[0].id, refund }
}

async function update(refund: Refund | undefined, changes: RefundUpdate): Promise<void> {
  if (refund)
    await createRefundUpdates(service.db).record(refund, changes, {
      source: 'enquiry',
      by: 'acquirer',
      now: service.clock.now,
    })
}

async function refundPart(part: Pick<Subject, 'mid' | 'orderId'> & { amount: number }): Promise<void> {
  const created = await createRefund(
    service.db,
    { ...part, note: 'sold out', createdBy: 'merchant' },
    service.clock.now(),
  )
  if ('refund' in created) await update(created.refund, { status: 'SUCCESS', reference: newUtr() })
}

/** Later records, each with whether the order is already paid. */
const RECORDS = {
  'a payment with its UTR': { isPaid: false, store: ({ orderId, utr }) => success(orderId, utr) },
  'a payment of the order with another UTR': { isPaid: false, store: ({ orderId }) => success(orderId, newUtr()) },
  'the success of a refund': {
    isPaid: true,
    async store({ mid, orderId, kind, id, refund }) {
      const { db, clock } = service
      // `ops refunds create --exception` refunds only these two.
      const exceptionId = ['double payment', 'late payment'].includes(kind) ? id : undefined
      const request = { mid, orderId, amount: 200_00, note: kind, exceptionId, createdBy: 'asha' }
      const created = refund ? { refund } : await createRefund(db, request, clock.now())
      if ('refund' in created) await update(created.refund, { status: 'SUCCESS', reference: newUtr() })
    },
  },
  "the success of the merchant's refunds of the whole payment": {
    isPaid: true,
    async store({ mid, orderId, refund }) {
      if (refund) return update(refund, { status: 'SUCCESS', reference: newUtr() })
      for (const amount of [50_00, 150_00]) await refundPart({ mid, orderId, amount })
    },
  },
  "the success of the merchant's refund of a part": {
    isPaid: true,
    async store({ mid, orderId, refund }) {
      if (refund === undefined) await refundPart({ mid, orderId, amount: 199_00 })
    },
  },
  'the failure of its refund': {
    isPaid: true,
    store: ({ refund }) => update(refund, { status: 'FAIL', reference: '', reason: 'closed' }),
  },
  'a status of its refund at the acquirer': {
    isPaid: true,
    store: ({ refund }) => update(refund, { status: 'PENDING', reference: '', id: 'CF1' }),
  },
  'a report that its dispute was won': {
    isPaid: true,
    store: ({ orderId, utr }) =>
      createDisputes(service.db).record(
        'direct',
        { id: utr, orderId, status: 'won' },
        { source: 'notification', now: service.clock.now },
      ),
  },
  'a readable status response': {
    isPaid: false,
    store: ({ orderId }) => reports.endUnreadable(orderId, service.clock.now()),
  },
  'the cancellation of the order': {
    isPaid: false,
    store: ({ mid, orderId, key }) => post(service.app, CANCEL, { mid, order_id: orderId }, key),
  },
} satisfies Record<string, { isPaid: boolean; store: (subject: Subject) => Promise<unknown> }>
type RecordName = keyof typeof RECORDS

const WHOLE = "the success of the merchant's refunds of the whole payment"
const OF_REFUND = ['the success of a refund', WHOLE, 'the failure of its refund'] as const
const RESOLVED_BY: Partial<Record<ExceptionKind, readonly RecordName[]>> = {
  'unknown order': ['a payment with its UTR'],
  'double payment': ['the success of a refund'],
  'late payment': ['the success of a refund', WHOLE],
  unreadable: [
    'a payment with its UTR',
    'a payment of the order with another UTR',
    'a readable status response',
    'the cancellation of the order',
  ],
  'refund unsure': [...OF_REFUND, 'a status of its refund at the acquirer'],
  'refund without an end': OF_REFUND,
  'unknown dispute': ['a report that its dispute was won'],
  'refund of a disputed payment': ['the failure of its refund', 'a report that its dispute was won'],
}

it.each(EXCEPTION_KINDS)(
  'the exception "%s" is resolved by the records that the guide describes, and by no other',
  async (kind) => {
    const names = new Map<string, RecordName>()
    for (const name of Object.keys(RECORDS) as RecordName[]) {
      const { isPaid, store }: { isPaid: boolean; store: (subject: Subject) => Promise<unknown> } = RECORDS[name]
      const subject = await newSubject(kind, isPaid)
      await store(subject)
      names.set(subject.id, name)
    }
    service.clock.advance(60)
    await comparisonJobs(service.db, service.clock.now, () => undefined).findQueues()
    const { rows } = await service.db.query(
      'select exception_id as id from payment_resolutions where exception_id = any ($1)',
      [[...names.keys()]],
    )
    expect(rows.map(({ id }) => names.get(id)).sort()).toEqual([...(RESOLVED_BY[kind] ?? [])].sort())
  },
)

it('the guide names each kind of exception in the table of records that resolve exceptions', () => {
  const [, section = ''] = chapterText('operator/exceptions').split('\n## Records that resolve an exception\n')
  const rows = [...section.matchAll(/^\| (`[^|]+) \| ([^|]+) \|$/gm)]
  const named = rows.flatMap(([, kinds = '', record = '']) =>
    [...kinds.matchAll(/`([^`]+)`/g)].map(([, kind]) => [kind, record.startsWith('only')]),
  )
  const expected = EXCEPTION_KINDS.map((kind) => [kind, RESOLVED_BY[kind] === undefined])
  // An unreadable notification names no order, so no record resolves it.
  expect(named.sort()).toEqual([...expected, ['unreadable', true]].sort())
})
