import { amountReader, exactPaise, isNothing, RUPEES_RULE, readPaise, readUnits } from '../../platform/csv/amounts.ts'
import type { BankForm, CsvFormat } from '../../platform/csv/header.ts'
import { fieldReaders, type Layout } from '../../platform/csv/layouts.ts'
import { createBalanceChain } from './balance-chain.ts'
import { referencesIn } from './references.ts'

/** References, comparable, and amounts in paise of the payouts that lines of a statement may be. */
export type KnownPayouts = { references: ReadonlySet<string>; amounts: ReadonlySet<bigint> }

/** What of statement `importId` is read: lines of the days `from` to `to`; of those before `matchedBefore` only what may be a known payout. */
export type Reading = { importId: number; from: string; to: string; known: KnownPayouts; matchedBefore: string }

/**
 * The format of a bank's statement by this layout. Of each line that moves money its day, its paise, negative for a debit, and its
 * references are copied, and nothing else. `balances` is undefined for a file without a column for them.
 */
export function statementFile(layout: Layout, { importId, from, to, known, matchedBefore }: Reading) {
  const readers = fieldReaders(layout)
  const names = layout.columns.map(([, theirs]) => theirs)
  const ours = layout.columns.map(([name]) => name)
  const balances = ours.includes('balance') ? createBalanceChain() : undefined
  const called = (name: string) => `${names[ours.indexOf(name)]} (${name})`
  const readAmount = amountReader(layout.columns)
  const amountsAt = ours.flatMap((name, at) => (['credit', 'debit', 'amount'].includes(name) ? [at] : []))

  function check(fields: readonly string[], line: number) {
    const fieldOf = (name: string) => fields[ours.indexOf(name)] ?? ''
    const day = readers.day(fieldOf('day'))
    const fieldsOf = (name: string) => ours.flatMap((one, at) => (one === name ? [fields[at] as string] : []))
    const written = isNothing(fieldOf('balance')) ? '' : fieldsOf('balance').join(' ')
    const balance = written === '' ? undefined : readPaise(written)
    const amounts = amountsAt.map((at) => names[at]).join(' and ')
    if (balances && ['credit', 'debit'].every((name) => (readUnits(fieldOf(name)) ?? 0n) !== 0n)) {
      balances.doubt({ line, text: `${amounts} must be one amount, or be the totals of a day`, above: line })
      return { value: '' }
    }
    const { units = 0n, fault } = readAmount(fieldsOf, line)
    const amount = exactPaise(units)
    const faults: string[] = []
    if (day === undefined) faults.push(`${called('day')} ${readers.rules.day}`)
    else if (day < from || day > to) faults.push(`${called('day')} must be from ${from} to ${to}`)
    if (fault) faults.push(fault)
    else if (amount === undefined) faults.push(`${amounts} ${RUPEES_RULE}`)
    if (balance === undefined && written !== '') faults.push(`${called('balance')} ${RUPEES_RULE}`)
    if (day === undefined || amount === undefined || faults.length > 0) return { faults }
    // Without both, nothing is moved.
    if (amount !== 0n || balance !== undefined) balances?.add(line, { day, amount, balance })
    const references = new Set(
      fields.flatMap((field, at) => (ours[at] === 'reference' ? referencesIn(field, known.references) : [])),
    )
    const isKept =
      amount !== 0n &&
      (day >= matchedBefore || known.amounts.has(amount) || [...references].some((one) => known.references.has(one)))
    return { value: isKept ? `${importId}\t${day}\t${amount}\t{${[...references].sort().join()}}` : '' }
  }

  const dayAt = ours.indexOf('day')
  const bank: BankForm = {
    names,
    isRow: (fields) => readers.isLikeDay(fields[dayAt] ?? ''),
    amountsAt,
    isLikeRow: (fields) =>
      fields.some((field, at) => ours[at] === 'reference' && /\p{L}|\d{6}/u.test(field)) &&
      amountsAt.some((at) => (readUnits(fields[at] ?? '') ?? 0n) !== 0n),
    day: { at: dayAt, rule: `${called('day')} ${readers.rules.day}` },
    doubt: balances?.doubt,
  }
  const format: CsvFormat = { columns: names, required: [], check, bank }
  return { format, balances }
}
