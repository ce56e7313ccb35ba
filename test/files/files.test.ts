import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { opsAtNoon } from '../support/ops.ts'
import { newMerchant, unique } from '../support/service.ts'

/**
 * Files in the formats that banks and acquirers send, with invented data, and the layout of each. Importing a file
 * stores every row to the paisa, or rejects the file with the right reason and stores nothing.
 */
const { url, db } = await createTestDatabase()

const { opsOn } = opsAtNoon(() => url)
const ops = (...args: string[]) => opsOn('2026-11-26', ...args)
const FIXTURES = join(import.meta.dirname, 'fixtures')

/** The layout's columns and the file's, as `ours=theirs` pairs. */
type Columns = string
type Common = { file: string; date: string; columns: Columns; rejected?: RegExp[] }
/** The expected rows in the order of the file: UTR, amount, fee and tax. `says` matches the warnings. */
type SettlementFile = Common & { statuses?: string[]; rows?: string[][]; total?: string; says?: RegExp }
/** The expected lines in the order of the file: number, day, paise and references. */
type StatementFile = Common & { lines?: [number, string, number, string][] }

const BASE = 'utr=RRN;bank_reference_number=UTR;initiation_date=Paid On'
const NET = `amount=Net;${BASE}`
const CASHFREE =
  'amount=Event Settlement Amount;sign=Sale Type;utr=Payment UTR;fee=Service Charge;tax=Service Tax;bank_reference_number=Settlement UTR;initiation_date=Settlement Date'
const PHONEPE =
  'amount=Amount;amount=Fee;amount=IGST;amount=CGST;amount=SGST;fee=-Fee;tax=-IGST;tax=-CGST;tax=-SGST;utr=PhonePeReferenceId;bank_reference_number=BankReferenceNo;initiation_date=SettlementDate'
const PAYU =
  'amount=Amount(Net);fee=Total Processing Fees;tax=Total Service Tax;utr=Bank Reference No;bank_reference_number=Merchant UTR;initiation_date=Settlement Date'
const RAZORPAY =
  'credit=credit;debit=debit;gross=amount;fee=fee (exclusive tax);tax=tax;order_id=order_receipt;acquirer_payment_id=entity_id;event=transaction_entity;bank_reference_number=settlement_utr;initiation_date=settled_at'
const PAYTM =
  'amount=Settled Amount;fee=-Commission;tax=-GST;utr=RRN;bank_reference_number=UTR Number;initiation_date=Settled Date;status=Status'
const PARTS = `gross=Amount;amount=Net;fee=Fee;tax=GST;${BASE}`
const TWO = `credit=Credit;debit=Debit;${BASE}`
const [ONE, OTHER, BACK] = ['632115400001', '632115400002', '632115400099']
const [NET_ONE, NET_OTHER] = [
  [ONE, '195.75', '3.60', '0.65'],
  [OTHER, '342.57', '6.30', '1.13'],
]

