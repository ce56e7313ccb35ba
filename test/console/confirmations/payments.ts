import { expect } from 'vitest'
import { createStatusChecks } from '../../../src/gateway/payments/status-checks.ts'
import { toIstText } from '../../../src/platform/time.ts'
import { newUtr } from '../../support/acquirer.ts'
import { newCashfreeMerchant } from '../../support/fake-cashfree.ts'
import { createOrder } from '../../support/orders.ts'
import { CANCEL, post, STATUS } from '../../support/service.ts'
import { type Generator, makeChange, type World } from './history.ts'
import { actsOn, merchantText, money, newOrder, newPaidOrder, openExceptions, rowOf, type Scene } from './orders.ts'

const CONFIRMED = `
  select i.status, i.utr, i.cancelled_at is not null or i.failure_reported_at is not null as "isOver",
         (select order_id from payments p where p.mid = i.mid and p.utr = $3) as "paidOrder"
    from payment_intents i
   where i.mid = $1 and i.order_id = $2`

type Confirmed = { status: string; utr: string | null; isOver: boolean; paidOrder: string | null }

/** Returns how a payment with `utr` that an operator confirms is stored; undefined if it is rejected. */
async function storedAs(world: World, { mid, orderId, utr }: Scene, isDouble: boolean) {
  const order = (await rowOf<Confirmed>(world, CONFIRMED, [mid, orderId, utr])) as Confirmed
  if (order.status === 'SUCCESS' && order.utr === utr) return 'nothing: the payment is stored already'
  if (order.paidOrder !== null && order.paidOrder !== orderId) return 'exception: UTR of another order'
  if (order.status === 'SUCCESS' && !isDouble) return undefined
  if (order.status === 'SUCCESS') return 'exception: double payment'
  return order.isOver ? 'late payment' : 'payment of the order'
}

const KINDS: Record<string, string[]> = {
  'payment of the order': ['first'],
  'late payment': ['late'],
  'exception: double payment': ['second'],
}

const confirmPayment: Generator = {
  share: 120,
  async create(world) {
    const { service, pick } = world
    const scene = await newOrder(world)
    const { mid, key, orderId, utr } = scene
    const acts = actsOn(world, scene)
    const state = pick(['open', 'open', 'cancelled', 'paid', 'paid by another'])
    const isDouble = state === 'paid by another' || pick([true, false, false])
    if (state === 'cancelled') await acts.cancels()
    if (state === 'paid') await acts.pays(utr)
    if (state === 'paid by another') await acts.pays()
    const payer = await createOrder(service, { mid, key })
    const fields = { 'order-id': orderId, utr, amount: '200', note: 'by telephone', ...(isDouble && { double: 'on' }) }
    const { pays, fails, cancels, ordersAgain, merchantRefunds } = acts
    return {
      ...{ mid, fields },
      acts: {
        ...{ pays: () => pays(), paysWithUtr: () => pays(utr), paysTooMuch: () => pays(utr, 300) },
        ...{ fails: () => fails(), cancels, ordersAgain, merchantRefunds: () => merchantRefunds() },
        paysOtherOrderWithUtr: () => actsOn(world, { ...scene, orderId: payer }).pays(utr),
        operatorConfirms: () => makeChange(world, 'payments confirm', fields),
        checksStatus: () => post(service.app, STATUS, { mid, order_id: orderId }, key),
      },
      async figures() {
        const stored = await storedAs(world, scene, isDouble)
        return stored === undefined ? undefined : { fields: { 'stored as': stored } }
      },
      expectStored({ shown, person }, difference) {
        const stored = shown.fields['stored as'] as string
        const added = difference.payments?.added ?? []
        expect(difference.payments?.gone ?? []).toEqual([])
        // A second payment that a notification has stored already is not stored twice.
        if (stored !== 'exception: double payment' || added.length > 0)
          expect(added.map(({ kind }) => kind)).toEqual(KINDS[stored] ?? [])
        for (const one of added) {
          expect(one).toMatchObject({ utr, order_id: orderId, amount_paise: 20_000, source: 'operator' })
          // Of two operators who confirm the same double payment, one stores it.
          if (stored !== 'exception: double payment') expect(one.reported_by).toBe(person)
        }
        const kind = stored === 'late payment' ? stored : stored.replace('exception: ', '')
        const exceptions = difference.payment_exceptions?.added ?? []
        for (const one of exceptions) expect(one).toMatchObject({ kind, utr, amount_paise: 20_000, order_id: orderId })
        if (stored === 'late payment') expect(exceptions).toHaveLength(1)
        if (stored.startsWith('nothing')) expect(difference).toEqual({})
      },
      // The command ends with an error, although it stores the exception that was confirmed.
      outcome: ({ fields }) => (fields['stored as'] === 'exception: UTR of another order' ? 'failed' : 'done'),
    }
  },
}

