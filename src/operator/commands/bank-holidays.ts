import { text as readText } from 'node:stream/consumers'
import { createBankHolidays } from '../../books/ledger/bank-holidays.ts'
import { readHolidays } from '../../books/ledger/holiday-list.ts'
import type { LineError } from '../../platform/csv/csv.ts'
import { matching, text } from '../../platform/fields.ts'
import { counted } from '../../platform/money.ts'
import { timeOfChange } from './barrier.ts'
import { change, changeInSteps, read } from './command.ts'
import { CommandError } from './errors.ts'
import { flag, optional } from './field.ts'
import { DAY } from './fields.ts'
import { FILE, readFile } from './file.ts'
import { document, table } from './result.ts'

export const bankHolidayCommands = [
  change('bank-holidays add', 'Add a bank holiday', {
    fields: { day: DAY, name: flag(text(255), 'NAME', 'Name of the holiday', 'such as "Republic Day"') },
    async run(holiday, { client, person }) {
      const now = await timeOfChange(client)
      const added = (await createBankHolidays(client).add([holiday], { by: person, now })) === 1
      return document({ ...holiday, added }, `${holiday.day} is ${added ? 'now' : 'already'} a bank holiday.`)
    },
  }),

  read('bank-holidays list', 'List bank holidays', {
    fields: { year: optional(flag(matching(/^20\d\d$/, 'must be a year from 2000 to 2099'), 'YYYY', 'Calendar year')) },
    async run({ year }, { db }) {
      const empty = 'No bank holidays. Import them with ops bank-holidays import.'
      return table('day, name', await createBankHolidays(db).list(year), empty)
    },
  }),

  change('bank-holidays remove', 'Remove a bank holiday', {
    fields: { day: DAY },
    async run({ day }, { client, person }) {
      const now = await timeOfChange(client)
      const name = await createBankHolidays(client).remove(day, { by: person, now })
      if (name === undefined) throw new CommandError(`${day} is not a bank holiday: see ops bank-holidays list`)
      return { data: document({ day, name }, `Bank holiday ${day}, ${name}, removed.`), created: { name } }
    },
  }),

  changeInSteps('bank-holidays import', 'Import a list of bank holidays', {
    note: 'FILE is the text of the Reserve Bank’s holiday page of one office, or CSV with the columns day,name.',
    fields: { file: FILE },
    async run({ file }, context) {
      const { change, person } = context
      const { holidays, others } = await readFile(file, context, async (list) => readHolidays(await readText(list)))
      return change(async (client) => {
        const now = await timeOfChange(client)
        const added = await createBankHolidays(client).add(holidays, { by: person, now })
        const created = { added, unchanged: holidays.length - added }
        const warnings = others.length > 0 ? [describeOthers(others)] : []
        const message = `${counted(added, 'bank holiday')} added, ${created.unchanged} unchanged.`
        return { data: document({ ...created, warnings }, message), warnings, created }
      })
    },
  }),
]

const OTHERS_SHOWN = 3

function describeOthers(others: readonly LineError[]): string {
  const shown = others.slice(0, OTHERS_SHOWN).map(({ line, text }) => `line ${line}: ${text.slice(0, 60)}`)
  return `${counted(others.length, 'other line')} skipped: ${shown.join('; ')}${others.length > OTHERS_SHOWN ? '; …' : ''}`
}
