import * as z from 'zod'
import { addDays, createBankDays, type Days } from '../../books/ledger/bank-days.ts'
import { holidaysOf } from '../../books/ledger/bank-holidays.ts'
import { snapshotOf } from '../../books/reading/snapshot.ts'
import { findPayout } from '../../books/reports/arrivals.ts'
import {
  type ImportedStatement,
  importStatement,
  listStatements,
  undoStatement,
} from '../../books/statements/import.ts'
import { type Credit, lockCredit, setMatch } from '../../books/statements/match.ts'
import { errorText, identifier } from '../../platform/fields.ts'
import { counted, type Paise, toIndianRupees, totalText } from '../../platform/money.ts'
import { nextDay, startOfDay, toIstDay, toIstTime } from '../../platform/time.ts'
import { change, changeInSteps, read } from './command.ts'
import { CommandError } from './errors.ts'
import { flag, list, oneOf, optional, toggle } from './field.ts'
import { ACQUIRER_ACCOUNT, bothDaysOf, DRY_RUN, MID, numbered, PAYOUT, PERIOD, REASON } from './fields.ts'
import { FILE, readFile } from './file.ts'
import { layoutOf } from './layout-fields.ts'
import { findLayout } from './layouts.ts'
import { requireMerchant } from './merchants.ts'
import { type Cell, document, Money, type RecordData, rupees, table } from './result.ts'

const NUMBER_RULE = 'must be the number of a bank statement, as listed by ops statements list'
const STATEMENT = numbered('Number of the bank statement', NUMBER_RULE)
const MIDS_RULE = 'must be given for every merchant with payouts to the bank account'
const LINE_RULE = 'must be a line number of the bank statement'
const REFERENCE = { ...PAYOUT, placeholder: 'REFERENCE', hint: 'its bank reference' }
const balance = (label: string) => optional(flag(totalText, 'RUPEES', label, 'in rupees, which the file must confirm'))

const NO_PAYOUT = 'the merchants of this bank statement have no payout with this reference'
const SEE_PAYOUTS = 'see ops reconcile payouts'

export const statementCommands = [
  changeInSteps('statements import', 'Import a bank statement', {
    title: 'Import bank statement',
    isLong: true,
    note: 'The days are those for which the statement was requested from the bank.',
    fields: {
      ...{ file: FILE, layout: layoutOf('bank statements') },
      mid: {
        ...list(z.array(identifier, errorText(MIDS_RULE)), 'MID', 'Merchant with payouts to the bank account'),
        choices: MID.choices,
      },
      period: PERIOD,
      opening: balance('Balance before the first day'),
      closing: balance('Balance after the last day'),
      ...{ acquirer: optional(ACQUIRER_ACCOUNT), dryRun: DRY_RUN },
    },
    async run({ file, layout: layoutName, mid: mids, opening, closing, acquirer: account = null, period }, context) {
      const { change, db, now, person } = context
      const days = bothDaysOf(period)
      if (nextDay(startOfDay(days.to)) > now) {
        const yesterday = addDays(toIstDay(now), -1)
        throw new CommandError(`a bank statement must end before today: --to must be ${yesterday} or earlier`)
      }
      const layout = await findLayout(db, layoutName, 'bank statements')
      for (const mid of mids) await requireMerchant(db, mid)
      const warnings: string[] = []
      const importing = {
        ...{ ...days, now, person, layout, account, opening, closing },
        mids: [...new Set(mids)].sort(),
        onWarning: (warning: string) => warnings.push(warning),
      }
      return readFile(file, context, (csv, progress, name) =>
        change(async (client) => {
          const bankDays = createBankDays(await holidaysOf(client, now))
          const reading = { file: name, bankDays, onProgress: progress('line') }
          const imported = await importStatement(client, csv, { ...importing, ...reading })
          warnings.push(...judge(imported, importing))
          const { proved: _, moved: __, ...created } = imported
          const data = importedData(imported, warnings)
          const { statement: ___, warnings: ____, ...figures } = data.fields
          return { data, created, warnings, figures: figures as Record<string, Cell> }
        }),
      )
    },
  }),

  read('statements list', 'List bank statements and the days they cover', {
    title: 'Bank statements',
    async run(_, { db }) {
      return table('statement, at, person, file, mids, account, covers, kept, undone', await listStatements(db, {}), {
        empty: 'No bank statements.',
        changes: ({ importId }) => [{ statement: String(importId) }],
        json: ({ importId, ...one }) => ({ statement: importId, ...one }),
        cells: ({ importId, coversFrom, coversTo, undoneAt, undoneBy, ...one }) => ({
          ...one,
          statement: importId,
          covers: coversTo && `${coversFrom} to ${coversTo}`,
          undone: undoneAt && `${toIstTime(undoneAt)} by ${undoneBy}`,
        }),
      })
    },
  }),

  change('statements match', 'Match a credit with a payout', {
    title: 'Match',
    fields: {
      with: oneOf([{ payout: REFERENCE }, { none: toggle('Remove the match of the line') }]),
      statement: { ...STATEMENT, record: undefined },
      line: { ...numbered('Line number in the bank statement', LINE_RULE), record: undefined },
      reason: REASON,
      force: optional(toggle('Match despite another amount or another payout in the line')),
      dryRun: DRY_RUN,
    },
    async run({ with: { payout }, statement, line, force }, { client, now }) {
      const place = { importId: statement, line }
      const credit = await lockCredit(client, place)
      if (credit === undefined)
        throw new CommandError(`line ${line} of bank statement ${statement} is not a stored credit: ${SEE_PAYOUTS}`)
      const shown = `line ${line} of bank statement ${statement} (${describe(credit)})`
      const created = { payout: payout ?? null, statement, line }
      const json = { ...created, ...toShown(credit) }
      if (payout === undefined) {
        if (credit.matchedPayout === null)
          throw new CommandError(`${shown} is not matched with a payout: ${SEE_PAYOUTS}`)
        await setMatch(client, place, null)
        const message = `Match of ${shown} with payout ${credit.matchedPayout} removed.`
        return { data: document(json, message), created, figures: toFigures(credit) }
      }
      const found = await findPayout(await snapshotOf(client, now), credit, payout)
      if (found === undefined) throw new CommandError(`${NO_PAYOUT}: ${SEE_PAYOUTS}`)
      const { expected } = found
      const doubts = [
        ...(expected === credit.amount ? [] : [`the payout is ${toIndianRupees(expected)}`]),
        ...found.others.map((other) => `the line names payout ${other}, or is matched with it`),
      ]
      if (doubts.length > 0 && force === undefined)
        throw new CommandError(
          `${shown} does not fit payout ${payout}: ${doubts.join(', ')}; check both, or add --force`,
        )
      await setMatch(client, place, payout)
      const message = `Matched ${shown} with payout ${payout} of ${toIndianRupees(expected)}.`
      const figures = { ...toFigures(credit), 'amount of the payout': new Money(expected) }
      return { data: document({ ...json, expected: new Money(expected) }, message), created, figures }
    },
  }),

  change('statements undo', 'Undo the import of a bank statement', {
    title: 'Undo',
    fields: { statement: STATEMENT, dryRun: DRY_RUN },
    async run({ statement }, { client, now, person }) {
      const removed = await undoStatement(client, statement, { now, person })
      if (removed === undefined)
        throw new CommandError(`bank statement ${statement} does not exist or was undone: see ops statements list`)
      const message = `Bank statement ${statement} undone: ${counted(removed, 'line')} removed.`
      return { data: document({ statement, removed }, message), created: { removed }, figures: { lines: removed } }
    },
  }),
]

