import { basename } from 'node:path'
import * as z from 'zod'
import { ACQUIRER_NAMES } from '../acquirer/acquirers.ts'
import { errorText, identifier, matching, text } from '../fields.ts'
import { nextDay, startOfDay, toIstTime } from '../ist.ts'
import { createBankDays, type Days } from '../ledger/bank-days.ts'
import { holidaysOf } from '../ledger/bank-holidays.ts'
import { toIndianRupees, toSumText, totalText } from '../money.ts'
import {
  type ImportedStatement,
  importStatement,
  listStatements,
  matchLine,
  undoStatement,
} from '../statements/import.ts'
import { atomicCommand, changingCommand, command } from './command.ts'
import { DAYS, DAYS_USAGE, daysOf, inOrder, requireDays } from './days.ts'
import { CommandError } from './errors.ts'
import { FILE, readFile } from './file.ts'
import { findLayout } from './layouts.ts'
import { table, toOneLine } from './output.ts'
import { requireMerchant } from './reconcile.ts'
import { acquirerAccount } from './settlements.ts'

const NUMBER_RULE = 'must be the number of a statement, as ops statements list shows it'
const statementNumber = matching(/^[1-9][0-9]{0,8}$/, NUMBER_RULE).transform(Number)

const NO_PAYOUT = 'the merchants of this statement have no payout with this reference'

export const statementCommands = [
  changingCommand('statements import', 'Import the statement of a merchant’s bank account', {
    usage: `FILE|- --layout hdfc --mid M1 [--mid M2 …] ${DAYS_USAGE} [--closing RUPEES] [--acquirer ${ACQUIRER_NAMES.join('|')}[:ACCOUNT]]   (the days that the bank was asked for; every merchant who is paid to the account; --closing: the balance after them)`,
    schema: z
      .object({
        file: FILE,
        layout: identifier,
        mid: z.array(identifier, errorText('must be given for every merchant who is paid to the account')),
        ...DAYS,
        closing: totalText.optional(),
        acquirer: acquirerAccount.optional(),
      })
      .superRefine(inOrder)
      .refine(...requireDays),
    argument: 'file',
    async run({ file, layout: layoutName, mid: mids, closing, acquirer: account = null, ...typed }, context) {
      const { change, db, now, person, terminal } = context
      const days = daysOf(typed) as Days
      if (nextDay(startOfDay(days.to)) > now) throw new CommandError('the days of a statement must be over')
      const layout = await findLayout(db, layoutName, 'statements')
      for (const mid of mids) await requireMerchant(db, mid)
      const warnings: string[] = []
      const importing = {
        ...days,
        now,
        person,
        layout,
        mids: [...new Set(mids)].sort(),
        account,
        closing,
        file: toOneLine(basename(file)),
      }
      return readFile(file, terminal, (csv, progress) =>
        change(async (client) => {
          const bankDays = createBankDays(await holidaysOf(client, now))
          const onWarning = (warning: string) => warnings.push(warning)
          const imported = await importStatement(client, csv, {
            ...importing,
            bankDays,
            onProgress: progress('lines'),
            onWarning,
          })
          warnings.push(...judge(imported, { ...days, closing }))
          const { closing: _, ...made } = imported
          const covers = made.coversTo === null ? 'no day' : `${made.coversFrom} to ${made.coversTo}`
          return {
            json: { ...made, warnings },
            text: `statement ${made.import} covers ${covers}`,
            made,
            warnings,
          }
        }),
      )
    },
  }),

  command('statements list', 'List the statements, and the days that they cover', {
    async run(_, { db }) {
      const statements = await listStatements(db)
      const rows = statements.map(({ importId, coversFrom, coversTo, undoneAt, undoneBy, ...one }) => ({
        ...one,
        statement: importId,
        covers: coversTo && `${coversFrom} to ${coversTo}`,
        undone: undoneAt && `${toIstTime(undoneAt)} by ${undoneBy}`,
      }))
      return {
        json: statements.map(({ importId, ...one }) => ({ statement: importId, ...one })),
        text: table(
          'statement, at, person, file, mids, account, covers, kept, undone',
          rows,
          'no statement was imported yet',
        ),
      }
    },
  }),

  atomicCommand('statements match', 'Say by hand which credit is a payout', {
    usage: '--payout REFERENCE --statement N --line N --reason "the bank shows 16 characters"',
    schema: z.object({
      payout: text(64),
      statement: statementNumber,
      line: matching(/^[1-9][0-9]{0,8}$/, 'must be the number of a line').transform(Number),
      reason: text(255),
    }),
    async run({ payout, statement, line }, { client }) {
      const missing = await matchLine(client, { importId: statement, line, payout })
      if (missing !== undefined) {
        const what =
          missing === 'credit' ? `line ${line} of statement ${statement} is no credit that is kept` : NO_PAYOUT
        throw new CommandError(`${what}: see ops reconcile payouts`)
      }
      const json = { payout, statement, line }
      return { json, text: `line ${line} of statement ${statement} is the payout ${payout}`, made: json }
    },
  }),

  atomicCommand('statements undo', 'Take a statement back, with its lines', {
    usage: '--statement N',
    schema: z.object({ statement: statementNumber }),
    async run({ statement }, { client, now, person }) {
      const removed = await undoStatement(client, statement, { now, person })
      if (removed === undefined)
        throw new CommandError(`there is no statement ${statement}, or it was undone: ops statements list`)
      return {
        json: { statement, removed },
        text: `statement ${statement} is undone: ${removed} lines removed`,
        made: { removed },
      }
    },
  }),
]

/** What is doubtful of a statement. Throws when its newest balance is not the one that the person saw. */
function judge(
  { closing: newest, coversFrom }: ImportedStatement,
  { from, to, closing }: Days & { closing: bigint | undefined },
): string[] {
  if (closing !== undefined && newest !== closing) {
    const found = newest === undefined ? 'no balances' : `the newest balance ${toIndianRupees(toSumText(newest))}`
    throw new CommandError(
      `nothing was imported: the file has ${found}, not ${toIndianRupees(toSumText(closing))}; get it from the bank again`,
    )
  }
  if (newest === undefined) return ['the file has no balances: nothing proves that no line of it is missing']
  return [
    ...(coversFrom !== from
      ? [
          `the file ends with its oldest line, and may be cut there: to cover the days before ${coversFrom}, get one that begins earlier`,
        ]
      : []),
    ...(closing === undefined
      ? [`the file may end too early: to cover all days until ${to}, give --closing with the balance after them`]
      : []),
  ]
}
