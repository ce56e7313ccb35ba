import { beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { runOps } from '../support/ops.ts'

/** Statements in the formats of Indian banks, with invented lines, and the layouts that read them unchanged. */
let url: string
beforeAll(async () => {
  ;({ url } = await createTestDatabase())
})

type Bank = { date: string; columns: [string, string][]; file: string; read: string[][] }

const BANKS: Record<string, Bank> = {
  'HDFC, delimited, padded with spaces': {
    date: 'dd/mm/yy',
    columns: [
      ['day', 'Date'],
      ['reference', 'Narration'],
      ['reference', 'Chq/Ref Number'],
      ['debit', 'Debit Amount'],
      ['credit', 'Credit Amount'],
      ['balance', 'Closing Balance'],
    ],
    file: `

 Date     ,Narration                                         ,Value Dat,Debit Amount       ,Credit Amount      ,Chq/Ref Number   ,Closing Balance
 03/08/26 ,NEFT CR-YESB0000001-ACQUIRER-SHOP-YESIG62440270133 ,03/08/26 ,      0.00         ,   14550.50        ,YESIG62440270133 ,   24550.50
 04/08/26 ,RTGS CR-IOBA0002259-ACQUIRER-IOBAR52026080400313124,04/08/26 ,      0.00         ,  250000.00        ,0000426018195789 ,  274550.50
 04/08/26 ,UPI-MILK-0000070424750347                          ,04/08/26 ,     40.00         ,      0.00         ,0000070424750347 ,  274510.50
`,
    read: [
      ['4', '2026-08-03', '14550.50', 'YESIG62440270133'],
      ['5', '2026-08-04', '250000.00', '426018195789 IOBAR52026080400313124'],
      ['6', '2026-08-04', '-40.00', '70424750347'],
    ],
  },
  'HDFC, a workbook saved as CSV, with rows of asterisks and totals': {
    date: 'dd/mm/yy',
    columns: [
      ['day', 'Date'],
      ['reference', 'Narration'],
      ['reference', 'Chq./Ref.No.'],
      ['debit', 'Withdrawal Amt.'],
      ['credit', 'Deposit Amt.'],
      ['balance', 'Closing Balance'],
    ],
    file: `HDFC BANK Ltd.,,,,,,
"CHAI ""POINT"", INDIRANAGAR",,,,,,
Statement From : 01/08/2026 To : 31/08/2026,,,,,,
********,**********,**********,********,*********,*********,*********
Date,Narration,Chq./Ref.No.,Value Dt,Withdrawal Amt.,Deposit Amt.,Closing Balance
********,**********,**********,********,*********,*********,*********
03/08/26,NEFT CR-UTIB0000100-ACQUIRER-AXNPN27701342567,AXNPN27701342567,03/08/26,,"1,450.50","11,450.50"
,,,,,,
********,**********,**********,********,*********,*********,*********
STATEMENT SUMMARY  :-,,,,,,
Opening Balance,,Debits,,Credits,,Closing Bal
"10,000.00",,0,,"1,450.50",,"11,450.50"
Generated On: 01-SEP-2026 10:00:00,,,,,,
`,
    read: [['7', '2026-08-03', '1450.50', 'AXNPN27701342567']],
  },
  'ICICI retail, a comma at the end of each line': {
    date: 'dd/mm/yyyy',
    columns: [
      ['day', 'Transaction Date'],
      ['reference', 'Transaction Remarks'],
      ['debit', 'Withdrawal Amount (INR )'],
      ['credit', 'Deposit Amount (INR )'],
      ['balance', 'Balance (INR )'],
    ],
    file: `DETAILED STATEMENT,,
S No.,Value Date,Transaction Date,Cheque Number,Transaction Remarks,Withdrawal Amount (INR ),Deposit Amount (INR ),Balance (INR )
,,,,Opening balance,,,"1,00,000.00",
1,03/08/2026,03/08/2026,-,NEFT-YESBN12026080304991234-ACQUIRER,0.00,"99,999.50","1,99,999.50",
2,04/08/2026,04/08/2026,-,MMT/IMPS/621610304991/rent,"5,000.00",0.00,"1,94,999.50",
`,
    read: [
      ['4', '2026-08-03', '99999.50', 'YESBN12026080304991234'],
      ['5', '2026-08-04', '-5000.00', '621610304991'],
    ],
  },
  'ICICI corporate, CR and DR next to the amount, newest line first': {
    date: 'dd/mm/yyyy',
    columns: [
      ['day', 'Txn Posted Date'],
      ['reference', 'Description'],
      ['sign', 'Cr/Dr'],
      ['amount', 'Transaction Amount(INR)'],
      ['balance', 'Available Balance(INR)'],
    ],
    file: `Account,XXXX
No.,Transaction ID,Value Date,Txn Posted Date,ChequeNo.,Description,Cr/Dr,Transaction Amount(INR),Available Balance(INR)
2,S2,04/08/2026,04/08/2026 11:20:05 PM ,-,CHARGES,DR,17.70,"25,132.80"
1,S1,03/08/2026,03/08/2026 09:02:11 AM ,-,RTGS-SBINR12026080334491979-ACQUIRER,CR,"25,000.00","25,150.50"
`,
    read: [
      ['3', '2026-08-04', '-17.70', ''],
      ['4', '2026-08-03', '25000.00', 'SBINR12026080334491979'],
    ],
  },
  'SBI, tab-separated despite the name .xls, one space for an empty amount': {
    date: 'd mmm yyyy',
    columns: [
      ['day', 'Txn Date'],
      ['reference', 'Description'],
      ['debit', 'Debit'],
      ['credit', 'Credit'],
      ['balance', 'Balance'],
    ],
    file: [
      'Account Name\t:\tM/S. "CHAI POINT',
      'Account Number\t:\t_00000012345678901',
      '',
      'Txn Date\tValue Date\tDescription\tRef No./Cheque No.\t        Debit\tCredit\tBalance\t',
      '5 Aug 2026\t5 Aug 2026\t   BY TRANSFER-NEFT*YESB0000001*YESAP61641609940*ACQUIRER--\tTRANSFER FROM 3199\t \t1,450.50\t2,450.50\t',
      '15 Aug 2026\t15 Aug 2026\t   TO TRANSFER\t\t450.50\t \t2,000.00\t',
      '**This is a computer generated statement.\t\t',
      '',
    ].join('\r\n'),
    read: [
      ['5', '2026-08-05', '1450.50', 'YESAP61641609940'],
      ['6', '2026-08-15', '-450.50', ''],
    ],
  },
  'Axis, amounts padded, paragraphs after the table': {
    date: 'dd-mm-yyyy',
    columns: [
      ['day', 'Tran Date'],
      ['reference', 'PARTICULARS'],
      ['debit', 'DR'],
      ['credit', 'CR'],
      ['balance', 'BAL'],
    ],
    file: `Name :- CHAI POINT,,,,,,
Statement of Account No - XX for the period (From : 01-08-2026 To : 31-08-2026),,,,,,
Tran Date,CHQNO,PARTICULARS,DR,CR,BAL,SOL
03-08-2026,-,NEFT/AXISCN1169361047/ACQUIRER, ,            1450.50,           11450.50,4541
04-08-2026,-,IMPS/P2A/621610304992/x,           450.50, ,           11000.00,4541
Unless the constituent notifies the bank of any discrepancy within 15 days,,,,,,
`,
    read: [
      ['4', '2026-08-03', '1450.50', 'AXISCN1169361047'],
      ['5', '2026-08-04', '-450.50', '621610304992'],
    ],
  },
  'Kotak, the column Dr / Cr twice, fields as ="…"': {
    date: 'dd-mm-yyyy',
    columns: [
      ['day', 'Transaction Date'],
      ['reference', 'Description'],
      ['reference', 'Chq / Ref No.'],
      ['amount', 'Amount'],
      ['sign', 'Dr / Cr#1'],
      ['balance', 'Balance'],
    ],
    file: `Kotak Mahindra Bank
Sl. No.,Transaction Date,Value Date,Description,Chq / Ref No.,Amount,Dr / Cr,Balance,Dr / Cr
1,03-08-2026,03-08-2026,NEFT INDBN03082633412 ACQUIRER,="NEFTINW-0812345678","1,450.50",CR,"2,450.50",CR
2,04-08-2026,04-08-2026,Recd:IMPS/621610304993/x,="IMPS-621610304993",450.50,dr,"2,000.00",CR
Opening balance,,,,,,,"1,000.00",CR
`,
    read: [
      ['3', '2026-08-03', '1450.50', 'INDBN03082633412'],
      ['4', '2026-08-04', '-450.50', '621610304993'],
    ],
  },
  'Indian Bank, CR after the balance, semicolons': {
    date: 'dd/mm/yyyy',
    columns: [
      ['day', 'Post Date'],
      ['reference', 'Narration'],
      ['debit', 'Debit'],
      ['credit', 'Credit'],
      ['balance', 'Balance'],
    ],
    file: `Post Date;Narration;Debit;Credit;Balance
03/08/2026;NEFT/YESB/YESBN12026080105404991/ONE 97 COM/;;1450.5;609894.61CR
04/08/2026;cash;609894.61;;0.00
`,
    read: [
      ['2', '2026-08-03', '1450.50', 'YESBN12026080105404991'],
      ['3', '2026-08-04', '-609894.61', ''],
    ],
  },
}

describe('layouts of bank statements', () => {
  it.each(Object.entries(BANKS))(
    'a layout reads the unchanged statement from %s',
    async (name, { date, columns, file, read }) => {
      const layout = name.replace(/\W/g, '')
      const flags = columns.flatMap((pair) => ['--column', pair.join('=')])
      const added = await runOps(url, ['settlements', 'layout', 'add', '--name', layout, '--date', date, ...flags])
      expect(added).toMatchObject({ code: 0, stderr: '' })
      const { stdout } = await runOps(url, ['settlements', 'layout', 'try', '-', '--layout', layout, '--json'], file)
      const { first, faults } = JSON.parse(stdout)
      expect(faults).toEqual([])
      expect(first.map((one: Record<string, string>) => Object.values(one))).toEqual(read)
      expect(Object.keys(first[0])).toEqual(['line', 'day', 'amount', 'references'])
    },
  )
})
