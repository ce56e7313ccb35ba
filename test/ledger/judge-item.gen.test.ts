import fc from 'fast-check'
import { expect, it } from 'vitest'
import { owedBy } from '../../src/books/ledger/discrepancies.ts'
import { runs } from '../support/generated.ts'
import { judge, PAYMENT, refund, row } from './items.ts'

it('what the differences of an item owe adds up to what its movements leave, whatever the bank does', () => {
  const movements = fc.array(
    fc.record({
      paise: fc.constantFrom(-200_00, -150_00, -50_00, 5_00, 50_00, 150_00, 195_00, 200_00),
      days: fc.nat(8),
    }),
    { maxLength: 6 },
  )
  const refunds = fc.array(fc.record({ paise: fc.constantFrom(50_00, 100_00, 200_00), days: fc.nat(6) }), {
    maxLength: 3,
  })
  fc.assert(
    fc.property(movements, refunds, fc.boolean(), (moved, sentBack, isKnown) => {
      const sorted = [...moved].sort((a, b) => a.days - b.days)
      const rows = sorted.map(({ paise, days }, index) => row(paise, days, { utr: `N${index}` }))
      const of = sentBack.map(({ paise, days }, index) => refund(paise, days, { refundId: `R${index}` }))
      const item = isKnown ? { rows, refunds: of } : { payment: undefined, rows }
      const owed = judge(item).reduce((sum, one) => sum + owedBy(one), 0)
      const went = isKnown ? of.reduce((sum, { amount }) => sum + amount, 0) : 0
      const settled = rows.reduce((sum, { gross }) => sum + gross, 0)
      expect(owed).toBe((isKnown ? PAYMENT.amount : 0) - settled - went)
    }),
    { numRuns: runs(20_000, 1_000) },
  )
})
