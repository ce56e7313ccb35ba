import { describe, expect, it } from 'vitest'
import { holidaysOf } from '../../src/books/ledger/bank-holidays.ts'
import { runOps } from '../support/ops.ts'
import { startService } from '../support/service.ts'

const service = await startService()

const ops = (args: string[], input = '') => runOps(service.databaseUrl, ['bank-holidays', ...args], input)
const load = (lines: string[]) => ops(['import', '-'], lines.join('\n'))
const listed = async (year: string) => JSON.parse((await ops(['list', '--year', year, '--json'])).stdout)
const rejected = (line: string) => ({ code: 1, stdout: '', stderr: `ops: ${line}\n` })

/** Text of the Reserve Bank’s holiday page as copied from a browser. */
const PAGE = [
  ...['\ufeffHolidays', '', 'Regional Office Month Year', ''],
  ...['April 2024 1591011', 'Patna', '', 'Holiday under Negotiable Instruments Act', '', 'Holiday DescriptionDay'],
  'To enable to Banks to close their yearly accounts\t1',
  'Ramzan-Id (Id-Ul-Fitr)  (1st Shawaal) 11\r',
  'Lok Sabha General Elections 2024 26',
  ...['', 'Top', 'DECEMBER 2024 25', 'Patna', 'Holiday Description\tDay', 'Christmas 25'],
]
const OF_PAGE = [
  { day: '2024-04-01', name: 'To enable to Banks to close their yearly accounts' },
  { day: '2024-04-11', name: 'Ramzan-Id (Id-Ul-Fitr) (1st Shawaal)' },
  { day: '2024-04-26', name: 'Lok Sabha General Elections 2024' },
  { day: '2024-12-25', name: 'Christmas' },
]

describe('bank-holidays import', () => {
  it('bank-holidays import reads the Reserve Bank’s page and reports skipped lines', async () => {
    const left =
      'ops: warning: 8 other lines skipped: line 1: Holidays; line 3: Regional Office Month Year; line 6: Patna; …\n'
    expect(await load(PAGE)).toEqual({ code: 0, stdout: '4 bank holidays added, 0 unchanged.\n', stderr: left })
    expect(await listed('2024')).toEqual(OF_PAGE)
    const again = await ops(['import', '-', '--json'], [...PAGE, 'New Year’s Eve 31'].join('\n'))
    expect(JSON.parse(again.stdout)).toEqual({ added: 1, unchanged: 4, warnings: [expect.stringContaining('8 other')] })
    expect(await listed('2024')).toEqual([...OF_PAGE, { day: '2024-12-31', name: 'New Year’s Eve' }])
  })

  it('bank-holidays import accepts CSV with and without a header, and accepts holidays on Sundays', async () => {
    const sunday = '2023-01-29,"Netaji, ""the"" Leader"'
    const lines = [
      'day,name',
      '2023-01-26,Republic Day',
      '15-08-2023, Independence Day 76 ',
      sunday,
      '2023-01-26,Again',
    ]
    expect(await load(lines)).toEqual({ code: 0, stdout: '3 bank holidays added, 1 unchanged.\n', stderr: '' })
    expect(await load(lines.slice(1))).toEqual({ code: 0, stdout: '0 bank holidays added, 4 unchanged.\n', stderr: '' })
    expect(await listed('2023')).toEqual([
      { day: '2023-01-26', name: 'Republic Day' },
      { day: '2023-01-29', name: 'Netaji, "the" Leader' },
      { day: '2023-08-15', name: 'Independence Day 76' },
    ])
  })

  it.each([
    [['April 2022', 'Good Friday 15', 'Nobody’s Day 31'], 'line 3: 2022-04-31 is not a date from 2000 to 2099'],
    [['2022-01-26,Republic Day', '2022-02-30,x'], 'line 2: 2022-02-30 is not a date from 2000 to 2099'],
    [['2022-01-26,'], 'line 1: the name must be text of 1 to 255 characters, without control characters'],
    [['Christmas 25', 'December 2022'], 'line 1: no month precedes this day: add a line such as April 2026 above it'],
    [['Patna', 'Top'], 'line 1: the file contains no holiday: list each as YYYY-MM-DD,name'],
  ])('bank-holidays import rejects a file with the invalid lines %j as a whole', async (lines, fault) => {
    expect(await load(lines)).toEqual(rejected(`1 invalid line, nothing was imported; ${fault}`))
    expect(await listed('2022')).toEqual([])
  })
})

it('bank-holidays add and remove change one day, and report that a repeated command changes nothing', async () => {
  const add = ['add', '--day', '26-01-2025', '--name', 'Republic Day']
  const said = async (args: string[]) => (await ops(args)).stdout
  expect([await said(add), await said(add)]).toEqual(
    ['now', 'already'].map((when) => `2025-01-26 is ${when} a bank holiday.\n`),
  )
  expect((await holidaysOf(service.db, new Date())).has('2025-01-26')).toBe(true)
  const remove = ['remove', '--day', '2025-01-26']
  expect(await ops(remove)).toEqual({
    code: 0,
    stdout: 'Bank holiday 2025-01-26, Republic Day, removed.\n',
    stderr: '',
  })
  expect(await ops(remove)).toEqual(rejected('2025-01-26 is not a bank holiday: see ops bank-holidays list'))
  expect((await holidaysOf(service.db, new Date())).has('2025-01-26')).toBe(false)
  expect((await ops(['list', '--year', '25'])).stderr).toContain('--year must be a year from 2000 to 2099')
})
