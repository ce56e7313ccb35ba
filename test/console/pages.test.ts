import type { AddressInfo } from 'node:net'
import { beforeAll, describe, expect, it } from 'vitest'
import { inTransaction } from '../../src/platform/db/pool.ts'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { createTestConsole, newOperatorKey, type TestConsole } from '../support/console.ts'
import { opsOn } from '../support/ops.ts'
import {
  basic,
  CREATE,
  intentFields,
  type Key,
  newMerchant,
  post,
  startService,
  type TestService,
  unique,
} from '../support/service.ts'
import { until } from '../support/wait.ts'

let service: TestService
let site: TestConsole
let key: Key
let reader: Key
const { json } = opsOn(() => service.databaseUrl)

beforeAll(async () => {
  service = await startService()
  site = await createTestConsole(service)
  key = await newOperatorKey(service.db)
  reader = await newOperatorKey(service.db, ['read'])
})

type Order = { mid: string; orderId: string; number: string; utr: string }

async function paidOrder(number = unique('shop-')): Promise<Order> {
  const merchant = await newMerchant(service.db)
  const fields = intentFields(merchant.mid, { amount: '1500', order_id: number })
  const { orderId } = (await post(service.app, CREATE, fields, merchant.key)).body.data
  const utr = newUtr()
  await notify(service, notification(orderId, { amount: 1500, UTR: utr }))
  return { mid: merchant.mid, orderId, number, utr }
}

const inGroups = (utr: string) => `UPI Ref. no ${utr.replace(/(\d{4})(?=\d)/g, '$1 ')}`
const search = (text: string) => site.get(`/search?${new URLSearchParams({ q: text })}`, key)
const orderPage = (orderId: string) => `payments-show?order-id=${orderId}`

/** The address of the first link to the form of a change. */
const changeOf = (body: string, start: string) =>
  [...body.matchAll(/href="([^"]+)"/g)]
    .map(([, to = '']) => to.replaceAll('&#38;', '&'))
    .find((to) => to.startsWith(start))

/** The text of a page, without markup. */
const textOf = (body: string) =>
  body
    .replace(/<style[\s\S]*?<\/style>|<[^>]+>/g, ' ')
    .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code))
    .replace(/\s+/g, ' ')

describe('search', () => {
  it('search opens the order of a UTR with spaces, an order number, an orderId, a refundId and an exception', async () => {
    const { orderId, number, utr } = await paidOrder()
    const refund = await json('refunds', 'create', '--order-id', orderId, '--amount', '1', '--note', 'One cup')
    await notify(service, notification(orderId, { amount: 1500, UTR: newUtr() }))
    const [exception] = (await json('payments', 'show', '--order-id', orderId)).exceptions
    for (const text of [inGroups(utr), number, orderId, ` ${refund.refundId} `, exception.id]) {
      const { status, headers } = await search(text)
      expect([text, status, headers.location]).toEqual([text, 303, orderPage(orderId)])
    }
  })

  it('search lists the orders of several merchants with the same order number, each with a link', async () => {
    const number = unique('shop-')
    const orders = [await paidOrder(number), await paidOrder(number)]
    const { status, body } = await search(number)
    expect(status).toBe(200)
    for (const { orderId } of orders) expect(body).toContain(`href="${orderPage(orderId)}"`)
  })

  it('search shows the exception of an unknown order, and says so if it finds nothing', async () => {
    const utr = newUtr()
    await notify(service, notification('0'.repeat(32), { UTR: utr }))
    const { status, body } = await search(utr)
    expect([status, textOf(body)]).toEqual([200, expect.stringContaining('unknown order')])
    expect(textOf((await search('no such order')).body)).toContain('Nothing was found')
  })
})