const SETTLEMENTS: Record<string, SettlementFile> = {
  'PhonePe: a gross amount, negative fees and taxes, no net amount': {
    file: 's01_phonepe.csv',
    date: 'dd-mm-yyyy',
    columns: PHONEPE,
    rows: [
      ['T2611171540120001', '195.75', '3.60', '0.65'],
      ['T2611171540120002', '342.57', '6.30', '1.13'],
      ['T2611171540120009', '-50.00', '0.00', '0.00'],
    ],
    total: '488.32',
  },
  'HDFC UPI report: the sign in CR / DR, values with an apostrophe': {
    file: 's02_hdfc_upi_mpr.csv',
    date: 'dd-mmm-yyyy',
    columns:
      'amount=Net Amount;sign=CR / DR;fee=MSF Amount;tax=CGST AMT;tax=SGST AMT;tax=IGST AMT;tax=UTGST AMT;gross=Transaction Amount;utr=Txn ref no. (RRN);bank_reference_number=External TID;initiation_date=Settlement Date',
    rows: [
      [ONE, '200.00', '0.00', '0.00'],
      [OTHER, '350.00', '0.00', '0.00'],
      [BACK, '-50.00', '0.00', '0.00'],
    ],
    total: '500.00',
  },
  'Cashfree: two tables in one file, the sign in Sale Type': {
    file: 's04_cashfree_two_sections.csv',
    date: 'yyyy-mm-dd',
    columns: `${CASHFREE};gross=Event Amount`,
    rows: [NET_ONE, NET_OTHER, [`${ONE}R1`, '-50.00', '0.00', '0.00']],
    total: '488.32',
  },
  'Cashfree: an unknown word in the sign column': {
    file: 'cashfree_words.csv',
    date: 'yyyy-mm-dd',
    columns: CASHFREE,
    rejected: [/line 3: Event Settlement Amount \(amount\) and Sale Type \(sign\) must be one amount .* CR or DR/],
  },
  'PayU: four decimals, with the gross amount': {
    file: 's05_payu_decimals.csv',
    date: 'yyyy-mm-dd',
    columns: `${PAYU};gross=Amount`,
    rows: [[ONE, '195.75', '3.61', '0.64'], NET_OTHER],
    total: '538.32',
    says: /2 rows have a fee or tax with fractions of a paisa/,
  },
  'PayU: four decimals, without the gross amount': {
    file: 's05_payu_decimals.csv',
    date: 'yyyy-mm-dd',
    columns: PAYU,
    rows: [[ONE, '195.75', '3.61', '0.65'], NET_OTHER],
    total: '538.32',
    says: /2 rows have a fee or tax with fractions of a paisa/,
  },
  'Razorpay: debit and credit columns': {
    file: 's10_debit_credit.csv',
    date: 'dd-mm-yyyy',
    columns: TWO,
    rows: [
      [ONE, '200.00'],
      [OTHER, '350.00'],
      [BACK, '-50.00'],
    ],
    total: '500.00',
  },
  'Razorpay: the 27 columns of its report, a description of two lines': {
    file: 'razorpay_recon.csv',
    date: 'dd/mm/yyyy',
    columns: RAZORPAY,
    rows: [
      ['PAYQ1', '195.75', '3.60', '0.65'],
      ['PAYQ2', '342.57', '6.30', '1.13'],
      ['RFNDQ3', '-50.00', '0.00', '0.00'],
    ],
    total: '488.32',
    says: /3/,
  },
  'Razorpay: a debit with a retained fee, and one with a returned fee': {
    file: 'razorpay_refund_fee.csv',
    date: 'dd/mm/yyyy',
    columns: RAZORPAY,
    rows: [
      ['PAYQ2', '342.57', '6.30', '1.13'],
      ['RFNDQ3', '-55.90', '5.00', '0.90'],
      ['ADJQ4', '-95.28', '-4.00', '-0.72'],
    ],
    says: /3/,
    total: '191.39',
  },
  'a debit with a fee and no gross amount': {
    file: 'fee_of_a_debit.csv',
    date: 'dd-mm-yyyy',
    columns: `amount=Amount;sign=Cr/Dr;fee=Fee;${BASE}`,
    rejected: [/line 3: Fee \(fee\) of a debit may be charged or refunded: name the column of the gross amount/],
  },
  'an RRN padded with zeros': {
    file: 's20_padded_rrn.csv',
    date: 'dd-mm-yyyy',
    columns: 'amount=Net;utr=Ref;payment_utr=RRN;bank_reference_number=UTR;initiation_date=Paid On',
    rows: [['ROW0000009', '111.00']],
    total: '111.00',
  },
  "Paytm: values in '…'": {
    file: 'paytm_quotes.csv',
    date: 'dd-mm-yyyy',
    columns: PAYTM,
    statuses: ['SUCCESS=SUCCESS'],
    rows: [NET_ONE, NET_OTHER, [BACK, '-50.00', '0.00', '0.00']],
    total: '488.32',
  },
  'Paytm: words in place of empty amounts': {
    file: 'paytm_nothing.csv',
    date: 'dd-mm-yyyy',
    columns: PAYTM,
    statuses: ['SUCCESS=SUCCESS', 'IGNORED=PENDING'],
    rows: [
      [ONE, '200.00'],
      [OTHER, '350.00'],
    ],
    total: '550.00',
  },
  'ICICI: currencies and signs, times with dots, a narrow space before AM': {
    file: 'icici_eazypay.csv',
    date: 'd-mmm-yyyy',
    columns:
      'amount=Gross;amount=-MSF;amount=-GST;fee=MSF;tax=GST;utr=RRN;bank_reference_number=Settlement Ref;initiation_date=Paid On',
    rows: [NET_ONE, [OTHER, '1342.57', '6.30', '1.13'], [BACK, '-50.00']],
    total: '1488.32',
  },
  'Axis: UTF-16, little-endian': {
    file: 'axis_utf16le.xls',
    date: 'dd-mm-yyyy',
    columns: NET,
    rows: [
      [ONE, '195.75'],
      [OTHER, '342.57'],
    ],
    total: '538.32',
  },
  'Axis: UTF-16, big-endian': {
    file: 'axis_utf16be.xls',
    date: 'dd-mm-yyyy',
    columns: NET,
    rows: [
      [ONE, '195.75'],
      [OTHER, '342.57'],
    ],
    total: '538.32',
  },
  'Axis: UTF-16 without a byte order mark': {
    file: 'axis_utf16_unmarked.xls',
    date: 'dd-mm-yyyy',
    columns: NET,
    rejected: [/the file is UTF-16 without a byte order mark, or not text: save it as UTF-8/],
  },
  'Axis: Windows-1252': {
    file: 'axis_windows1252.csv',
    date: 'dd-mm-yyyy',
    columns: NET,
    rejected: [/line 3: is not UTF-8 but possibly Windows-1252: save the file as UTF-8/],
  },
  'Yes: amounts in brackets and with a trailing minus': {
    file: 'yes_brackets.csv',
    date: 'dd-mm-yyyy',
    columns: NET,
    rows: [
      [ONE, '195.75'],
      ['632115400098', '-1050.00'],
      [BACK, '-50.00'],
      ['632115400097', '-25.00'],
    ],
    total: '-929.25',
  },
  'Yes: Cr and Dr in brackets': {
    file: 'yes_words_in_brackets.csv',
    date: 'dd-mm-yyyy',
    columns: NET,
    rows: [
      [ONE, '195.75'],
      [BACK, '-50.00'],
      ['632115400097', '-25.00'],
      ['632115400096', '-10.00'],
    ],
    total: '110.75',
  },
  'Yes: an amount with a minus and Cr': {
    file: 'yes_contradiction.csv',
    date: 'dd-mm-yyyy',
    columns: NET,
    rejected: [/line 3: Net \(amount\) must be rupees with at most two decimals/],
  },
  'Kotak: non-breaking spaces': {
    file: 'kotak_blanks.csv',
    date: 'dd-mm-yyyy',
    columns: NET,
    rows: [
      [ONE, '1195.75'],
      [OTHER, '1350.00'],
      ['632115400003', '100000.50'],
      ['632115400004', '450.00'],
    ],
    total: '102996.25',
  },
  'SBI: ISO dates with a time zone': {
    file: 'sbi_epay_zones.csv',
    date: 'yyyy-mm-dd',
    columns: NET,
    rows: [
      [ONE, '195.75'],
      [OTHER, '342.57'],
      ['632115400003', '100.00'],
    ],
    total: '638.32',
  },
  'a header in line 91': {
    file: 'header_below_line_60.csv',
    date: 'dd-mm-yyyy',
    columns: NET,
    rows: [[ONE, '195.75']],
    total: '195.75',
  },
  'a header with line breaks, and an invalid line below it': {
    file: 'header_breaks_settlement.csv',
    date: 'dd-mm-yyyy',
    columns: 'amount=Net Amount;utr=RRN;bank_reference_number=UTR Number;initiation_date=Paid On',
    rejected: [/line 7: Net Amount \(amount\) must be rupees/],
  },
  'a record of 22 kB': {
    file: 'long_record.csv',
    date: 'dd-mm-yyyy',
    columns: NET,
    rows: [
      [ONE, '195.75'],
      [OTHER, '342.57'],
    ],
    total: '538.32',
  },
  'amounts of 0.00': {
    file: 'zero_amounts.csv',
    date: 'dd-mm-yyyy',
    columns: `amount=Credit;${BASE}`,
    rows: [
      [ONE, '200.00'],
      ['632115400098', '0.00'],
      [BACK, '0.00'],
    ],
    total: '200.00',
    says: /2 rows have an amount of 0.00/,
  },
  'PhonePe: a net amount with fractions of a paisa': {
    file: 'phonepe_card_fees.csv',
    date: 'dd-mm-yyyy',
    columns: PHONEPE,
    rejected: [/line 3: Amount \+ Fee \+ IGST \+ CGST \+ SGST \(amount\) must be rupees with at most two decimals/],
  },
  'decimal commas': {
    file: 'decimal_commas.csv',
    date: 'dd-mm-yyyy',
    columns: NET,
    rejected: [/2 invalid lines/, /line 2: Net \(amount\) must be rupees/, /line 3: Net \(amount\)/],
  },
  'dots as thousands separators': {
    file: 'dots_for_thousands.csv',
    date: 'dd-mm-yyyy',
    columns: NET,
    rejected: [/1 invalid line/, /line 2: Net \(amount\) must be rupees with at most two decimals/],
  },
  'dates with the month first': {
    file: 'american_days.csv',
    date: 'dd-mm-yyyy',
    columns: NET,
    rejected: [/line 2: Paid On \(initiation_date\) must be an existing day in the format dd-mm-yyyy/],
  },
  'an amount with fractions of a paisa': {
    file: 'parts_of_a_paisa.csv',
    date: 'dd-mm-yyyy',
    columns: NET,
    rejected: [/1 invalid line/, /line 3: Net \(amount\) must be rupees with at most two decimals/],
  },
  'an unreadable last row': {
    file: 'unreadable_last_row.csv',
    date: 'dd-mm-yyyy',
    columns: NET,
    rejected: [/line 3: has an amount, but no day: Paid On \(initiation_date\) must be an existing day/],
  },
  'an unreadable first row': {
    file: 'unreadable_first_row.csv',
    date: 'dd-mm-yyyy',
    columns: NET,
    rejected: [/line 2: has an amount, but no day/],
  },
  'no readable row': {
    file: 'no_row_settlement.csv',
    date: 'dd-mm-yyyy',
    columns: 'amount=Net;utr=Ref;bank_reference_number=UTR;initiation_date=Paid On',
    rejected: [
      /line 2: no line below the header can be read as a row; in this one, the first, "yesterday" is not a day/,
    ],
  },
  'a gross amount that is not the sum of its parts': {
    file: 'gross_differs.csv',
    date: 'dd-mm-yyyy',
    columns: PARTS,
    rejected: [/line 3: Amount \(gross\) is not Net \(amount\) \+ Fee \(fee\) \+ GST \(tax\)/],
  },
  'rounding differences below one paisa': {
    file: 'off_by_a_paisa.csv',
    date: 'dd-mm-yyyy',
    columns: PARTS,
    rows: [NET_ONE, [OTHER, '97.88', '1.80', '0.32']],
    total: '293.63',
    says: /1 row has a fee or tax with fractions of a paisa/,
  },
  'an amount without its sign': {
    file: 'sign_missing.csv',
    date: 'dd-mm-yyyy',
    columns: `amount=Amount;sign=Cr/Dr;${BASE}`,
    rejected: [/line 3: Amount \(amount\) and Cr\/Dr \(sign\) must be one amount/],
  },
  'a credit and a debit in one row': {
    file: 'credit_and_debit.csv',
    date: 'dd-mm-yyyy',
    columns: TWO,
    rejected: [/line 3: Credit \(credit\) and Debit \(debit\) must be one amount/],
  },
  'a row with neither a credit nor a debit': {
    file: 'credit_nor_debit.csv',
    date: 'dd-mm-yyyy',
    columns: TWO,
    rejected: [/line 3: Credit \+ Debit \(amount\) must be rupees/],
  },
  'a quote that is never closed': {
    file: 'open_quote.csv',
    date: 'dd-mm-yyyy',
    columns: NET,
    rejected: [/line 3: a quote is never closed/],
  },
  'an Excel workbook': {
    file: 'workbook.xlsx',
    date: 'dd-mm-yyyy',
    columns: NET,
    rejected: [/the file is an Excel workbook \(\.xlsx\): save it as CSV/],
  },
  'an OpenDocument spreadsheet': {
    file: 'spreadsheet.ods',
    date: 'dd-mm-yyyy',
    columns: NET,
    rejected: [/the file is a spreadsheet \(\.ods\): save it as CSV/],
  },
  'an archive of two files': {
    file: 'two_files.zip',
    date: 'dd-mm-yyyy',
    columns: NET,
    rejected: [/line 1: the file is an archive \(\.zip\): unpack it, and import each file$/m],
  },
  'a compressed file': {
    file: 'settlement.csv.gz',
    date: 'dd-mm-yyyy',
    columns: NET,
    rejected: [/line 1: the file is compressed \(\.gz\): unpack it first$/m],
  },
  'two files in one': {
    file: 'two_files.csv',
    date: 'dd-mm-yyyy',
    columns: NET,
    rejected: [/line 5: is a row below the table, which ends in line 3/],
  },
  'a second table with other columns in the same places': {
    file: 'second_table.csv',
    date: 'dd-mm-yyyy',
    columns: NET,
    rejected: [/1 invalid line/, /line 5: names other columns than the header of the table/],
  },
  'unquoted thousands separators beside a column of remarks': {
    file: 'thousands_without_quotes.csv',
    date: 'dd-mm-yyyy',
    columns: NET,
    rejected: [/1 invalid line/, /line 3: Net is cut at a comma: amounts with commas must be in quotes/],
  },
  'unquoted thousands separators beside a column without a name': {
    file: 'lakhs_without_quotes.csv',
    date: 'dd-mm-yyyy',
    columns: NET,
    rejected: [/1 invalid line/, /line 4: Net is cut at a comma/],
  },
  'a trailing comma in each row': {
    file: 'comma_behind_rows.csv',
    date: 'dd-mm-yyyy',
    columns: NET,
    rows: [[ONE, '200.00']],
    total: '200.00',
  },
  'page numbers, totals and a footer with digits in the first column': {
    file: 'footer_in_first_column.csv',
    date: 'dd-mm-yyyy',
    columns: NET,
    rows: [
      [ONE, '195.75'],
      [OTHER, '342.57'],
    ],
    total: '538.32',
  },
  'a payment smaller than its fee': {
    file: 'fee_above_gross.csv',
    date: 'dd-mm-yyyy',
    columns: PARTS,
    rows: [
      [ONE, '-4.90', '5.00', '0.90'],
      [BACK, '-50.00', '0.00', '0.00'],
    ],
    total: '-54.90',
  },
  'a header in Windows-1252': {
    file: 'windows1252_header.csv',
    date: 'dd-mm-yyyy',
    columns: `amount=Net Amount;${BASE}`,
    rejected: [/Net Amount is missing, the file is not UTF-8 but possibly Windows-1252/],
  },
  'a reference that a spreadsheet turned into a number': {
    file: 'lost_digits.csv',
    date: 'dd-mm-yyyy',
    columns: NET,
    rejected: [/line 2: RRN was converted to a number by a spreadsheet/],
  },
}

