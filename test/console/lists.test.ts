import { text } from 'node:stream/consumers'
import { beforeAll, describe, expect, it } from 'vitest'
import { rupees, table } from '../../src/operator/commands/result.ts'
import { renderData } from '../../src/operator/console/render.ts'
import { changesOf, type OperatorView } from '../../src/operator/console/view.ts'
import { COMMANDS } from '../../src/operator/terminal/main.ts'
import { writeText } from '../../src/operator/terminal/text.ts'
import { newUtr } from '../support/acquirer.ts'
import { bankOn, importArgs, newReference } from '../support/bank-statements.ts'
import { createTestConsole, newOperatorKey, type TestConsole } from '../support/console.ts'
import { createTestDatabase } from '../support/database.ts'
import { opsOn } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { type Key, newMerchant } from '../support/service.ts'
import { newWebhook } from '../support/webhooks.ts'

const { url, db } = await createTestDatabase()
const { ops, json } = opsOn(() => url)
const bank = bankOn(() => url)
const AUGUST = { month: '2026-08' }
const NOON = new Date('2026-08-04T12:00:00+05:30')

let site: TestConsole
let key: Key
let reader: Key
let mid: string
/** A merchant with one open discrepancy. */
let unsettled: string
let orderId: string
let delivery: string
let refundId: string
let exceptionId: string
let statement: string
const received = newReference()
const [perhaps, missing] = [newReference(), newReference()]

/** Stores something for every list to show. The merchant's first order is not settled, and paid twice. */
beforeAll(async () => {
  site = await createTestConsole({ databaseUrl: url })
  key = await newOperatorKey(db)
  reader = await newOperatorKey(db, ['read'])
  ;({ mid } = await newMerchant(db))
  await json('partners', 'add', '--pid', 'P1', '--name', 'Accountants')
  await json('partners', 'link', '--pid', 'P1', '--mid', mid)
  const [utr, settled] = [newUtr(), newUtr()]
  orderId = await storePaidOrder(db, { mid, utr, paidAt: NOON })
  await storePaidOrder(db, { mid, utr: settled, paidAt: NOON })
  await storePaidOrder(db, { mid, utr: newUtr(), paidAt: NOON })
  const double = ['--utr', newUtr(), '--amount', '200', '--double']
  await json('payments', 'confirm', '--order-id', orderId, ...double)
  ;[{ id: exceptionId }] = await json('payments', 'exceptions', '--mid', mid)
  ;({ refundId } = await json('refunds', 'create', '--order-id', orderId, '--amount', '1', '--note', 'One cup'))
  await json('disputes', 'add', '--order-id', orderId, '--dispute', 'D1', '--amount', '150', '--kind', 'CHARGEBACK')
  const { endpointId } = await newWebhook(db, { mid, url: 'https://shop.example/hook' }, NOON)
  await db.query(
    `insert into webhook_deliveries (mid, endpoint_id, order_id, sequence, type, txn_status, occurred_at)
     values ($1, $2, $3, 1, 'payment.succeeded', 'SUCCESS', $4)`,
    [mid, endpointId, orderId, NOON],
  )
  delivery = `${endpointId}.${orderId}.1`
  await ops('merchants', 'update', '--mid', mid, '--fee', '1', '--tax', '18')
  await db.query(`update contract_rates set since = '2026-01-01' where mid = $1`, [mid])
  await bank.must(
    ['settlements', 'import', '-'],
    `mid,amount,fee,tax,utr,bank_reference_number,status,initiation_date\n${mid},190,9,1,${settled},${received},SUCCESS,2026-08-05 09:00:00\n`,
  )
  await bank.addPayout(mid, { day: '2026-08-05', reference: perhaps, rupees: 1004 })
  await bank.addPayout(mid, { day: '2026-08-05', reference: missing, rupees: 1005 })
  await bank.layout('bank', 'day=Date', 'reference=Text', 'debit=Debit', 'credit=Credit', 'balance=Balance')
  const lines = [`05/08/2026,NEFT ${received},,190,190`, '06/08/2026,NEFT,,1004,1194', '30/08/2026,TEA,1,,1193']
  const file = ['Date,Text,Debit,Credit,Balance', '03/08/2026,TEA,1,,0', ...lines, ''].join('\n')
  ;({ statement } = await bank.must(importArgs(mid, 'bank'), file))
  const { differences } = await json('reconcile', 'differences', '--mid', mid)
  await json('reconcile', 'resolve', '--difference', differences[0].id, '--reason', '=1+1')
  ;({ mid: unsettled } = await newMerchant(db))
  await storePaidOrder(db, { mid: unsettled, utr: newUtr(), paidAt: NOON })
})

