import { expect } from 'vitest'
import { toIstText } from '../../../src/platform/time.ts'
import { newUtr } from '../../support/acquirer.ts'
import { opsOn } from '../../support/ops.ts'
import { createOrder } from '../../support/orders.ts'
import { storePaidOrder } from '../../support/paid-orders.ts'
import { newMerchant, unique } from '../../support/service.ts'
import { newWebhook } from '../../support/webhooks.ts'
import { type Generator, makeChange, type World } from './history.ts'
import { actsOn, merchantText, money, newOrder, rowOf } from './orders.ts'

const HOUR_MS = 60 * 60_000

const DELIVERIES = `
  select count(*) as deliveries
    from webhook_deliveries d
    join webhook_endpoints e on e.mid = d.mid and e.endpoint_id = d.endpoint_id
   where d.mid = $1 and e.disabled_at is null and (e.kind = 'webhook' or d.delivered_at is null)
     and d.occurred_at >= $2 and d.occurred_at < $3`

/** Moves the service's clock, so that events occur an hour ago; PostgreSQL and the console have the current time. */
async function newDeliveries(world: World) {
  const { service, pick } = world
  const scene = await newOrder(world)
  const { mid } = scene
  const hourAgo = new Date(Date.now() - HOUR_MS)
  service.clock.set(hourAgo.toISOString())
  const add = (url: string) => newWebhook(service.db, { mid, url, endpointId: unique('ep_') }, hourAgo)
  const endpoints = [await add('https://shop.example/hook')]
  if (pick([true, false])) endpoints.push(await add('https://shop.example/2'))
  const paysNewOrder = async () =>
    actsOn(world, { ...scene, orderId: await createOrder(service, scene), utr: newUtr() }).pays()
  await paysNewOrder()
  await actsOn(world, scene).fails()
  const { endpointId } = pick(endpoints)
  const { ops } = opsOn(() => service.databaseUrl)
  return {
    ...{ mid, endpointId, hourAgo },
    acts: {
      paysNewOrder,
      pays: () => actsOn(world, scene).pays(),
      cancels: () => actsOn(world, scene).cancels(),
      async paysNow() {
        service.clock.set(new Date().toISOString())
        await paysNewOrder()
      },
      operatorDisables: () => ops('webhooks', 'disable', '--endpoint', endpointId),
      operatorEnables: () => ops('webhooks', 'enable', '--endpoint', endpointId),
      merchantReceives: () =>
        service.db.query('update webhook_deliveries set delivered_at = now(), due_at = null where mid = $1', [mid]),
    },
  }
}

const resend: Generator = {
  share: 120,
  async create(world) {
    const { pick } = world
    const { mid, endpointId, hourAgo, acts } = await newDeliveries(world)
    const since = toIstText(new Date(hourAgo.getTime() - HOUR_MS))
    const until = pick([
      toIstText(new Date(Date.now() - HOUR_MS / 2)),
      toIstText(new Date(Date.now() - HOUR_MS / 2)),
      '',
    ])
    type Delivery = { orderId: string; sequence: number }
    const one = (await rowOf<Delivery>(
      world,
      'select order_id as "orderId", sequence from webhook_deliveries where mid = $1 and endpoint_id = $2',
      [mid, endpointId],
    )) as Delivery
    const isOne = pick([true, false, false, false])
    const delivery = `${endpointId}.${one.orderId}.${one.sequence}`
    const fields = isOne ? { delivery } : { mid, since, until }
    return {
      ...{ mid, fields },
      acts: {
        ...acts,
        operatorResends: () => makeChange(world, 'webhooks resend', fields),
        operatorResendsOne: () => makeChange(world, 'webhooks resend', { delivery }),
      },
      async figures() {
        if (isOne) {
          const isOn = await rowOf(
            world,
            'select from webhook_endpoints where mid = $1 and endpoint_id = $2 and disabled_at is null',
            [mid, endpointId],
          )
          return isOn && { fields: { deliveries: '1' } }
        }
        const end = until === '' ? new Date() : new Date(`${until.replace(' ', 'T')}+05:30`)
        const start = new Date(`${since.replace(' ', 'T')}+05:30`)
        const found = await rowOf<{ deliveries: number }>(world, DELIVERIES, [mid, start, end])
        return { fields: { deliveries: String(found?.deliveries) } }
      },
      expectStored({ shown }, difference) {
        const { gone = [], added = [] } = difference.webhook_deliveries ?? {}
        expect([String(gone.length), String(added.length)]).toEqual([shown.fields.deliveries, shown.fields.deliveries])
        for (const row of added)
          expect(row).toMatchObject({ attempts: 0, delivered_at: null, due_at: expect.any(String) })
        expect(Object.keys(difference)).toEqual(added.length > 0 ? ['webhook_deliveries'] : [])
      },
    }
  },
}

