import { type Checked, type ColumnPositions, type CsvFormat, findColumns } from '../csv.ts'
import { IDENTIFIER, IDENTIFIER_RULE, UTR, UTR_RULE } from '../fields.ts'
import { MOMENT_RULE, readMoment } from '../ist.ts'
import { BANK_AMOUNT } from '../money.ts'

/** One line of a settlement file, checked. Every field is safe to copy into PostgreSQL as it stands. */
export type SettlementRow = {
  mid: string
  /** Rupees as exact decimal text, at most 12 digits before the point and 2 after it. */
  amount: string
  utr: string
  bankReferenceNumber: string
  status: SettlementStatus
  /** ISO 8601 with a zone. */
  initiatedAt: string
  /** ISO 8601 with a zone; null when the file does not say. */
  createdAt: string | null
}

export type SettlementStatus = 'PENDING' | 'SUCCESS' | 'FAILED'

const COLUMNS = ['mid', 'amount', 'utr', 'bank_reference_number', 'status', 'initiation_date', 'created_at'] as const
const OPTIONAL_COLUMNS = ['created_at'] as const

type Columns = ColumnPositions<(typeof COLUMNS)[number]>

export const SETTLEMENT_FILE: CsvFormat<Columns> = {
  checkHeader: (header) => findColumns(header, COLUMNS, OPTIONAL_COLUMNS),
  checkRecord(record, at) {
    const { value, faults } = checkRecord(record, at)
    return faults ? { faults } : { value: toCopyFields(value) }
  },
}

/** Checks one record; on a wrong one every fault is named at once, and what was read is not repeated. */
export function checkRecord(record: readonly string[], at: Columns): Checked<SettlementRow> {
  const width = at.created_at === -1 ? COLUMNS.length - 1 : COLUMNS.length
  if (record.length !== width) return { faults: [`has ${record.length} fields, not ${width}`] }

  const mid = record[at.mid] as string
  const amount = record[at.amount] as string
  const utr = record[at.utr] as string
  const bankReferenceNumber = record[at.bank_reference_number] as string
  const status = record[at.status] as string
  const initiatedAt = readMoment(record[at.initiation_date] as string)
  const createdAtText = record[at.created_at] ?? ''
  const createdAt = createdAtText === '' ? null : readMoment(createdAtText)

  if (
    IDENTIFIER.test(mid) &&
    BANK_AMOUNT.test(amount) &&
    UTR.test(utr) &&
    BANK_REFERENCE.test(bankReferenceNumber) &&
    isStatus(status) &&
    initiatedAt !== undefined &&
    createdAt !== undefined
  ) {
    return { value: { mid, amount, utr, bankReferenceNumber, status, initiatedAt, createdAt } }
  }

  const faults: string[] = []
  if (!IDENTIFIER.test(mid)) faults.push(`mid ${IDENTIFIER_RULE}`)
  if (!BANK_AMOUNT.test(amount))
    faults.push('amount must be rupees such as 250 or 249.50, not negative, below 1000000000000')
  if (!UTR.test(utr)) faults.push(`utr ${UTR_RULE}`)
  if (!BANK_REFERENCE.test(bankReferenceNumber)) {
    faults.push('bank_reference_number must be 1 to 64 letters, digits, blanks or . / _ -')
  }
  if (!isStatus(status)) faults.push('status must be PENDING, SUCCESS or FAILED')
  if (initiatedAt === undefined) faults.push(`initiation_date ${MOMENT_RULE}`)
  if (createdAt === undefined) faults.push(`created_at ${MOMENT_RULE}`)
  return { faults }
}

const BANK_REFERENCE = /^[A-Za-z0-9 ./_-]{1,64}$/

const isStatus = (text: string): text is SettlementStatus =>
  text === 'SUCCESS' || text === 'PENDING' || text === 'FAILED'

/** In the text format of COPY. What it would escape cannot occur in a checked row. */
function toCopyFields(row: SettlementRow): string {
  const { mid, utr, amount, bankReferenceNumber, status, initiatedAt, createdAt } = row
  return `${mid}\t${utr}\t${amount}\t${bankReferenceNumber}\t${status}\t${initiatedAt}\t${createdAt ?? '\\N'}`
}
