import fc from 'fast-check'
import { beforeAll, expect, it } from 'vitest'
import { COMMANDS } from '../../src/operator/terminal/main.ts'
import { type ConsolePage, createTestConsole, newOperatorKey } from '../support/console.ts'
import { CASHFREE, CASHFREE_SECRETS, cashfreeSettings } from '../support/fake-cashfree.ts'
import { isGenerated, runs } from '../support/generated.ts'
import { startServiceBeside } from '../support/service-with-bank.ts'
import { DISPUTES } from './confirmations/disputes.ts'
import { addLayout, FILES } from './confirmations/files.ts'
import { type Generator, type History, type Pick, play, type World } from './confirmations/history.ts'
import { newPaidOrder } from './confirmations/orders.ts'
import { OTHERS } from './confirmations/others.ts'
import { pathOf, read } from './confirmations/page.ts'
import { PAYMENTS } from './confirmations/payments.ts'
import { REFUNDS } from './confirmations/refunds.ts'

/** A new change that the console offers needs an entry. The first ones read the books of all merchants. */
const GENERATORS: Record<string, Generator> = { ...OTHERS, ...REFUNDS, ...DISPUTES, ...PAYMENTS, ...FILES }

const OFFERED = COMMANDS.filter(({ title, changes }) => title !== '' && changes)

let world: Omit<World, 'pick'>

beforeAll(async () => {
  // No job of the service acts by itself, since the histories do.
  const { service, bank } = await startServiceBeside(CASHFREE, { limits: { webhooks: { lookIntervalMs: 3_600_000 } } })
  const { apiUrl, clientId } = cashfreeSettings(bank)
  const secret = { CASHFREE_CLIENT_SECRET: CASHFREE_SECRETS.join() }
  const settings = { CASHFREE_API_URL: apiUrl, CASHFREE_CLIENT_ID: clientId, ...secret }
  const site = await createTestConsole(service, () => new Date(), settings)
  const [asha, meera, ravi] = await Promise.all(
    ['asha', 'meera', 'ravi'].map((operator) => newOperatorKey(service.db, undefined, { operator })),
  )
  world = { service, bank, site, operators: { asha, meera, ravi } as World['operators'] }
  await addLayout(world)
})

const numbers = (most: number) => fc.array(fc.nat(10_000), { maxLength: most })
const history: fc.Arbitrary<History & { choices: number[] }> = fc.record({
  choices: fc.array(fc.nat(10_000), { minLength: 20, maxLength: 20 }),
  // A form that comes again may be confirmed, too, and what others do may change it once more.
  acts: fc.oneof(fc.tuple(numbers(3)), fc.tuple(numbers(3), numbers(0)), fc.tuple(numbers(3), numbers(2), numbers(1))),
  isConcurrent: fc.constantFrom(false, false, true),
})

/** Returns the function that selects one of several values by the next of `choices`. */
function pickBy(choices: readonly number[]): Pick {
  let next = 0
  return <T>(values: readonly T[]) => values[(choices[next++ % choices.length] as number) % values.length] as T
}

it('every change that the console offers has generated histories', () => {
  // A month is closed once for all merchants: close.test.ts changes it between form and confirmation. What a daily transaction
  // report has counted is not compared: preview-reports.gen.test.ts compares it with the import.
  const generated = OFFERED.filter(({ name }) => name !== 'reconcile close' && name !== 'payments import')
  expect(Object.keys(GENERATORS).sort()).toEqual(generated.map(({ name }) => name).sort())
})

it.each(Object.entries(GENERATORS))(
  'the tables and the audit have what a confirmation of %s has shown, or the form comes again with the new figures',
  async (name, { share, create }) => {
    const command = OFFERED.find((one) => one.name === name)
    if (command === undefined) throw new Error(`the console does not offer ${name}`)
    const seen: number[] = []
    await fc.assert(
      fc.asyncProperty(history, async ({ choices, ...one }) => {
        seen.push(...(await play({ ...world, pick: pickBy(choices) }, command, create, one)))
      }),
      { numRuns: runs(share, 2) },
    )
    expect(seen, 'the change is made').toContain(303)
    if (isGenerated()) expect(seen, 'what others do prevents the change').toContainEqual(expect.not.toBeOneOf([303]))
  },
)

it('two operators who confirm a refund on pages without open refunds refund twice only after one has seen the other’s', async () => {
  const scene = await newPaidOrder({ ...world, pick: pickBy([0]) })
  const { site, operators, service } = world
  const path = pathOf('refunds create')
  const fields = { 'order-id': scene.orderId, amount: '100', note: 'One cup was cold' }
  const people = [operators.asha, operators.meera]
  const pages = await Promise.all(people.map((key) => site.post(path, fields, key)))
  for (const page of pages) expect(read(page).fields).toMatchObject({ 'refunds open': '₹0.00' })
  const confirmed = await Promise.all(pages.map((page, index) => site.post(path, page.fields, people[index])))
  expect(confirmed.map(({ status }) => status).sort()).toEqual([303, 409])
  const refunds = async () =>
    (await service.db.query('select amount_paise from refunds where mid = $1', [scene.mid])).rows
  expect(await refunds()).toEqual([{ amount_paise: 10_000 }])
  const second = confirmed.findIndex(({ status }) => status === 409)
  const again = confirmed[second] as ConsolePage
  expect(read(again)).toMatchObject({ amount: '₹100.00', fields: { 'refunds open': '₹100.00' } })
  expect((await site.post(path, again.fields, people[second])).status).toBe(303)
  expect(await refunds()).toEqual([{ amount_paise: 10_000 }, { amount_paise: 10_000 }])
})
