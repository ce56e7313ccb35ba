import { text as readText } from 'node:stream/consumers'
import * as z from 'zod'
import { type BankHoliday, createBankHolidays } from '../../books/ledger/bank-holidays.ts'
import { CsvFileError, type LineFault } from '../../platform/csv/csv.ts'
import { matching, text } from '../../platform/fields.ts'
import { counted } from '../../platform/money.ts'
import { dayText } from '../../platform/time.ts'
import { atomicCommand, changingCommand, command } from './command.ts'
import { document, table } from './data.ts'
import { CommandError } from './errors.ts'
import { FILE, readFile } from './file.ts'

const name = text(255)

export const bankHolidayCommands = [
  atomicCommand('bank-holidays add', 'Add a day on which banks pay nothing out', {
    usage: '--day D --name "Republic Day"',
    schema: z.object({ day: dayText, name }),
    async run(holiday, { client, now, person }) {
      const added = (await createBankHolidays(client).add([holiday], { by: person, now })) === 1
      return document({ ...holiday, added }, `${holiday.day} is ${added ? 'now' : 'already'} a bank holiday`)
    },
  }),

  command('bank-holidays list', 'List bank holidays', {
    usage: '[--year Y]',
    schema: z.object({ year: matching(/^20\d\d$/, 'must be a year from 2000 to 2099').optional() }),
    async run({ year }, { db }) {
      const empty = 'no bank holidays: see ops bank-holidays import'
      return table('day, name', await createBankHolidays(db).list(year), empty)
    },
  }),

  atomicCommand('bank-holidays remove', 'Remove a bank holiday', {
    usage: '--day D',
    schema: z.object({ day: dayText }),
    async run({ day }, { client, now, person }) {
      const name = await createBankHolidays(client).remove(day, { by: person, now })
      if (name === undefined) throw new CommandError(`${day} is no bank holiday: see ops bank-holidays list`)
      return { data: document({ day, name }, `${day}, ${name}, is no bank holiday any more`), made: { name } }
    },
  }),

  changingCommand('bank-holidays import', 'Import a list of bank holidays', {
    usage: 'FILE|-   (pasted from the Reserve Bank’s page of one office, or CSV: day,name)',
    schema: z.object({ file: FILE }),
    argument: 'file',
    async run({ file }, { change, now, person, terminal }) {
      const { holidays, others } = await readFile(file, terminal, async (list) => readHolidays(await readText(list)))
      return change(async (client) => {
        const added = await createBankHolidays(client).add(holidays, { by: person, now })
        const made = { added, unchanged: holidays.length - added }
        const warnings = others.length > 0 ? [describeOthers(others)] : []
        const data = document({ ...made, warnings }, `${added} added, ${made.unchanged} unchanged`)
        return { data, warnings, made }
      })
    },
  }),
]

const CSV_HEADER = /^"?(day|date)"?\s*,/i
const CSV_LINE = /^"?(\d{4}-\d\d-\d\d|\d\d-\d\d-\d{4})"?\s*,(.*)$/
/** A line that names a month, such as `April 2024 1591011`. The month's holidays follow, one in each line. */
const MONTH_LINE = /^([a-z]+)\s+(20\d\d)[\s\d]*$/i
const DAY_OF_MONTH_LINE = /^(.*\S)\s+(\d{1,2})$/
const MONTHS = 'january february march april may june july august september october november december'.split(' ')
const OTHERS_SHOWN = 3

/**
 * Reads a list of holidays as CSV, or as text copied from the Reserve Bank's page, where the name of a month stands
 * above its days. `others` are lines in neither form, such as headings. Throws a CsvFileError when a day does not
 * exist, when no month stands above a day, and when the list has no holiday.
 */
function readHolidays(list: string): { holidays: BankHoliday[]; others: LineFault[] } {
  const holidays: BankHoliday[] = []
  const others: LineFault[] = []
  const faults: LineFault[] = []
  let month: string | undefined
  for (const [index, untrimmed] of list.split('\n').entries()) {
    const line = index + 1
    const text = untrimmed.trim()
    const [, word = '', year] = MONTH_LINE.exec(text) ?? []
    const monthNumber = MONTHS.indexOf(word.toLowerCase()) + 1
    if (monthNumber > 0) {
      month = `${year}-${String(monthNumber).padStart(2, '0')}`
      continue
    }
    const [, csvDay, csvName = ''] = CSV_LINE.exec(text) ?? []
    const [, pageName = '', dayOfMonth] = DAY_OF_MONTH_LINE.exec(text) ?? []
    if (csvDay === undefined && dayOfMonth === undefined) {
      if (text !== '' && !CSV_HEADER.test(text)) others.push({ line, text })
    } else if (csvDay === undefined && month === undefined) {
      faults.push({ line, text: 'put its month before it, in a line such as April 2026' })
    } else {
      const day = csvDay ?? `${month}-${dayOfMonth?.padStart(2, '0')}`
      const holiday = Holiday.safeParse({ day, name: csvDay === undefined ? pageName : unquote(csvName) })
      if (holiday.success) holidays.push(holiday.data)
      else faults.push({ line, text: faultOf(day, holiday.error) })
    }
  }
  if (holidays.length + faults.length === 0) faults.push({ line: 1, text: 'there is no holiday in this file' })
  if (faults.length > 0) throw new CsvFileError(faults.slice(0, 20), faults.length)
  return { holidays, others }
}

const Holiday = z.object({ day: dayText, name: z.string().transform(withPlainBlanks).pipe(name) })

function withPlainBlanks(name: string): string {
  return name.trim().replace(/\s+/g, ' ')
}

function unquote(field: string): string {
  return field
    .trim()
    .replace(/^"(.*)"$/, '$1')
    .replaceAll('""', '"')
}

function faultOf(day: string, { issues }: z.ZodError): string {
  const [first] = issues
  return first?.path[0] === 'day' ? `there is no day ${day} from 2000 to 2099` : `the name ${first?.message}`
}

function describeOthers(others: readonly LineFault[]): string {
  const shown = others.slice(0, OTHERS_SHOWN).map(({ line, text }) => `line ${line}: ${text.slice(0, 60)}`)
  return `${counted(others.length, 'other line was', 'other lines were')} left out, the first: ${shown.join('; ')}`
}
