import { expect } from 'vitest'
import type { Figures, Generator, Subject, World } from './history.ts'
import {
  actsOn,
  endAtAcquirer,
  makeUnsure,
  merchantText,
  money,
  newPaidOrder,
  newRefund,
  openExceptions,
  rowOf,
  type Scene,
} from './orders.ts'

/** The refunds of the payment $2 of the merchant $1, by status. A returned refund has failed. */
const PAYMENT = `
  select p.utr, p.order_id as "orderId", p.amount_paise as paid,
         coalesce(sum(r.amount_paise) filter (where r.status = 'SUCCESS' and b.mid is null), 0)::bigint as refunded,
         coalesce(sum(r.amount_paise) filter (where r.status = 'PENDING'), 0)::bigint as open
    from payments p
    left join refunds r on r.mid = p.mid and r.utr = p.utr
    left join refund_returns b on b.mid = r.mid and b.our_refund_id = r.our_refund_id
   where p.mid = $1 and p.utr = $2
   group by p.utr, p.order_id, p.amount_paise`

const EXCEPTION = `
  select e.utr, e.kind, r.reason as resolution,
         exists (select from refunds f join refund_returns b on b.mid = f.mid and b.our_refund_id = f.our_refund_id
                  where f.mid = e.mid and f.exception_id = e.exception_id) as "isReturned"
    from payment_exceptions e
    left join payment_resolutions r on r.mid = e.mid and r.exception_id = e.exception_id
   where e.mid = $1 and e.exception_id = $2`

const WARNED = `
  select e.kind, e.amount_paise as amount
    from payment_exceptions e
    left join payment_resolutions r on r.mid = e.mid and r.exception_id = e.exception_id
   where e.mid = $1 and e.order_id = $2 and e.exception_id <> $3 and e.kind in ('double payment', 'late payment') and r.mid is null
   order by e.received_at, e.kind, e.utr`

/** Returns the figures of a new refund of `rupees`, or of everything that is left. */
async function figuresOfRefund(world: World, scene: Scene, { rupees = '', exception = '' }) {
  const { mid, orderId } = scene
  type Excepted = { utr: string; resolution: string | null; isReturned: boolean }
  const excepted = exception === '' ? undefined : await rowOf<Excepted>(world, EXCEPTION, [mid, exception])
  if (excepted?.resolution && !excepted.isReturned) return undefined
  type Payment = Record<'paid' | 'refunded' | 'open', number>
  const payment = await rowOf<Payment>(world, PAYMENT, [mid, excepted?.utr ?? scene.utr])
  if (payment === undefined) return undefined
  const { paid, refunded, open } = payment
  const left = paid - refunded - open
  const amount = rupees === '' ? left : Number(rupees) * 100
  if (amount < 1 || amount > left) return undefined
  const { rows } = await world.service.db.query(WARNED, [mid, orderId, exception])
  return {
    amount: money(amount) as string,
    notes: rows.map(
      ({ kind, amount }) =>
        `the order also has an open ${kind} of ${money(amount)}: if this refund is meant for it, use Refund instead`,
    ),
    fields: {
      refunded: money(refunded),
      'refunds open': money(open),
      'left after this refund': money(left - amount),
      MID: merchantText(mid),
      'order ID': orderId,
      UTR: excepted?.utr ?? scene.utr,
      acquirer: 'direct',
    },
  }
}

const create: Generator = {
  share: 200,
  async create(world) {
    const { pick } = world
    const isLate = pick([false, false, true])
    const scene = await newPaidOrder(world)
    const acts = actsOn(world, scene)
    if (isLate) await acts.pays()
    for (const rupees of pick([[], [], [20], [20, 30]])) {
      const refund = await newRefund(world, scene, rupees)
      if (pick([false, false, true])) await endAtAcquirer(world, refund)
    }
    const [exception] = pick([true, false]) ? await openExceptions(world, scene.mid) : []
    const rupees = exception ? undefined : pick(['', '100', '100', '60.50', '1', '150'])
    const fields = exception
      ? { exception, note: pick(['', 'Paid twice']) }
      : { 'order-id': scene.orderId, amount: rupees ?? '', note: 'One cup was cold' }
    const { fails: _, cancels: __, ...others } = acts
    return {
      ...{ mid: scene.mid, fields },
      acts: { ...others, merchantRefundsAgain: () => acts.merchantRefunds('20') },
      figures: () => figuresOfRefund(world, scene, { rupees, exception }),
      expectStored({ shown, person }, difference) {
        expect(Object.keys(difference)).toEqual(['refunds'])
        const { gone, added } = difference.refunds as { gone: unknown[]; added: Record<string, unknown>[] }
        expect(gone).toEqual([])
        expect(added.map(({ amount_paise }) => money(amount_paise as number))).toEqual([shown.amount])
        expect(added).toMatchObject([
          {
            ...{ order_id: shown.fields['order ID'], utr: shown.fields.UTR, acquirer: shown.fields.acquirer },
            ...{ status: 'PENDING', created_by: person, exception_id: exception ?? null },
            ...{ note: fields.note || 'double payment' },
          },
        ])
      },
    }
  },
}

