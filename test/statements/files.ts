/**
 * Statements as banks send them, for 16 to 20 November 2026, with invented lines. `read` lists the stored lines: line number,
 * day of November, paise, references. `rejected` is the whole error message.
 */
export type StatementFile = {
  /** Layout columns such as `day=Date`; by default those of `USUAL`. */
  columns?: string[]
  date?: string
  /** Additional flags of the layout. */
  flags?: string[]
  args?: string[]
  file: string
} & ({ read: [number, number, number, string][]; covers: string } | { rejected: string })

export const USUAL = ['day=Date', 'reference=Narration', 'debit=Debit', 'credit=Credit', 'balance=Balance']
const UNPROVED = USUAL.slice(0, -1)
const SIGNED = ['day=Date', 'reference=Particulars', 'amount=Amount', 'sign=Dr / Cr#1', 'balance=Balance']
const HEADER = 'Date,Narration,Debit,Credit,Balance'

const MISSING =
  'the balance does not follow from the line before: a line is missing, duplicated or changed; download the file from the bank again'
const BETWEEN =
  'is between rows and has an amount, but is not a row of the table: correct its day, or delete the line if it is a total'
const MARKED = ['day=Date', 'reference=Ref', 'amount=Amount']
const unmarked = (marked: number) =>
  `Amount (amount): the amount has no Cr, unlike that of line ${marked}, so it may be a debit: get a file that marks every amount, or with debits in a column of their own`
const mayBeTitle = (text: string) =>
  `${JSON.stringify(text)} is the only text of a line between rows, and may be the title of the rows below: add --negative-below ${JSON.stringify(text)} to the layout if their amounts are deducted, otherwise --ignore-line ${JSON.stringify(text)}`
const MT940 = 'an MT940 message, which has no table: get the bank statement from the bank as CSV'
const twoFiles = (end: number) =>
  `is a row below the table, which ends in line ${end}. If the file contains two tables, import them as two files.`

/** The three lines that most files contain: 350.00 in, 120.00 out, 190.28 in. */
const THREE: [number, number, number, string][] = [
  [2, 18, 35000, 'YESIG63220270133'],
  [3, 19, -12000, '632312345678'],
  [4, 19, 19028, 'YESIG63230270199'],
]
const at = (...lines: number[]) =>
  THREE.map(([, ...rest], index) => [lines[index] as number, ...rest] as (typeof THREE)[0])

