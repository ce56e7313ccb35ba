import { beforeAll, expect, it } from 'vitest'
import { newUtr } from '../support/acquirer.ts'
import { createTestConsole, newOperatorKey, type TestConsole } from '../support/console.ts'
import { createTestDatabase } from '../support/database.ts'
import { opsOn } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { type Key, newMerchant } from '../support/service.ts'

const { url, db } = await createTestDatabase()
const { json } = opsOn(() => url)
const NOW = new Date('2026-08-05T12:00:00+05:30')

let site: TestConsole
let key: Key
let mid: string

beforeAll(async () => {
  site = await createTestConsole({ databaseUrl: url }, () => NOW)
  key = await newOperatorKey(db)
  ;({ mid } = await newMerchant(db))
  const paidAt = new Date('2026-07-10T12:00:00+05:30')
  // One payment is not settled, and one was paid on the last day of the month, so its payout is not judged yet.
  await storePaidOrder(db, { mid, utr: newUtr(), paidAt })
  await storePaidOrder(db, { mid, utr: newUtr(), paidAt: new Date('2026-07-31T12:00:00+05:30') })
})

const text = (html: string) => html.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ')

it('an operator closes the last month on the console, by figures that add up, and again if they have changed', async () => {
  const list = await site.get('/reconcile-closed', key)
  expect([list.status, text(list.body)]).toEqual([200, expect.stringContaining('Close month…')])
  const form = await site.get('/reconcile-close?back=reconcile-closed', key)
  expect(form.body).toContain('name="month" value="2026-07"')
  const shown = await site.post('/reconcile-close', { month: '2026-07', back: 'reconcile-closed' }, key)
  expect([shown.status, text(shown.body)]).toEqual([
    200,
    expect.stringMatching(
      /merchants 1 merchants left out 0 .*carried forward ₹400\.00 of it not judged yet ₹200\.00 of it 1 open discrepancy ₹200\.00 /,
    ),
  ])
  expect(shown.body).toContain('<th scope="col" class="number">Carried forward</th>')

  await storePaidOrder(db, { mid, utr: newUtr(), paidAt: new Date('2026-07-11T12:00:00+05:30') })
  const changed = await site.post('/reconcile-close', shown.fields, key)
  expect([changed.status, text(changed.body)]).toEqual([
    409,
    expect.stringMatching(/carried forward ₹600\.00 .*1 open discrepancy ₹400\.00/),
  ])
  expect((await db.query('select from closed_months')).rowCount).toBe(0)

  const done = await site.post('/reconcile-close', changed.fields, key)
  expect([done.status, done.headers.location]).toEqual([303, 'reconcile-closed'])
  const [closed] = await json('reconcile', 'closed')
  expect(closed).toMatchObject({ month: '2026-07', closedBy: 'asha' })
  const { rows } = await db.query(`select figures -> '*' ->> 'carriedForward' as carried from closed_months`)
  expect(rows).toEqual([{ carried: '600.00' }])
  const after = await site.get('/reconcile-closed', key)
  expect(text(after.body)).toMatch(/2026-07 closed by asha at /)
  expect((await json('audit')).at(-1)).toMatchObject({
    command: 'reconcile close',
    outcome: 'done',
    detail: { sha256: closed.sha256 },
  })
})

it('the page of a change that this process does not know says from the audit how it has ended', async () => {
  const page = async (id: string) => text((await site.get(`/work?id=${id}`, key)).body)
  const { rows } = await db.query<{ audit_id: string }>(
    `select audit_id from audit_outcomes where outcome = 'done' limit 1`,
  )
  const other = await createTestConsole({ databaseUrl: url }, () => NOW)
  const id = rows[0]?.audit_id as string
  expect(text((await other.get(`/work?id=${id}`, key)).body)).toMatch(/ops reconcile close, begun at .*, is stored/)
  await db.query(
    `insert into audit_commands (audit_id, person, command, arguments) values ('00000000-0000-4000-8000-000000000000', 'asha', 'settlements import', '{}')`,
  )
  expect(await page('00000000-0000-4000-8000-000000000000')).toContain(
    'ended without a result: nothing was stored. Repeat it.',
  )
  expect(await page('none')).toContain('Nothing was stored')
})

it('the journal is downloaded as CSV for spreadsheets and as CSV for programs', async () => {
  const { body } = await site.get('/reconcile-journal?month=2026-07', key)
  expect(body).toContain('href="reconcile-journal?month=2026-07&#38;csv=plain"')
  const [sheet, plain] = [
    await site.get('/reconcile-journal?month=2026-07&csv=on', key),
    await site.get('/reconcile-journal?month=2026-07&csv=plain', key),
  ]
  expect([sheet.body.startsWith('\ufeff'), plain.body.startsWith('date,voucher')]).toEqual([true, true])
})

it('the page of the journal offers no XML for Tally, and ignores its flag', async () => {
  const { status, body } = await site.get(`/reconcile-journal?month=2026-07&mid=${mid}&tally=on&company=Chai`, key)
  expect(status).toBe(200)
  expect(body).not.toMatch(/name="(tally|company)"|ENVELOPE/)
})

it('a form offers the merchants and the layouts', async () => {
  const { body } = await site.get('/payments-list', key)
  expect(body).toMatch(
    new RegExp(
      `<input type="text" name="mid"[^>]* list="mid-choices">.*<datalist id="mid-choices"><option value="${mid}">`,
    ),
  )
})
