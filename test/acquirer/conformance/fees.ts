import { expect } from 'vitest'
import { toDecimalText, toPaise } from '../../../src/platform/money.ts'
import { toIstDay } from '../../../src/platform/time.ts'
import { opsOn, runOps } from '../../support/ops.ts'
import type { NewMerchant } from '../../support/tenants.ts'
import { type AcquirerName, type Case, OURS, type Stage } from './driver.ts'
import { startInstance } from './instance.ts'
import { bankOf, create } from './orders.ts'

const DAY_SECONDS = 86_400

type Dialect = {
  /** The acquirer's word for each instrument. Setu documents none for wallets and credit lines, which the file then names. */
  words: { bank: unknown; card: unknown; wallet?: unknown; line?: unknown; several: unknown }
  header: string
  /** The flags of the layout. */
  layout: string[]
  row: (line: {
    utr: string
    net: string
    gross: string
    fee: string
    tax: string
    day: string
    word: string
  }) => unknown[]
}

const columns = (names: string) => names.split(', ').flatMap((column) => ['--column', column])

const DIALECTS: Record<Exclude<AcquirerName, 'direct'>, Dialect> = {
  setu: {
    words: { bank: 'SAVINGS', card: 'CREDIT', several: 'OTHERS' },
    header: 'RRN,Net,Fee,GST,Payment Instrument,Settlement UTR,Settled On',
    layout: columns(
      'amount=Net, fee=Fee, tax=GST, instrument=Payment Instrument, utr=RRN, bank_reference_number=Settlement UTR, initiation_date=Settled On',
    ),
    row: ({ utr, net, fee, tax, day, word }) => [utr, net, fee, tax, word, 'BRN1', day],
  },
  cashfree: {
    words: { bank: 'upi', card: 'upi_credit_card', wallet: 'upi_ppi', several: 'upi,upi_ppi' },
    header:
      'Sale Type,Event Amount,Event Settlement Amount,Payment UTR,Service Charge,Service Tax,Settlement UTR,Settlement Date,Payment Mode SubType',
    layout: columns(
      'amount=Event Settlement Amount, sign=Sale Type, gross=Event Amount, fee=Service Charge, tax=Service Tax, utr=Payment UTR, bank_reference_number=Settlement UTR, initiation_date=Settlement Date, instrument=Payment Mode SubType',
    ),
    row: ({ utr, net, gross, fee, tax, day, word }) => [
      ...[net.startsWith('-') ? 'DEBIT' : 'CREDIT', gross, net, utr, fee, tax, 'BRN1', day, word].map((cell) =>
        cell.replace(/^-/, ''),
      ),
    ],
  },
  phonepe: {
    words: { bank: 'ACCOUNT', card: 'CREDIT_CARD', wallet: 'WALLET', several: ['ACCOUNT', 'WALLET'] },
    header: 'PhonePeReferenceId,SettlementDate,BankReferenceNo,Amount,Fee,IGST,Instrument',
    layout: columns(
      'amount=Amount, amount=Fee, amount=IGST, fee=-Fee, tax=-IGST, utr=PhonePeReferenceId, bank_reference_number=BankReferenceNo, initiation_date=SettlementDate, instrument=Instrument',
    ),
    row: ({ utr, gross, fee, tax, day, word }) => [
      utr,
      day,
      'BRN1',
      gross,
      toDecimalText(-toPaise(fee)),
      toDecimalText(-toPaise(tax)),
      word,
    ],
  },
  razorpay: {
    words: { bank: 'bank_account', card: 'credit_card', wallet: 'wallet', several: 'credit_card,wallet' },
    header: 'transaction_entity,amount,fee (exclusive tax),tax,debit,credit,entity_id,settlement_utr,settled_at,word',
    layout: columns(
      'amount=credit, amount=-debit, fee=fee (exclusive tax), tax=tax, utr=entity_id, bank_reference_number=settlement_utr, initiation_date=settled_at, instrument=word',
    ),
    row: ({ utr, net, gross, fee, tax, day, word }) => {
      const isDebit = net.startsWith('-')
      const cells = [isDebit ? 'refund' : 'payment', gross, fee, tax]
      return [...cells, isDebit ? net.slice(1) : '0.00', isDebit ? '0.00' : net, utr, 'BRN1', day, word]
    },
  },
}

type Word = keyof Dialect['words'] | 'none'

/** `paid` is the acquirer's word of the payment, `word` that of its line, and `excess` what the list contains. */
type Line = {
  rupees: string
  fee: string
  tax: string
  paid: Word
  word?: string
  excess?: string
  isLater?: true
  isFlat?: true
}