/** What the bank owes of the payments of one moment, after what it has paid out and operators have resolved. */
const OWED = `
  select coalesce(sum(l.amount_paise), 0)::bigint as owed,
         exists (select from settlements s where s.mid = $1 and s.status = 'SUCCESS') as "isSettled",
         exists (select from difference_resolutions r where r.mid = $1) as "isResolved"
    from ledger l
   where l.mid = $1 and l.replaced_at = 'infinity' and (l.kind <> 'payment' or l.at = $2) and l.kind <> 'refund'`

const resolveDifference: Generator = {
  share: 40,
  async create(world) {
    const { service, pick } = world
    service.clock.set(new Date().toISOString())
    const { mid } = await newMerchant(service.db)
    const paidAt = new Date(Date.now() - pick([10, 11, 14]) * 24 * HOUR_MS)
    const utr = newUtr()
    const orderId = await storePaidOrder(service.db, { mid, utr, paidAt, rupees: pick([200, 350]) })
    const { json } = opsOn(() => service.databaseUrl)
    const { differences } = await json('reconcile', 'differences', '--mid', mid)
    const [{ id, day, kind }] = differences
    const settles = (rupees: number) =>
      makeChange(world, 'settlements import', {
        file: new File(
          [
            `mid,amount,utr,bank_reference_number,status,initiation_date\n${mid},${rupees},${utr},B1,SUCCESS,${toIstText(new Date(paidAt.getTime() + 24 * HOUR_MS))}\n`,
          ],
          'late.csv',
        ),
      })
    const fields = { difference: id, reason: 'paid by cheque', ...(pick([true, false]) && { as: 'write-off' }) }
    return {
      ...{ mid, fields },
      acts: {
        bankSettles: () => settles(200),
        paymentIsReported: () => storePaidOrder(service.db, { mid, utr: newUtr(), paidAt }),
        bankSettlesLess: () => settles(150),
        operatorResolves: () => makeChange(world, 'reconcile resolve', { difference: id, reason: 'written off' }),
        operatorRefunds: () =>
          makeChange(world, 'refunds create', { 'order-id': orderId, amount: '80', note: 'One cup was cold' }),
        async operatorEndsRefund() {
          const refund = await rowOf<{ id: string }>(
            world,
            `select our_refund_id as id from refunds where mid = $1 and status = 'PENDING' limit 1`,
            [mid],
          )
          if (refund) await makeChange(world, 'refunds done', { refund: refund.id, reference: 'ARN1' })
        },
        merchantSells: () => storePaidOrder(service.db, { mid, utr: newUtr(), paidAt: new Date() }),
      },
      async figures() {
        type State = { owed: number; isSettled: boolean; isResolved: boolean }
        const { owed, isSettled, isResolved } = (await rowOf<State>(world, OWED, [mid, paidAt])) as State
        // A settlement that names the payment replaces the discrepancy of the total, unless that was resolved.
        if (owed === 0 || (isSettled && !isResolved)) return undefined
        return { amount: money(owed) as string, fields: { kind, day, MID: merchantText(mid) } }
      },
      expectStored({ shown, person }, difference) {
        expect(Object.keys(difference)).toEqual(['difference_resolutions'])
        const { gone, added } = difference.difference_resolutions as {
          gone: unknown[]
          added: Record<string, unknown>[]
        }
        expect(gone).toEqual([])
        expect(added).toMatchObject([
          {
            difference_id: id,
            day: shown.fields.day,
            reason: 'paid by cheque',
            resolved_by: person,
          },
        ])
        expect(money(-(added[0]?.amount_paise as number))).toBe(shown.amount)
        expect(added[0]?.written_off_as ?? undefined).toBe(fields.as)
      },
    }
  },
}

export const OTHERS: Record<string, Generator> = { 'reconcile resolve': resolveDifference, 'webhooks resend': resend }
