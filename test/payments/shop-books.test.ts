import { expect, it } from 'vitest'
import { notification, notify } from '../support/acquirer.ts'
import { ON_CITUS } from '../support/installed-postgres.ts'
import { CREATE, intentFields, newMerchant, post, STATUS, startService } from '../support/service.ts'

const EXPIRY_MINUTES = 15
const GRACE_MINUTES = 10

// A lock that is awaited on a worker of Citus is not seen.
it.skipIf(ON_CITUS)(
  'a success that is stored only after the shop was told the end is a late payment, though the bank told of it in time',
  async () => {
    const service = await startService({ expiryMinutes: EXPIRY_MINUTES })
    const { mid, key } = await newMerchant(service.db)
    const { orderId } = (await post(service.app, CREATE, intentFields(mid), key)).body.data
    service.clock.advance((EXPIRY_MINUTES + GRACE_MINUTES) * 60 - 2)
    const blocker = await service.db.connect()
    try {
      await blocker.query('begin')
      await blocker.query('select from payment_intents where mid = $1 and order_id = $2 for update', [mid, orderId])
      const told = notify(service, notification(orderId))
      const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
      await expect.poll(async () => (await service.db.query(waiting)).rowCount).toBe(1)
      service.clock.advance(3)
      const { body } = await post(service.app, STATUS, { mid, order_id: orderId }, key)
      expect([body.status, body.txnStatus]).toEqual([true, 'FAIL'])
      await blocker.query('commit')
      expect((await told).status).toBe(200)
    } finally {
      blocker.release(true)
    }
    const { rows } = await service.db.query('select kind from payment_exceptions where order_id = $1', [orderId])
    expect(rows).toEqual([{ kind: 'late payment' }])
  },
)
