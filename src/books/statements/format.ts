import {
  amountReader,
  exactPaise,
  isAmount,
  isNothing,
  isTooLarge,
  LARGE_RULE,
  NO_UNITS,
  RUPEES_RULE,
  readPaise,
} from '../../platform/csv/amounts.ts'
import { bankForm, type CsvFormat, type Doubt } from '../../platform/csv/header.ts'
import { fieldReaders, type Layout } from '../../platform/csv/layouts.ts'
import type { Paise } from '../../platform/money.ts'
import { createBalanceChain } from './balance-chain.ts'
import { referencesIn } from './references.ts'

/** The payouts that statement lines may match, as normalized references and as amounts in paise. */
export type KnownPayouts = { references: ReadonlySet<string>; amounts: ReadonlySet<Paise> }

/**
 * Numbers of lines that move money, and their unsigned sums in paise, for comparison with the summary that the bank
 * prints.
 */
export type Moved = { credits: number; credited: Paise; debits: number; debited: Paise }

/**
 * The lines to read for statement `importId`: the lines on the days from `from` to `to`. Before the day
 * `matchedBefore`, only lines that may match a known payout are stored.
 */
type Reading = { importId: number; from: string; to: string; known: KnownPayouts; matchedBefore: string }

/**
 * Returns the parser for a bank statement in the format of this layout. For each line that moves money, the parser
 * stores only the day, the signed paise and the references. `moved` counts the lines read. `balances` is undefined if
 * the layout has no balance column.
 */
export function statementFile(layout: Layout, { importId, from, to, known, matchedBefore }: Reading) {
  const readers = fieldReaders(layout)
  const names = layout.columns.map(([, theirs]) => theirs)
  const ours = layout.columns.map(([name]) => name)
  const balances = ours.includes('balance') ? createBalanceChain() : undefined
  const moved: Moved = { credits: 0, credited: 0, debits: 0, debited: 0 }
  const called = (name: string) => `${names[ours.indexOf(name)]} (${name})`
  const readAmount = amountReader(layout.columns)
  const amountsAt = ours.flatMap((name, at) => (['credit', 'debit', 'amount'].includes(name) ? [at] : []))

  function check(fields: readonly string[], line: number, isNegative: boolean, above?: Doubt) {
    if (above) balances?.doubt(above)
    const fieldOf = (name: string) => fields[ours.indexOf(name)] ?? ''
    const day = readers.day(fieldOf('day'))
    const fieldsOf = (name: string) => ours.flatMap((one, at) => (one === name ? [fields[at] as string] : []))
    const written = isNothing(fieldOf('balance')) ? '' : fieldsOf('balance').join(' ')
    const balance = written === '' ? undefined : readPaise(written)
    const amounts = amountsAt.map((at) => names[at]).join(' and ')
    if (balances && ['credit', 'debit'].every((name) => isAmount(fieldOf(name)))) {
      balances.doubt({
        line,
        text: `${amounts} must contain one amount, unless the line has the totals of a day`,
        above: line,
      })
      return { value: '' }
    }
    const { units = NO_UNITS, isBare, doubt, error } = readAmount(fieldsOf, line, isNegative)
    const amount = exactPaise(units)
    const errors: string[] = []
    if (day === undefined) errors.push(`${called('day')} ${readers.rules.day}`)
    else if (day < from || day > to) errors.push(`${called('day')} must be from ${from} to ${to}`)
    if (error) errors.push(error)
    else if (doubt && !balances) errors.push(doubt)
    else if (amount === undefined) errors.push(`${amounts} ${RUPEES_RULE}`)
    else if (isTooLarge(amount)) errors.push(`${amounts} ${LARGE_RULE}`)
    if (balance === undefined && written !== '') errors.push(`${called('balance')} ${RUPEES_RULE}`)
    if (isTooLarge(balance ?? 0)) errors.push(`${called('balance')} ${LARGE_RULE}`)
    if (day === undefined || amount === undefined || errors.length > 0) return { errors }
    // A line without amount and balance moves no money, so it is not part of the balance chain.
    if (amount !== 0 || balance !== undefined) balances?.add(line, { day, amount, balance, isBare })
    if (doubt) balances?.doubtSigns({ line, text: doubt })
    if (amount > 0) {
      moved.credits += 1
      moved.credited += amount
    }
    if (amount < 0) {
      moved.debits += 1
      moved.debited -= amount
    }
    const references = new Set(referencesIn(fieldsOf('reference'), known.references))
    const isRetained =
      amount !== 0 &&
      (day >= matchedBefore || known.amounts.has(amount) || [...references].some((one) => known.references.has(one)))
    return { value: isRetained ? `${importId}\t${day}\t${amount}\t{${[...references].sort().join()}}` : '' }
  }

  const bank = bankForm(layout, readers, { day: 'day', naming: [], references: ['reference'] })
  const format: CsvFormat = { columns: names, required: [], check, bank }
  return { format, balances, moved }
}
