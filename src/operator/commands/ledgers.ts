import * as z from 'zod'
import { isLedger, LEDGERS, listLedgerNames, setLedgerName } from '../../books/reports/journal.ts'
import { errorText } from '../../platform/fields.ts'
import { change, read } from './command.ts'
import { flag, optional } from './field.ts'
import { MID } from './fields.ts'
import { requireMerchant } from './merchants.ts'
import { document, table } from './result.ts'
import { tallyName } from './tally.ts'

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
