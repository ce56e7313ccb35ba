import { DOMParser, type Element } from '@xmldom/xmldom'
import { parse } from 'csv-parse/sync'
import { beforeEach, describe, expect, it } from 'vitest'
import { toTallyXml } from '../../src/operator/commands/tally.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { opsAtNoon } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { newMerchant } from '../support/service.ts'
import { importRows, istMoment } from './rows.ts'

let url: string
let db: Database
let mid: string
beforeEach(async () => {
  ;({ url, db } = await createTestDatabase())
  ;({ mid } = await newMerchant(db))
})

const { jsonOn, opsOn } = opsAtNoon(() => url)
const at = (day: string, time = '12:00:00') => istMoment(day, time)
const pay = (utr: string, day: string, rupees: number, { acquirer = 'setu:acme', reportedAt = at(day) } = {}) =>
  storePaidOrder(db, { mid, utr, paidAt: at(day), reportedAt, rupees, acquirer })

/** Stores payments of two accounts in October, and a payout with a fee and tax of one of them. */
async function storeOctober() {
  await pay('A1', '2026-10-05', 100)
  await pay('D1', '2026-10-05', 30, { acquirer: 'direct' })
  const row = { mid, utr: 'A1', day: '2026-10-06', amount: 97_64, fee: 2_00, tax: 36, reference: 'BANK1' }
  await importRows(db, [row], at('2026-10-06', '20:00:00'))
}

const CLOSED_ON = '2026-11-04'
const closeOctober = () => jsonOn(CLOSED_ON, 'reconcile', 'close', '--month', '2026-10')
const setName = (ledger: string, name: string) =>
  jsonOn(CLOSED_ON, 'ledgers', 'set', '--mid', mid, '--ledger', ledger, '--name', name)
const tally = (day: string, ...args: string[]) =>
  opsOn(day, 'reconcile', 'journal', '--tally', '--mid', mid, '--company', 'Chai Point', ...args)

/** Returns the XML of a month's journal that is written without an error. */
async function xmlOn(day: string, ...args: string[]): Promise<string> {
  const { code, stdout } = await tally(day, ...args)
  expect(code).toBe(0)
  return stdout
}

/** An element as a parser that is not the writer's reads it. */
type Node = { name: string; attributes: [string, string][]; children: Node[]; text: string }

function readXml(xml: string): Node {
  const onError = (level: string, message: string) => {
    throw new Error(`${level}: ${message}`)
  }
  const { documentElement } = new DOMParser({ onError }).parseFromString(xml, 'text/xml')
  const toNode = (element: Element): Node => ({
    name: element.tagName,
    attributes: Array.from(element.attributes, ({ name, value }) => [name, value]),
    children: Array.from(element.childNodes).flatMap((one) => (one.nodeType === 1 ? [toNode(one as Element)] : [])),
    text: element.textContent ?? '',
  })
  return toNode(documentElement as Element)
}

const childrenOf = ({ children }: Node, name: string) => children.filter((one) => one.name === name)
const textOf = (node: Node, name: string) => childrenOf(node, name).map(({ text }) => text)
/** Returns the element of a path of names, each of which occurs once. */
const inside = (node: Node, path: string): Node =>
  path.split(' ').reduce((outer, name) => {
    const [one, another] = childrenOf(outer, name)
    if (one === undefined || another !== undefined) throw new Error(`${outer.name} has not one ${name}`)
    return one
  }, node)

function vouchersOf(xml: string): Node[] {
  const messages = inside(readXml(xml), 'BODY IMPORTDATA REQUESTDATA').children
  expect(messages.every(({ name, children }) => name === 'TALLYMESSAGE' && children.length === 1)).toBe(true)
  return messages.map((message) => inside(message, 'VOUCHER'))
}

const entriesOf = (voucher: Node) =>
  childrenOf(voucher, 'ALLLEDGERENTRIES.LIST').map((entry) => {
    expect(entry.children.map(({ name }) => name)).toEqual([
      ...['LEDGERNAME', 'ISDEEMEDPOSITIVE', 'ISPARTYLEDGER', 'AMOUNT'],
    ])
    return entry.children.map(({ text }) => text)
  })

