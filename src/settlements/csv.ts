import type { CsvFormat } from '../csv.ts'
import { IDENTIFIER, IDENTIFIER_RULE, UTR, UTR_RULE } from '../fields.ts'
import { DAY_RULE, dayText, MOMENT_RULE, readMoment } from '../ist.ts'
import { SETTLED_AMOUNT } from '../money.ts'

/** One column of the bank's file: what its field becomes in PostgreSQL, undefined for a wrong one, and the rule for people. */
type Column = { read: (field: string) => string | undefined; rule: string; optional?: boolean }

const matching = (pattern: RegExp) => (field: string) => (pattern.test(field) ? field : undefined)

const AMOUNT = {
  read: matching(SETTLED_AMOUNT),
  rule: 'must be rupees such as 250 or -249.50, below 1000000000000',
}
const MOMENT = { read: readMoment, rule: MOMENT_RULE }

const COLUMNS: Readonly<Record<string, Column>> = {
  mid: { read: matching(IDENTIFIER), rule: IDENTIFIER_RULE },
  amount: AMOUNT,
  utr: { read: matching(UTR), rule: UTR_RULE },
  bank_reference_number: {
    read: matching(/^[A-Za-z0-9 ./_-]{1,64}$/),
    rule: 'must be 1 to 64 letters, digits, blanks or . / _ -',
  },
  status: { read: matching(/^(?:PENDING|SUCCESS|FAILED)$/), rule: 'must be PENDING, SUCCESS or FAILED' },
  initiation_date: MOMENT,
  created_at: { ...MOMENT, optional: true },
  fee: { ...AMOUNT, optional: true },
  tax: { ...AMOUNT, optional: true },
  // UTRs are stored in upper case, like those of payments.
  payment_utr: { read: (field) => matching(UTR)(field)?.toUpperCase(), rule: UTR_RULE, optional: true },
  value_date: {
    read: (field) => dayText.safeParse(field).data,
    rule: DAY_RULE,
    optional: true,
  },
}
const CHECKS = Object.entries(COLUMNS)
const NAMES = Object.keys(COLUMNS)
const [AMOUNT_AT, FEE_AT, TAX_AT] = ['amount', 'fee', 'tax'].map((name) => NAMES.indexOf(name)) as [
  number,
  number,
  number,
]

/**
 * The format of the bank's list of payouts. Rows are copied in the order of COLUMNS. The error of a wrong line names
 * every fault, and repeats nothing of the line.
 */
export const SETTLEMENT_FILE: CsvFormat = {
  columns: NAMES,
  required: CHECKS.flatMap(([name, { optional }]) => (optional ? [] : [[name]])),
  check(fields) {
    const faults: string[] = []
    const copied = CHECKS.map(([name, { read, rule, optional }], index) => {
      const field = fields[index] as string
      if (optional && field === '') return NULL
      const value = read(field)
      if (value === undefined) faults.push(`${name} ${rule}`)
      return value
    })
    if (copied[AMOUNT_AT]?.startsWith('-') === false) {
      for (const at of [FEE_AT, TAX_AT])
        if (copied[at]?.startsWith('-')) faults.push(`${NAMES[at]} must not be negative where amount is not`)
    }
    // Nothing needs escaping: the rules refuse every character that the text format of COPY escapes.
    return faults.length > 0 ? { faults } : { value: copied.join('\t') }
  },
}

const NULL = '\\N'
