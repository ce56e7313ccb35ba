import { expect } from 'vitest'
import type { Generator, Subject, World } from './history.ts'
import { makeChange } from './history.ts'
import { actsOn, makeUnsure, merchantText, money, newPaidOrder, newRefund, rowOf, type Scene } from './orders.ts'

const DISPUTE = `
  select amount_paise as amount, status, status in ('won', 'lost', 'accepted', 'closed') as "isFinal"
    from disputes
   where mid = $1 and dispute_id = $2`

type Stored = { amount: number | null; status: string; isFinal: boolean }

/** The refunds of a payment that have not failed. A refund that the service has not sent yet is not of direct. */
const REFUNDS = `
  select r.amount_paise as amount, r.status = 'PENDING' as "isOpen", r.status = 'PENDING' and r.acquirer <> 'direct' as "isUnsent"
    from refunds r
    left join refund_returns b on b.mid = r.mid and b.our_refund_id = r.our_refund_id
   where r.mid = $1 and r.utr = $2 and r.status <> 'FAIL' and b.mid is null
   order by amount_paise`

const PAID = 20_000

async function refundsOf({ service }: World, { mid, utr }: Scene) {
  type Row = { amount: number; isOpen: boolean; isUnsent: boolean }
  const { rows } = await service.db.query<Row>(REFUNDS, [mid, utr])
  return { open: rows.filter(({ isOpen }) => isOpen), sent: rows.filter(({ isUnsent }) => !isUnsent) }
}

/** Returns the notes of a new dispute that is not final: one for each refund that continues, or that may be returned twice. */
function notesOf({ sent }: Awaited<ReturnType<typeof refundsOf>>, disputed: number) {
  const twice = Math.max(0, sent.reduce((sum, { amount }) => sum + amount, 0) + disputed - PAID)
  return sent
    .filter(({ isOpen }) => isOpen || twice > 0)
    .map(() => 'new exception "refund of a disputed payment": see Exceptions')
}

const named = ({ mid, orderId, utr }: Scene) => ({
  ...{ MID: merchantText(mid), 'order ID': orderId, UTR: utr, acquirer: 'direct' },
})

/** Creates a paid order with up to two refunds, one of which the service has not sent. */
async function newScene(world: World) {
  const { pick } = world
  const scene = await newPaidOrder(world)
  if (pick([true, false])) await newRefund(world, scene, 60)
  if (pick([true, false, false])) await makeUnsure(world, await newRefund(world, scene, 20))
  const { merchantRefunds, operatorRefunds, operatorEndsRefund, acquirerEndsRefund, pays } = actsOn(world, scene)
  const others = {
    ...{ operatorEndsRefund, acquirerEndsRefund, pays: () => pays() },
    ...{ merchantRefunds: () => merchantRefunds(), operatorRefunds: () => operatorRefunds() },
  }
  return { scene, others }
}

const add: Generator = {
  share: 80,
  async create(world) {
    const { pick } = world
    const { scene, others } = await newScene(world)
    const { mid, orderId } = scene
    const [amount, status] = [pick(['', '200', '150.50', '1']), pick(['', '', 'under review', 'won'])]
    const fields = { 'order-id': orderId, dispute: 'D1', amount, kind: 'CHARGEBACK', status }
    const recordsSame = () => makeChange(world, 'disputes add', { 'order-id': orderId, dispute: 'D1' })
    return {
      ...{ mid, fields },
      acts: { ...others, recordsSame, records: () => makeChange(world, 'disputes add', { ...fields, dispute: 'D2' }) },
      async figures() {
        if (await rowOf<Stored>(world, DISPUTE, [mid, 'D1'])) return undefined
        const refunds = await refundsOf(world, scene)
        const isHeld = status !== 'won'
        const fails = isHeld ? refunds.open.filter(({ isUnsent }) => isUnsent).length : 0
        const disputed = amount === '' ? PAID : Number(amount) * 100
        return {
          ...(amount !== '' && { amount: money(disputed) as string }),
          notes: isHeld ? notesOf(refunds, disputed) : [],
          fields: {
            ...{ status: status || 'open', ...named(scene), 'refunds that fail': String(fails) },
            'refunds that continue': String(refunds.open.length - fails),
          },
        }
      },
      expectStored({ shown, person }, difference) {
        expect(difference.disputes?.gone).toEqual([])
        expect(difference.disputes?.added).toMatchObject([
          { dispute_id: 'D1', order_id: orderId, acquirer: 'direct', kind: 'CHARGEBACK', status: shown.fields.status },
        ])
        expect(money(difference.disputes?.added[0]?.amount_paise) ?? '').toBe(shown.amount)
        expect(difference.dispute_states?.added).toMatchObject([{ status: shown.fields.status, reported_by: person }])
        const failed = (difference.refunds?.added ?? []).map((row) => [row.status, row.reason])
        expect(failed).toEqual(
          Array(Number(shown.fields['refunds that fail'])).fill(['FAIL', 'The payment is disputed']),
        )
        expect(difference.payment_exceptions?.added ?? []).toHaveLength(shown.notes.length)
        expect(difference.payments).toBeUndefined()
      },
    }
  },
}

const update: Generator = {
  share: 60,
  async create(world) {
    const { pick } = world
    const { scene, others } = await newScene(world)
    const { mid, orderId } = scene
    const change = (more: Record<string, string>) =>
      makeChange(world, 'disputes update', { dispute: 'D1', mid, ...more })
    await makeChange(world, 'disputes add', { 'order-id': orderId, dispute: 'D1', amount: pick(['', '120']) })
    const [amount, status] = pick([
      ['', 'under review'],
      ['80', 'lost'],
      ['150', ''],
      ['', 'won'],
    ])
    const fields = { dispute: 'D1', mid, acquirer: pick(['', 'direct']), amount, status, reason: 'goods not received' }
    const expectStored: Subject['expectStored'] = ({ shown }, difference) => {
      const [row] = difference.disputes?.added ?? []
      expect(row).toMatchObject({ status: shown.fields.status, reason_text: 'goods not received' })
      expect(money(row?.amount_paise) ?? '').toBe(shown.amount)
      for (const state of difference.dispute_states?.added ?? []) expect(state.status).toBe(shown.fields.status)
      expect([difference.refunds, difference.payments, difference.payment_exceptions]).toEqual(Array(3).fill(undefined))
    }
    return {
      ...{ mid, fields, expectStored },
      acts: {
        ...others,
        updatesAmount: () => change({ amount: '99' }),
        updatesStatus: () => change({ status: pick(['under review', 'won', 'accepted']) }),
      },
      async figures() {
        const stored = (await rowOf<Stored>(world, DISPUTE, [mid, 'D1'])) as Stored
        if (stored.isFinal && status !== '' && status !== stored.status) return undefined
        const paise = amount === '' ? stored.amount : Number(amount) * 100
        const open = (await refundsOf(world, scene)).open.length
        return {
          ...(paise !== null && { amount: money(paise) as string }),
          fields: {
            ...{ status: status || stored.status, ...named(scene) },
            ...{ 'refunds that fail': '0', 'refunds that continue': String(open) },
          },
        }
      },
    }
  },
}

export const DISPUTES: Record<string, Generator> = { 'disputes add': add, 'disputes update': update }
