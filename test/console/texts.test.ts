import { beforeAll, describe, expect, it } from 'vitest'
import { withLinks } from '../../src/operator/console/command-links.ts'
import type { OperatorView } from '../../src/operator/console/view.ts'
import { COMMANDS } from '../../src/operator/terminal/main.ts'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { createTestConsole, newOperatorKey, type TestConsole } from '../support/console.ts'
import { createOrder } from '../support/orders.ts'
import { type Key, newMerchant, startService, type TestService } from '../support/service.ts'

let service: TestService
let site: TestConsole
let key: Key

beforeAll(async () => {
  service = await startService()
  site = await createTestConsole(service, () => service.clock.now())
  key = await newOperatorKey(service.db)
})

async function paidOrder() {
  const merchant = await newMerchant(service.db, { name: 'Chai & Co' })
  const orderId = await createOrder(service, merchant)
  const utr = newUtr()
  await notify(service, notification(orderId, { UTR: utr }))
  return { mid: merchant.mid, orderId, utr }
}

/** The text that a browser copies. */
const copied = (markup = '') => markup.replace(/<[^>]+>/g, '')
const cellOf = (body: string, name: string) => new RegExp(`data-name="${name}">(.*?)</td>`, 'i').exec(body)?.[1]

describe('texts of the console', () => {
  it('tables and records show the name of a merchant beside the MID', async () => {
    const { mid, orderId } = await paidOrder()
    const { body } = await site.get('/payments-find', key)
    expect(body).toContain(`<span>Chai &#38; Co <small class="quiet">${mid}</small></span></td>`)
    expect((await site.get(`/payments-show?order-id=${orderId}`, key)).body).toContain(`>Chai &#38; Co</a> ${mid}`)
    const merchants = await site.get('/merchants-list', key)
    expect(copied(cellOf(merchants.body, 'MID'))).not.toContain('Chai')
  })

  it('a UTR is shown in groups of four and copied without spaces', async () => {
    const { orderId, utr } = await paidOrder()
    const groups = utr.match(/.{4}/g)?.map((four) => `<span>${four}</span>`)
    const shown = `<span class="utr">${groups?.join('')}</span>`
    expect((await site.get(`/payments-show?order-id=${orderId}`, key)).body.split(shown).length).toBeGreaterThan(2)
    const list = await site.get('/payments-find', key)
    expect(list.body).toContain(`<a href="search?q=${utr}">${shown}</a>`)
    expect(copied(shown)).toBe(utr)
  })

  it('texts of commands link the page of the next command, with the identifiers that they name', async () => {
    const { orderId, mid } = await paidOrder()
    await notify(service, notification(orderId, { UTR: newUtr() }))
    const order = `payments-show?order-id=${orderId}`
    const { body, fields } = await site.post(
      '/refunds-create',
      { 'order-id': orderId, amount: '1', note: 'A cup', back: order },
      key,
    )
    expect(body).toContain('Nothing is changed until you confirm')
    await site.post('/refunds-create', fields, key)
    const after = await site.get(`/${order}`, key)
    expect(after.body).toMatch(/then run <a href="refunds-done\?refund=[0-9a-f]{32}&#38;back=[^"]+">Mark as done<\/a>/)
    const unknown = await site.get(`/payments-list?mid=unknown${mid}`, key)
    expect(unknown.body).toContain('does not exist: see <a href="merchants-list">Merchants</a>')
  })

  it.each<[string, string]>([
    ['see ops reconcile payouts --open', 'see <a href="reconcile-payouts?open=on">Payouts</a>'],
    ['run ops reconcile for its day', 'run <a href="reconcile">Reconciliation</a> for its day'],
    [
      "run ops payments resolve --exception ID --reason 'returned, RRN …'.",
      'run <a href="payments-resolve?back=today">Resolve</a>.',
    ],
    [
      '(ops reconcile --from 2026-04-01 --to 2026-04-02)',
      '(<a href="reconcile?from=2026-04-01&#38;to=2026-04-02">Reconciliation</a>)',
    ],
    ['see ops accounts list', 'see ops accounts list'],
    ['5 drops in <Delhi>', '5 drops in &#60;Delhi&#62;'],
  ])('the text %j links the page of the command', (text, expected) => {
    const names = ['reconcile', 'reconcile payouts', 'payments resolve']
    const groups = { All: COMMANDS.filter(({ name }) => names.includes(name)) }
    expect(withLinks(text, { groups, here: 'today' } as unknown as OperatorView).toString()).toBe(expected)
  })
})
