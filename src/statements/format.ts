import type { CsvFormat } from '../csv-header.ts'
import { readRupees, toSum } from '../money.ts'
import { fieldReaders, type Layout } from '../settlements/layouts.ts'
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
  const amounts = ours.filter((name) => ['credit', 'debit', 'amount', 'sign'].includes(name)).map(called)

  function check(fields: readonly string[], line: number) {
    const fieldOf = (name: string) => fields[ours.indexOf(name)] ?? ''
    const day = readers.day(fieldOf('day'))
    const amount = ours.includes('credit')
      ? oneOf(fieldOf('credit'), fieldOf('debit'))
      : ofSign(fieldOf('amount') || '0', ours.includes('sign') ? fieldOf('sign') || NO_SIGN : '')
    const written = fieldOf('balance') && fields.filter((_, at) => ours[at] === 'balance').join(' ')
    const balance = written === '' ? undefined : signed(written.trimEnd())
    if (balances && ['credit', 'debit'].every((name) => (signed(fieldOf(name)) ?? 0n) !== 0n)) {
      balances.doubt({
        line,
        text: `${amounts.join(' and ')} must be one amount, or be the totals of a day`,
        above: line,
      })
      return { value: '' }
    }
    const faults: string[] = []
    if (day === undefined) faults.push(`${called('day')} ${readers.rules.day}`)
    else if (day < from || day > to) faults.push(`${called('day')} must be from ${from} to ${to}`)
    if (amount === undefined) faults.push(`${amounts.join(' and ')} must be one amount, such as 1,450.50`)
    if (balance === undefined && written !== '') faults.push(`${called('balance')} ${readers.rules.rupees}`)
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

  const isRow = (fields: readonly string[]) => readers.isLikeDay(fields[ours.indexOf('day')] ?? '')
  const hasAmount = (fields: readonly string[]) =>
    fields.some((field, at) => ['credit', 'debit', 'amount'].includes(ours[at] as string) && /[1-9]/.test(field))
  const bank = { names, isRow, hasAmount, doubt: balances?.doubt }
  const format: CsvFormat = { columns: names, required: [], check, bank }
  return { format, balances }
}

/** The paise of a line with a column for credits and one for debits, of which one is empty or 0; undefined for any other. */
function oneOf(credit: string, debit: string): bigint | undefined {
  const [credited, debited] = [signed(credit || '0'), signed(debit || '0')]
  if (credited === undefined || debited === undefined || credited < 0n || debited < 0n) return undefined
  return credited > 0n && debited > 0n ? undefined : credited - debited
}

const NO_SIGN = '?'

/** The same of a line with one column for amounts. Nothing needs no sign: a line may tell the balance alone. */
const ofSign = (amount: string, sign: string) =>
  signed(amount) === 0n && sign === NO_SIGN ? 0n : signed(`${amount} ${sign}`.trimEnd())

/** The paise of an amount, negative for a debit: CR or DR may stand behind it, as in `609894.61CR`. */
function signed(written: string): bigint | undefined {
  const [, amount = '', word = ''] = /^(.*?) *((?:CR?|CREDIT|DR?|DEBIT)\.?)?$/i.exec(written) ?? []
  const rupees = readRupees(amount)
  if (rupees === undefined || (word !== '' && rupees.startsWith('-'))) return undefined
  return /^D/i.test(word) ? -toSum(rupees) : toSum(rupees)
}