const DEBITS = 'day=Date;reference=Narration;reference=Ref;debit=Debit;credit=Credit;balance=Balance'
const THREE: [number, string, number, string][] = [
  [2, '2026-11-18', 35_000, 'YESIG63220270133'],
  [3, '2026-11-19', -12_000, '632312345678'],
  [4, '2026-11-19', 19_028, 'YESIG63230270199'],
]
/** The same three lines under other line numbers. */
const at = (...numbers: number[]) => THREE.map(([, ...line], index) => [numbers[index], ...line] as (typeof THREE)[0])

const STATEMENTS: Record<string, StatementFile> = {
  'SBI: UTF-16 with tabs, under the name .xls': {
    file: 'b14_utf16le.xls',
    date: 'd mmm yyyy',
    columns: 'day=Txn Date;reference=Description;debit=Debit;credit=Credit;balance=Balance',
    lines: at(13, 14, 15),
  },
  'Axis: a header with line breaks': {
    file: 'b15_header_breaks.csv',
    date: 'dd/mm/yyyy',
    columns:
      'day=Tran Date;reference=Particulars;debit=Withdrawal Amount (INR);credit=Deposit Amount (INR);balance=Balance (INR)',
    lines: at(9, 10, 11),
  },
  'a narration of two lines, with a comma': {
    file: 'b17_multiline_narration.csv',
    date: 'dd/mm/yyyy',
    columns: DEBITS,
    lines: at(2, 4, 5),
  },
  'ICICI: a narration that continues in the next row': {
    file: 'b04_icici_continuation.csv',
    date: 'dd/mm/yyyy',
    columns:
      'day=Value Date;reference=Transaction Remarks;debit=Withdrawal Amount(INR);credit=Deposit Amount(INR);balance=Balance(INR)',
    lines: at(9, 11, 12),
  },
  'lines of a day in another order than their balances': {
    file: 'b18_same_day_shuffled.csv',
    date: 'dd/mm/yyyy',
    columns: DEBITS,
    lines: [
      [2, '2026-11-18', 35_000, 'YESIG63220270133'],
      [3, '2026-11-19', 19_028, 'YESIG63230270199'],
      [4, '2026-11-19', -12_000, '632312345678'],
      [5, '2026-11-20', -500_000, ''],
    ],
  },
  'negative debits': {
    file: 'b24_minus_debits.csv',
    date: 'dd/mm/yyyy',
    columns: 'day=Date;reference=Narration;reference=Ref;debit=Withdrawals;credit=Deposits;balance=Balance',
    lines: THREE,
  },
  weekdays: {
    file: 'b28e_weekday.csv',
    date: 'd mmm yyyy',
    columns: 'day=Transaction Date;reference=Particulars;reference=Reference;debit=Debit;credit=Credit;balance=Balance',
    lines: THREE,
  },
  'a weekday that does not match its date': {
    file: 'wrong_weekday.csv',
    date: 'd mmm yyyy',
    columns: DEBITS,
    rejected: [/line 3: Date \(day\) must be an existing day/],
  },
  'the month first, and a last day that does not exist': {
    file: 'b34b_month_first_wrong_last.csv',
    date: 'mmm d, yyyy',
    columns: DEBITS,
    rejected: [/1 invalid line/, /line 3: Date \(day\) must be an existing day in the format mmm d, yyyy/],
  },
  'the month first with a layout that expects it second': {
    file: 'b34b_month_first_wrong_last.csv',
    date: 'd mmm yyyy',
    columns: DEBITS,
    rejected: [/1 invalid line/, /line 3: Date \(day\) must be an existing day in the format d mmm yyyy/],
  },
  "dates in another format than the layout's": {
    file: 'b28e_weekday.csv',
    date: 'dd/mm/yyyy',
    columns: 'day=Transaction Date;reference=Particulars;debit=Debit;credit=Credit;balance=Balance',
    rejected: [
      /3 invalid lines/,
      /line 2: Transaction Date \(day\) must be an existing day in the format dd\/mm\/yyyy/,
    ],
  },
  'IDFC First: the month first': {
    file: 'idfc_month_first.csv',
    date: 'mmm d, yyyy',
    columns: DEBITS,
    lines: THREE,
  },
  'HDFC, delimited': {
    file: 'hdfc_delimited.txt',
    date: 'dd/mm/yy',
    columns:
      'day=Date;reference=Narration;reference=Chq/Ref Number;debit=Debit Amount;credit=Credit Amount;balance=Closing Balance',
    lines: at(4, 5, 6),
  },
  'HDFC: asterisks and a summary below the table': {
    file: 'hdfc_summary.csv',
    date: 'dd/mm/yy',
    columns:
      'day=Date;reference=Narration;reference=Chq./Ref.No.;debit=Withdrawal Amt.;credit=Deposit Amt.;balance=Closing Balance',
    lines: at(5, 6, 7),
  },
  'ICICI, corporate: newest line first, times with AM and PM': {
    file: 'icici_corporate.csv',
    date: 'dd/mm/yyyy',
    columns:
      'day=Txn Posted Date;reference=Description;sign=Cr/Dr;amount=Transaction Amount(INR);balance=Available Balance(INR)',
    lines: at(5, 4, 3).reverse(),
  },
  'Axis: a byte order mark, legal text below the table': {
    file: 'axis_bom.csv',
    date: 'dd-mm-yyyy',
    columns: 'day=Tran Date;reference=PARTICULARS;debit=DR;credit=CR;balance=BAL',
    lines: at(3, 4, 5),
  },
  'Kotak: two columns named Dr / Cr': {
    file: 'kotak_twice.csv',
    date: 'dd-mm-yyyy',
    columns: 'day=Transaction Date;reference=Description;amount=Amount;sign=Dr / Cr;balance=Balance;balance=Dr / Cr#2',
    lines: at(3, 4, 5),
  },
  'Yes: words in place of empty amounts, totals below the table': {
    file: 'yes_totals.csv',
    date: 'dd/mm/yyyy',
    columns:
      'day=Transaction Date;reference=Cheque No/Reference No;reference=Description;debit=Withdrawals;credit=Deposits;balance=Running Balance',
    lines: THREE,
  },
  'Union: Cr and Dr in brackets': {
    file: 'union_brackets.csv',
    date: 'dd/mm/yyyy',
    columns: 'day=Tran Date;reference=Remarks;amount=Amount (Rs.);balance=Balance (Rs.)',
    lines: THREE,
  },
  'Federal: an overdrawn account in brackets': {
    file: 'federal_overdrawn.csv',
    date: 'dd/mm/yyyy',
    columns: 'day=Tran Date;reference=Remarks;amount=Amount;balance=Balance',
    lines: THREE,
  },
  'Indian Bank: the sign after the balance': {
    file: 'indian_bank.csv',
    date: 'dd/mm/yyyy',
    columns: 'day=Post Date;reference=Narration;debit=Debit;credit=Credit;balance=Balance',
    lines: THREE,
  },
  'ISO dates with time zones': { file: 'iso_zones.csv', date: 'yyyy-mm-dd', columns: DEBITS, lines: THREE },
  'CR at the end of each line': { file: 'only_cr.csv', date: 'dd/mm/yyyy', columns: DEBITS, lines: THREE },
  'mixed line ends': {
    file: 'mixed_ends.csv',
    date: 'dd/mm/yyyy',
    columns: DEBITS,
    lines: at(3, 4, 5),
  },
  'non-breaking spaces': {
    file: 'statement_thin_blanks.csv',
    date: 'd mmm yyyy',
    columns: DEBITS,
    lines: THREE,
  },
  'debits with and without a minus': {
    file: 'mixed_debit_signs.csv',
    date: 'dd/mm/yyyy',
    columns: DEBITS,
    rejected: [/line 3: Debit \(debit\) and Credit \(credit\): the debit has a minus, but that of line 2 does not/],
  },
  'a missing line': {
    file: 'missing_line.csv',
    date: 'dd/mm/yyyy',
    columns: DEBITS,
    rejected: [/line 3: the balance does not follow from the line before/],
  },
  'decimal commas': {
    file: 'statement_decimal_commas.csv',
    date: 'dd/mm/yyyy',
    columns: DEBITS,
    rejected: [/line 2: Debit \(debit\) and Credit \(credit\) must be one amount.*Balance \(balance\) must be rupees/],
  },
  'dots as thousands separators': {
    file: 'statement_dots_for_thousands.csv',
    date: 'dd/mm/yyyy',
    columns: DEBITS,
    rejected: [/2 invalid lines/, /line 2: Debit \(debit\) and Credit \(credit\) must not have three decimals/],
  },
  'dates with the month first': {
    file: 'statement_american_days.csv',
    date: 'dd/mm/yyyy',
    columns: DEBITS,
    rejected: [/3 invalid lines/, /line 2: Date \(day\) must be an existing day/],
  },
  'two accounts in one file': {
    file: 'two_accounts.csv',
    date: 'dd/mm/yyyy',
    columns: DEBITS,
    rejected: [/line 7: is a row below the table, which ends in line 5/],
  },
  'Windows-1252': {
    file: 'statement_windows1252.csv',
    date: 'dd/mm/yyyy',
    columns: DEBITS,
    rejected: [/line 3: is not UTF-8 but possibly Windows-1252/],
  },
  'an unreadable last date': {
    file: 'statement_last_day.csv',
    date: 'dd/mm/yyyy',
    columns: DEBITS,
    rejected: [/line 4: has an amount, but no day: Date \(day\) must be an existing day in the format dd\/mm\/yyyy/],
  },
  'an unreadable last date beside a word for totals': {
    file: 'last_day_of_a_carrier.csv',
    date: 'dd/mm/yyyy',
    columns: DEBITS,
    rejected: [/1 invalid line/, /line 5: has an amount, but no day/],
  },
  'a footer that begins with numbers': {
    file: 'footer_of_numbers.csv',
    date: 'dd/mm/yyyy',
    columns: DEBITS,
    lines: THREE,
  },
  'a narration whose second line begins with a date': {
    file: 'narration_with_day.csv',
    date: 'dd/mm/yyyy',
    columns: DEBITS,
    lines: at(2, 4, 5),
  },
  'a second account with swapped columns and no balances': {
    file: 'second_account_other_header.csv',
    date: 'dd/mm/yyyy',
    columns: DEBITS.replace(';balance=Balance', ''),
    rejected: [/1 invalid line/, /line 6: names other columns than the header of the table/],
  },
  'no readable date': {
    file: 'statement_no_row.csv',
    date: 'dd/mm/yyyy',
    columns: DEBITS,
    rejected: [/line 2: no line below the header .* "day one" is not a day: Date \(day\)/],
  },
  'an unclosed quote that contains the next line': {
    file: 'swallowed_line.csv',
    date: 'dd/mm/yyyy',
    columns: DEBITS,
    rejected: [/line 2: has a quote that is not closed/],
  },
}

