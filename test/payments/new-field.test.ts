import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { ERASED_COLUMNS, eraseCustomers } from '../../src/gateway/payments/erase-customers.ts'
import { NewPayment } from '../../src/gateway/payments/new-payment.ts'
import { chapterText, guideText } from '../guides/guides.ts'
import { CANARIES, CANARY_CUSTOMER, CANARY_FIELDS } from '../support/canaries.ts'
import { CREATE, intentFields, newMerchant, post, startService } from '../support/service.ts'

// Checks that every field of the create operations is listed everywhere it must be. src/README.md describes how to add a field.

const service = await startService()

const rowOf = async (orderId: string) =>
  (await service.db.query('select * from payment_intents where order_id = $1', [orderId])).rows[0]

/** A section of a guide, from its heading to the next one. */
const sectionOf = (guide: 'merchant', heading: string) =>
  guideText(guide).split(`\n${heading}\n`)[1]?.split(/^#+ /m)[0] ?? ''

describe('fields of createPaymentIntent', () => {
  it('every field of createPaymentIntent has a canary for the privacy tests', () => {
    const help = 'test/support/canaries.ts: add an accepted and a rejected value for each field of NewPayment'
    expect(Object.keys(CANARIES), help).toEqual(Object.keys(NewPayment.shape))
  })

  it('the merchant’s guide lists every field of createPaymentIntent, in the order of the schema', () => {
    const lines = [...sectionOf('merchant', '## Fields of a new payment').matchAll(/^\| `(\w+)` \| (yes|no) \|/gm)]
    const fields = Object.entries(NewPayment.shape).map(([name, schema]) => {
      return [name, schema.safeParse(undefined).success ? 'no' : 'yes']
    })
    const help = 'src/docs/guides/merchant/request-fields.md: one row for each field, and whether it is required'
    expect(
      lines.map(([, name, required]) => [name, required]),
      help,
    ).toEqual(fields)
  })

  it('createPaymentIntent stores every field as sent, and forget-customers empties the customer’s fields', async () => {
    const { mid, key } = await newMerchant(service.db)
    const { status, body } = await post(service.app, CREATE, intentFields(mid, CANARY_FIELDS), key)
    expect(status, 'not stored: has a migration added each column of INTENTS in insert-intents.ts?').toBe(200)
    const { orderId } = body.data
    const stored = Object.values(await rowOf(orderId))
    const lost = Object.entries(CANARY_FIELDS).flatMap(([name, value]) => (stored.includes(value) ? [] : [name]))
    expect(
      lost,
      'in no column: see buildIntent in src/gateway/payments/intent.ts and INTENTS in insert-intents.ts',
    ).toEqual([])

    await eraseCustomers(service.db, { email: CANARY_CUSTOMER.customer_email as string })
    const saved = JSON.stringify(await rowOf(orderId))
    const left = Object.entries(CANARY_CUSTOMER).flatMap(([name, value]) => (saved.includes(value) ? [name] : []))
    expect(left, 'not forgotten: see FORGOTTEN_COLUMNS in src/gateway/payments/erase-customers.ts').toEqual([])
  })
})

/** Columns that forget-customers does not empty: the guide tells merchants to put no personal data into them. */
const RETAINED_COLUMNS = `mid order_id merchant_order_id idempotency_key redirect_url note created_at expires_at
  amount_paise payee_vpa payee_name payee_mcc status utr event_sequence failure_reported_at cancelled_at unreadable_at`.split(
  /\s+/,
)

it('forget-customers lists every column of payment_intents as retained or erased', async () => {
  const { rows } = await service.db.query<{ name: string }>(
    `select column_name::text as name from information_schema.columns
      where table_schema = 'public' and table_name = 'payment_intents'`,
  )
  const help =
    'each column once: in FORGOTTEN_COLUMNS of src/gateway/payments/erase-customers.ts, or in KEPT_COLUMNS above'
  expect([...RETAINED_COLUMNS, ...ERASED_COLUMNS].sort(), help).toEqual(rows.map(({ name }) => name).sort())
})

it.each(ERASED_COLUMNS)('the operator manual states that forget-customers erases %s', (column) => {
  const words: Record<string, string> = { customer_email: 'e-mail address', idempotency_fingerprint: 'hash' }
  const word = words[column] ?? column.replace(/^customer_/, '')
  const [section] = chapterText('operator/personal-data').split('\n## Legal requirements\n')
  const help = 'src/docs/guides/operator/personal-data.md: name what forget-customers erases'
  expect(section, help).toContain(word)
})

it('the service matches a retry by Idempotency-Key across versions, because the fingerprint of unchanged fields is unchanged', async () => {
  const { mid, key } = await newMerchant(service.db)
  // The fields of version 1.0.0 in their order. Merchants that send no others are not affected by new fields.
  const before = { redirect_url: 'https://shop.example.in/', note: 'Order kept', customer_name: 'Asha Rao' }
  const sent = { ...before, customer_email: 'asha@example.in', customer_mobile: '9876543210' }
  const fields = { mid, amount: 200_00, order_id: 'kept', ...sent }
  const response = await post(service.app, CREATE, { ...fields, amount: '200' }, key, { 'idempotency-key': 'kept' })
  expect(response.text).toContain('Payment intent created')
  const { idempotency_fingerprint } = await rowOf(response.body.data.orderId)
  const expected = createHash('sha256').update(JSON.stringify(['createPaymentIntent', fields]))
  expect(idempotency_fingerprint.toString('hex')).toBe(expected.digest('hex'))
})