type Fields = Record<string, string>

const get = (page: string, fields: Fields, sender = key) => site.get(`/${page}?${new URLSearchParams(fields)}`, sender)

const unescaped = (text: string) =>
  text
    .replace(/<\/?span[^>]*>/g, '')
    .replace(/<[^>]+>/g, ' ')
    .trim()
    .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code))

/** The cells of all rows of a page by column. The page leaves out empty columns, and its header states the time zone. */
function rowsOf(body: string): Record<string, string>[] {
  const rows = [...body.matchAll(/<tr>(.*?)<\/tr>/gs)].map(([, row = '']) =>
    [...row.matchAll(/<t([dh])[^>]*>(.*?)<\/t\1>/gs)].map(([, , cell = '']) => unescaped(withoutName(cell))),
  )
  const [columns = [], ...others] = rows
  return others.map((cells) => byColumn(columns, cells))
}

/** A cell with a MID without the merchant's name. */
const withoutName = (cell: string) => cell.replace(/^.*<small class="quiet">(.*)<\/small><\/span>$/, '$1')

/** The cells that are not empty, by the letters of their column. */
const byColumn = (columns: readonly string[], cells: readonly string[]) =>
  Object.fromEntries(
    columns
      .map((column, index) => [column.toLowerCase().replace(/[ _]/g, ''), cells[index]?.replace(/ IST$/, '') ?? ''])
      .filter(([column, cell]) => column !== '' && cell !== '-' && cell !== ''),
  )

/** The amounts of a text, without the separators of their digits. */
const amountsIn = (text: string) => [...new Set(text.replaceAll(/[,₹]/g, '').match(/\b\d+\.\d\d\b/g))].sort()

const flagsIn = (fields: Fields) => Object.entries(fields).flatMap(([flag, value]) => [`--${flag}`, value])

/** The addresses of the links to a change on a page. */
const linksTo = (body: string, change: string) =>
  [...body.matchAll(/href="([^"]+)"/g)]
    .map(([, href = '']) => unescaped(href))
    .filter((href) => href.startsWith(change))

describe('a page shows the same figures as its command', () => {
  it.each<[string, () => Fields]>([
    ['audit', () => ({})],
    ['merchants list', () => ({})],
    ['partners list', () => ({})],
    ['payments list', () => ({ mid, ...AUGUST })],
    ['payments exceptions', () => ({ mid })],
    ['refunds list', () => ({ mid })],
    ['disputes list', () => ({ mid })],
    ['webhooks list', () => ({ mid })],
    ['webhooks deliveries', () => ({ mid, since: '2026-08-01T00:00:00+05:30' })],
    ['settlements imports', () => ({})],
    ['statements list', () => ({})],
    ['reconcile resolutions', () => ({ mid })],
    ['reconcile payouts', () => ({ mid, ...AUGUST })],
    ['reconcile open', () => ({ mid: unsettled })],
    ['reconcile fees', () => ({ ...AUGUST, by: 'account' })],
    ['reconcile journal', () => ({ mid, ...AUGUST })],
    ['reconcile statement', () => ({ mid: unsettled, ...AUGUST })],
  ])('%s, row by row', async (name, fields) => {
    const { status, body } = await get(name.replace(' ', '-'), fields(), reader)
    const { stdout } = await ops(...name.split(' '), ...flagsIn(fields()))
    const [header = '', ...lines] = stdout.trimEnd().split('\n')
    const columns = header.split(/ {2,}/)
    expect(status).toBe(200)
    expect(lines.length).toBeGreaterThan(0)
    expect(rowsOf(body)).toEqual(lines.map((line) => byColumn(columns, line.split(/ {2,}/))))
  })

  it.each<[string, () => Fields]>([
    ['reconcile', () => ({ mid: unsettled, ...AUGUST })],
    ['reconcile fees', () => ({ mid, ...AUGUST })],
    ['reconcile statement', () => ({ mid, ...AUGUST })],
    ['refunds show', () => ({ refund: refundId })],
    ['disputes show', () => ({ mid, dispute: 'D1' })],
    ['payments show', () => ({ 'order-id': orderId })],
  ])('%s, by its amounts', async (name, fields) => {
    const { body } = await get(name.replace(' ', '-'), fields(), reader)
    const { stdout } = await ops(...name.split(' '), ...flagsIn(fields()))
    expect(amountsIn(stdout)).not.toEqual([])
    expect(amountsIn(unescaped(body))).toEqual(expect.arrayContaining(amountsIn(stdout)))
  })
})

