import { describe, expect, it } from 'vitest'
import { opsOn, runOps } from '../support/ops.ts'
import { createWithHistory, HISTORIES } from '../support/order-states.ts'
import { createOrder } from '../support/orders.ts'
import { newMerchant, OWN_ORDERS, post, startService } from '../support/service.ts'

const service = await startService()
const { ops, json } = opsOn(() => service.databaseUrl, ['payments', 'list'])

describe('payments list', () => {
  it('lists the orders of a merchant with the values of fetchOrderList', async () => {
    const merchant = await newMerchant(service.db)
    service.clock.set(new Date().toISOString())
    for (const history of Object.keys(HISTORIES)) await createWithHistory(service, merchant, history)
    await service.db.query(`update payments set instrument = 'wallet' where mid = $1`, [merchant.mid])
    const days = { s_date: '01-01-2026', e_date: '31-12-2099' }
    const { data } = (await post(service.app, OWN_ORDERS, { mid: merchant.mid, ...days }, merchant.key)).body
    expect(data).toHaveLength(Object.keys(HISTORIES).length)
    const expected = data.map(
      ({ orderId, order_id, amount, status, reason, UTR, refunded, created_at }: typeof data) => ({
        ...{
          createdAt: created_at,
          orderId,
          merchantOrderId: order_id,
          amount,
          status,
          reason: reason || null,
          utr: UTR || null,
          refunded,
          instrument: UTR ? 'wallet' : null,
        },
      }),
    )
    expect(await json('--mid', merchant.mid)).toEqual(expected)
    const paid = expected.filter(({ status }: { status: string }) => status === 'SUCCESS')
    expect(await json('--mid', merchant.mid, '--status', 'SUCCESS')).toEqual(paid)
    const show = ['payments', 'show', '--json', '--order-id', paid[0].orderId]
    expect(JSON.parse((await runOps(service.databaseUrl, show)).stdout)).toMatchObject({ instrument: 'wallet' })
  })

  it('lists the days of --from and --to, or today, and no order of another merchant', async () => {
    const merchant = await newMerchant(service.db)
    const at = async (moment: string) => {
      service.clock.set(moment)
      await createOrder(service, await newMerchant(service.db))
      return createOrder(service, merchant)
    }
    const [, first, last] = [
      await at('2026-05-05T23:59:59+05:30'),
      await at('2026-05-06T00:00:00+05:30'),
      await at('2026-05-07T23:59:59+05:30'),
    ]
    const ids = (rows: { orderId: string }[]) => rows.map(({ orderId }) => orderId)
    const days = ['--from', '2026-05-06', '--to', '2026-05-07']
    expect(ids(await json('--mid', merchant.mid, ...days))).toEqual([first, last])
    expect(ids(await json('--mid', merchant.mid, '--from', '2026-05-07'))).toEqual([last])
    const today = await at(new Date().toISOString())
    expect(ids(await json('--mid', merchant.mid))).toEqual([today])
    const { stdout } = await ops('--mid', merchant.mid, ...days, '--csv')
    expect(stdout.split('\n')).toHaveLength(4)
  })

  it('rejects an unknown merchant and an unknown status', async () => {
    expect(await ops('--mid', 'NOBODY')).toMatchObject({ code: 1, stderr: expect.stringContaining('NOBODY') })
    const { mid } = await newMerchant(service.db)
    expect(await ops('--mid', mid, '--status', 'PAID')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--status must be PENDING, '),
    })
  })
})