describe('reconcile journal --tally', () => {
  it('Tally’s XML has the documented elements in their order, with dates, and debits as negative amounts', async () => {
    await storeOctober()
    await closeOctober()
    await setName('UPI receipts', 'Sales UPI')
    const xml = await xmlOn('2026-11-05', '--month', '2026-10')
    expect(xml).toMatch(/^<ENVELOPE>\n/)
    const envelope = readXml(xml)
    expect(envelope.children.map(({ name }) => name)).toEqual(['HEADER', 'BODY'])
    expect(inside(envelope, 'HEADER TALLYREQUEST').text).toBe('Import Data')
    const data = inside(envelope, 'BODY IMPORTDATA')
    expect(data.children.map(({ name }) => name)).toEqual(['REQUESTDESC', 'REQUESTDATA'])
    const description = inside(data, 'REQUESTDESC')
    expect(description.children.map(({ name }) => name)).toEqual(['REPORTNAME', 'STATICVARIABLES'])
    expect(inside(description, 'REPORTNAME').text).toBe('Vouchers')
    expect(inside(description, 'STATICVARIABLES SVCURRENTCOMPANY').text).toBe('Chai Point')

    const { postings } = await jsonOn('2026-11-05', 'reconcile', 'journal', '--month', '2026-10', '--mid', mid)
    const { voucherId } = postings.find((one: { reference: string }) => one.reference === 'BANK1')
    const voucher = vouchersOf(xml).find((one) => textOf(one, 'REFERENCE')[0] === 'BANK1') as Node
    expect(voucher.attributes).toEqual([
      ...[
        ['VCHTYPE', 'UPI Journal'],
        ['ACTION', 'Create'],
        ['OBJVIEW', 'Accounting Voucher View'],
      ],
      ['REMOTEID', voucherId],
    ])
    expect(voucher.children.slice(0, 7).map(({ name, text }) => [name, text])).toEqual([
      ['VOUCHERTYPENAME', 'UPI Journal'],
      ['PERSISTEDVIEW', 'Accounting Voucher View'],
      ['DATE', '20261006'],
      ['ISINVOICE', 'No'],
      ['VOUCHERNUMBER', voucherId],
      ['REFERENCE', 'BANK1'],
      ['NARRATION', `${voucherId} BANK1`],
    ])
    expect(voucher.children.slice(7).every(({ name }) => name === 'ALLLEDGERENTRIES.LIST')).toBe(true)
    expect(entriesOf(voucher)).toEqual([
      ['UPI clearing setu:acme', 'No', 'No', '100.00'],
      ['Bank', 'Yes', 'No', '-97.64'],
      ['setu:acme charges', 'Yes', 'No', '-2.36'],
    ])
  })

  it.each(['supplier', 'split'])(
    'each voucher adds up to 0, and the vouchers are those of the CSV with --charges %s',
    async (charges) => {
      await storeOctober()
      await closeOctober()
      await setName('UPI receipts', 'UPI receipts')
      const options = ['--month', '2026-10', '--charges', charges]
      const written = vouchersOf(await xmlOn('2026-11-05', ...options)).flatMap((voucher) => {
        const entries = entriesOf(voucher).map(([ledger = '', isDebit, , amount]) => {
          expect(isDebit).toBe(Number(amount) < 0 ? 'Yes' : 'No')
          return { ledger, paise: Math.round(Number(amount) * 100) }
        })
        expect(entries.reduce((sum, { paise }) => sum + paise, 0)).toBe(0)
        return entries.map(({ ledger, paise }) => [textOf(voucher, 'VOUCHERNUMBER')[0], ledger, paise])
      })
      const { stdout } = await opsOn('2026-11-05', 'reconcile', 'journal', '--csv', '--mid', mid, ...options)
      const lines: Record<string, string>[] = parse(stdout, { columns: true })
      const paiseOf = ({ credit, debit }: Record<string, string>) => Math.round((Number(credit) - Number(debit)) * 100)
      expect(lines.length).toBeGreaterThan(4)
      expect(written).toEqual(lines.map((line) => [line.voucher_id, line.ledger, paiseOf(line)]))
    },
  )

  it('a closed month has the same bytes after a late change, which the next month posts with its original day', async () => {
    await storeOctober()
    await closeOctober()
    await setName('UPI receipts', 'Sales UPI')
    const first = await xmlOn('2026-11-05', '--month', '2026-10')
    await pay('L1', '2026-10-07', 55, { reportedAt: at('2026-11-10') })
    expect(await xmlOn('2026-11-20', '--month', '2026-10')).toBe(first)
    await jsonOn('2026-12-03', 'reconcile', 'close', '--month', '2026-11', '--yes')
    const [late, ...others] = vouchersOf(await xmlOn('2026-12-04', '--month', '2026-11'))
    expect(others).toEqual([])
    expect(textOf(late as Node, 'DATE')).toEqual(['20261130'])
    expect(textOf(late as Node, 'NARRATION')[0]).toMatch(
      /^RL261130-\w{16} receipts 2026-10-07, changed after the close of 2026-10: day 2026-10-07$/,
    )
    // Before the close of November, its journal is not final.
    expect(await tally('2026-12-04', '--month', '2026-11', '--as-of', '2026-12-02')).toMatchObject({
      code: 1,
      stdout: '',
    })
  })

  it('a name may have every printable character, and stderr lists the ledgers that the file uses', async () => {
    const [sales, clearing, company] = [`A&B "Sales" 'UPI' <x> / y`, 'यूपीआई समाशोधन क्षेत्र', 'Chai & Co <दुकान>']
    await storeOctober()
    await closeOctober()
    await setName('UPI receipts', sales)
    await setName('UPI clearing setu:acme', clearing)
    const { stdout, stderr } = await opsOn(
      ...(['2026-11-05', 'reconcile', 'journal', '--tally', '--mid', mid] as const),
      ...['--month', '2026-10', '--company', company],
    )
    expect(inside(readXml(stdout), 'BODY IMPORTDATA REQUESTDESC STATICVARIABLES SVCURRENTCOMPANY').text).toBe(company)
    const used = [...new Set(vouchersOf(stdout).flatMap((voucher) => entriesOf(voucher).map(([name]) => name)))]
    const ledgers = [sales, 'Bank', 'UPI clearing direct', 'setu:acme charges', clearing]
    expect(used.toSorted()).toEqual(ledgers.toSorted())
    expect(stderr).toBe(ledgers.map((name) => `ops: ledger in Tally: ${name}\n`).join(''))
  })

  it('the reference of a voucher is written in one line, without characters that XML forbids', () => {
    const line = {
      date: '2026-10-05',
      voucherId: 'X1',
      originalDay: null,
      mid: 'M1',
      account: 'direct',
      ledger: 'Bank',
    }
    const xml = toTallyXml([{ ...line, reference: 'NEFT\r\n<&>\u0000\uffff"क्ष"', debit: 1, credit: 0 }], 'Chai')
    expect(textOf(vouchersOf(xml)[0] as Node, 'REFERENCE')).toEqual(['NEFT <&> "क्ष"'])
    expect(vouchersOf(xml)).toHaveLength(1)
  })

  it('a month that is not closed, and receipts without a name, are rejected with the command to run', async () => {
    await storeOctober()
    expect(await tally('2026-11-03', '--month', '2026-10')).toEqual({
      ...{ code: 1, stdout: '' },
      stderr: 'ops: 2026-10 is not closed: run ops reconcile close --month 2026-10 first\n',
    })
    await closeOctober()
    expect(await tally('2026-11-05', '--month', '2026-10')).toMatchObject({
      ...{ code: 1, stdout: '' },
      stderr: expect.stringMatching(
        new RegExp(`would be booked twice: .* ops ledgers set --mid ${mid} --ledger 'UPI receipts' --name NAME\n$`),
      ),
    })
  })

  it.each([
    ['--month 2026-10 --json', '--tally cannot be combined with --json or --csv'],
    ['--month 2026-10 --csv', '--tally cannot be combined with --json or --csv'],
    ['--from 2026-10-01 --to 2026-10-31', 'give one of --from and --to, --month, or --tally and --month and --company'],
  ])('reconcile journal --tally %s is wrong usage', async (options, message) => {
    const { code, stderr } = await tally('2026-11-05', ...options.split(' '))
    expect({ code, message: stderr.split('\n')[0] }).toEqual({ code: 2, message: `ops: ${message}` })
  })

  it('reconcile journal --tally requires a merchant and a company', async () => {
    const journal = ['reconcile', 'journal', '--tally', '--month', '2026-10']
    const withoutMid = await opsOn('2026-11-05', ...journal, '--company', 'Chai')
    expect(withoutMid).toMatchObject({ code: 2, stderr: expect.stringMatching(/^ops: --tally requires --mid\n/) })
    expect(await opsOn('2026-11-05', ...journal, '--mid', mid)).toMatchObject({ code: 2 })
    const twoLines = await opsOn('2026-11-05', ...journal, '--mid', mid, '--company', 'Chai\nPoint')
    expect(twoLines).toMatchObject({ code: 2, stderr: expect.stringMatching(/^ops: --company must be 1 to 99 print/) })
  })
})