export const FILES: Record<string, StatementFile> = {
  'ICICI, narration continued in a second row, legends below the table': {
    columns: [
      'day=Transaction Date',
      'reference=Transaction Remarks',
      'debit=Withdrawal Amount(INR)',
      'credit=Deposit Amount(INR)',
      'balance=Balance(INR)',
    ],
    file: `,,,,,,,,
,DETAILED STATEMENT,,,,,,,
,Account Number,,000401234567 ( INR )  - ASHA RAO,,,,,
,Transaction Date from,,16/11/2026,to,20/11/2026,,,
,S No.,Value Date,Transaction Date,Cheque Number,Transaction Remarks,Withdrawal Amount(INR),Deposit Amount(INR),Balance(INR)
,1,18/11/2026,18/11/2026,,NEFT-YESIG63220270133-ACQUIRER NODAL ACCOUNT CHAI,0.00,350.00,10350.00
,,,,, POINT-SETTLEMENT-0001,,,
,2,19/11/2026,19/11/2026,,UPI/632312345678/LEAVES/tea@okhdfc/HDFC BANK,120.00,0.00,10230.00
,3,19/11/2026,19/11/2026,,NEFT-YESIG63230270199-ACQUIRER NODAL,0.00,190.28,10420.28
,Legends Used in Account Statement,,,,,,,
,1. INFT - Internal Fund Transfer (Within ICICI Bank),,,,,,,
`,
    read: at(6, 8, 9),
    covers: 'no day',
  },
  'lines of one day not in the order of their balances': {
    file: `${HEADER}
18/11/2026,NEFT-YESIG63220270133-ACQUIRER NODAL,,350.00,"10,350.00"
19/11/2026,NEFT-YESIG63230270199-ACQUIRER NODAL,,190.28,"10,420.28"
19/11/2026,UPI/632312345678/TEA SUPP,120.00,,"10,230.00"
20/11/2026,RENT,5000.00,,"5,420.28"
`,
    read: [...at(2, 4, 3).toSorted(([a], [b]) => a - b), [5, 20, -500000, '']],
    covers: '2026-11-19 to 2026-11-19',
  },
  'lines of one day not in order, newest day first, with --opening and --closing': {
    args: ['--opening', '10,000.00', '--closing', '5,420.28'],
    file: `${HEADER}
20/11/2026,RENT,5000.00,,"5,420.28"
19/11/2026,UPI/632312345678/TEA SUPP,120.00,,"10,230.00"
19/11/2026,NEFT-YESIG63230270199-ACQUIRER NODAL,,190.28,"10,420.28"
18/11/2026,NEFT-YESIG63220270133-ACQUIRER NODAL,,350.00,"10,350.00"
`,
    read: [
      [2, 20, -500000, ''],
      [3, 19, -12000, '632312345678'],
      [4, 19, 19028, 'YESIG63230270199'],
      [5, 18, 35000, 'YESIG63220270133'],
    ],
    covers: '2026-11-16 to 2026-11-20',
  },
  'credits before debits on the first and on the last day': {
    args: ['--opening', '1,000', '--closing', '1,350'],
    file: `${HEADER}
17/11/2026,NEFT IN,,200,1150
17/11/2026,NEFT IN,,100,1200
17/11/2026,CHARGES,50,,950
17/11/2026,CHARGES,50,,1100
18/11/2026,NEFT IN,,150,1350
18/11/2026,NEFT IN,,50,1200
18/11/2026,CHARGES,50,,1150
`,
    read: [
      [2, 17, 20000, ''],
      [3, 17, 10000, ''],
      [4, 17, -5000, ''],
      [5, 17, -5000, ''],
      [6, 18, 15000, ''],
      [7, 18, 5000, ''],
      [8, 18, -5000, ''],
    ],
    covers: '2026-11-16 to 2026-11-20',
  },
  'a missing line on an unordered day': {
    file: `${HEADER}
18/11/2026,NEFT-YESIG63220270133-ACQUIRER NODAL,,350.00,"10,350.00"
19/11/2026,NEFT-YESIG63230270199-ACQUIRER NODAL,,190.28,"10,420.28"
20/11/2026,RENT,5000.00,,"5,420.28"
`,
    rejected: `line 3: ${MISSING}`,
  },
  'a missing line on the day after an unordered day': {
    file: `${HEADER}
18/11/2026,NEFT IN,,350.00,"10,350.00"
19/11/2026,NEFT IN,,190.28,"10,420.28"
19/11/2026,TEA,120.00,,"10,230.00"
20/11/2026,RENT,"5,000.00",,"5,400.28"
`,
    rejected: `line 5: ${MISSING}`,
  },
  'a duplicated line on an unordered day': {
    file: `${HEADER}
18/11/2026,NEFT IN,,350.00,"10,350.00"
19/11/2026,NEFT IN,,190.28,"10,420.28"
19/11/2026,TEA,120.00,,"10,230.00"
19/11/2026,TEA,120.00,,"10,230.00"
`,
    rejected: `line 3: ${MISSING}`,
  },
  'an account emptied every day, with a missing line on the second day': {
    file: `${HEADER}
17/11/2026,NEFT IN,,350,350
17/11/2026,SWEEP,350,,0
18/11/2026,SWEEP,350,,0
19/11/2026,NEFT IN,,350,350
`,
    rejected: `line 4: ${MISSING}`,
  },
  'a page header between rows with page number and balance brought forward': {
    file: `${HEADER}
18/11/2026,NEFT-YESIG63220270133-ACQUIRER,,350.00,"10,350.00"
Page 1 of 2,,,,
Statement of account XX5678,,,,
${HEADER}
,Brought forward,,,"10,350.00"
19/11/2026,UPI/632312345678/TEA SUPP,120.00,,"10,230.00"
19/11/2026,NEFT-YESIG63230270199-ACQUIRER,,190.28,"10,420.28"
Page 2 of 2,,,,
`,
    read: at(2, 7, 8),
    covers: 'no day',
  },
  'a page header where a line is missing': {
    file: `${HEADER}
18/11/2026,NEFT-YESIG63220270133-ACQUIRER,,350.00,"10,350.00"
Page 1 of 2,,,,
${HEADER}
19/11/2026,NEFT-YESIG63230270199-ACQUIRER,,190.28,"10,420.28"
`,
    rejected: `line 5: ${twoFiles(3)} The balance does not follow from the row above.`,
  },
  'page headers in a file without balances': {
    columns: UNPROVED,
    file: `Date,Narration,Debit,Credit
18/11/2026,NEFT-YESIG63220270133-ACQUIRER,,350.00
 Page 1 / 2,,,
Date,Narration,Debit,Credit
19/11/2026,UPI/632312345678/TEA SUPP,120.00,
19/11/2026,NEFT-YESIG63230270199-ACQUIRER,,190.28
`,
    read: at(2, 5, 6),
    covers: 'no day',
  },
  'two accounts in one file': {
    file: `Account,5678,,,
${HEADER}
18/11/2026,NEFT IN,,350.00,"10,350.00"
Account,9012,,,
${HEADER}
18/11/2026,NEFT IN,,190.28,"5,190.28"
`,
    rejected: `line 6: ${twoFiles(4)} The balance does not follow from the row above.`,
  },
  'two accounts in one file without balances': {
    columns: UNPROVED,
    file: `Account,5678,,
Date,Narration,Debit,Credit
18/11/2026,NEFT IN,,350.00
Account,9012,,
Date,Narration,Debit,Credit
18/11/2026,NEFT IN,,190.28
`,
    rejected: `line 6: ${twoFiles(4)}`,
  },
  'two accounts in one file, without a second header': {
    file: `${HEADER}
18/11/2026,NEFT IN,,350.00,"10,350.00"
Account 9012,,,,
18/11/2026,NEFT IN,,190.28,"5,190.28"
`,
    rejected: `line 4: ${MISSING}`,
  },
  'daily totals in rows without a date': {
    file: `${HEADER}
18/11/2026,NEFT-YESIG63220270133-ACQUIRER,,350.00,"10,350.00"
,Total of 18/11/2026,0.00,350.00,"10,350.00"
19/11/2026,UPI/632312345678/TEA SUPP,120.00,,"10,230.00"
19/11/2026,NEFT-YESIG63230270199-ACQUIRER,,190.28,"10,420.28"
,Total of 19/11/2026,120.00,190.28,"10,420.28"
Grand total,,120.00,540.28,"10,420.28"
`,
    read: at(2, 4, 5),
    covers: 'no day',
  },
  'daily totals in rows with a date': {
    file: `${HEADER}
18/11/2026,NEFT-YESIG63220270133-ACQUIRER,,350.00,"10,350.00"
19/11/2026,UPI/632312345678/TEA SUPP,120.00,,"10,230.00"
19/11/2026,NEFT-YESIG63230270199-ACQUIRER,,190.28,"10,420.28"
19/11/2026,Day total,120.00,190.28,"10,420.28"
`,
    read: THREE,
    covers: 'no day',
  },
  'daily totals around a missing line': {
    file: `${HEADER}
18/11/2026,NEFT IN,,350.00,"10,350.00"
,Total,0.00,350.00,"10,350.00"
19/11/2026,NEFT IN,,190.28,"10,420.28"
`,
    rejected: `line 3: ${BETWEEN}`,
  },
  'daily totals in a file without balances': {
    columns: UNPROVED,
    file: `Date,Narration,Debit,Credit
18/11/2026,NEFT IN,,350.00
,Total,0.00,350.00
19/11/2026,NEFT IN,,190.28
`,
    rejected: `line 3: ${BETWEEN}`,
  },
  'a date only on the first line of each day': {
    file: `${HEADER}
18/11/2026,NEFT IN,,350.00,"10,350.00"
19/11/2026,TEA,120.00,,"10,230.00"
,NEFT IN,,190.28,"10,420.28"
20/11/2026,RENT,5000,,"5,420.28"
`,
    rejected: `line 4: ${BETWEEN}`,
  },
  'a row with a date and a remark but no amount': {
    args: ['--opening', '10,000', '--closing', '10,420.28'],
    file: `${HEADER}
18/11/2026,NEFT-YESIG63220270133-ACQUIRER,,350.00,"10,350.00"
19/11/2026,UPI/632312345678/TEA SUPP,120.00,,"10,230.00"
19/11/2026,Rate of interest is 3.00 % from today,,,
19/11/2026,NEFT-YESIG63230270199-ACQUIRER,,190.28,"10,420.28"
`,
    read: at(2, 3, 5),
    covers: '2026-11-16 to 2026-11-20',
  },
  'rows of asterisks and empty rows between days, tabs, month names': {
    columns: ['day=Txn Date', 'reference=Description', 'debit=Debit', 'credit=Credit', 'balance=Balance'],
    date: 'd mmm yyyy',
    file: `Account Name\t:\tCHAI POINT
Txn Date\tDescription\t        Debit\tCredit\tBalance\t
18 Nov 2026\t   BY TRANSFER-NEFT*YESIG63220270133*ACQUIRER--\t \t350.00\t10,350.00\t
\t\t\t\t\t
*********\t*********\t****\t****\t****\t
19 Nov 2026\tUPI/632312345678\t120.00\t \t10,230.00\t
19 Nov 2026\t   NEFT*YESIG63230270199*ACQUIRER--\t \t190.28\t10,420.28\t
`,
    read: at(3, 6, 7),
    covers: 'no day',
  },
  'an unordered overdrawn account, CR and DR next to amount and balance': {
    columns: [...SIGNED, 'balance=Dr / Cr#2'],
    file: `Date,Particulars,Amount,Dr / Cr,Balance,Dr / Cr
18/11/2026,NEFT YESIG63220270133,350.00,CR,150.00,CR
19/11/2026,NEFT YESIG63230270199,190.28,CR,40.28,CR
19/11/2026,UPI/632312345678,120.00,DR,150.00,DR
19/11/2026,RENT,180.00,DR,30.00,DR
`,
    read: [
      [2, 18, 35000, 'YESIG63220270133'],
      [3, 19, 19028, 'YESIG63230270199'],
      [4, 19, -12000, '632312345678'],
      [5, 19, -18000, ''],
    ],
    covers: 'no day',
  },
  'a column that occurs twice, without a number in the layout': {
    columns: ['day=Date', 'reference=Narration', 'amount=Amount', 'sign=Dr / Cr', 'balance=Balance'],
    file: `Date,Narration,Amount,Dr / Cr,Balance,Dr / Cr
18/11/2026,NEFT IN,350.00,CR,150.00,DR
`,
    rejected: 'line 1: has Dr / Cr more than once: write Dr / Cr#1 or Dr / Cr#2 in the layout',
  },
  'two amount columns, of which the layout selects the second': {
    columns: ['day=Date', 'reference=Narration', 'amount=Amount#2', 'sign=Type', 'balance=Balance'],
    file: `Date,Narration,Amount,Amount,Type,Balance
18/11/2026,NEFT-YESIG63220270133,USD 4.10,350.00,CR,"10,350.00"
19/11/2026,UPI/632312345678,USD 1.40,120.00,DR,"10,230.00"
19/11/2026,NEFT-YESIG63230270199,USD 2.20,190.28,CR,"10,420.28"
`,
    read: THREE,
    covers: 'no day',
  },
  'credits marked with Cr beside bare debits, without balances': {
    columns: MARKED,
    file: `Date,Narration,Ref,Amount
18/11/2026,NEFT CR-ACQUIRER,YESIG63220270133,350.00Cr
19/11/2026,RENT,,120.00
19/11/2026,NEFT CR-ACQUIRER,YESIG63230270199,190.28Cr
`,
    rejected: `line 3: ${unmarked(2)}`,
  },
  'a bare debit before the first credit marked with Cr': {
    columns: MARKED,
    file: `Date,Narration,Ref,Amount
18/11/2026,RENT,,120.00
19/11/2026,NEFT CR-ACQUIRER,YESIG63220270133,"₹ 1,350.00 (Cr)"
`,
    rejected:
      'line 3: Amount (amount): the amount has Cr, unlike that of line 2, which may be a debit: get a file that marks every amount, or with debits in a column of their own',
  },
  'credits marked with Cr beside bare debits, contradicted by the balances': {
    columns: [...MARKED, 'balance=Balance'],
    file: `Date,Ref,Amount,Balance
18/11/2026,YESIG63220270133,350.00Cr,"10,350.00"
19/11/2026,RENT,120.00,"10,230.00"
19/11/2026,YESIG63230270199,190.28Cr,"10,420.28"
`,
    rejected: `line 3: ${unmarked(2)}`,
  },
  'credits with and without Cr, proven by the balances': {
    columns: [...MARKED, 'balance=Balance'],
    file: `Date,Ref,Amount,Balance
18/11/2026,YESIG63220270133,350.00Cr,"10,350.00"
19/11/2026,632312345678,120.00 Dr,"10,230.00"
19/11/2026,YESIG63230270199,190.28,"10,420.28"
`,
    read: THREE,
    covers: 'no day',
  },
  'a bare amount in the oldest line, whose sign the balances do not prove': {
    columns: [...MARKED, 'balance=Balance'],
    file: `Date,Ref,Amount,Balance
19/11/2026,YESIG63230270199,190.28Cr,"10,420.28"
19/11/2026,YESIG63220270133,350.00Cr,"10,230.00"
18/11/2026,RENT,120.00,"9,880.00"
`,
    rejected:
      'line 4: the amount has no Cr, unlike others, and no earlier balance proves that it is a credit: add --opening with the balance before it to the import',
  },
  'bare credits beside debits marked with Dr or a minus': {
    columns: MARKED,
    file: `Date,Ref,Amount
18/11/2026,YESIG63220270133,350.00
19/11/2026,632312345678,120.00 Dr
19/11/2026,YESIG63230270199,190.28
20/11/2026,RENT,-50.00
`,
    read: [...THREE, [5, 20, -5000, '']],
    covers: 'no day',
  },
  'credits marked with Cr beside debits with a minus and empty amounts': {
    columns: MARKED,
    file: `Date,Ref,Amount
18/11/2026,YESIG63220270133,350.00 Cr
18/11/2026,RATE OF INTEREST,0.00
19/11/2026,632312345678,-120.00
19/11/2026,YESIG63230270199,190.28 Cr
`,
    read: at(2, 4, 5),
    covers: 'no day',
  },
  'a title between rows, without balances': {
    columns: UNPROVED,
    file: `Date,Narration,Debit,Credit
18/11/2026,NEFT IN,,350.00
REVERSALS,,,
19/11/2026,NEFT IN,,190.28
Failed  credits,-,NA,0.00
19/11/2026,NEFT IN,,10.00
`,
    rejected: `line 3: ${mayBeTitle('REVERSALS')}; line 5: ${mayBeTitle('Failed  credits')}`,
  },
  'a title between rows, a missing line elsewhere': {
    file: `${HEADER}
18/11/2026,NEFT IN,,350.00,"10,350.00"
CHAI POINT,,,,
19/11/2026,TEA,120.00,,"10,230.00"
CHAI POINT,,,,
20/11/2026,RENT,5000.00,,"5,420.28"
`,
    rejected: `line 6: ${MISSING}`,
  },
  'a title between rows, and a line without its balance': {
    file: `${HEADER}
18/11/2026,NEFT IN,,350.00,"10,350.00"
CHAI POINT,,,,
19/11/2026,TEA,120.00,,
`,
    rejected: `line 3: ${mayBeTitle('CHAI POINT')}`,
  },
  'titles between rows that the layout ignores or makes negative': {
    columns: ['day=Date', 'reference=Narration', 'amount=Amount'],
    flags: ['--ignore-line', 'Chai Point', '--negative-below', 'WITHDRAWALS', '--negative-below', 'Charges'],
    file: `Date,Narration,Amount
18/11/2026,NEFT-YESIG63220270133,350.00
CHAI  POINT,,
Date,Narration,Amount
19/11/2026,NEFT-YESIG63230270199,190.28
Withdrawals,,0.00
19/11/2026,IMPS-632312345678,120.00
Page 2,,
Total,,
charges,,
20/11/2026,CARD,"₹ 5.00"
20/11/2026,CARD,0.00
`,
    read: [
      [2, 18, 35000, 'YESIG63220270133'],
      [5, 19, 19028, 'YESIG63230270199'],
      [7, 19, -12000, '632312345678'],
      [11, 20, -500, ''],
    ],
    covers: 'no day',
  },
  'signed amounts below a title that makes amounts negative': {
    columns: ['day=Date', 'reference=Narration', 'amount=Amount'],
    flags: ['--negative-below', 'WITHDRAWALS'],
    file: `Date,Narration,Amount
WITHDRAWALS,,
19/11/2026,REVERSAL,-120.00
19/11/2026,REVERSAL,120.00 Cr
`,
    rejected: [2, 3]
      .map(
        (above) =>
          `line ${above + 1}: Amount (amount) must have no sign below a line that --negative-below names: remove --negative-below from the layout if the file signs its amounts`,
      )
      .join('; '),
  },
  'an ignored title below one that makes amounts negative': {
    columns: ['day=Date', 'reference=Narration', 'amount=Amount'],
    flags: ['--negative-below', 'WITHDRAWALS', '--ignore-line', 'DEPOSITS'],
    file: `Date,Narration,Amount
WITHDRAWALS,,
DEPOSITS,,
19/11/2026,NEFT IN,120.00
`,
    rejected:
      'line 3: "DEPOSITS" is below "WITHDRAWALS", so the amounts below it may be negative or not: import the lines from here on as a file of their own',
  },
  'rows whose last empty cells are missing': {
    columns: ['day=Date', 'reference=Narration', 'reference=Ref', 'debit=Debit', 'credit=Credit', 'balance=Balance'],
    file: `Date,Narration,Ref,Balance,Debit,Credit
18/11/2026,NEFT CR-ACQUIRER,YESIG63220270133,"10,350.00",,350.00
18/11/2026,RATE OF INTEREST
19/11/2026,RENT,632312345678,"10,230.00",120.00
19/11/2026,NEFT CR-ACQUIRER,YESIG63230270199,"10,420.28",,190.28
`,
    read: at(2, 4, 5),
    covers: 'no day',
  },
  'an invalid day in the middle, whose balance the next line continues': {
    file: `${HEADER}
18/11/2026,NEFT IN,,350.00,"10,350.00"
31/11/2026,RENT,120.00,,"10,230.00"
20/11/2026,NEFT IN,,190.28,"10,420.28"
`,
    rejected: 'line 3: Date (day) must be an existing day in the format dd/mm/yyyy',
  },
  'Axis: an overdrawn account, with a comma after the minus, and a negative --closing': {
    columns: [
      'day=Transaction Date (dd/mm/yyyy)',
      'reference=Particulars',
      'amount=Amount(INR)',
      'sign=Debit/Credit',
      'balance=Balance(INR)',
    ],
    args: ['--opening', '-77,65,682.30', '--closing', '-7765262.02'],
    file: `Name :- CHAI POINT LTD  .
S.No,Transaction Date (dd/mm/yyyy),Value Date (dd/mm/yyyy),Particulars,Amount(INR),Debit/Credit,Balance(INR),Cheque Number,Branch Name(SOL)
1,,,OPENING BALANCE,,,"-,77,65,682.30",,PUNE CAMP
2,18/11/2026,18/11/2026,NEFT/YESIG63220270133/ACQUIRER/YES BANK,"\t350.00",CR,"-,77,65,332.30",,PUNE CAMP
3,19/11/2026,19/11/2026,IMPS/632312345678,"\t120.00",DR,"-,77,65,452.30",,PUNE CAMP
4,19/11/2026,19/11/2026,NEFT/YESIG63230270199/ACQUIRER/YES BANK,"\t190.28",CR,"-,77,65,262.02",,PUNE CAMP
`,
    read: at(4, 5, 6),
    covers: '2026-11-16 to 2026-11-20',
  },
  'IOB: the value date in brackets after the date': {
    columns: ['day=Date (Value Date)', ...USUAL.slice(1)],
    date: 'dd-mmm-yy',
    file: `Date (Value Date),Narration,Debit,Credit,Balance
18-Nov-26 (18-Nov-26),NEFT/YESIG63220270133,,350.00,"10,350.00"
19-Nov-26 (18-Nov-26),IMPS/632312345678,120.00,,"10,230.00"
19-Nov-26 (20-Nov-26),NEFT/YESIG63230270199,,190.28,"10,420.28"
`,
    read: THREE,
    covers: 'no day',
  },
  'days as a spreadsheet counts them': {
    file: `${HEADER}
46344,NEFT-YESIG63220270133,,350.00,"10,350.00"
46345.4375,IMPS-632312345678,120.00,,"10,230.00"
`,
    rejected: [2, 3]
      .map(
        (line) =>
          `line ${line}: Date (day) is a day as a spreadsheet counts it: format the column as a date, and save the file again`,
      )
      .join('; '),
  },
  'a day as a spreadsheet counts it, between other days': {
    columns: UNPROVED,
    file: `Date,Narration,Debit,Credit
18/11/2026,NEFT-YESIG63220270133,,350.00
46345,IMPS-632312345678,120.00,
19/11/2026,NEFT-YESIG63230270199,,190.28
`,
    rejected:
      'line 3: Date (day) is a day as a spreadsheet counts it: format the column as a date, and save the file again',
  },
  'a balance like a counted day in a summary below the table': {
    file: `${HEADER}
18/11/2026,NEFT-YESIG63220270133,,350.00,46350
19/11/2026,IMPS-632312345678,120.00,,46230
19/11/2026,NEFT-YESIG63230270199,,190.28,46420.28
Opening Balance,,Debits,Credits,Closing Balance
46000,,120.00,540.28,46420.28
`,
    read: THREE,
    covers: 'no day',
  },
  'a reversal as a negative credit': {
    file: `${HEADER}
18/11/2026,NEFT-YESIG63220270133,0.00,350.00,"10,350.00"
19/11/2026,REVERSAL 632312345678,0.00,-120.00,"10,230.00"
19/11/2026,NEFT-YESIG63230270199,,190.28,"10,420.28"
`,
    read: THREE,
    covers: 'no day',
  },
  'a reversal as a negative credit, without balances': {
    columns: UNPROVED,
    file: `Date,Narration,Debit,Credit
18/11/2026,NEFT-YESIG63220270133,,350.00
19/11/2026,REVERSAL 632312345678,,(120.00)
19/11/2026,NEFT-YESIG63230270199,,190.28
`,
    read: THREE,
    covers: 'no day',
  },
  'a negative credit beside a debit': {
    columns: UNPROVED,
    file: `Date,Narration,Debit,Credit
18/11/2026,NEFT-YESIG63220270133,20.00,-350.00
`,
    rejected: 'line 2: Debit (debit) and Credit (credit) must be one amount, such as 1,450.50',
  },
  MT940: {
    file: `{1:F01YESBINBBAXXX0000000000}{2:I940YESBINBBXXXXN}{4:
:20:STATEMENT
:25:900000000000001
:60F:C261117INR10000,00
:61:2611181118C350,00NMSCNONREF
:86:NEFT YESIG63220270133
-}
`,
    rejected: `line 1: the file is ${MT940}`,
  },
  'MT940 without envelope': {
    file: ':20:STATEMENT\r\n:25:900000000000001\r\n:28C:1/1\r\n:60F:C261117INR10000,00\r\n',
    rejected: `line 1: the file is ${MT940}`,
  },
  'mobile numbers and UPI IDs of customers': {
    columns: ['day=Date', 'reference=Narration', 'credit=Credit', 'debit=Debit', 'balance=Balance'],
    file: `Date,Narration,Debit,Credit,Balance
18/11/2026,UPI/919876543210/632312345678/ASHA,,1,1
18/11/2026,UPI-919876543210@ybl-0000919876543210-632312345679,,1,2
18/11/2026,IMPS919876543210 asha.rao1990123456@okaxis,,1,3
18/11/2026,ASHARAO1990123456 @okaxis/AXNPN27701342567,,1,4
18/11/2026,916123456789/911234567890,,1,5
18/11/2026,UPI-asharao1990123456-2@ybl-632312345670,,1,6
18/11/2026,asha199012345678-rao@okaxis/AXNPN27701342567,,1,7
18/11/2026,UPI-asha199012345678-rao@okaxis-0000632312345671,,1,8
18/11/2026,UPI-ASHA RAO-ASHA1990123456-OKAXIS-632312345672,,1,9
18/11/2026,UPIAR/632312345673/DR/ASHA RAO/OKAXIS/ASHA1990123456,,1,10
18/11/2026,REV-UPI-632312345674-asha.rao1990123456 @okaxis-YESIG63220270133,,1,11
18/11/2026,UPI/632312345675/190012345678@okaxis,,1,12
18/11/2026,NEFT CR-UPINDER AND CO-YESIG63220270133,,1,13
`,
    read: [
      [2, 18, 100, '632312345678'],
      [3, 18, 100, '632312345679'],
      [4, 18, 100, ''],
      [5, 18, 100, 'AXNPN27701342567'],
      [6, 18, 100, '911234567890'],
      [7, 18, 100, '632312345670'],
      [8, 18, 100, 'AXNPN27701342567'],
      [9, 18, 100, '632312345671'],
      [10, 18, 100, '632312345672'],
      [11, 18, 100, '632312345673'],
      [12, 18, 100, '632312345674'],
      [13, 18, 100, '632312345675'],
      [14, 18, 100, 'YESIG63220270133'],
    ],
    covers: 'no day',
  },
  'no lines on the first days, with --opening': {
    args: ['--opening', '10,350'],
    file: `${HEADER}
19/11/2026,TEA,120.00,,"10,230.00"
19/11/2026,NEFT IN,,190.28,"10,420.28"
20/11/2026,RENT,5000,,"5,420.28"
`,
    read: [
      [2, 19, -12000, ''],
      [3, 19, 19028, ''],
      [4, 20, -500000, ''],
    ],
    covers: '2026-11-16 to 2026-11-19',
  },
  'missing first lines, with --opening': {
    args: ['--opening', '10,000'],
    file: `${HEADER}
19/11/2026,TEA,120.00,,"10,230.00"
19/11/2026,NEFT IN,,190.28,"10,420.28"
`,
    rejected:
      'nothing was imported: the file has the balance before the oldest line ₹10,350.00, not ₹10,000.00; correct --opening, or download the file from the bank again',
  },
  'truncated after a whole line, with --closing': {
    args: ['--closing', '5,420.28'],
    file: `${HEADER}
19/11/2026,NEFT IN,,190.28,"10,540.28"
19/11/2026,TEA,120.00,,"10,420.28"
`,
    rejected:
      'nothing was imported: the file has the newest balance ₹10,420.28, not ₹5,420.28; correct --closing, or download the file from the bank again',
  },
  'debit and credit swapped': {
    columns: ['day=Date', 'reference=Narration', 'debit=Credit', 'credit=Debit', 'balance=Balance'],
    file: `${HEADER}
18/11/2026,NEFT IN,,350.00,"10,350.00"
19/11/2026,NEFT IN,,190.28,"10,420.28"
19/11/2026,TEA,120.00,,"10,230.00"
`,
    rejected: 'line 3: the balances show that debit and credit are swapped: swap them in the layout',
  },
}
