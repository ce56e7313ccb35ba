import * as z from 'zod'
import { hasSameName, newestOf, rateOf } from '../../books/ledger/rate-of.ts'
import {
  type AccountCharges,
  type FeeSum,
  judgeFees,
  listCharges,
  readRates,
  saveRates,
} from '../../books/reports/fees.ts'
import { INSTRUMENTS } from '../../gateway/payments/instrument.ts'
import { percent } from '../../gateway/tenants/schema.ts'
import { errorText } from '../../platform/fields.ts'
import { bankAmount, type Paise, totalText } from '../../platform/money.ts'
import { toIstDay } from '../../platform/time.ts'
import { change, read } from './command.ts'
import { CommandError } from './errors.ts'
import { flag, offering, oneOf, optional } from './field.ts'
import { ACQUIRER_ACCOUNT, bothDaysOf, DAY, MID, ORDER_ID, REPORTED_PERIOD } from './fields.ts'
import { findOrder } from './find-payments.ts'
import { rateTable, requireMerchant } from './merchants.ts'
import { document, summed, table } from './result.ts'

const TYPED = INSTRUMENTS.map((one) => one.replace(' ', '-'))
const instrument = z
  .enum(TYPED, errorText(`must be one of ${TYPED.join(', ')}`))
  .transform((typed) => INSTRUMENTS[TYPED.indexOf(typed)] ?? null)
  .default(null)

/** The flags that name a rate. */
const NAMED = {
  mid: MID,
  acquirer: ACQUIRER_ACCOUNT,
  instrument: flag(instrument, 'INSTRUMENT', 'Instrument', `${TYPED.join(', ')}; default: any`),
  above: flag(bankAmount.default(0), 'RUPEES', 'For payments above', 'in rupees; default: for all payments'),
}
const SINCE_DAY = { ...DAY, label: 'First day', example: '2026-04-01' }

export const feeCommands = [
  change('fees add', 'Add a contract rate of an acquirer', {
    note: 'A rate that already has the name and begins on the same day is replaced.',
    fields: {
      ...NAMED,
      percent: flag(percent, 'PERCENT', 'Percent of the payment', 'such as 1.95'),
      flat: flag(bankAmount.default(0), 'RUPEES', 'Amount for each payment', 'in rupees; default: 0.00'),
      tax: flag(percent.default('18'), 'PERCENT', 'Tax in percent of the fee', 'default: 18'),
      from: SINCE_DAY,
    },
    async run({ from: since, ...rate }, { client }) {
      await requireMerchant(client, rate.mid)
      await saveRates(client, [{ ...rate, since }])
      return rateTable(await readRates(client, rate))
    },
  }),

  change('fees end', 'End a contract rate of an acquirer', {
    fields: { ...NAMED, from: { ...SINCE_DAY, hint: 'IST, the first day without the rate' } },
    async run({ from: since, ...name }, { client }) {
      const before = (await readRates(client, name)).filter((rate) => hasSameName(rate, name) && rate.since <= since)
      if (newestOf(before).length === 0)
        throw new CommandError(`no such rate is valid on ${since}: list the rates with ops fees list --mid ${name.mid}`)
      await saveRates(client, [{ ...name, since, percent: null, flat: null, tax: null }])
      return rateTable(await readRates(client, name))
    },
  }),

  read('fees list', 'List contract rates, or show the rate of a payment', {
    fields: { of: oneOf([{ mid: optional(MID) }, { orderId: ORDER_ID }]) },
    async run({ of: { mid, orderId } }, { db, now }) {
      await requireMerchant(db, mid)
      if (orderId === undefined) return rateTable(await readRates(db, { mid }))
      const { acquirer: account, paidAt, ...order } = await findOrder(db, orderId, now)
      if (paidAt === null) throw new CommandError('the order is not paid: a rate depends on the payment')
      const rate = rateOf({ ...order, account, day: toIstDay(paidAt) }, await readRates(db, { mid: order.mid }))
      return rateTable(rate ? [rate] : [], 'No rate applies to the payment.')
    },
  }),
]