const named = <File extends Common>(files: Record<string, File>) =>
  Object.entries(files).map(([shape, file]) => [file.rejected ? 'rejects' : 'imports', shape, file] as const)

async function addLayout({ date, columns }: Common, flags: string[]): Promise<string> {
  const name = unique('layout')
  const columnFlags = columns.split(';').flatMap((pair) => ['--column', pair])
  const added = await ops('settlements', 'layout', 'add', '--name', name, '--date', date, ...columnFlags, ...flags)
  expect(added).toMatchObject({ code: 0, stderr: '' })
  return name
}

/** Counts the rows of all tables that an import writes. */
async function stored() {
  const { rows } = await db.query(
    `select (select count(*) from settlements) + (select count(*) from settlement_imports)
          + (select count(*) from statement_lines) + (select count(*) from statement_imports) as count`,
  )
  return rows[0].count
}

async function expectRejected(args: string[], reasons: RegExp[]) {
  const before = await stored()
  const { code, stderr } = await ops(...args)
  expect(code).toBe(1)
  for (const reason of reasons) expect(stderr).toMatch(reason)
  expect(await stored()).toBe(before)
}

/** Checks that `try` reports the errors of the import. */
async function expectTried(name: string, path: string, reasons: RegExp[]) {
  const { stdout } = await ops('settlements', 'layout', 'try', path, '--layout', name, '--json')
  const faults = JSON.parse(stdout).faults.join('\n')
  for (const reason of reasons) expect(faults).toMatch(reason)
  if (reasons.length === 0) expect(faults).toBe('')
}

