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

/** What is wrong with one line of the file, counted from 1. */
export type LineFault = { line: number; text: string }

/** A refused file: `faults` are its first 20 bad lines in order, `count` is the number of all of them. */
export class SettlementFileError extends Error {
  readonly faults: readonly LineFault[]
  readonly count: number

  constructor(faults: readonly LineFault[], count: number) {
    super(`${count} bad ${count === 1 ? 'line' : 'lines'}, nothing was imported`)
    this.name = 'SettlementFileError'
    this.faults = faults
    this.count = count
  }
}

/** Where each column stands in a record; -1 for the optional one when it is absent. */
export type ColumnPositions = Record<(typeof COLUMNS)[number], number>

export type Checked<T> = { value: T; faults?: never } | { value?: never; faults: string[] }

const COLUMNS = ['mid', 'amount', 'utr', 'bank_reference_number', 'status', 'initiation_date', 'created_at'] as const
const OPTIONAL_COLUMN = 'created_at'

/** Finds the columns by the names in the first record, in any order; names each one that is missing, unknown or repeated. */
export function checkHeader(header: readonly string[]): Checked<ColumnPositions> {
  const names = header.map((name) => name.trim())
  const known: readonly string[] = COLUMNS
  const missing = COLUMNS.filter((name) => name !== OPTIONAL_COLUMN && !names.includes(name))
  const unknown = names.filter((name) => !known.includes(name))
  const twice = COLUMNS.filter((name) => names.indexOf(name) !== names.lastIndexOf(name))
  const faults = [
    ...missing.map((name) => `column ${name} is missing`),
    ...unknown.map((name) => `column ${JSON.stringify(name.slice(0, 40))} is unknown`),
    ...twice.map((name) => `column ${name} appears twice`),
  ]
  if (faults.length > 0) return { faults }
  return { value: Object.fromEntries(COLUMNS.map((name) => [name, names.indexOf(name)])) as ColumnPositions }
}

/** Checks one record; on a wrong one every fault is named at once, and what was read is not repeated. */
export function checkRecord(record: readonly string[], at: ColumnPositions): Checked<SettlementRow> {
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
