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
  /** ISO 8601 with a zone; null when the file does not say, as are the next ones. */
  createdAt: string | null
  /** Rupees as the amount: what the bank kept of it, and the tax on that. */
  fee: string | null
  tax: string | null
  /** Of the payment that was settled, in upper case as UTRs of payments are kept. */
  paymentUtr: string | null
}

export type SettlementStatus = 'PENDING' | 'SUCCESS' | 'FAILED'

const REQUIRED_COLUMNS = ['mid', 'amount', 'utr', 'bank_reference_number', 'status', 'initiation_date'] as const
const OPTIONAL_COLUMNS = ['created_at', 'fee', 'tax', 'payment_utr'] as const
const COLUMNS = [...REQUIRED_COLUMNS, ...OPTIONAL_COLUMNS] as const

/** `width` is how many there are in the file. */
type Columns = ColumnPositions<(typeof COLUMNS)[number]> & { width: number }

export const SETTLEMENT_FILE: CsvFormat<Columns> = {
  checkHeader(header) {
    const { value, faults } = findColumns(header, COLUMNS, OPTIONAL_COLUMNS)
    return faults ? { faults } : { value: { ...value, width: header.length } }
  },
  checkRecord(record, at) {
    const { value, faults } = checkRecord(record, at)
    return faults ? { faults } : { value: toCopyFields(value) }
  },
}

/** Checks one record; on a wrong one every fault is named at once, and what was read is not repeated. */
export function checkRecord(record: readonly string[], at: Columns): Checked<SettlementRow> {
  if (record.length !== at.width) return { faults: [`has ${record.length} fields, not ${at.width}`] }

  const mid = record[at.mid] as string
  const amount = record[at.amount] as string
  const utr = record[at.utr] as string
  const bankReferenceNumber = record[at.bank_reference_number] as string
  const status = record[at.status] as string
  const initiatedAt = readMoment(record[at.initiation_date] as string)
  const createdAtText = optional(record, at.created_at)
  const createdAt = createdAtText && readMoment(createdAtText)
  const fee = optional(record, at.fee)
  const tax = optional(record, at.tax)
  const paymentUtr = optional(record, at.payment_utr)

  if (
    IDENTIFIER.test(mid) &&
    BANK_AMOUNT.test(amount) &&
    UTR.test(utr) &&
    BANK_REFERENCE.test(bankReferenceNumber) &&
    isStatus(status) &&
    initiatedAt !== undefined &&
    createdAt !== undefined &&
    (fee === null || BANK_AMOUNT.test(fee)) &&
    (tax === null || BANK_AMOUNT.test(tax)) &&
    (paymentUtr === null || UTR.test(paymentUtr))
  ) {
    const stated = { fee, tax, paymentUtr: paymentUtr?.toUpperCase() ?? null }
    return { value: { mid, amount, utr, bankReferenceNumber, status, initiatedAt, createdAt, ...stated } }
  }

  const faults: string[] = []
  if (!IDENTIFIER.test(mid)) faults.push(`mid ${IDENTIFIER_RULE}`)
  if (!BANK_AMOUNT.test(amount)) faults.push(`amount ${AMOUNT_RULE}`)
  if (!UTR.test(utr)) faults.push(`utr ${UTR_RULE}`)
  if (!BANK_REFERENCE.test(bankReferenceNumber)) {
    faults.push('bank_reference_number must be 1 to 64 letters, digits, blanks or . / _ -')
  }
  if (!isStatus(status)) faults.push('status must be PENDING, SUCCESS or FAILED')
  if (initiatedAt === undefined) faults.push(`initiation_date ${MOMENT_RULE}`)
  if (createdAt === undefined) faults.push(`created_at ${MOMENT_RULE}`)
  if (fee !== null && !BANK_AMOUNT.test(fee)) faults.push(`fee ${AMOUNT_RULE}`)
  if (tax !== null && !BANK_AMOUNT.test(tax)) faults.push(`tax ${AMOUNT_RULE}`)
  if (paymentUtr !== null && !UTR.test(paymentUtr)) faults.push(`payment_utr ${UTR_RULE}`)
  return { faults }
}

/** The field in a column that the file may lack or leave empty. */
const optional = (record: readonly string[], position: number): string | null => record[position] || null

const AMOUNT_RULE = 'must be rupees such as 250 or 249.50, not negative, below 1000000000000'

const BANK_REFERENCE = /^[A-Za-z0-9 ./_-]{1,64}$/

const isStatus = (text: string): text is SettlementStatus =>
  text === 'SUCCESS' || text === 'PENDING' || text === 'FAILED'

/** In the text format of COPY. What it would escape cannot occur in a checked row. */
function toCopyFields(row: SettlementRow): string {
  const { mid, utr, amount, bankReferenceNumber, status, initiatedAt, createdAt, fee, tax, paymentUtr } = row
  const required = `${mid}\t${utr}\t${amount}\t${bankReferenceNumber}\t${status}\t${initiatedAt}`
  return `${required}\t${createdAt ?? NULL}\t${fee ?? NULL}\t${tax ?? NULL}\t${paymentUtr ?? NULL}`
}

const NULL = '\\N'