it.each<[string, () => Fields]>([
  ['payments-exceptions', () => ({ mid })],
  ['refunds-list', () => ({ mid })],
  ['disputes-list', () => ({ mid })],
  ['webhooks-deliveries', () => ({ mid, since: '2026-08-01T00:00:00+05:30' })],
  ['settlements-imports', () => ({})],
  ['statements-list', () => ({})],
  ['reconcile', () => ({ mid: unsettled, ...AUGUST })],
  ['reconcile-differences', () => ({ mid: unsettled })],
  ['reconcile-open', () => ({ mid: unsettled })],
  ['reconcile-payouts', () => ({ mid, ...AUGUST })],
])('the form of each change on the page %s shows the row that it changes', async (page, fields) => {
  const { body } = await get(page, fields(), key)
  // The changes beside a list concern no row.
  const isOfRow = (href: string) => /^[^?]+\?(?!back=).*back=/.test(href) && !/resend\?(mid|since)/.test(href)
  const forms = await Promise.all(
    linksTo(body, '')
      .filter(isOfRow)
      .map((href) => site.get(`/${href}`, key)),
  )
  expect(forms.length).toBeGreaterThan(0)
  for (const form of forms)
    expect([form.status, form.body]).toEqual([200, expect.stringContaining('Before the change')])
})

/** The heads of the columns of a page. */
const headsOf = (body: string) => [...body.matchAll(/<th [^>]*>(.*?)<\/th>/g)].map(([, head = '']) => head)

describe('columns', () => {
  const namesOf = (heads: string[]) => heads.map((head) => head.toLowerCase().replaceAll(' ', ''))

  it.each<[string, () => Fields, string]>([
    ['payments exceptions', () => ({ mid }), 'id, receivedAt, kind, amount, nextStep'],
    ['payments list', () => ({ mid, ...AUGUST }), 'createdAt, merchantOrderId, amount, status'],
    ['reconcile payouts', () => ({ mid, ...AUGUST }), 'day, bankReference, arrival, net, credited'],
  ])('the page and the text of %s begin with the columns that matter', async (name, fields, first) => {
    const names = namesOf(first.split(', '))
    const { body } = await get(name.replace(' ', '-'), fields(), reader)
    const { stdout } = await ops(...name.split(' '), ...flagsIn(fields()))
    const ofText = stdout.slice(0, stdout.indexOf('\n')).split(/ {2,}/)
    for (const heads of [headsOf(body), ofText]) expect(namesOf(heads).slice(0, names.length)).toEqual(names)
  })

  it.each<[string, () => Fields, string]>([
    ['reconcile differences', () => ({ mid: unsettled }), 'MID, Day, Age days, Kind, Owed, Cause'],
    ['reconcile', () => ({ mid: unsettled, ...AUGUST }), 'Day, Kind, Owed, Cause'],
  ])('the page of %s begins with the amount and the cause of each discrepancy', async (name, fields, first) => {
    const { body } = await get(name.replace(' ', '-'), fields(), reader)
    expect(headsOf(body).join(', ')).toMatch(new RegExp(`^${first}, `))
  })

  it('CSV lists its columns in one order, those with nothing but 0.00 too', async () => {
    const csv = async (...args: string[]) => (await ops(...args, '--mid', mid, '--csv')).stdout
    expect(await csv('payments', 'list', ...flagsIn(AUGUST))).toMatch(
      /^\ufeff?created_at,order_id,merchant_order_id,amount,status,reason,utr,refunded,instrument\n/,
    )
    expect(await csv('reconcile', 'payouts', ...flagsIn(AUGUST))).toMatch(
      /^\ufeff?day,mid,account,bank_reference,rows,gross,fee,tax,deductions,net,arrival,arrived_on,credited,difference,statement,difference_id,resolution\n/,
    )
    expect(await csv('reconcile', 'differences')).toMatch(
      /^\ufeff?mid,day,age_days,kind,difference_id,order_id,merchant_order_id,utr,settlement_utr,exception_id,owed,cause\n/,
    )
  })

  it('a column with nothing but 0.00 is left out, and a column with another amount is shown', async () => {
    const fields = { mid, ...AUGUST }
    const { body } = await get('reconcile-payouts', fields, reader)
    const { stdout } = await ops('reconcile', 'payouts', ...flagsIn(fields))
    for (const heads of [headsOf(body), stdout.slice(0, stdout.indexOf('\n')).split(/ {2,}/)]) {
      expect(namesOf(heads)).toEqual(expect.arrayContaining(['gross', 'fee', 'tax']))
      expect(namesOf(heads)).not.toContain('deductions')
    }
  })

  it('a column of 0.00 whose total is another amount is shown', async () => {
    const rows = [{ day: '2026-08-04', fee: 0, net: 0 }]
    const list = table('day, ₹fee, ₹net', rows, { last: () => ({ day: 'total', fee: rupees(0), net: rupees(-5_00) }) })
    const page = String(await renderData(list, { rows: 1 } as OperatorView))
    expect([headsOf(page), page]).toEqual([['Day', 'Net'], expect.stringContaining('-₹5.00')])
    expect(await text(writeText(list))).toBe('day         net\n2026-08-04  ₹0.00\ntotal       -₹5.00\n')
  })

  it('each cell names its column with the head of the column', async () => {
    const { body } = await get('reconcile-payouts', { mid, ...AUGUST }, reader)
    const named = [...body.matchAll(/ data-name="(.*?)"/g)].map(([, name]) => name)
    expect(headsOf(body)).toContain('Bank reference')
    expect([...new Set(named)]).toEqual(headsOf(body))
  })
})