/**
 * Returns the result of an import. Its text is `Bank statement 1 covers ….`, followed by `3 lines: 2 credits, ₹540.28;
 * 1 debit, ₹5,000.00; closing balance ₹5,540.28`.
 */
function importedData({ proved, moved, ...created }: ImportedStatement, warnings: readonly string[]): RecordData {
  const { credits, credited, debits, debited } = moved
  const lines = credits + debits
  const closing = rupees(proved?.closing ?? null)
  const parts = [
    `${counted(credits, 'credit')}, ${toIndianRupees(credited)}`,
    `${counted(debits, 'debit')}, ${toIndianRupees(debited)}`,
    ...(closing === null ? [] : [`closing balance ${toIndianRupees(closing.paise)}`]),
  ]
  const covers = created.coversTo === null ? 'no day' : `${created.coversFrom} to ${created.coversTo}`
  const sums = { credits, credited: new Money(credited), debits, debited: new Money(debited) }
  const message = `Bank statement ${created.statement} covers ${covers}.\n${counted(lines, 'line')}: ${parts.join('; ')}`
  return document({ ...created, lines, ...sums, closing, warnings }, message)
}

const toShown = ({ day, amount, references }: Credit) => ({ day, amount: new Money(amount), references })

const toFigures = ({ day, amount, references, matchedPayout }: Credit) => ({
  ...{ amount: new Money(amount), day, references, 'matched with': matchedPayout },
})

const describe = ({ day, amount, references }: Credit) =>
  `${day}, ${toIndianRupees(amount)}, ${references.length > 0 ? references.join(' ') : 'no reference'}`

type Balances = { [Side in 'opening' | 'closing']?: Paise | undefined }

/**
 * Returns warnings about a bank statement. Throws if one of its balances differs from the balance that the operator
 * expects.
 */
function judge({ proved, coversFrom }: ImportedStatement, { from, to, ...seen }: Days & Balances): string[] {
  for (const side of ['opening', 'closing'] as const) {
    const [given, found] = [seen[side], proved?.[side]]
    if (given === undefined || given === found) continue
    const name = side === 'opening' ? 'the balance before the oldest line' : 'the newest balance'
    const has = found === undefined ? 'no balances' : `${name} ${toIndianRupees(found)}`
    throw new CommandError(
      `nothing was imported: the file has ${has}, not ${toIndianRupees(given)}; correct --${side}, or download the file from the bank again`,
    )
  }
  if (proved === undefined) return ['the file has no balances, so missing lines cannot be detected']
  const doubts = [
    coversFrom !== from &&
      `the file may begin too late: to cover the days before ${coversFrom}, add --opening with the balance before them`,
    seen.closing === undefined &&
      `the file may end too early: to cover all days until ${to}, add --closing with the balance after them`,
  ]
  return doubts.filter((doubt) => doubt !== false)
}