const BY = z.literal('account', errorText('must be account'))

export const reconcileFees = read('reconcile fees', 'List fees above the contract, or compare an invoice', {
  title: 'Fees',
  isLong: true,
  note: 'Without --by and --account, the list contains the settlement lines whose fee or tax exceeds the contract rate.',
  fields: {
    period: REPORTED_PERIOD,
    of: oneOf([
      { mid: optional(MID) },
      { by: offering(flag(BY, 'account', 'Sums', 'of each acquirer account'), ['account']) },
      {
        account: { ...ACQUIRER_ACCOUNT, label: 'Acquirer account' },
        invoice: flag(totalText, 'RUPEES', 'Fee in the invoice', 'in rupees, without tax'),
        invoiceTax: flag(totalText, 'RUPEES', 'Tax in the invoice', 'in rupees'),
      },
    ]),
  },
  csv: true,
  async run({ period, of: { mid, by, account, invoice, invoiceTax } }, { db, now }) {
    const days = { ...bothDaysOf(period), now }
    if (by) return table(CHARGES, await listCharges(db, days), 'No settlement lines.')
    if (account !== undefined) return compareInvoice(account, [invoice, invoiceTax], await listCharges(db, days))
    await requireMerchant(db, mid)
    const { rows, sums } = judgeFees(db, { ...days, mid })
    const { fields, parts = [] } = summed('fees', LINES, rows)
    const words = ({ isJudged }: FeeSum) => ({ isJudged: isJudged ? 'yes' : 'no rate' })
    const bySum = () => table(SUMS, sums(), { title: 'By acquirer account and instrument', words })
    return document({ ...fields, sums: bySum }, ...parts, bySum)
  },
})

const LINES =
  'mid, day, account, instrument, settlementUtr, Σgross, Σfee, Σtax, ΣallowedFee, ΣallowedTax, Σexcess, utr, orderId'
const SUMS = 'account, instrument, isJudged, lines, ₹gross, ₹fee, ₹tax, listed, ₹excess'
const CHARGES = 'account, lines, ₹gross, ₹fee, ₹tax, ₹otherFee, ₹otherTax, ₹laterFee, ₹laterTax, ₹resolved'

/** Compares the charges of an acquirer account with the fee and tax of its invoice. */
function compareInvoice(name: string, invoice: readonly [Paise, Paise], charges: readonly AccountCharges[]) {
  const found: Partial<AccountCharges> = charges.find(({ account }) => account === name) ?? {}
  const { fee = 0, tax = 0, otherFee = 0, otherTax = 0, laterFee = 0, laterTax = 0, resolved = 0 } = found
  const settled = [fee + resolved, tax] as const
  const paid = [settled[0] - otherFee + laterFee, tax - otherTax + laterTax] as const
  const less = (of: readonly [Paise, Paise]) => [invoice[0] - of[0], invoice[1] - of[1]] as const
  const row = (item: string, [fee, tax]: readonly [Paise, Paise]) => ({ item, fee, tax, total: fee + tax })
  const rows = [
    row('settlement lines', [fee, tax]),
    row('resolved as a charge', [resolved, 0]),
    row('of payments on other days', [-otherFee, -otherTax]),
    row('settled on other days', [laterFee, laterTax]),
    row('charged for payments', paid),
    row('invoice', invoice),
    row('remains by payment day', less(paid)),
    row('remains by settlement day', less(settled)),
  ]
  const equal = [paid, settled].findIndex((of) => less(of).every((paise) => paise === 0))
  const result =
    equal === -1
      ? `The invoice differs from the charges. Compare its list of transactions with the settlement lines of ${name}.`
      : `The invoice equals the charges by the day of the ${['payment', 'settlement'][equal]}.`
  const comparison = table('item, ₹fee, ₹tax, ₹total', rows)
  return document({ account: name, comparison }, comparison, result)
}