describe('a refund in the console', () => {
  it('an operator finds an order by its UTR, confirms a refund of the rest, and returns to the order', async () => {
    const { orderId, utr } = await paidOrder()
    await json('refunds', 'create', '--order-id', orderId, '--amount', '500.50', '--note', 'One cup')
    const order = await site.get(`/${(await search(inGroups(utr))).headers.location}`, key)
    expect(textOf(order.body)).toMatch(/₹1,500\.00 Paid .* can still be refunded ₹999\.50 /)
    const form = await site.get(`/${changeOf(order.body, 'refunds-create')}`, key)
    // The form is filled in with the amount that can still be refunded.
    expect(form.body).toMatch(/name="amount" value="999\.50"/)
    const fields = { ...form.fields, amount: '999.50', note: 'Sold out' }
    const confirmation = await site.post('/refunds-create', fields, key)
    expect(textOf(confirmation.body)).toMatch(
      /₹999\.50 order ID .* Reason of the refund Sold out .* refunds open ₹500\.50 left after this refund ₹0\.00 .* Refund ₹999\.50 /,
    )
    const done = await site.post('/refunds-create', confirmation.fields, key)
    expect([done.status, done.headers.location]).toEqual([303, orderPage(orderId)])
    const { refunds, refundable } = await json('payments', 'show', '--order-id', orderId)
    expect([refunds[1], refundable]).toMatchObject([{ amount: 999.5, txnStatus: 'PENDING' }, 0])
    const ofAnother = await site.get(`/${orderPage(orderId)}`, reader)
    const after = await site.get(`/${orderPage(orderId)}`, key)
    const again = await site.get(`/${orderPage(orderId)}`, key)
    expect([after, again, ofAnother].map(({ body }) => / of ₹999\.50 created\. /.test(body))).toEqual([
      true,
      false,
      false,
    ])
    expect(after.body).toContain(`href="refunds-show?refund=${refunds[1].refundId}"`)
    expect(changeOf(after.body, 'refunds-create')).toBeUndefined()
    const [entry] = (await json('audit')).slice(-1)
    expect(entry).toMatchObject({
      person: 'asha',
      command: 'refunds create',
      arguments: { orderId, amount: '999.50', note: 'withheld' },
      outcome: 'done',
      detail: { refundId: refunds[1].refundId },
    })
  })

  it('a refund that another operator has changed by then is not made before the operator confirms the new figures', async () => {
    const { orderId } = await paidOrder()
    const { refundId } = await json(
      'refunds',
      'create',
      '--order-id',
      orderId,
      '--amount',
      '500.50',
      '--note',
      'One cup',
    )
    const fields = { 'order-id': orderId, amount: '', note: 'Sold out' }
    const confirmation = await site.post('/refunds-create', fields, key)
    expect(textOf(confirmation.body)).toMatch(/₹999\.50 .* Refund ₹999\.50 /)
    await json('refunds', 'fail', '--refund', refundId, '--reason', 'the account is closed')
    const changed = await site.post('/refunds-create', confirmation.fields, key)
    expect(changed.status).toBe(409)
    expect(textOf(changed.body)).toMatch(
      /figures have changed.* ₹1,500\.00 .* refunds open ₹0\.00 .* Refund ₹1,500\.00 /,
    )
    const { refunds: before } = await json('payments', 'show', '--order-id', orderId)
    expect(before).toHaveLength(1)
    expect((await json('audit')).at(-1)).toMatchObject({ command: 'refunds create', outcome: 'failed' })
    expect((await site.post('/refunds-create', changed.fields, key)).status).toBe(303)
    const { refunds } = await json('payments', 'show', '--order-id', orderId)
    expect(refunds[1]).toMatchObject({ amount: 1500 })
  })

  it('the console rejects a refund with the error of the command, and stores the error in the audit', async () => {
    const { orderId } = await paidOrder()
    const fields = { 'order-id': orderId, amount: '1000', note: 'Sold out' }
    const tooMuch = await site.post('/refunds-create', { ...fields, amount: '1500.01' }, key)
    expect([tooMuch.status, textOf(tooMuch.body)]).toEqual([
      400,
      expect.stringContaining('exceeds the unrefunded rest'),
    ])
    const { fields: signed } = await site.post('/refunds-create', fields, key)
    await json('refunds', 'create', '--order-id', orderId, '--amount', '500.50', '--note', 'One cup')
    const { status, body, fields: form } = await site.post('/refunds-create', signed, key)
    expect([status, textOf(body)]).toEqual([400, expect.stringContaining('exceeds the unrefunded rest')])
    // The form of the change comes again, filled in.
    expect(form['order-id']).toBe(orderId)
    expect(body).toContain('name="amount" value="1000"')
    expect((await json('audit')).at(-1)).toMatchObject({ command: 'refunds create', outcome: 'failed' })
    const invalid = await site.post('/refunds-create', { ...fields, amount: 'ten' }, key)
    expect([invalid.status, textOf(invalid.body)]).toEqual([400, expect.stringContaining('“Amount” must be')])
  })

  it('a double payment is refunded from its row on the page of the order', async () => {
    const { orderId } = await paidOrder()
    await notify(service, notification(orderId, { amount: 1500, UTR: newUtr() }))
    const order = await site.get(`/${orderPage(orderId)}`, key)
    expect(textOf(order.body)).toMatch(/double payment of ₹1,500\.00 .* refund the second payment.* Refund… Resolve… /)
    // The change of the exception precedes those of the order.
    const [, first] = /<p class="actions"><a class="button" href="(refunds-create\?exception)/.exec(order.body) ?? []
    expect(first).toBeDefined()
    const form = await site.get(`/${changeOf(order.body, 'refunds-create?exception')}`, key)
    // The whole exception is refunded, so the form has no amount.
    expect(form.body).not.toContain('name="amount"')
    const { body, fields } = await site.post('/refunds-create', form.fields, key)
    expect(textOf(body)).toMatch(/₹1,500\.00 .* Refund ₹1,500\.00 Cancel /)
    expect((await site.post('/refunds-create', fields, key)).headers.location).toBe(orderPage(orderId))
    expect((await json('payments', 'show', '--order-id', orderId)).refunds).toMatchObject([{ amount: 1500 }])
  })
})