it('a failing webhook endpoint shows since when it fails, with a link to the deliveries of its merchant that failed', async () => {
  const { mid: failing } = await newMerchant(db)
  await newWebhook(db, { mid: failing, url: 'https://shop.example/hook' }, NOON)
  await db.query('update webhook_endpoints set failing_since = $2 where mid = $1', [failing, NOON])
  const { body } = await get('webhooks-list', { mid: failing }, reader)
  expect(rowsOf(body)).toEqual([expect.objectContaining({ state: 'failing', failingsince: '2026-08-04 12:00:00' })])
  const [href = ''] = linksTo(body, 'webhooks-deliveries?')
  expect(href).toBe(`webhooks-deliveries?mid=${failing}&failed=on`)
  expect((await site.get(`/${href}`, reader)).status).toBe(200)
  const { stdout } = await ops('webhooks', 'list', '--mid', failing)
  expect(stdout).toMatch(/ failingSince .*\n.* failing +2026-08-04 12:00:00 IST /)
})

describe('filters', () => {
  it.each([
    ['payments-exceptions', { kind: 'none', mid: 'M1' }, '“Kind of exception” must be one of'],
    ['reconcile', { from: '2026-08-02', to: '2026-08-01' }, '“First day” must not be after “Last day”'],
    ['reconcile-payouts', { mid: 'unknown', month: '2026-08' }, 'mid unknown does not exist'],
  ])('%s shows its form, filled in, with the error of an invalid filter and 400', async (page, fields, error) => {
    const { status, body } = await get(page, fields)
    expect([status, unescaped(body)]).toEqual([400, expect.stringContaining(error)])
    expect(body.indexOf('class="error"')).toBeLessThan(body.indexOf('class="filters"'))
    for (const [name, value] of Object.entries(fields)) expect(body).toContain(`name="${name}" value="${value}"`)
  })

  it('an invalid change shows its form, filled in, with the error and 400', async () => {
    const fields = { refund: refundId, reference: '', back: 'refunds-list' }
    const invalid = await site.post('/refunds-done', fields, key)
    expect([invalid.status, unescaped(invalid.body)]).toEqual([
      400,
      expect.stringContaining('“Bank reference (RRN) of the refund” '),
    ])
    expect(invalid.fields).toEqual({ refund: refundId, back: 'refunds-list' })
    expect((await site.post('/refunds-done', { ...invalid.fields, reference: 'ARN1' }, key)).status).toBe(200)
  })

  it('a start time is accepted in IST, with or without seconds, in the format of its placeholder', async () => {
    const { body } = await get('webhooks-deliveries', { mid, since: '2026-08-01 09:30' })
    expect(body).toContain('name="since" value="2026-08-01 09:30" placeholder="2026-11-26 09:30:00"')
    expect(unescaped(body)).toContain("'--since=2026-08-01 09:30'")
    expect(body).toContain(delivery)
  })

  it('the navigation has every list, also those that require filters, and no page of one record', async () => {
    const { body } = await site.get('/', reader)
    const lists = [...body.matchAll(/<li><a href="([^"]+)"/g)].map(([, path]) => path)
    expect(lists).toEqual(expect.arrayContaining(['reconcile', 'reconcile-fees', 'webhooks-deliveries', 'audit']))
    expect(lists).toContain('payments-find')
    for (const page of ['payments-show', 'refunds-show', 'disputes-show']) expect(lists).not.toContain(page)
    const { status, body: form } = await site.get('/reconcile', reader)
    expect([status, form]).toEqual([200, expect.not.stringContaining('class="error"')])
    expect(form).toMatch(/name="from" value="" placeholder="2026-11-01".*name="month" value="" placeholder="2026-11"/s)
  })
})