const CHECKS = 'select acquirer, 12 - status_checks as left from acquirer_intents where mid = $1 and order_id = $2'

const checkStatus: Generator = {
  share: 60,
  async create(world) {
    const { service, bank, pick } = world
    service.clock.set(new Date().toISOString())
    const merchant = await newCashfreeMerchant(service)
    const { mid, key } = merchant
    const orderId = await createOrder(service, merchant)
    if (pick([true, false, false]))
      await service.db.query('update acquirer_intents set status_checks = 10 where mid = $1', [mid])
    const pays = (isNotified: boolean) =>
      bank.pay(orderId, isNotified ? {} : { faults: { lost: 1 } as never }).catch(() => undefined)
    return {
      ...{ mid, fields: { 'order-id': orderId } },
      acts: {
        customerPays: () => pays(true),
        cancels: () => post(service.app, CANCEL, { mid, order_id: orderId }, key),
        serviceChecks: () => createStatusChecks(service.db).claim(orderId, 12, new Date()),
        operatorChecks: () => makeChange(world, 'payments enquire', { 'order-id': orderId }),
      },
      async figures() {
        const order = await rowOf<{ acquirer: string; left: number }>(world, CHECKS, [mid, orderId])
        if (!order || order.left < 1) return undefined
        return { fields: { acquirer: order.acquirer, 'status checks left': String(order.left) } }
      },
      expectStored({ shown }, difference) {
        const { gone, added } = difference.acquirer_intents ?? { gone: [], added: [] }
        const left = Number(shown.fields['status checks left'])
        expect([gone, added]).toMatchObject([[{ status_checks: 12 - left }], [{ status_checks: 12 - left + 1 }]])
        expect(added[0]).toMatchObject({ acquirer: shown.fields.acquirer, order_id: orderId })
      },
    }
  },
}

const EXCEPTION = `
  select e.kind, e.amount_paise as amount, e.utr, e.received_at as "receivedAt"
    from payment_exceptions e
   where e.mid = $1 and e.exception_id = $2
     and not exists (select from payment_resolutions r where r.mid = e.mid and r.exception_id = e.exception_id)`

const resolve: Generator = {
  share: 110,
  async create(world) {
    const { pick } = world
    const isLate = pick([true, false, false])
    const scene = isLate ? await newOrder(world) : await newPaidOrder(world)
    const { mid, orderId } = scene
    const acts = actsOn(world, scene)
    if (isLate) {
      await acts.cancels()
      await acts.pays(scene.utr)
    } else {
      await pick([() => acts.pays(newUtr()), () => acts.pays(newUtr(), 300), () => acts.fails()])()
    }
    const [exception = ''] = await openExceptions(world, mid)
    const { cancels: _, ...others } = acts
    return {
      ...{ mid, fields: { exception, reason: 'refunded in cash' } },
      acts: {
        ...others,
        async operatorRefundsAndEnds() {
          await others.operatorRefundsException()
          await others.operatorEndsRefund()
        },
      },
      async figures() {
        type Open = { kind: string; amount: number; utr: string; receivedAt: Date }
        const open = await rowOf<Open>(world, EXCEPTION, [mid, exception])
        if (open === undefined) return undefined
        const { kind, amount, utr, receivedAt } = open
        const named = { MID: merchantText(mid), 'order ID': orderId, UTR: utr }
        return { amount: money(amount) as string, fields: { kind, ...named, 'received at': toIstText(receivedAt) } }
      },
      expectStored({ person }, difference) {
        const resolution = { exception_id: exception, reason: 'refunded in cash', resolved_by: person }
        expect(difference).toEqual({
          payment_resolutions: { gone: [], added: [expect.objectContaining(resolution)] },
        })
      },
    }
  },
}

export const PAYMENTS: Record<string, Generator> = {
  'payments confirm': confirmPayment,
  'payments enquire': checkStatus,
  'payments resolve': resolve,
}
