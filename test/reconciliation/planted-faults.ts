import { countDays } from '../../src/books/ledger/bank-days.ts'
import { type Form, makerOf, type Plan, type Planted } from './plants.ts'
import { namesByPayment, plantByPayment } from './plants-by-payment.ts'
import { namesBySums, plantBySums } from './plants-by-sums.ts'

const isByPayment = (form: Form) => form === 'named' || form === 'own'
export const namesOf = (form: Form) => (isByPayment(form) ? namesByPayment : namesBySums(form))

/** Creates a merchant's story with the discrepancies of the plan. */
export function plantFaults(plan: Plan): Planted {
  const maker = makerOf(plan)
  if (isByPayment(plan.form)) plantByPayment(maker, plan)
  else plantBySums(maker, plan)
  return { story: maker.story, days: plan.days, differences: maker.differences }
}

type Turns = Pick<Plan, 'days' | 'perDay'> & { seed: number; first?: number }

/**
 * Creates one merchant per form. Merchants with the same form continue the list of discrepancies where the previous one
 * stopped, so that each kind occurs.
 */
export function plantInTurns(forms: readonly Form[], { seed, first = 0, ...plan }: Turns): Planted[] {
  const turns = new Map<Form, number>()
  return forms.map((form, index) => {
    const names = namesOf(form)
    const turn = turns.get(form) ?? seed
    const days = countDays(plan.days.from, plan.days.to)
    const plants = new Map(
      Array.from({ length: days }, (_, slot) => [slot, names[(turn + slot) % names.length] as string]),
    )
    turns.set(form, turn + Math.ceil(days / 4))
    return plantFaults({ ...plan, number: first + index, form, plants })
  })
}