describe('pages', () => {
  it('the audit names the key of its reader, and the command that revokes the key', async () => {
    const { body } = await site.get('/audit', reader)
    expect(textOf(body)).toContain(`ops keys revoke --public-key ${reader.publicKey}`)
  })

  it('a key with the right read sees every list and no change', async () => {
    const { orderId } = await paidOrder()
    await notify(service, notification(orderId, { amount: 1500, UTR: newUtr() }))
    const start = await site.get('/', reader)
    const lists = [...start.body.matchAll(/<li><a href="([^"]+)"/g)].map(([, path]) => path as string)
    // The link with the number of open refunds leads to the open refunds.
    const [, open, count] = /"refunds-list(\?open=on)?"[^>]*>Refunds( <span class="count">)?/.exec(start.body) ?? []
    expect([lists, open === undefined]).toEqual([expect.arrayContaining(['audit']), count === undefined])
    for (const path of [...lists, orderPage(orderId), `search?q=${orderId.slice(1)}`]) {
      const { status, body } = await site.get(`/${path}`, reader)
      expect([path, status]).toEqual([path, 200])
      expect(body).not.toMatch(/method="post"|refunds-create/)
    }
  })

  it('a list has its filters in the query string, and shows the same rows as its command', async () => {
    const { mid, orderId } = await paidOrder()
    const refund = await json('refunds', 'create', '--order-id', orderId, '--amount', '1234', '--note', 'One cup')
    const { body } = await site.get(`/refunds-list?open=on&mid=${mid}`, key)
    expect(body).toMatch(/name="open" value="on" checked/)
    expect(textOf(body)).toMatch(new RegExp(`${refund.refundId} .* ${mid} ${orderId} direct ₹1,234\\.00 PENDING`))
    expect(textOf(body)).toContain(`ops refunds list --open --mid=${mid}`)
    expect(textOf((await site.get(`/refunds-list?mid=${unique('M')}`, key)).body)).toContain('No refunds.')
  })

  it('a slow page that an operator reloads many times does not delay other operators, and drops cancelled requests', async () => {
    await site.app.listen({ host: '127.0.0.1', port: 0 })
    const { port } = site.app.server.address() as AddressInfo
    const headers = { authorization: basic(reader) }
    const load = (signal?: AbortSignal) =>
      fetch(`http://127.0.0.1:${port}/refunds-list`, { headers, signal: signal ?? null })
    const waiting = async () => {
      const { rows } = await service.db.query(
        `select from pg_locks join pg_stat_activity using (pid)
          where relation = 'refunds'::regclass and not granted and usename = 'upi_console'`,
      )
      return rows.length
    }
    const other = await newOperatorKey(service.db, ['read'], { operator: 'meera' })
    // The counts of the navigation, which read open refunds too, are cached.
    await site.get('/merchants-list', other)
    await inTransaction(service.db, async (client) => {
      await client.query('lock table refunds')
      const left = Array.from({ length: 12 }, () => new AbortController())
      const reloads = left.map(({ signal }) => load(signal).catch(() => 'left'))
      await until('the page is read', async () => (await waiting()) > 0)
      expect((await site.get('/merchants-list', other)).status).toBe(200)
      // One page, and at most one count of the navigation.
      expect(await waiting()).toBeLessThanOrEqual(2)
      for (const one of left) one.abort()
      await Promise.all(reloads)
      await until('no query of the pages waits any more', async () => (await waiting()) === 0)
    })
    expect((await load()).status).toBe(200)
  })

  it('no page contains characters that reorder its text, and a change with such a character is made', async () => {
    const { orderId, number } = await paidOrder(unique('\u202Eshop-'))
    const note = 'Sold\u202A out'
    await json('refunds', 'create', '--order-id', orderId, '--amount', '1', '--note', note)
    const file = new File([`mid,amount\n\u202E${number},1\n`], 'day.csv')
    const confirmation = await site.post('/refunds-create', { 'order-id': orderId, amount: '1', note }, key)
    for (const { body } of [
      await site.get(`/${orderPage(orderId)}`, key),
      await site.get(`/payments-find?${new URLSearchParams({ 'merchant-order-id': number })}`, key),
      await search('\u202Eshop'),
      await site.post('/settlements-import', { file, layout: '\u202E' }, key),
      confirmation,
    ]) {
      expect(body).not.toMatch(/[\u202A\u202E]/)
    }
    expect((await site.post('/refunds-create', confirmation.fields, key)).status).toBe(303)
    const { rows } = await service.db.query('select note from refunds where order_id = $1', [orderId])
    expect(rows).toEqual([{ note }, { note }])
  })

  it('a page shows no customer data, as its command', async () => {
    const { orderId } = await paidOrder()
    const { customer_name, customer_email, customer_mobile } = intentFields('any', {})
    for (const { body } of [await site.get(`/${orderPage(orderId)}`, key), await search(orderId)]) {
      for (const value of [customer_name, customer_email, customer_mobile]) expect(body).not.toContain(value)
    }
  })
})