describe('CSV', () => {
  it('a list is downloaded as the CSV for spreadsheets of its command, with the filters of the page', async () => {
    const { body } = await get('reconcile-journal', { mid, ...AUGUST })
    const [href = ''] = linksTo(body, 'reconcile-journal?mid')
    const { status, headers, body: csv } = await site.get(`/${href}`, key)
    expect([status, headers['content-type']]).toEqual([200, 'text/csv; charset=utf-8'])
    expect(headers['content-disposition']).toBe('attachment; filename="reconcile-journal.csv"')
    const { stdout } = await ops('reconcile', 'journal', ...flagsIn({ mid, ...AUGUST }), '--csv', '--for', 'excel')
    // The test reads the output as text, which drops the byte order mark.
    expect(csv).toBe(`\ufeff${stdout}`)
  })

  it('CSV requires valid filters, and a command that prints CSV', async () => {
    expect((await get('reconcile-journal', { csv: 'on' })).status).toBe(400)
    expect((await get('refunds-list', { csv: 'on' })).headers['content-type']).toMatch(/^text\/html/)
    expect((await get('refunds-list', {})).body).not.toContain('csv=on')
  })

  it('CSV neutralizes formulas', async () => {
    expect((await get('reconcile-resolutions', { mid, csv: 'on' })).body).toContain(`'=1+1`)
  })
})