describe('settlement file import', () => {
  it.each(named(SETTLEMENTS))('settlements import %s a settlement file: %s', async (_outcome, _shape, one) => {
    const { mid } = await newMerchant(db)
    const statuses = (one.statuses ?? ['SUCCESS']).flatMap((status) => ['--status', status])
    const name = await addLayout(one, ['--mid', mid, ...statuses])
    const path = join(FIXTURES, one.file)
    await expectTried(name, path, one.rejected ?? [])
    const args = ['settlements', 'import', path, '--layout', name, '--json']
    if (one.rejected) return expectRejected(args, one.rejected)
    const { code, stdout, stderr } = await ops(...args)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const warnings = one.says ? [expect.stringMatching(one.says)] : []
    expect(JSON.parse(stdout)).toMatchObject({ amount: one.total, inserted: one.rows?.length, warnings })
    const { rows } = await db.query(
      'select utr, (amount_paise * 0.01)::text as amount, (fee_paise * 0.01)::text as fee, (tax_paise * 0.01)::text as tax from settlements where mid = $1',
      [mid],
    )
    const read = rows.map(({ utr, amount, fee, tax }) => [utr, amount, ...(fee === null ? [] : [fee, tax])])
    expect(read.sort()).toEqual(one.rows?.toSorted())
  })
})

describe('bank statement import', () => {
  it.each(named(STATEMENTS))('statements import %s a bank statement: %s', async (_outcome, _shape, one) => {
    const { mid } = await newMerchant(db)
    const name = await addLayout(one, [])
    const path = join(FIXTURES, one.file)
    const days = ['--from', '2026-11-16', '--to', '2026-11-20']
    const args = ['statements', 'import', path, '--layout', name, '--mid', mid, ...days, '--json']
    if (one.rejected) return expectRejected(args, one.rejected)
    await expectTried(name, path, [])
    const { code, stdout, stderr } = await ops(...args)
    expect({ code, stderr }).toMatchObject({ code: 0, stderr: '' })
    const { rows } = await db.query(
      `select line::integer, to_char(day, 'YYYY-MM-DD') as day, amount_paise::integer as paise, refs
         from statement_lines where import_id = $1 order by line`,
      [JSON.parse(stdout).statement],
    )
    expect(rows.map(({ line, day, paise, refs }) => [line, day, paise, refs.join(' ')])).toEqual(one.lines)
  })
})