const LINES: Record<string, Line> = {
  'a bank account at 0.25 %': { rupees: '500.00', fee: '1.25', tax: '0.23', paid: 'bank', word: 'credit card' },
  'a bank account at 0 %, charged': {
    rupees: '500.00',
    fee: '5.00',
    tax: '0.90',
    paid: 'bank',
    isLater: true,
    excess: '5.90',
  },
  'a card above 2,000': { rupees: '2499.00', fee: '49.98', tax: '9.00', paid: 'card' },
  'a card above 2,000, charged three paise more': {
    rupees: '2499.00',
    fee: '50.01',
    tax: '9.00',
    paid: 'card',
    excess: '0.03',
  },
  'a card that is free by contract': { rupees: '1900.00', fee: '38.00', tax: '6.84', paid: 'card', excess: '44.84' },
  'a card that is not free by contract': { rupees: '1900.00', fee: '38.00', tax: '6.84', paid: 'card', isFlat: true },
  'a card without tax': { rupees: '1900.00', fee: '38.00', tax: '0.00', paid: 'card', isFlat: true },
  'a wallet': { rupees: '1000.00', fee: '11.00', tax: '1.98', paid: 'wallet', word: 'wallet' },
  'a wallet, charged more tax': {
    rupees: '1000.00',
    fee: '11.00',
    tax: '2.00',
    paid: 'wallet',
    word: 'wallet',
    excess: '0.02',
  },
  'a credit line': { rupees: '1000.00', fee: '15.00', tax: '2.70', paid: 'none', word: 'CREDIT_LINE' },
  'an unknown instrument': { rupees: '700.00', fee: '99.00', tax: '17.82', paid: 'none', word: 'UPI' },
  'several instruments': { rupees: '300.00', fee: '88.00', tax: '15.84', paid: 'several' },
}

async function pay(stage: Stage, of: NewMerchant, { rupees, paid }: Line): Promise<string> {
  const { words } = DIALECTS[stage.name as keyof typeof DIALECTS]
  const { orderId } = (await create(stage, of, { amount: rupees })).body.data
  const { payment } = await bankOf(stage).pay(orderId, { amount: toPaise(rupees), faults: { lost: 1 } })
  Object.assign(payment, { instrument: paid === 'none' ? null : (words[paid] ?? null) })
  await startInstance(stage).checkStatus(orderId)
  const { rows } = await stage.service.db.query('select utr from payments where order_id = $1', [orderId])
  return rows[0].utr
}

async function feesAreJudged(stage: Stage): Promise<void> {
  const { name, service } = stage
  const { header, layout, row } = DIALECTS[name as keyof typeof DIALECTS]
  const { json } = opsOn(() => service.databaseUrl)
  const [first, flat] = [await stage.newMerchant(), await stage.newMerchant()]
  const day = toIstDay(service.clock.now())
  const nextDay = toIstDay(new Date(service.clock.now().getTime() + DAY_SECONDS * 1000))
  const add = (of: NewMerchant, rate: string) =>
    json('fees', 'add', '--mid', of.mid, '--acquirer', name, ...rate.split(' '))
  await add(first, `--instrument bank-account --percent 0.25 --from ${day}`)
  await add(first, `--instrument bank-account --percent 0 --from ${nextDay}`)
  await add(first, `--instrument credit-card --percent 0 --from ${day}`)
  await add(first, `--instrument credit-card --above 2000 --percent 2 --from ${day}`)
  await add(first, `--instrument wallet --percent 1.1 --from ${day}`)
  await add(first, `--instrument credit-line --percent 1.5 --from ${day}`)
  await add(flat, `--instrument credit-card --percent 2 --from ${day}`)
  const paid = new Map<string, string>()
  const lines = Object.entries(LINES)
  for (const [what, line] of lines)
    if (!line.isLater) paid.set(what, await pay(stage, line.isFlat ? flat : first, line))
  service.clock.advance(DAY_SECONDS)
  for (const [what, line] of lines) if (line.isLater) paid.set(what, await pay(stage, first, line))
  for (const of of [first, flat]) {
    await json(
      'settlements',
      'layout',
      'add',
      '--name',
      of.mid,
      '--mid',
      of.mid,
      '--date',
      'yyyy-mm-dd',
      '--status',
      'SUCCESS',
      ...layout,
    )
    const own = lines.filter(([, { isFlat = false }]) => isFlat === (of === flat))
    const rows = own.map(([what, { rupees, fee, tax, word = '' }]) => {
      const net = toDecimalText(toPaise(rupees) - toPaise(fee) - toPaise(tax))
      return row({ utr: paid.get(what) as string, net, gross: rupees, fee, tax, day: nextDay, word })
    })
    // The acquirer deducts a refund and returns its fee.
    const refund = { utr: 'E1', net: '-498.52', gross: '-500.00', fee: '-1.25', tax: '-0.23', day: nextDay, word: '' }
    const csv = [header, ...[...rows, row(refund)].map((cells) => cells.join()), ''].join('\n')
    const imported = await runOps(service.databaseUrl, ['settlements', 'import', '-', '--layout', of.mid], csv)
    expect(imported, csv).toMatchObject({ code: 0 })
  }
  const listed: Record<string, string> = {}
  const unjudged: string[] = []
  for (const of of [first, flat]) {
    const { fees, sums } = await json('reconcile', 'fees', '--from', day, '--to', nextDay, '--mid', of.mid)
    for (const { utr, excess } of fees) listed[utr] = excess
    for (const one of sums) if (!one.isJudged) unjudged.push(`${one.instrument} ${one.lines} ${one.fee} ${one.tax}`)
  }
  const expected = lines.flatMap(([what, { excess }]) => (excess === undefined ? [] : [[paid.get(what), excess]]))
  expect(listed).toEqual(Object.fromEntries(expected))
  expect(unjudged).toEqual(['null 2 187.00 33.66'])
}

export const FEES: Case[] = [
  {
    name: 'lists exactly the settlement lines whose fee or tax exceeds the contract of the instrument',
    not: OURS,
    run: feesAreJudged,
  },
]