const REFUND = `
  select r.amount_paise as amount, r.acquirer, r.status, b.mid is not null as "isReturned", r.due_at is null as "isLeft",
         r.accepted_at is not null as "isAccepted"
    from refunds r
    left join refund_returns b on b.mid = r.mid and b.our_refund_id = r.our_refund_id
   where r.mid = $1 and r.our_refund_id = $2`

type StoredRefund = { amount: number; acquirer: string; status: string } & Record<
  'isReturned' | 'isLeft' | 'isAccepted',
  boolean
>

/** Returns a generator of changes to one refund. `permits` is the state that the change requires. */
function changeOfRefund(
  { share, unsure, isDone = false }: { share: number; unsure: readonly boolean[]; isDone?: boolean },
  fields: Record<string, string>,
  status: string,
  permits: (refund: StoredRefund) => boolean,
): Generator {
  return {
    share,
    async create(world) {
      const { pick } = world
      const scene = await newPaidOrder(world)
      const refund = await newRefund(world, scene, pick([80, 100, 200]))
      if (pick(unsure)) await makeUnsure(world, refund)
      if (isDone) await endAtAcquirer(world, refund)
      const acts = actsOn(world, scene)
      const figures = async (): Promise<Figures | undefined> => {
        const stored = await rowOf<StoredRefund>(world, REFUND, [scene.mid, refund.ourRefundId])
        if (!stored || !permits(stored)) return undefined
        const { amount, acquirer } = stored
        const { mid, orderId } = scene
        const named = { MID: merchantText(mid), 'order ID': orderId }
        return { amount: money(amount) as string, fields: { status, ...named, acquirer } }
      }
      const expectStored: Subject['expectStored'] = ({ shown, person }, difference) => {
        const of = { our_refund_id: refund.ourRefundId }
        if (status === 'FAIL' && isDone) {
          expect(difference.refund_returns?.gone).toEqual([])
          expect(difference.refund_returns?.added).toMatchObject([{ ...of, ...fields, returned_by: person }])
          expect(difference.refunds).toBeUndefined()
          return
        }
        const { gone, added } = difference.refunds ?? { gone: [], added: [] }
        expect([gone, added]).toMatchObject([[of], [{ ...of, status: shown.fields.status }]])
        expect(money(added[0]?.amount_paise)).toBe(shown.amount)
        if (status === 'PENDING') expect(added[0]).toMatchObject({ attempts: 0, sent_at: null, reason: null })
        else expect(added[0]).toMatchObject({ ...fields, acquirer: shown.fields.acquirer, order_id: scene.orderId })
        // Each of the changes resolves the exception "refund unsure", unless an operator has resolved it.
        for (const resolution of difference.payment_resolutions?.added ?? []) {
          expect(shown.fields.acquirer).toBe('setu')
          expect(resolution.resolved_by).toBe(person)
        }
        expect(difference.payments).toBeUndefined()
      }
      const { fails: _, cancels: __, operatorRefundsException: ___, ...others } = acts
      return { mid: scene.mid, fields: { refund: refund.ourRefundId, ...fields }, acts: others, figures, expectStored }
    },
  }
}

const isOpen = ({ status, isLeft }: StoredRefund) => status === 'PENDING' && isLeft

export const REFUNDS: Record<string, Generator> = {
  'refunds create': create,
  'refunds retry': changeOfRefund(
    { share: 40, unsure: [true] },
    {},
    'PENDING',
    ({ status, isLeft, isAccepted }) => status === 'PENDING' && isLeft && !isAccepted,
  ),
  'refunds done': changeOfRefund({ share: 80, unsure: [false, false, true] }, { reference: 'ARN1' }, 'SUCCESS', isOpen),
  'refunds fail': changeOfRefund(
    { share: 80, unsure: [false, false, true] },
    { reason: 'the account is closed' },
    'FAIL',
    isOpen,
  ),
  'refunds returned': changeOfRefund(
    { share: 60, unsure: [false], isDone: true },
    { reference: 'RET1', reason: 'the account is closed' },
    'FAIL',
    ({ status, isReturned }) => status === 'SUCCESS' && !isReturned,
  ),
}
