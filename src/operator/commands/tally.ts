import XMLBuilder from 'fast-xml-builder'
import * as z from 'zod'
import { findClosedMonth } from '../../books/closing/closed-months.ts'
import { groupBy } from '../../books/ledger/match-deductions.ts'
import { isMerchantError, type MerchantError } from '../../books/reading/snapshot.ts'
import {
  isLedger,
  type JournalLine,
  LEDGERS,
  listLedgerNames,
  RECEIPTS,
  setLedgerName,
} from '../../books/reports/journal.ts'
import { errorText, matching } from '../../platform/fields.ts'
import { toDecimalText } from '../../platform/money.ts'
import { type Context, change, read } from './command.ts'
import { CommandError } from './errors.ts'
import { flag, optional, toggle } from './field.ts'
import { MID, MONTH } from './fields.ts'
import { failureOf } from './merchant-errors.ts'
import { requireMerchant } from './merchants.ts'
import { document, type Output, table } from './result.ts'

/** Printable characters that XML permits, and the joiners that Indian names need. */
const PRINTED = '\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\u0020\\u200c\\u200d'

/** A name that Tally compares with its own. */
const tallyName = matching(
  new RegExp(`^(?! )[${PRINTED}]{1,99}(?<! )$`, 'u'),
  'must be 1 to 99 printable characters in one line, with a space at neither end',
)

export const TALLY = {
  tally: { ...toggle('Tally’s XML', 'of a closed month of one merchant'), isFormat: true as const },
  month: MONTH,
  company: flag(tallyName, 'NAME', 'Company', 'in Tally'),
}

const RULE = `must be one of ${LEDGERS.join(', ')}; <account> is an acquirer account such as setu:acme, or unknown`

export const ledgerCommands = [
  change('ledgers set', 'Set the name of a journal’s ledger in Tally', {
    fields: {
      mid: MID,
      ledger: flag(z.string(errorText(RULE)).refine(isLedger, RULE), 'LEDGER', 'Ledger', 'as in the journal'),
      name: flag(tallyName, 'NAME', 'Name', 'in Tally'),
    },
    async run(named, { client }) {
      await requireMerchant(client, named.mid)
      await setLedgerName(client, named)
      return document(named, `The ledger ${named.ledger} of merchant ${named.mid} is ${named.name} in Tally.`)
    },
  }),

  read('ledgers list', 'List the names of ledgers in Tally', {
    note: 'A ledger that is not listed has the same name in Tally as in the journal.',
    fields: { mid: optional(MID) },
    async run({ mid }, { db }) {
      await requireMerchant(db, mid)
      return table('mid, ledger, name', await listLedgerNames(db, { mid }), 'No names.')
    },
  }),
]

type TallyExport = { mid: string; month: string; company: string; now: Date }

/** Returns Tally's XML of a merchant's journal of a month that was closed by `now`, and notes the ledgers of the file. */
export async function exportTally(
  { db, note }: Pick<Context, 'db' | 'note'>,
  journal: AsyncIterable<JournalLine | MerchantError>,
  { mid, month, company, now }: TallyExport,
): Promise<Output> {
  const closed = await findClosedMonth(db, month)
  if (closed === undefined || closed.closedAt > now)
    throw new CommandError(`${month} is not closed: run ops reconcile close --month ${month} first`)
  const names = new Map((await listLedgerNames(db, { mid })).map(({ ledger, name }) => [ledger, name]))
  if (!names.has(RECEIPTS)) throw new CommandError(withoutReceipts(mid))
  const lines: JournalLine[] = []
  for await (const line of journal) {
    if (isMerchantError(line)) throw failureOf([line])
    lines.push({ ...line, ledger: names.get(line.ledger) ?? line.ledger })
  }
  for (const ledger of [...new Set(lines.map((line) => line.ledger))].sort()) note(`ledger in Tally: ${ledger}`)
  return { data: toTallyXml(lines, company) }
}

const withoutReceipts = (mid: string) =>
  `the ledger ${RECEIPTS} has no name in Tally, and sales that are already invoiced in Tally would be booked twice: if the invoices are in Tally, name the customers’ or collections ledger, otherwise the sales ledger, with ops ledgers set --mid ${mid} --ledger '${RECEIPTS}' --name NAME`

/** The voucher type, which the accountant creates so that Tally rejects a number that it has already. */
const VOUCHER_TYPE = 'UPI Journal'
const VIEW = 'Accounting Voucher View'

/** Returns Tally's XML of vouchers whose lines follow each other. */
export function toTallyXml(lines: readonly JournalLine[], company: string): string {
  const vouchers = groupBy(lines, ({ voucherId }) => voucherId)
  const builder = new XMLBuilder({ ignoreAttributes: false, attributeNamePrefix: '@', format: true, indentBy: ' ' })
  const TALLYMESSAGE = [...vouchers.values()].map((voucher) => ({ VOUCHER: toVoucher(voucher) }))
  const REQUESTDESC = { REPORTNAME: 'Vouchers', STATICVARIABLES: { SVCURRENTCOMPANY: company } }
  const IMPORTDATA = { REQUESTDESC, REQUESTDATA: { TALLYMESSAGE } }
  return builder.build({ ENVELOPE: { HEADER: { TALLYREQUEST: 'Import Data' }, BODY: { IMPORTDATA } } }).trimEnd()
}

function toVoucher(lines: readonly JournalLine[]) {
  const [{ voucherId, date, originalDay, ...first }] = lines as [JournalLine]
  const reference = first.reference.replace(NOT_PRINTED, ' ')
  const change =
    originalDay === null ? '' : `, changed after the close of ${originalDay.slice(0, 7)}: day ${originalDay}`
  return {
    ...{ '@VCHTYPE': VOUCHER_TYPE, '@ACTION': 'Create', '@OBJVIEW': VIEW, '@REMOTEID': voucherId },
    VOUCHERTYPENAME: VOUCHER_TYPE,
    PERSISTEDVIEW: VIEW,
    DATE: date.replaceAll('-', ''),
    ISINVOICE: 'No',
    VOUCHERNUMBER: voucherId,
    REFERENCE: reference,
    NARRATION: `${voucherId} ${reference}${change}`,
    'ALLLEDGERENTRIES.LIST': lines.map(toEntry),
  }
}

const NOT_PRINTED = new RegExp(`[^${PRINTED}]+`, 'gu')

/** Tally identifies a debit by ISDEEMEDPOSITIVE and a negative amount. The group of a ledger is not known here. */
const toEntry = ({ ledger, debit, credit }: JournalLine) => ({
  LEDGERNAME: ledger,
  ISDEEMEDPOSITIVE: debit > 0 ? 'Yes' : 'No',
  ISPARTYLEDGER: 'No',
  AMOUNT: toDecimalText(credit - debit),
})