describe('ledgers set', () => {
  it('ledgers set replaces the name of a ledger, and ledgers list lists the names of a merchant', async () => {
    const other = await newMerchant(db)
    await setName('UPI receipts', 'Sales')
    await setName('UPI receipts', 'Sales UPI')
    await setName('setu:acme charges', 'Setu')
    await jsonOn(CLOSED_ON, 'ledgers', 'set', '--mid', other.mid, '--ledger', 'Bank', '--name', 'HDFC Bank')
    expect(await jsonOn(CLOSED_ON, 'ledgers', 'list', '--mid', mid)).toEqual([
      { mid, ledger: 'UPI receipts', name: 'Sales UPI' },
      { mid, ledger: 'setu:acme charges', name: 'Setu' },
    ])
    expect(await jsonOn(CLOSED_ON, 'ledgers', 'list')).toHaveLength(3)
  })

  it.each([
    ['receipts', 'Sales', '--ledger must be one of UPI receipts, '],
    ['UPI clearing stu', 'Clearing', '--ledger must be one of UPI receipts, '],
    ['UPI clearing setu:', 'Clearing', '--ledger must be one of UPI receipts, '],
    ['Bank', 'x'.repeat(100), '--name must be 1 to 99 printable characters'],
    ['Bank', 'HDFC\tBank', '--name must be 1 to 99 printable characters'],
    ['Bank', 'HDFC\u202eBank', '--name must be 1 to 99 printable characters'],
    ['Bank', ' HDFC', '--name must be 1 to 99 printable characters'],
    ['Bank', '', '--name must be 1 to 99 printable characters'],
  ])('ledgers set rejects the ledger %j with the name %j', async (ledger, name, message) => {
    const { code, stderr } = await opsOn(CLOSED_ON, 'ledgers', 'set', '--mid', mid, '--ledger', ledger, '--name', name)
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(`ops: ${message}`) })
    expect(await jsonOn(CLOSED_ON, 'ledgers', 'list')).toEqual([])
  })
})