describe('links to changes in rows', () => {
  it('a delivery is sent again from its row', async () => {
    const { body } = await get('webhooks-deliveries', { mid, since: '2026-08-01T00:00:00+05:30' })
    const [href = ''] = linksTo(body, 'webhooks-resend?delivery')
    const form = await site.get(`/${href}`, key)
    expect(form.fields.delivery).toBe(delivery)
    // A redelivery of one event has no period.
    expect(form.body).not.toMatch(/name="(mid|since|until)"/)
    const confirmation = await site.post('/webhooks-resend', form.fields, key)
    expect(confirmation.body).toMatch(/<dt>deliveries<\/dt><dd>1<\/dd>/)
    expect((await site.post('/webhooks-resend', confirmation.fields, key)).status).toBe(303)
  })

  it('the events of a period are sent again once the operator has confirmed their number', async () => {
    const since = '2026-08-01 00:00:00'
    const { body } = await get('webhooks-deliveries', { mid, since })
    const [href = ''] = linksTo(body, 'webhooks-resend?mid')
    const form = await site.get(`/${href}`, key)
    const [, until = ''] = /name="until" value="([^"]+)"/.exec(form.body) ?? []
    const fields = { mid, since, until, back: 'webhooks-list' }
    const confirmation = await site.post('/webhooks-resend', fields, key)
    expect(confirmation.body).toMatch(/<dt>deliveries<\/dt><dd>1<\/dd>/)
    const second = NOON.getTime() + 60_000
    await db.query(
      `insert into webhook_deliveries (mid, endpoint_id, order_id, sequence, type, txn_status, occurred_at, delivered_at)
       values ($1, $2, $3, 2, 'payment.succeeded', 'SUCCESS', $4, $4)`,
      [mid, delivery.split('.')[0], orderId, new Date(second)],
    )
    const changed = await site.post('/webhooks-resend', confirmation.fields, key)
    expect([changed.status, changed.body]).toEqual([409, expect.stringMatching(/<dt>deliveries<\/dt><dd>2<\/dd>/)])
    const pending = async () =>
      (await db.query('select from webhook_deliveries where mid = $1 and due_at > $2', [mid, NOON])).rowCount
    expect(await pending()).toBe(1)
    expect((await site.post('/webhooks-resend', changed.fields, key)).status).toBe(303)
    expect(await pending()).toBe(2)
  })

  it('a payout of uncertain receipt has a link to each credit of its amount, and the confirmation shows the payout', async () => {
    const { body } = await get('reconcile-payouts', { mid, ...AUGUST })
    const links = linksTo(body, 'statements-match').map((href) =>
      Object.fromEntries(new URLSearchParams(href.split('?')[1])),
    )
    expect(links).toEqual([
      expect.objectContaining({ payout: perhaps, statement: String(statement), line: '4' }),
      expect.objectContaining({ payout: missing }),
    ])
    expect(body).toContain(`href="reconcile?payout=${received}"`)
    const fields = { ...links[0], reason: 'the bank printed no reference' }
    const confirmation = await site.post('/statements-match', fields, key)
    // The figures are the amounts of the credit and of the payout.
    expect(confirmation.body).toMatch(/<p class="amount">₹1,004\.00.*<dt>amount of the payout<\/dt><dd>₹1,004\.00/s)
    await site.post('/statements-match', confirmation.fields, key)
    expect((await get('reconcile-payouts', { mid, ...AUGUST, open: 'on' })).body).not.toContain(perhaps)
  })

  it('an open discrepancy, refund and exception have links to their changes, and final ones have none', async () => {
    const differences = await get('reconcile-differences', { mid: unsettled })
    const [open] = (await json('reconcile', 'differences', '--mid', unsettled)).differences
    expect(rowsOf(differences.body).map(Object.values)).toEqual([expect.arrayContaining([open.id, `₹${open.owed}`])])
    expect(linksTo(differences.body, `reconcile-resolve?difference=${open.id}`)).toHaveLength(1)
    const report = await get('reconcile', { mid: unsettled, ...AUGUST })
    expect(linksTo(report.body, 'reconcile-resolve?difference')).toHaveLength(1)
    const changes = ['refunds-done', 'refunds-fail']
    // A direct refund is never sent, so it cannot be sent again.
    expect(linksTo((await get('refunds-list', { mid })).body, 'refunds-retry')).toEqual([])
    const ofSetu = changesOf({ groups: { All: COMMANDS } }, 'refund', { acquirer: 'setu' })
    expect(ofSetu.map(({ name }) => name)).toEqual(['refunds retry', 'refunds done', 'refunds fail'])
    for (const change of changes) expect(linksTo((await get('refunds-list', { mid })).body, change)).toHaveLength(1)
    await json('refunds', 'fail', '--refund', refundId, '--reason', 'the account is closed')
    for (const change of changes) expect(linksTo((await get('refunds-list', { mid })).body, change)).toEqual([])
    expect(linksTo((await get('payments-exceptions', { mid })).body, 'payments-resolve')).toHaveLength(1)
    await json('payments', 'resolve', '--exception', exceptionId, '--reason', 'refunded in cash')
    const resolved = await get('payments-exceptions', { mid })
    expect(linksTo(resolved.body, 'payments-resolve')).toEqual([])
    expect(linksTo(resolved.body, `payments-find?exception=${exceptionId}`)).toHaveLength(1)
  })

  it('a list links to the changes of its group that name no record, and a reader sees no link', async () => {
    expect(linksTo((await get('settlements-imports', {})).body, 'settlements-pull')).toHaveLength(1)
    for (const page of ['settlements-imports', 'refunds-list', 'payments-exceptions', 'reconcile-differences']) {
      expect((await get(page, {}, reader)).body).not.toMatch(/settlements-pull|refunds-done|resolve\?|back=/)
    }
  })
})
